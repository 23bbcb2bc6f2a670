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
#include "sampler/run/policy.h"
#include "sampler/run/recheck_list.h"
#include "sampler/run/remote_source.h"
#include "sampler/run/tick.h"

#include "sampler/run/cpu_clock_timer.h"
#include "sampler/run/idle_threads.h"
#include "sampler/run/run_queue_waits.h"
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/timer.h"
#include "sampler/run/signal_source.h"
#include "sampler/run/taken_stacks.h"
#include "sampler/run/walk_tables.h"

enum { THREADS_AHEAD = 8 }; /* number of threads by which memory is prefetched */

/* Asks THREAD, which runs, or checks it again. */
static void scan_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, bool is_busy)
{
    enum policy_way way = policy_for_running(sampler, thread, cpu_ns, is_busy, recheck_list_has_room());
    if (way == POLICY_ASK) {
        signal_source_ask(sampler, thread, cpu_ns);
        return;
    }
    if (way == POLICY_ASK_UNLESS_ASLEEP) signal_source_ask_unless_asleep(sampler, thread, cpu_ns);
    if (!thread->request) recheck_list_add(sampler, thread, false);
}

/* Has the kernel take the stacks of THREAD, which has run for CPU_NS. */
static void leave_to_timer(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    timer_note_busy(sampler, thread);
    if (!cpu_clock_timer_is_wanted(sampler, thread, cpu_ns)) return;
    if (sampler->spent.requests++ >= policy_requests_max(sampler, thread)) return;
    walk_tables_prepare(sampler);
    cpu_clock_timer_arm(sampler, thread, cpu_ns);
}

static void scan_awake(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns, uint64_t ran_ns,
                       bool is_busy)
{
    if (!policy_allows_first_scan(sampler, thread)) return;
    thread->scan.waited_ns = 0;
    taken_stacks_credit(sampler, thread, cpu_ns, NULL);
    uint64_t unwritten_ns = ledger_unwritten_cpu_ns(&thread->ledger, cpu_ns);
    if (is_busy || unwritten_ns >= sampler->tick.period_ns / 2) leave_to_timer(sampler, thread, cpu_ns);
    bool is_running = timer_is_running(thread) && !timer_sees_user_code(thread);
    enum remote_unwind_result result = is_running ? REMOTE_RUNNING : remote_source_read(sampler, thread, cpu_ns);
    if (result == REMOTE_WALKED) return;
    thread->ledger.state = result == REMOTE_RUNNING ? LEDGER_RUNNABLE : LEDGER_UNKNOWN;
    if (result == REMOTE_DENIED && ran_ns == 0) {
        ledger_write_unreadable(&sampler->tick, &thread->ledger);
        return;
    }
    if (result == REMOTE_RUNNING) leave_to_timer(sampler, thread, cpu_ns);
    bool is_left = policy_leaves_to_timer(sampler, thread, cpu_ns);
    if (result != REMOTE_PENDING && !is_left) scan_running(sampler, thread, cpu_ns, is_busy);
    if (result == REMOTE_RUNNING && is_left && run_queue_waits_are_asked(thread))
        recheck_list_add(sampler, thread, true);
}

/* Scans THREAD, which is not blocked and has not run since the previous tick, in wall-clock mode. A timer has seen
 * where it was stopped; a thread without one gets a signal, which costs 40 µs, after a long wait. */
static void scan_waiting(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns)
{
    thread->scan.waited_ns += sampler->tick.span_ns;
    if (thread->scan.waited_ns < LONG_WAIT_NS) return;
    timer_note_busy(sampler, thread);
    if (run_queue_waits_may_have_timer(thread)) return;
    signal_source_ask_for_wait(sampler, thread, cpu_ns);
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
    if (!thread_cpu_ns(thread->files.tid, &cpu_ns)) {
        thread->scan.is_missing = true;
        ledger_end_tick(&sampler->tick, &thread->ledger); /* without this a reader takes it for blocked */
        return false;
    }
    uint64_t ran_ns = cpu_ns - thread->ledger.cpu_ns;
    thread->ledger.cpu_ns = cpu_ns;
    note_first_seen(sampler, thread);
    /* Only two long runs in a row count: in a virtual machine, the kernel adds time of the host to the thread. */
    uint64_t span_ns = sampler->schedule.is_late ? sampler->tick.span_ns : sampler->tick.period_ns;
    bool ran_long = ran_ns >= span_ns / POLICY_SELDOM_AWAKE, is_busy = ran_long && thread->scan.ran_long;
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
        signal_source_watch(sampler, thread, cpu_ns);
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
    recheck_list_clear();
    sampler->schedule.is_steady = true;
    sampler->schedule.periods_with_room = UINT64_MAX;
    /* Each tick begins at another thread, so that threads which were postponed for lack of room become the first ones.
     * Each of a thousand sleeping threads costs a cache miss: with prefetching, the misses overlap. */
    for (size_t i = 0, at = count ? sampler->tick.number % count : 0; i < count;
         i++, at = at + 1 < count ? at + 1 : 0) {
        const struct listed_thread *ahead = &items[at + THREADS_AHEAD < count ? at + THREADS_AHEAD : at];
        __builtin_prefetch(ahead->page_asleep ? (const void *)ahead->page_asleep : (const void *)ahead->thread);
        if (!scan_thread(sampler, &items[at])) all_live = false;
    }
    recheck_list_run(sampler);
    sampler->schedule.steady_periods = sampler->schedule.is_steady && all_live
                                           ? sampler->schedule.steady_periods + sampler->schedule.periods_in_tick
                                           : 0;
    return all_live;
}

void tick_new_threads(struct sampler *sampler)
{
    recheck_list_clear();
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct listed_thread *listed = &sampler->threads.items[i];
        if (!listed->thread->scan.is_known) (void)scan_thread(sampler, listed);
    }
    recheck_list_run(sampler);
}

void tick_last(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        uint64_t cpu_ns = thread->ledger.cpu_ns;
        if (!thread_cpu_ns(thread->files.tid, &cpu_ns)) {
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
        taken_stacks_credit(sampler, thread, cpu_ns, NULL);
        ledger_end_tick(&sampler->tick, &thread->ledger);
    }
}
