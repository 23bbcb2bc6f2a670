/* The work for each thread at a tick. ledger.h describes how the thread's time is divided.
 *
 * A thread whose CPU clock has stopped has the same stack as at the previous tick: nothing is read or written. A thread
 * that ran and is blocked now is unwound from outside (remote_unwind.c); that stack counts for its blocked time. The
 * stacks that the kernel takes with the thread's timer (timer.c) count for its CPU time.
 *
 * If the kernel grants no timer, or a timer that sees only user code, the sampler sends a signal to a running thread,
 * which unwinds itself (signal_handler.c); the next tick reads the reply. A thread that waits for a processor replies
 * when it gets one, at the instruction where it was stopped. A signal takes about 10 µs to arrive. A thread that woke
 * up only for a moment is then blocked again, or about to block, and the signal would end its wait with EINTR. So a
 * thread that usually sleeps and is found awake is checked again a little later: either it is blocked and can be read,
 * or it has kept running and gets a signal. A thread that is known to sleep never gets a signal.
 * SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "base/unsigned.h"
#include "sampler/interpreted_threads.h"
#include "sampler/sampler_private.h"
#include "sampler/remote_unwind.h"
#include "sampler/source/chance.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/kernel/process_info.h"
#include "sampler/signal_choice.h"
#include "sampler/signal_gate.h"

enum {
    TICKS_WITHOUT_REPLY_MAX = 2, /* ticks of a running thread until it is checked whether it blocks the signal */
    AHEAD = 8,                   /* number of threads by which memory is prefetched */
    SELDOM_AWAKE = 16,           /* divisor: a thread that runs for a smaller part of two ticks is seldom awake */
    LASTING_NS = 50000,          /* CPU time after which a thread is not about to sleep again, ns */
    RECHECK_ROUNDS_MAX = 3,
    RECHECK_MAX = 256,
    RECHECK_AFTER_NS = 60000, /* pause before the first round, ns; each further one is twice as long */
    RECHECK_LATE_NS = 200000, /* delay after which rechecks are given up, ns; timers are not late by so much */
    PERIODS_TO_WAIT = 4,      /* periods of CPU time to wait for a timer or a reply before another way is tried */
};

/* --- Stacks of threads that run ----------------------------------------------------------------------------------- */

/* Builds the table of the new module that a walk has reached at its last address. */
static enum modules_result build_table_for(struct sampler *sampler, const uint64_t *addresses, size_t count)
{
    return modules_build(&sampler->modules, addresses[count - 1] - (count > 1), sampler->spent.table_budget,
                         sampler->writer);
}

/* Leaves the time of THREAD, which ran through code without a table, to the next stack, or writes it as lost if it is
 * long. */
static void wait_for_table(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_WITHOUT_TABLE_MAX = 2, SIGNALS_WITHOUT_TABLE_MAX = 8 };
    uint64_t most_ns = PERIODS_WITHOUT_TABLE_MAX * sampler->schedule.periods_in_tick * sampler->tick.period_ns;
    if (thread->cpu_clock.request) most_ns += SIGNALS_WITHOUT_TABLE_MAX * sampler->timers.signal_ns;
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) > most_ns)
        ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns, RECORDING_LOST_NO_TABLE);
}

/* Builds more tables: the stack of a running thread reaches one more new module at each tick. So that a stack through
 * many modules does not take as many ticks, each further module doubles the number of tables. A late tick counts as
 * several. */
static void build_ahead(struct sampler *sampler, const struct target_thread *thread)
{
    enum { TICKS_ALONE = 2, DOUBLINGS_MAX = 12 };
    uint32_t ticks = thread->scan.ticks_without_table + sampler->schedule.periods_in_tick - 1;
    if (ticks <= TICKS_ALONE) return;
    uint32_t doublings = ticks - TICKS_ALONE;
    modules_build_more(&sampler->modules, (size_t)1 << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX),
                       sampler->spent.table_budget);
}

/* Walks the stack of SAMPLE. Returns false if it is not available yet, or never will be. A stack in our own handler is
 * not used: the reply has the place that the handler interrupted, and the kernel's copy does not reach there. */
static bool walk_sample(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                        struct found_stack *ret_stack)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX]; /* the sampler thread's alone */
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_PENDING;
    if (sample_requests_hold_stack(sample->registers.values[MACHINE_SP])) return false;
    for (unsigned i = 0; outcome == UNWIND_PENDING && i < MODULES_MAX; i++) {
        if (!timer_walk(sampler, thread, sample, addresses, &count, &outcome)) return false;
        if (outcome != UNWIND_PENDING) break;
        enum modules_result table = build_table_for(sampler, addresses, count);
        if (table == MODULES_NOTHING) outcome = UNWIND_NO_TABLE;
        if (table != MODULES_LATER) continue;
        wait_for_table(sampler, thread, thread->ledger.cpu_ns);
        return false;
    }
    if (outcome == UNWIND_PENDING) outcome = UNWIND_NO_TABLE; /* without memory there will never be a table */
    sampler->counters[RECORDING_TIMER_STACKS]++;
    *ret_stack = (struct found_stack){addresses, count, outcome | RECORDING_WITHOUT_SIGNAL};
    return true;
}

