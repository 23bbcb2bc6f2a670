/* Drives the policy of the sampler (run/policy.h) with timers that answer as a case says. SPDX-License-Identifier: MIT
 */
#include "sampler/run/policy.h"
#include "sampler/run/timer.h"
#include "sampler/run/cpu_clock_timer.h"
#include "test.h"

enum { MS = 1000000, PERIOD_NS = 10 * MS, STARTER = 7 };

/* --- Timers, as a case says --------------------------------------------------------------------------------------- */

static bool sees_user_code, wants_reply, is_late;

bool timer_sees_user_code(const struct target_thread *thread)
{
    (void)thread;
    return sees_user_code;
}

bool timer_wants_reply(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    (void)sampler, (void)thread, (void)cpu_ns;
    return wants_reply;
}

bool cpu_clock_timer_is_late(const struct sampler *sampler, const struct target_thread *thread, uint64_t unwritten_ns)
{
    (void)sampler, (void)thread, (void)unwritten_ns;
    return is_late;
}

static struct sampler sampler;
static struct target_thread thread;
static char something; /* any address: there is a timer */

/* Begins a case: ticks of 10 ms in time, and a thread without a timer that is known and has a stack. */
static void begin(void)
{
    sampler = (struct sampler){.tick = {.mode = RECORDING_WALL, .period_ns = PERIOD_NS}};
    sampler.schedule = (struct tick_schedule){.ticks_a_second = 100, .periods_in_tick = 1};
    sampler.timers = (struct timer_limits){.requests_in_tick_max = 8, .kernel_tick_ns = 4 * MS};
    sampler.start.thread = STARTER;
    thread = (struct target_thread){.files.tid = STARTER + 1, .ledger.records.has_run = true};
    sees_user_code = wants_reply = is_late = false;
}

/* --- Running threads ---------------------------------------------------------------------------------------------- */

static enum policy_way way(uint64_t cpu_ns)
{
    return policy_for_running(&sampler, &thread, cpu_ns, false, true);
}

TEST(a_busy_thread_is_asked_at_once)
{
    begin();
    CHECK(policy_for_running(&sampler, &thread, MS, true, true) == POLICY_ASK);
}

TEST(a_thread_that_is_seldom_awake_is_checked_again)
{
    begin();
    CHECK(way(MS) == POLICY_RECHECK);
}

TEST(without_room_or_time_for_rechecks_a_thread_is_asked_at_once)
{
    begin();
    CHECK(policy_for_running(&sampler, &thread, MS, false, false) == POLICY_ASK);
    sampler.tick.period_ns = MS / 2; /* 2 kHz */
    CHECK(way(MS) == POLICY_ASK);
}

TEST(a_late_tick_asks_threads_that_have_not_slept)
{
    begin();
    sampler.schedule.is_late = true;
    CHECK(way(MS) == POLICY_ASK_UNLESS_ASLEEP);
}

TEST(new_threads_are_asked_once_they_have_run_for_a_while)
{
    begin();
    thread.ledger.records.has_run = false;
    thread.ledger.beginning.is_first_scan = true;
    CHECK(way(POLICY_LASTING_NS - 1) == POLICY_RECHECK);
    CHECK(way(POLICY_LASTING_NS) == POLICY_ASK_UNLESS_ASLEEP);
    thread.files.tid = STARTER;
    CHECK(way(0) == POLICY_ASK_UNLESS_ASLEEP);
}

TEST(a_thread_whose_user_code_is_sampled_is_asked_for_its_calls)
{
    begin();
    sees_user_code = true;
    CHECK(way(MS) == POLICY_ASK);
    thread.ledger.records.has_run = false; /* a first stack need not be exact */
    CHECK(way(MS) == POLICY_ASK_UNLESS_ASLEEP);
}

/* --- Threads with a timer ----------------------------------------------------------------------------------------- */

static bool is_left(uint64_t cpu_ns)
{
    return policy_leaves_to_timer(&sampler, &thread, cpu_ns);
}

TEST(a_thread_without_a_timer_needs_a_signal)
{
    begin();
    CHECK(!is_left(MS));
}

TEST(a_perf_timer_has_four_periods_to_bring_a_stack)
{
    begin();
    thread.perf.timer.control = (void *)&something;
    CHECK(is_left(POLICY_PERIODS_TO_WAIT * PERIOD_NS - 1));
    CHECK(!is_left(POLICY_PERIODS_TO_WAIT * PERIOD_NS));
    sampler.schedule.is_late = true;
    thread.ledger.records.has_run = false; /* its first stack is wanted at once */
    CHECK(!is_left(MS));
}

TEST(calls_wait_for_the_cpu_clock_or_for_a_signal_if_there_is_none)
{
    begin();
    sees_user_code = true;
    thread.perf.timer.control = (void *)&something;
    CHECK(is_left(MS)); /* it was in no call */
    wants_reply = true;
    CHECK(is_left(MS)); /* its CPU clock can be opened */
    sampler.timers.kernel_tick_ns = 0;
    CHECK(!is_left(MS));
}

TEST(a_cpu_clock_is_waited_for_until_it_is_late)
{
    begin();
    thread.cpu_clock.request = (void *)&something;
    CHECK(is_left(MS));
    is_late = true;
    CHECK(!is_left(MS));
}

/* --- Limits ------------------------------------------------------------------------------------------------------- */

TEST(a_late_tick_has_more_requests_for_threads_without_a_stack)
{
    begin();
    sampler.schedule.periods_in_tick = 3;
    CHECK_UINT(policy_requests_max(&sampler, &thread), 8);
    thread.ledger.records.has_run = false;
    CHECK_UINT(policy_requests_max(&sampler, &thread), 24);
}

TEST(thousands_of_new_threads_are_read_in_several_ticks)
{
    begin();
    unsigned count = 0;
    while (policy_allows_first_scan(&sampler, &thread)) count++;
    CHECK_UINT(count, POLICY_FIRST_SCANS_A_SECOND / 100 + 1);
    thread.ledger.state = LEDGER_BLOCKED;
    CHECK(policy_allows_first_scan(&sampler, &thread));
}

TEST_MAIN()
