/* Drives the tick (run/tick.c) with sources that offer on a script, through every row of the policy table.
 * SPDX-License-Identifier: MIT */
#include "sampler/kernel/priority.h"
#include "sampler/kernel/proc_files.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/run/context_switches.h"
#include "sampler/run/idle_threads.h"
#include "sampler/run/policy.h"
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/thread_sources.h"
#include "sampler/run/tick.h"
#include "test.h"

enum { MS = 1000000, PERIOD_NS = 10 * MS, STARTER = 7, THREADS = POLICY_RECHECKS_MAX + 1, LOG_MAX = 16 };

/* --- Sources, as a case says -------------------------------------------------------------------------------------- */

/* Answers of the sources, and what they were asked for. */
static struct {
    enum source_offer waits, running, blocked, asked;
    struct source_stack stack; /* the next stack of CPU time */
    uint64_t room;
    enum source_need needs[LOG_MAX]; /* requests to the threads */
    size_t need_count;
    bool is_lost; /* true if a request finds time to be lost */
    unsigned timer_wants, observed, forgotten;
} script;

static enum source_offer offer_waits(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)thread, (void)state;
    return script.waits;
}

static enum source_offer want_nothing(struct source_tick *tick, struct source_thread *thread, void *state,
                                      enum source_need need)
{
    (void)tick, (void)thread, (void)state, (void)need;
    return SOURCE_NO;
}

static enum source_offer take_nothing(struct source_tick *tick, struct source_thread *thread, void *state,
                                      struct source_stack *ret)
{
    (void)tick, (void)thread, (void)state, (void)ret;
    return SOURCE_NO;
}

static enum source_offer offer_running(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)thread, (void)state;
    return script.running;
}

static void observe_running(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)thread;
    script.observed++;
    *(bool *)state = true; /* there may be a stack */
}

static enum source_offer take_running(struct source_tick *tick, struct source_thread *thread, void *state,
                                      struct source_stack *ret)
{
    bool *has_stack = state;
    (void)tick, (void)thread;
    if (!*has_stack || script.stack.kind == SOURCE_STACK_NONE) return SOURCE_NO;
    *has_stack = false;
    *ret = script.stack;
    return SOURCE_HAS;
}

static enum source_offer want_running(struct source_tick *tick, struct source_thread *thread, void *state,
                                      enum source_need need)
{
    (void)tick, (void)thread, (void)state, (void)need;
    script.timer_wants++;
    return script.running;
}

static uint64_t room_of_running(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)thread, (void)state;
    return script.room;
}

static enum source_offer take_blocked(struct source_tick *tick, struct source_thread *thread, void *state,
                                      struct source_stack *ret)
{
    static const uint64_t address = 0x1000;
    (void)tick, (void)thread, (void)state;
    *ret = (struct source_stack){.kind = SOURCE_STACK_BLOCKED, .found = {&address, 1, RECORDING_WITHOUT_SIGNAL}};
    return script.blocked;
}

static enum source_offer want_reply(struct source_tick *tick, struct source_thread *thread, void *state,
                                    enum source_need need)
{
    (void)tick, (void)state;
    if (script.need_count < LOG_MAX) script.needs[script.need_count] = need;
    script.need_count++;
    if (script.is_lost) thread->lost = (struct source_loss){true, RECORDING_LOST_NO_TABLE, thread->clock_ns};
    if (script.asked == SOURCE_WILL_HAVE) thread->asked = (void *)&script; /* any address: it was asked */
    return script.asked;
}

static void forget(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end)
{
    (void)tick, (void)thread, (void)state, (void)end;
    script.forgotten++;
}

static const struct source waits_source = {
    .sight = SOURCE_SEES_WAITS, .offer = offer_waits, .want = want_nothing, .take = take_nothing};
static const struct source running_source = {.sight = SOURCE_SEES_RUNNING,
                                             .state_bytes = sizeof(bool),
                                             .offer = offer_running,
                                             .observe = observe_running,
                                             .take = take_running,
                                             .want = want_running,
                                             .room = room_of_running,
                                             .forget = forget};
static const struct source blocked_source = {.sight = SOURCE_SEES_BLOCKED, .take = take_blocked};
static const struct source asking_source = {.sight = SOURCE_ASKS, .want = want_reply, .take = take_nothing};
const struct source *const sources[] = {&running_source, &waits_source, &blocked_source, &asking_source, NULL};

/* --- The kernel, as a case says ----------------------------------------------------------------------------------- */

static uint64_t clock_ns_of_all, moves_by_ns; /* the threads' CPU clock, and what each reading adds */

bool thread_cpu_ns(pid_t tid, uint64_t *ret_ns)
{
    (void)tid;
    *ret_ns = clock_ns_of_all;
    clock_ns_of_all += moves_by_ns;
    return true;
}