/* Writes STACK, where THREAD slept: it has just been woken, and spent no CPU time there. */
static void write_slept(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    if (!sampler_is_cpu_mode(sampler)) thread_time_credit_blocked(sampler, thread, true, stack);
}

/* Gives each of NEWS an equal share of the unwritten CPU time up to CPU_NS. A sample on request is taken when THREAD
 * has run for 10 µs: if it was woken and waited for a processor before that, the sample is in the call in which it
 * slept. */
static void write_samples(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_news *news,
                          uint64_t cpu_ns)
{
    struct perf_timer_sample sample;
    struct found_stack stack;
    bool was_asked = timer_was_asked(thread, news);
    for (uint32_t i = 0; i < news->kept_count; i++) {
        uint64_t part_ns = ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) / (news->kept_count - i);
        if (!perf_timer_sample(&thread->perf.timer, news, i, &sample) || !walk_sample(sampler, thread, &sample, &stack))
            continue;
        if (i == 0 && was_asked && threads_sleep_at(sample.registers.values[MACHINE_IP])) {
            write_slept(sampler, thread, &stack);
            timer_sample_soon(sampler, thread);
        } else {
            thread_time_credit_running(sampler, thread, thread->ledger.cpu_written_ns + part_ns, &stack);
        }
    }
}

/* Reads the stack of REPLY by THREAD, which was asked at CPU_NS of its clock. Returns false if it needs a table first.
 */
static bool read_reply(struct sampler *sampler, struct target_thread *thread, struct sample_reply *reply,
                       uint64_t cpu_ns, struct found_stack *ret_stack)
{
    interpreted_threads_finish(sampler, reply);
    *ret_stack = (struct found_stack){reply->addresses, reply->address_count, reply->outcome};
    sampler->counters[RECORDING_ANSWERS]++;
    sampler->counters[RECORDING_ANSWERS_IN_CALL] += registers_are_in_call(&reply->registers);
    if (ret_stack->flags != UNWIND_PENDING) return true;
    enum modules_result table = build_table_for(sampler, ret_stack->addresses, ret_stack->count);
    if (table != MODULES_NOTHING) wait_for_table(sampler, thread, cpu_ns);
    thread->scan.ticks_without_table++;
    build_ahead(sampler, thread);
    ret_stack->flags = UNWIND_NO_TABLE;
    return table == MODULES_NOTHING;
}

/* Finds the time that THREAD's replies, some of SIGNALS, stand for. Returns false if there is none. */
static bool find_time_of_signals(struct sampler *sampler, struct target_thread *thread, struct timer_signals signals,
                                 bool was_in_call, struct timer_signals_time *ret_time)
{
    if (timer_sees_user_code(thread) && thread->ledger.records.has_run) {
        timer_note_request(sampler, thread);
        signals = cpu_clock_timer_all_signals(sampler, thread, signals);
        bool is_accepted = sample_credit_accept(&thread->perf.credit, signals, was_in_call,
                                                cpu_clock_timer_open_call_ns(sampler, thread));
        *ret_time =
            (struct timer_signals_time){.cpu_ns = timer_accounted_cpu_ns(sampler, thread, thread->ledger.cpu_ns)};
        return is_accepted;
    }
    *ret_time = cpu_clock_timer_time_of(sampler, thread, signals);
    return true;
}

/* Gives each reply an equal share of the CPU time that SIGNALS stand for, except that of long calls, whose reply is the
 * last one. */
static void write_replies(struct sampler *sampler, struct target_thread *thread, struct timer_signals signals)
{
    struct found_stack stack;
    struct sample_request *request = thread->cpu_clock.request;
    uint32_t short_count = request->reply_count, count = short_count + (request->long_calls.count > 0);
    struct timer_signals_time time = {0};
    bool has_time = false;
    for (uint32_t i = 0; i < count; i++) {
        struct sample_reply *reply = i < short_count ? &request->replies[i] : &request->long_call_reply;
        bool was_in_call = registers_are_in_call(&reply->registers);
        if (!read_reply(sampler, thread, reply, thread->ledger.cpu_ns, &stack)) continue;
        if (!has_time) has_time = find_time_of_signals(sampler, thread, signals, was_in_call, &time);
        if (!has_time) return;
        uint64_t part_ns = ledger_unwritten_cpu_ns(&thread->ledger, time.cpu_ns);
        if (i < short_count) part_ns = difference(part_ns, time.long_calls_ns) / (short_count - i);
        thread_time_credit_running(sampler, thread, thread->ledger.cpu_written_ns + part_ns, &stack);
    }
}

/* Writes the stacks that THREAD's CPU clock has taken since the previous scan, if it has such a timer. */
static void write_timer_replies(struct sampler *sampler, struct target_thread *thread)
{
    struct timer_signals signals;
    if (!thread->cpu_clock.request || !sample_request_hold(thread->cpu_clock.request, &signals)) return;
    sampler->counters[RECORDING_SIGNALS] += signals.count;
    write_replies(sampler, thread, signals);
    if (timer_sees_user_code(thread) && sample_credit_periods_between(&thread->perf.credit) > 0) {
        cpu_clock_timer_forget(thread);
        return;
    }
    sample_request_prefer(thread->cpu_clock.request, timer_preferred_origin(thread));
    sample_request_release(thread->cpu_clock.request);
}

/* Writes THREAD's times as the kernel counts them, with the stacks of its timer since the previous scan. OF_WAIT: the
 * stack where it waited for a processor, by the reply to a request, or NULL. */
static void write_new_time(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                           const struct found_stack *of_wait)
{
    struct perf_timer_news news;
    struct perf_timer_sample stop;
    struct found_stack found;
    bool has_samples = timer_fetch(sampler, thread, &news) > 0;
    thread_time_read_delay(sampler, thread);
    run_queue_waits_note(sampler, thread, ledger_unwritten_wait_ns(&thread->ledger));
    if (!of_wait && run_queue_waits_fetch_stop(sampler, thread, &stop) && walk_sample(sampler, thread, &stop, &found))
        of_wait = &found;
    if (of_wait) thread_time_credit_wait(sampler, thread, of_wait);
    if (has_samples && timer_sees_user_code(thread)) cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    if (has_samples) write_samples(sampler, thread, &news, cpu_ns);
    write_timer_replies(sampler, thread);
}

static void take_reply(struct sampler *sampler, struct target_thread *thread, struct sample_request *request)
{
    struct found_stack stack;
    struct sample_reply *reply = &request->replies[0];
    bool was_in_call = registers_are_in_call(&reply->registers);
    bool was_in_long_call = /* at the last scan, and before */
        was_in_call && (thread->signal.ticks_asked > 0 || cpu_clock_timer_meets_long_call(sampler, thread));
    uint64_t cpu_ns = was_in_long_call ? thread->ledger.cpu_ns : thread->signal.cpu_ns_at_request;
    if (!read_reply(sampler, thread, reply, cpu_ns, &stack)) return;
    /* The thread ran at the check and slept when it was asked: it did not spend its time where it sleeps. */
    if (registers_are_asleep(&reply->registers)) return;
    /* Beside many runnable threads, most threads that are asked wait for a processor. One that was woken replies from
     * the call in which it slept, where it spends no CPU time. Where processors are free, a thread that is on none was
     * mostly stopped by the sampler itself, wherever it was. */
    if (thread->signal.waits_at_request && threads_sleep_at(reply->registers.values[MACHINE_IP])) {
        write_slept(sampler, thread, &stack);
        return;
    }
    if (thread->signal.is_for_wait) {
        run_queue_waits_note_reply(thread, was_in_call);
        write_new_time(sampler, thread, thread->ledger.cpu_ns, &stack);
        return;
    }
    if (timer_sees_user_code(thread) && thread->ledger.records.has_run) {
        /* A reply outside of a system call is a page fault, an interrupt, or a thread that has just left the call. */
        if (was_in_long_call) timer_note_request(sampler, thread);
        struct timer_signals one = {.count = 1, .in_call = was_in_call, .are_all = was_in_long_call};
        if (!sample_credit_accept(&thread->perf.credit, one, was_in_call, 0)) return;
        if (thread_cpu_ns(thread->tid, &cpu_ns)) cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    }
    thread_time_credit_running(sampler, thread, cpu_ns, &stack);
}

void tick_fetch_replies(struct sampler *sampler)
{
    if (sample_requests_used() == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        if (!thread->request || sample_request_phase(thread->request) != REQUEST_DONE) continue;
        take_reply(sampler, thread, thread->request);
        sample_request_give_back(thread->request);
        thread->request = NULL;
    }
}

/* --- Asking a thread that is running ------------------------------------------------------------------------------ */

/* Opens a timer for THREAD, which cannot receive a signal. A thread that blocks signals for a moment, for example while
 * it starts, gets time: its next stack counts for the CPU time until then. */
static void do_without_signal(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    timer_note_busy(sampler, thread);
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) < PERIODS_TO_WAIT * sampler->tick.period_ns) return;
    bool is_in_kernel = timer_sees_user_code(thread);
    if (is_in_kernel) {
        timer_note_request(sampler, thread);
        sample_credit_give_up(&thread->perf.credit);
        cpu_ns = timer_accounted_cpu_ns(sampler, thread, cpu_ns);
    }
    ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns,
                      is_in_kernel ? RECORDING_LOST_IN_KERNEL : RECORDING_LOST_UNANSWERED);
}