uint64_t monotonic_ns(void)
{
    return 0;
}

struct lifecycle lifecycle;

bool thread_read_own_delay(uint64_t *ret_ns)
{
    (void)ret_ns;
    return false;
}

uint32_t thread_real_time_priority(pid_t tid)
{
    (void)tid;
    return 0;
}

void thread_precede(pid_t tid, uint32_t priority)
{
    (void)tid, (void)priority;
}

bool thread_read_delay(struct thread_files *files, uint64_t *ret_ns)
{
    (void)files, (void)ret_ns;
    return false;
}

bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread, (void)ret;
    return false;
}

bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret)
{
    (void)thread, (void)ret;
    return false;
}

uint32_t idle_thread_count(const struct target_thread *thread)
{
    (void)thread;
    return 0;
}

bool idle_thread_continues(const struct listed_thread *listed)
{
    (void)listed;
    return false;
}

void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count)
{
    (void)sampler, (void)listed, (void)count;
}

void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed)
{
    (void)sampler, (void)listed;
}

void short_lived_threads_first_seen(struct sampler *sampler, struct target_thread *thread)
{
    (void)sampler, (void)thread;
}

bool perf_timer_active_ns(const struct perf_timer *timer, uint64_t *ret_ns)
{
    (void)timer, (void)ret_ns;
    return false;
}

uint32_t sample_requests_used(void)
{
    return 0;
}

bool sample_request_renew(struct sample_request *request, const struct unwind_modules *modules)
{
    (void)request, (void)modules;
    return true;
}

/* --- The ticks ---------------------------------------------------------------------------------------------------- */

static struct sampler sampler;
static struct target_thread threads[THREADS];
static struct listed_thread listed[THREADS];
static uint64_t states[THREADS];
static struct routine_table routines;
static uint64_t running_ns, blocked_ns, lost_ns;
static bool rows_met[32];

const struct policy_row *__real_policy_choose(uint32_t facts);
const struct policy_row *__wrap_policy_choose(uint32_t facts);
const struct policy_row *__wrap_policy_choose(uint32_t facts)
{
    const struct policy_row *row = __real_policy_choose(facts);
    rows_met[row - policy_rows] = true;
    return row;
}

static void write_sample(void *context, struct ledger *ledger, struct recording_time time,
                         const struct found_stack *stack)
{
    (void)context, (void)ledger, (void)stack;
    running_ns += time.cpu_ns;
    blocked_ns += time.blocked_ns;
}

static void write_more(void *context, struct ledger *ledger, enum recording_share share, struct recording_time time)
{
    (void)context, (void)ledger, (void)share, (void)time;
}

static void write_lost(void *context, struct ledger *ledger, enum recording_loss cause, struct recording_time time)
{
    (void)context, (void)ledger, (void)cause;
    lost_ns += time.cpu_ns;
}

static void write_woken(void *context, struct ledger *ledger, uint64_t wait_ns)
{
    (void)context, (void)ledger, (void)wait_ns;
}

static void write_nothing(void *context, struct ledger *ledger)
{
    (void)context, (void)ledger;
}

static const struct ledger_sink sink = {.sample = write_sample,
                                        .more = write_more,
                                        .lost = write_lost,
                                        .woken = write_woken,
                                        .waiting = write_nothing,
                                        .routine = write_nothing};

/* Begins a case: ticks of 10 ms in time, and COUNT threads that are known, have a stack and are awake. */
static void begin(size_t count)
{
    memset(&sampler, 0, sizeof(sampler));
    memset(threads, 0, sizeof(threads));
    memset(&script, 0, sizeof(script));
    script.waits = script.running = SOURCE_DENIED;
    script.blocked = script.asked = SOURCE_NO;
    sampler.tick = (struct ledger_tick){
        .mode = RECORDING_WALL, .period_ns = PERIOD_NS, .span_ns = PERIOD_NS, .sink = &sink, .routines = &routines};
    sampler.schedule = (struct tick_schedule){.ticks_a_second = 100, .periods_in_tick = 1};
    sampler.timers = (struct timer_limits){.requests_in_tick_max = 8, .kernel_tick_ns = 4 * MS};
    sampler.start.thread = STARTER;
    sampler.threads = (struct threads){.items = listed, .count = count};
    for (size_t i = 0; i < count; i++) {
        threads[i].files.tid = STARTER + 1 + (pid_t)i;
        threads[i].ledger.records.has_run = threads[i].scan.is_known = true;
        sources_init(&threads[i], (uint8_t *)&states[i]);
        listed[i] = (struct listed_thread){.thread = &threads[i]};
    }
    clock_ns_of_all = moves_by_ns = running_ns = blocked_ns = lost_ns = 0;
}