/* Gives up the request to THREAD if it blocks the signal. A thread that gets a processor runs the handler first, unless
 * it blocks the signal, or is in a long system call, at whose end it replies. CPU_NS was read before the request is
 * checked. */
static void watch_waiting(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sample_request_phase(thread->request) != REQUEST_OPEN) return;
    if (cpu_ns <= thread->signal.cpu_ns_at_request + sampler->tick.period_ns / 4) return;
    if (++thread->signal.ticks_asked % (TICKS_WITHOUT_REPLY_MAX + 1) != 0) return;
    if (signal_choose(thread).number == thread->signal.number) return;
    sample_request_give_back(thread->request);
    thread->request = NULL;
    if (ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) >= PERIODS_TO_WAIT * sampler->tick.period_ns)
        ledger_write_lost(&sampler->tick, &thread->ledger, cpu_ns, RECORDING_LOST_UNANSWERED);
}

/* Builds the first tables before a signal is sent, because the handler cannot build any. A process that lives for some
 * milliseconds would end before its stacks have gone through one new module after the other, and where ticks are a
 * second apart, all replies of one would be lost. Programs that measure themselves are in the vdso half of the time. */
static void prepare_first_walk(struct sampler *sampler)
{
    enum { MODULES = 3 };
    uint64_t vdso = clock_code_address();
    if (modules_have_any(&sampler->modules)) return;
    modules_build_more(&sampler->modules, MODULES, sampler->spent.table_budget);
    if (vdso) (void)modules_build(&sampler->modules, vdso, sampler->spent.table_budget, sampler->writer);
}

/* Returns true if THREAD may be inside of a call that sleeps, and a signal would end that call early (poll, after its
 * timeout, returns EINTR), until it has run for a while without going to sleep: a thread that was woken and waits for a
 * processor is still in the call. */
static bool may_be_in_sleep(struct target_thread *thread, uint64_t cpu_ns, uint64_t sleep_count)
{
    if (sleep_count == thread->signal.sleep_count) return cpu_ns < thread->signal.cpu_ns_at_sleep + LASTING_NS;
    thread->signal.sleep_count = sleep_count;
    thread->signal.cpu_ns_at_sleep = cpu_ns;
    return true;
}

/* Sends a request to THREAD. If it can receive no signal, its time may be lost. If it sleeps, in sigwait for example,
 * the request is postponed. On an idle machine a thread that is awake has a processor. On a busy one, and where it is
 * known that the thread waits for one, it is asked only if it was preempted. */
static void send_request(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, bool is_waiting)
{
    prepare_first_walk(sampler);
    struct signal_choice choice = signal_choose(thread);
    bool may_sleep = may_be_in_sleep(thread, cpu_ns, choice.sleep_count);
    uint64_t now_cpu_ns = cpu_ns;
    bool waits =
        is_waiting || (sampler->schedule.is_late && !(thread_cpu_ns(thread->tid, &now_cpu_ns) && now_cpu_ns != cpu_ns));
    if (waits && may_sleep) return;
    if (choice.number == 0) {
        do_without_signal(sampler, thread, cpu_ns);
        return;
    }
    if (choice.is_asleep) {
        (void)thread_awaits_signals(thread, cpu_ns); /* if so, no signal is sent for a while */
        return;
    }
    struct sample_request *request = sample_request_take(thread->tid, sampler->modules.current, choice.reading);
    if (!request) return;
    interpreted_threads_prepare(request, thread);
    sampler->counters[RECORDING_SIGNALS]++;
    thread->request = request;
    thread->signal.number = choice.number;
    thread->signal.cpu_ns_at_request = cpu_ns;
    timer_note_request(sampler, thread);
    thread->signal.ticks_asked = 0;
    thread->signal.is_for_wait = false;
    thread->signal.waits_at_request = sampler->schedule.is_late && waits;
    if (!signal_gate_send(request, choice.number)) {
        thread->request = NULL;
        sample_request_give_back(request);
    }
}

/* Returns the limit of requests in the open tick. If ticks are late, threads without a stack have precedence. */
static uint32_t requests_max_of(const struct sampler *sampler, const struct target_thread *thread)
{
    return sampler->timers.requests_in_tick_max *
           (thread->ledger.records.has_run ? 1 : sampler->schedule.periods_in_tick);
}

/* Returns true if the kernel takes THREAD's stacks of user code. Signals are for its calls, and come from its CPU clock
 * where that is possible. A first stack need not be exact. */
static bool is_for_calls(const struct target_thread *thread)
{
    return timer_sees_user_code(thread) && thread->ledger.records.has_run;
}

static void request_sample(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    uint32_t requests_max = requests_max_of(sampler, thread);
    if (sampler->spent.requests >= requests_max || cpu_ns < thread->signal.none_until_cpu_ns) return;
    sampler->spent.requests++;
    send_request(sampler, thread, cpu_ns, false);
}

/* Sends a request to THREAD unless it may have slept since it was last considered. */
static void ask_unless_asleep(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sampler->spent.requests++ < requests_max_of(sampler, thread)) send_request(sampler, thread, cpu_ns, true);
}

/* Asks THREAD, which waits for a processor, for its stack. It replies when it gets a processor; the reply is for that
 * wait if a timer measures its CPU time. A stop in the timer's last record is not enough to ask: the kernel also stops
 * threads that are about to sleep, if another one wakes them at that moment, and a signal ends such a call. */
static void ask_for_wait(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    ask_unless_asleep(sampler, thread, cpu_ns);
    thread->signal.is_for_wait = thread->request && (thread->perf.timer.control || run_queue_waits_are_asked(thread));
    if (run_queue_waits_are_asked(thread)) run_queue_waits_note_request(sampler, thread, thread->request);
}

/* --- A thread that has run since the previous tick ---------------------------------------------------------------- */

/* Returns REMOTE_WALKED if the stack was read and written, REMOTE_PENDING if it needs a table that is being built. */
static enum remote_unwind_result read_blocked(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    static struct remote_stack remote; /* the sampler thread's alone */
    enum remote_unwind_result result = REMOTE_PENDING;
    for (unsigned i = 0; result == REMOTE_PENDING && i < MODULES_MAX; i++) {
        result = remote_unwind(thread, cpu_ns, sampler->modules.current, &remote);
        if (result != REMOTE_PENDING) break;
        enum modules_result table = build_table_for(sampler, remote.addresses, remote.count);
        if (table == MODULES_LATER) return REMOTE_PENDING;
        if (table != MODULES_NOTHING) continue;
        result = REMOTE_INCOMPLETE;
        remote.outcome = UNWIND_NO_TABLE;
    }
    if (result == REMOTE_INCOMPLETE || result == REMOTE_DENIED) sampler->counters[RECORDING_BLOCKED_DENIED]++;
    if (result != REMOTE_WALKED && result != REMOTE_INCOMPLETE) return result;
    sampler->counters[RECORDING_BLOCKED_READ]++;
    if (!interpreted_threads_add(sampler, thread, cpu_ns, &remote)) return REMOTE_RUNNING;
    struct found_stack stack = {remote.addresses, remote.count, remote.outcome | RECORDING_WITHOUT_SIGNAL};
    thread_time_credit_blocked(sampler, thread, false, &stack);
    return REMOTE_WALKED;
}

/* Reads the stack of THREAD unless it runs. In CPU mode little is written for a thread that does not run. */
static enum remote_unwind_result read_unless_running(struct sampler *sampler, struct target_thread *thread,
                                                     uint64_t cpu_ns)
{
    bool is_for_switching = timer_switching_ns(thread) >= sampler->tick.period_ns;
    if (!sampler_is_cpu_mode(sampler) || is_for_switching) return read_blocked(sampler, thread, cpu_ns);
    if (is_for_calls(thread)) return REMOTE_RUNNING; /* whether it runs does not matter */
    return thread_is_running(thread) ? REMOTE_RUNNING : REMOTE_WALKED;
}

/* Threads to check again in the open tick: they were awake, but usually sleep, or may wait for a processor. */
static struct target_thread *recheck_list[RECHECK_MAX];
static size_t recheck_count;

static void recheck_later(struct sampler *sampler, struct target_thread *thread, bool may_wait)
{
    if (sampler->schedule.is_late || recheck_count >= RECHECK_MAX) return;
    thread->scan.may_wait = may_wait;
    recheck_list[recheck_count++] = thread;
}

/* Checks THREAD again. Returns false if it woke up so recently that this must be repeated. */
static bool recheck(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t cpu_ns = 0;
    if (!thread_cpu_ns(thread->tid, &cpu_ns)) return true;
    if (thread->scan.may_wait) {
        if (cpu_ns == thread->ledger.cpu_ns) ask_for_wait(sampler, thread, cpu_ns);
        return true;
    }
    enum remote_unwind_result result = read_unless_running(sampler, thread, cpu_ns);
    if (result == REMOTE_WALKED) return true;
    if (cpu_ns < thread->ledger.cpu_ns + LASTING_NS) return false;
    if (result == REMOTE_RUNNING) request_sample(sampler, thread, cpu_ns);
    return true;
}

/* Checks the threads of the recheck list, until the sampler itself had to wait for a processor: threads can have slept
 * and woken up meanwhile. */
static void recheck_all(struct sampler *sampler)
{
    struct timespec pause = {.tv_nsec = RECHECK_AFTER_NS};
    unsigned rounds_max = sampler->schedule.is_late ? 0 : RECHECK_ROUNDS_MAX; /* later ticks write their time */
    for (unsigned round = 0; round < rounds_max && recheck_count > 0; round++) {
        uint64_t until_ns = monotonic_ns() + (uint64_t)pause.tv_nsec;
        /* A busy loop would keep a processor that they may wait for. */
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
        if (monotonic_ns() > until_ns + RECHECK_LATE_NS) return;
        pause.tv_nsec *= 2;
        size_t kept = 0;
        for (size_t i = 0; i < recheck_count; i++) {
            if (!recheck(sampler, recheck_list[i])) recheck_list[kept++] = recheck_list[i];
        }
        recheck_count = kept;
    }
}