/* Ticks after each thread has run for RAN_NS. */
static void tick(uint64_t ran_ns)
{
    sampler.tick.number++;
    sampler.tick.start_ns += sampler.tick.span_ns;
    clock_ns_of_all += ran_ns;
    script.need_count = 0;
    CHECK(tick_all_threads(&sampler));
}

/* Fails unless the only request of the last tick was for NEED. */
static void check_need(enum source_need need)
{
    CHECK_UINT(script.need_count, need == SOURCE_FOR_NOTHING ? 0 : 1);
    if (need != SOURCE_FOR_NOTHING) CHECK_UINT(script.needs[0], need);
}

/* --- Running threads ---------------------------------------------------------------------------------------------- */

TEST(a_busy_thread_is_asked_at_once)
{
    begin(1);
    tick(MS);
    check_need(SOURCE_FOR_NOTHING);
    tick(MS);
    check_need(SOURCE_NOW);
}

TEST(a_seldom_awake_thread_is_asked_if_a_recheck_finds_it_running)
{
    begin(1);
    tick(MS / 10);
    check_need(SOURCE_FOR_NOTHING);
    moves_by_ns = SOURCE_LASTING_NS;
    tick(MS / 10);
    check_need(SOURCE_NOW);
}

TEST(a_thread_that_sleeps_at_a_recheck_is_not_asked)
{
    begin(1);
    script.blocked = SOURCE_HAS;
    moves_by_ns = SOURCE_LASTING_NS;
    tick(MS / 10);
    check_need(SOURCE_FOR_NOTHING);
    CHECK_UINT(threads[0].ledger.state, LEDGER_BLOCKED);
}

TEST(without_time_for_rechecks_a_thread_is_asked_at_once)
{
    begin(1);
    sampler.tick.period_ns = MS / 2; /* 2 kHz */
    tick(MS / 100);
    check_need(SOURCE_NOW);
}

TEST(without_room_for_rechecks_a_thread_is_asked_at_once)
{
    begin(THREADS);
    tick(MS / 10);
    check_need(SOURCE_NOW);
}

TEST(a_late_tick_asks_threads_that_have_not_slept)
{
    begin(1);
    sampler.schedule.is_late = true;
    tick(MS / 10);
    check_need(SOURCE_NOW_UNLESS_ASLEEP);
}

TEST(a_new_thread_is_asked_once_it_has_run_for_a_while)
{
    begin(1);
    threads[0].scan.is_known = threads[0].ledger.records.has_run = false;
    tick(SOURCE_LASTING_NS - 1);
    check_need(SOURCE_FOR_NOTHING);
    begin(1);
    threads[0].scan.is_known = threads[0].ledger.records.has_run = false;
    tick(SOURCE_LASTING_NS);
    check_need(SOURCE_NOW_UNLESS_ASLEEP);
}

TEST(the_thread_that_started_the_sampler_does_not_wait_for_a_recheck)
{
    begin(1);
    threads[0].files.tid = STARTER;
    threads[0].ledger.records.has_run = false;
    tick(1);
    check_need(SOURCE_NOW_UNLESS_ASLEEP);
}

TEST(a_thread_whose_user_code_is_sampled_is_asked_for_its_calls)
{
    static const struct perf_timer timer = {.sight = PERF_TIMER_SEES_USER_CODE};
    begin(1);
    threads[0].source.timer.open = &timer;
    tick(MS / 10);
    check_need(SOURCE_NOW);
    threads[0].ledger.records.has_run = false; /* a first stack need not be exact */
    tick(MS / 10);
    check_need(SOURCE_NOW_UNLESS_ASLEEP);
}

TEST(a_thread_without_signals_gets_a_timer_and_loses_four_periods)
{
    begin(1);
    script.asked = SOURCE_DENIED;
    sampler.tick.span_ns = SOURCE_PERIODS_TO_WAIT * PERIOD_NS;
    tick(MS);
    unsigned wants = script.timer_wants;
    tick(MS);
    CHECK_UINT(script.timer_wants - wants, 3); /* it is busy, it runs, and it is not asked */
    CHECK_UINT(lost_ns, 0);
    tick(SOURCE_PERIODS_TO_WAIT * PERIOD_NS - 2 * MS);
    CHECK_UINT(lost_ns, SOURCE_PERIODS_TO_WAIT * PERIOD_NS);
}

/* --- Threads of which a source brings stacks ---------------------------------------------------------------------- */

TEST(a_thread_whose_stack_comes_is_left_alone)
{
    begin(1);
    script.running = SOURCE_WILL_HAVE;
    tick(MS);
    tick(MS);
    check_need(SOURCE_FOR_NOTHING);
}

TEST(a_late_tick_asks_a_thread_without_a_stack_though_one_comes)
{
    begin(1);
    script.running = SOURCE_WILL_HAVE;
    threads[0].ledger.records.has_run = false;
    sampler.schedule.is_late = true;
    tick(MS / 10);
    check_need(SOURCE_NOW_UNLESS_ASLEEP);
}