/* Returns true if THREAD's CPU time needs no signal, because its timer reports it, sooner or later. */
static bool is_left_to_timer(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    if (sampler->schedule.is_late && !thread->ledger.records.has_run) return false;
    if (timer_sees_user_code(thread) && !timer_wants_reply(sampler, thread, cpu_ns)) return true;
    if (thread->cpu_clock.request && (thread->ledger.records.has_run || !thread->ledger.beginning.is_first_scan))
        return !cpu_clock_timer_is_late(sampler, thread, ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns));
    if (timer_sees_user_code(thread) && sampler->timers.kernel_tick_ns == 0) return false;
    return thread->perf.timer.control &&
           ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns) < PERIODS_TO_WAIT * sampler->tick.period_ns;
}

/* Asks THREAD, which runs, or checks it again: a thread that runs only for a moment would be about to sleep when the
 * signal arrives. A late tick checks no thread again; it asks such a thread only if it was preempted, or has never
 * slept. A new thread that has run for a while and never slept does not wait for a recheck, nor does the first thread
 * of a process that has not slept since the recording began: they may end soon. */
static void scan_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, bool is_busy)
{
    bool has_time = sampler->tick.period_ns / SELDOM_AWAKE >= LASTING_NS; /* true up to 1 kHz */
    bool has_room = recheck_count < RECHECK_MAX;
    if (is_busy || is_for_calls(thread) || !has_time || !has_room) {
        request_sample(sampler, thread, cpu_ns);
        return;
    }
    bool is_first = thread->tid == sampler->start.thread && !thread->ledger.records.has_run;
    bool is_new = is_first || (thread->ledger.beginning.is_first_scan && cpu_ns >= LASTING_NS);
    if (sampler->schedule.is_late || timer_sees_user_code(thread) || is_new) ask_unless_asleep(sampler, thread, cpu_ns);
    if (!thread->request) recheck_later(sampler, thread, false);
}

/* Returns false if the first stack of THREAD is to be read at a later tick, and counts for this one, too: reading
 * thousands of threads that started together must not take several ticks. */
static bool has_room_for_first_scan(struct sampler *sampler, const struct target_thread *thread)
{
    enum { FIRST_SCANS_A_SECOND = 25600 };
    if (sampler_is_cpu_mode(sampler) || thread->ledger.state != LEDGER_UNKNOWN) return true;
    uint32_t scans_max =
        (FIRST_SCANS_A_SECOND / sampler->schedule.ticks_a_second + 1) * sampler->schedule.periods_in_tick;
    return sampler->spent.first_scans++ < scans_max;
}

/* Has the kernel take the stacks of THREAD, which has run for CPU_NS. */
static void leave_to_timer(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    timer_note_busy(sampler, thread);
    if (!cpu_clock_timer_is_wanted(sampler, thread, cpu_ns)) return;
    if (sampler->spent.requests++ >= requests_max_of(sampler, thread)) return;
    prepare_first_walk(sampler);
    cpu_clock_timer_arm(sampler, thread, cpu_ns);
}

static void scan_awake(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, uint64_t ran_ns,
                       bool is_busy)
{
    if (!has_room_for_first_scan(sampler, thread)) return;
    thread->scan.waited_ns = 0;
    write_new_time(sampler, thread, cpu_ns, NULL);
    uint64_t unwritten_ns = ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns);
    if (is_busy || unwritten_ns >= sampler->tick.period_ns / 2) leave_to_timer(sampler, thread, cpu_ns);
    bool is_running = timer_is_running(thread) && !timer_sees_user_code(thread);
    enum remote_unwind_result result = is_running ? REMOTE_RUNNING : read_unless_running(sampler, thread, cpu_ns);
    if (result == REMOTE_WALKED) return;
    thread->ledger.state = result == REMOTE_RUNNING ? LEDGER_RUNNABLE : LEDGER_UNKNOWN;
    if (result == REMOTE_DENIED && ran_ns == 0) {
        ledger_write_unreadable(&sampler->tick, &thread->ledger);
        return;
    }
    if (result == REMOTE_RUNNING) leave_to_timer(sampler, thread, cpu_ns);
    bool is_left = is_left_to_timer(sampler, thread, cpu_ns);
    if (result != REMOTE_PENDING && !is_left) scan_running(sampler, thread, cpu_ns, is_busy);
    if (result == REMOTE_RUNNING && is_left && run_queue_waits_are_asked(thread)) recheck_later(sampler, thread, true);
}

/* Scans THREAD, which is not blocked and has not run since the previous tick, in wall-clock mode. A timer has seen
 * where it was stopped; a thread without one gets a signal, which costs 40 µs, after a long wait. */
static void scan_waiting(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    thread->scan.waited_ns += sampler->tick.span_ns;
    if (thread->scan.waited_ns < LONG_WAIT_NS) return;
    timer_note_busy(sampler, thread);
    if (run_queue_waits_may_have_timer(thread)) return;
    ask_for_wait(sampler, thread, cpu_ns);
}

static void note_first_seen(struct sampler *sampler, struct target_thread *thread)
{
    if (thread->scan.is_known) return;
    short_lived_threads_first_seen(sampler, thread);
    ledger_open(&thread->ledger);
    thread->scan.is_known = true;
}

/* Returns true if THREAD has only run, sampled by the kernel, and waited since the previous scan. */
static bool has_run_on(struct sampler *sampler, struct target_thread *thread)
{
    bool has_timer = thread->perf.timer.control;
    if (!has_timer && !thread->cpu_clock.request) return false;
    uint64_t room = has_timer ? timer_room(thread) : cpu_clock_timer_room(sampler);
    sampler->schedule.periods_with_room = least(sampler->schedule.periods_with_room, room);
    return has_timer ? timer_has_run_on(thread) : cpu_clock_timer_has_run_on(sampler, thread);
}

/* Scans a thread. Returns false if it has ended. The cheapest proof that it has not moved is tried first. */
static bool scan_thread(struct sampler *sampler, struct listed_thread *listed)
{
    if (idle_thread_continues(listed)) return true;
    struct target_thread *thread = listed->thread;
    uint64_t cpu_ns = 0;
    uint32_t count = idle_thread_count(thread);
    if (!thread_cpu_ns(thread->tid, &cpu_ns)) {
        thread->scan.is_missing = true;
        ledger_end_tick(&sampler->tick, &thread->ledger); /* without this a reader takes it for blocked */
        return false;
    }
    uint64_t ran_ns = cpu_ns - thread->ledger.cpu_ns;
    thread->ledger.cpu_ns = cpu_ns;
    note_first_seen(sampler, thread);
    /* Only two long runs in a row count: in a virtual machine, the kernel adds time of the host to the thread. */
    uint64_t span_ns = sampler->schedule.is_late ? sampler->tick.span_ns : sampler->tick.period_ns;
    bool ran_long = ran_ns >= span_ns / SELDOM_AWAKE, is_busy = ran_long && thread->scan.ran_long;
    thread->scan.ran_long = ran_long;
    bool is_asleep =
        ran_ns == 0 && !thread->request && (sampler_is_cpu_mode(sampler) || thread->ledger.state == LEDGER_BLOCKED);
    if (is_asleep) {
        idle_thread_note_asleep(sampler, listed, count);
        if (sampler->schedule.is_late) ledger_note_state(&sampler->tick, &thread->ledger);
        return true;
    }
    idle_thread_note_awake(sampler, listed);
    ledger_begin_tick(&sampler->tick, &thread->ledger);
    bool was_running = thread->ledger.state == LEDGER_RUNNABLE;
    cpu_clock_timer_check(sampler, thread);
    if (thread->request)
        watch_waiting(sampler, thread, cpu_ns);
    else if (ran_ns > 0 || thread->ledger.state != LEDGER_RUNNABLE)
        scan_awake(sampler, thread, cpu_ns, ran_ns, is_busy);
    else
        scan_waiting(sampler, thread, cpu_ns);
    ledger_end_tick(&sampler->tick, &thread->ledger);
    if (sampler->schedule.is_late) ledger_note_state(&sampler->tick, &thread->ledger);
    if (!has_run_on(sampler, thread) || !was_running) sampler->schedule.is_steady = false;
    return true;
}

bool tick_all_threads(struct sampler *sampler)
{
    bool all_live = true;
    struct listed_thread *items = sampler->threads.items;
    size_t count = sampler->threads.count;
    sampler->spent.requests = sampler->spent.pages = sampler->spent.timers = sampler->spent.switch_counts = 0;
    sampler->spent.first_scans = 0;
    recheck_count = 0;
    sampler->schedule.is_steady = true;
    sampler->schedule.periods_with_room = UINT64_MAX;
    /* Each tick begins at another thread, so that threads which were postponed for lack of room become the first ones.
     * Each of a thousand sleeping threads costs a cache miss: with prefetching, the misses overlap. */
    for (size_t i = 0, at = count ? sampler->tick.number % count : 0; i < count;
         i++, at = at + 1 < count ? at + 1 : 0) {
        const struct listed_thread *ahead = &items[at + AHEAD < count ? at + AHEAD : at];
        __builtin_prefetch(ahead->page_asleep ? (const void *)ahead->page_asleep : (const void *)ahead->thread);
        if (!scan_thread(sampler, &items[at])) all_live = false;
    }
    recheck_all(sampler);
    sampler->schedule.steady_periods = sampler->schedule.is_steady && all_live
                                           ? sampler->schedule.steady_periods + sampler->schedule.periods_in_tick
                                           : 0;
    return all_live;
}