TEST(a_thread_whose_waits_nobody_sees_is_asked_where_it_waits)
{
    static const struct perf_timer timer = {.sight = PERF_TIMER_SEES_ALL};
    begin(1);
    script.running = SOURCE_WILL_HAVE;
    threads[0].source.timer.open = &timer;
    threads[0].source.waits.is_asked = true;
    tick(MS);
    check_need(SOURCE_WHERE_IT_WAITS);
}

TEST(stacks_that_were_taken_have_the_time_up_to_their_clock)
{
    begin(1);
    script.running = SOURCE_WILL_HAVE;
    script.stack = (struct source_stack){.kind = SOURCE_STACK_RUNNING, .cpu_ns = MS};
    tick(3 * MS);
    CHECK_UINT(running_ns, MS);
    script.stack.cpu_ns = 4 * MS;
    tick(MS);
    CHECK_UINT(running_ns, 4 * MS);
}

TEST(all_threads_are_left_alone_for_as_long_as_sources_have_room)
{
    begin(2);
    script.running = SOURCE_WILL_HAVE;
    script.room = 5;
    for (unsigned i = 0; i < 3; i++) tick(MS);
    CHECK_UINT(sampler.schedule.periods_with_room, 5);
    CHECK_UINT(sampler.schedule.steady_periods, 2);
    script.room = 0;
    tick(MS);
    CHECK_UINT(sampler.schedule.steady_periods, 0);
}

TEST(a_thread_that_sleeps_long_is_forgotten)
{
    begin(1);
    tick(MS);
    sources_forget_sleepers(&sampler);
    CHECK_UINT(script.forgotten, 0);
    sampler.tick.number += 40;
    sources_forget_sleepers(&sampler);
    CHECK_UINT(script.forgotten, 1);
}

/* --- Threads that do not run -------------------------------------------------------------------------------------- */

TEST(a_blocked_thread_has_its_stack_for_as_long_as_its_clock_stands)
{
    begin(1);
    tick(MS);
    script.blocked = SOURCE_HAS;
    tick(MS);
    CHECK_UINT(threads[0].ledger.state, LEDGER_BLOCKED);
    unsigned observed = script.observed;
    tick(0);
    CHECK_UINT(script.observed, observed);
    check_need(SOURCE_FOR_NOTHING);
}

TEST(a_thread_whose_stack_needs_a_table_is_not_asked)
{
    begin(1);
    script.blocked = SOURCE_WILL_HAVE;
    tick(MS);
    tick(MS);
    check_need(SOURCE_FOR_NOTHING);
}

TEST(a_thread_that_waits_long_is_asked_where_unless_a_source_sees_it)
{
    begin(1);
    tick(MS);
    tick(0);
    check_need(SOURCE_WHERE_IT_WAITS);
    script.waits = SOURCE_WILL_HAVE;
    tick(0);
    check_need(SOURCE_FOR_NOTHING);
}

TEST(a_thread_that_was_asked_is_left_until_its_reply)
{
    begin(1);
    script.asked = SOURCE_WILL_HAVE;
    tick(MS);
    tick(MS);
    check_need(SOURCE_NOW);
    unsigned observed = script.observed;
    tick(MS);
    check_need(SOURCE_FOR_NOTHING);
    CHECK_UINT(script.observed, observed);
}

TEST(time_that_a_source_finds_to_be_lost_is_written)
{
    begin(1);
    script.is_lost = true;
    tick(MS);
    tick(MS);
    CHECK_UINT(lost_ns, 2 * MS);
}

/* --- Limits ------------------------------------------------------------------------------------------------------- */

TEST(a_late_tick_has_more_requests_for_threads_without_a_stack)
{
    begin(1);
    sampler.schedule.periods_in_tick = 3;
    CHECK_UINT(policy_requests_max(&sampler, &threads[0]), 8);
    threads[0].ledger.records.has_run = false;
    CHECK_UINT(policy_requests_max(&sampler, &threads[0]), 24);
}

TEST(thousands_of_new_threads_are_read_in_several_ticks)
{
    begin(1);
    unsigned count = 0;
    while (policy_allows_first_scan(&sampler, &threads[0])) count++;
    CHECK_UINT(count, POLICY_FIRST_SCANS_A_SECOND / 100 + 1);
    threads[0].ledger.state = LEDGER_BLOCKED;
    CHECK(policy_allows_first_scan(&sampler, &threads[0]));
}

TEST(every_row_of_the_policy_was_met)
{
    size_t count = 0;
    while (policy_rows[count++].facts != 0) continue;
    for (size_t i = 0; i < count; i++) {
        if (!rows_met[i]) TEST_FAIL("row %zu of policy_rows was met by no case", i);
    }
}

TEST_MAIN()