void tick_new_threads(struct sampler *sampler)
{
    recheck_count = 0;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct listed_thread *listed = &sampler->threads.items[i];
        if (!listed->thread->scan.is_known) (void)scan_thread(sampler, listed);
    }
    recheck_all(sampler);
}

void tick_last(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        uint64_t cpu_ns = thread->ledger.cpu_ns;
        if (!thread_cpu_ns(thread->tid, &cpu_ns)) {
            thread->scan.is_missing = true;
            ledger_end_tick(&sampler->tick, &thread->ledger);
            continue;
        }
        bool is_asleep =
            cpu_ns == thread->ledger.cpu_ns && thread->scan.is_known && thread->ledger.state == LEDGER_BLOCKED;
        thread->ledger.cpu_ns = cpu_ns;
        note_first_seen(sampler, thread);
        if (is_asleep) continue;
        ledger_begin_tick(&sampler->tick, &thread->ledger);
        write_new_time(sampler, thread, cpu_ns, NULL);
        ledger_end_tick(&sampler->tick, &thread->ledger);
    }
}

/* --- A thread that has ended -------------------------------------------------------------------------------------- */

uint64_t tick_unseen_cpu_ns(const struct sampler *sampler)
{
    uint64_t all_ns = 0, seen_ns = sampler->cpu.ended_ns, own_ns = 0;
    (void)kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID, &all_ns);
    for (size_t i = 0; i < sampler->threads.count; i++) {
        const struct target_thread *thread = sampler->threads.items[i].thread;
        uint64_t cpu_ns = thread->ledger.cpu_ns;
        if (thread->listing.is_listed) (void)thread_cpu_ns(thread->tid, &cpu_ns);
        if (thread->ledger.life.ends > 0 && cpu_ns < thread->ledger.life.cpu_ns)
            cpu_ns = thread->ledger.life.cpu_ns; /* its final value */
        if (!thread->scan.is_accounted) seen_ns += cpu_ns;
    }
    (void)thread_cpu_ns(sampler->threads.sampler_tid, &own_ns);
    return all_ns > seen_ns + own_ns ? all_ns - seen_ns - own_ns : 0;
}

/* Returns the CPU time of THREAD after its last scan. If many threads end at one tick, the first ones get it. */
static uint64_t take_unseen_time(struct sampler *sampler, struct target_thread *thread)
{
    uint64_t unseen_max_ns = 2 * sampler->tick.period_ns;
    if (sampler->cpu.unseen_tick != sampler->tick.number) sampler->cpu.unseen_ns = tick_unseen_cpu_ns(sampler);
    sampler->cpu.unseen_tick = sampler->tick.number;
    uint64_t unseen_ns = sampler->cpu.unseen_ns < unseen_max_ns ? sampler->cpu.unseen_ns : unseen_max_ns;
    sampler->cpu.unseen_ns -= unseen_ns;
    thread->ledger.cpu_ns += unseen_ns;
    sampler->cpu.ended_ns += thread->ledger.cpu_ns;
    thread->scan.is_accounted = true;
    return unseen_ns;
}

/* Writes the remaining time of THREAD, which has reported its CPU time. */
static void close_as_reported(struct sampler *sampler, struct target_thread *thread)
{
    if (!thread->scan.is_known) {
        short_lived_threads_add(sampler, &thread->ledger.life);
        return;
    }
    uint64_t unseen_cpu_ns = difference(thread->ledger.life.cpu_ns, thread->ledger.cpu_ns);
    thread->ledger.cpu_ns += unseen_cpu_ns;
    sampler->cpu.ended_ns += thread->ledger.cpu_ns;
    thread->scan.is_accounted = true;
    write_new_time(sampler, thread, thread->ledger.cpu_ns, NULL);
    thread_time_close_as_reported(sampler, thread, unseen_cpu_ns);
    short_lived_threads_credit(sampler, thread);
}

void tick_thread_ended(struct sampler *sampler, struct target_thread *thread)
{
    if (!sampler->ending.is_ending)
        short_lived_threads_read(sampler); /* it was listed before it ended: its event is there */
    if (thread->ledger.life.ends > 0) {
        close_as_reported(sampler, thread);
    } else if (sampler->ending.is_ending) {
        thread_time_write_rest(sampler, thread);
    } else {
        uint64_t unseen_ns = take_unseen_time(sampler, thread);
        write_new_time(sampler, thread, thread->ledger.cpu_ns, NULL);
        thread_time_close(sampler, thread, unseen_ns);
    }
    if (thread->request) sample_request_give_back(thread->request);
    cpu_clock_timer_forget(thread);
    if (thread->files.syscall >= 0) kernel_close(thread->files.syscall);
    if (thread->files.delay >= 0) kernel_close(thread->files.delay);
    if (thread->files.status >= 0) kernel_close(thread->files.status);
    idle_thread_forget(sampler, thread);
    timer_forget(sampler, thread);
}
