/* The work for each thread at a tick. ledger.h describes how the thread's time is divided, source.h who has its stacks,
 * and policy.c who is asked for one.
 *
 * A thread whose CPU clock has stopped has the same stack as at the previous tick: nothing is read or written. A thread
 * that ran and is blocked now is read from outside; that stack counts for its blocked time. Stacks that were taken
 * while it ran count for its CPU time. A thread that is known to sleep is never asked. SPDX-License-Identifier: MIT */
#include "sampler/run/idle_threads.h"
#include "sampler/run/policy.h"
#include "sampler/run/recheck_list.h"
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/thread_sources.h"
#include "sampler/run/tick.h"
#include "sampler/run/tick_schedule.h"

enum { THREADS_AHEAD = 8 }; /* number of threads by which memory is prefetched */

static void follow_policy(struct sampler *sampler, struct target_thread *thread, uint32_t facts)
{
    const struct policy_row *row = policy_choose(facts);
    if (row->need != SOURCE_FOR_NOTHING) sources_ask(sampler, thread, row->need);
    if (row->recheck != POLICY_NO_RECHECK && !thread->is_asked)
        recheck_list_add(sampler, thread, row->recheck == POLICY_RECHECK_WAIT);
}

static void scan_awake(struct sampler *sampler, struct target_thread *thread, uint64_t ran_ns, bool is_busy)
{
    if (!policy_allows_first_scan(sampler, thread)) return;
    thread->scan.waited_ns = 0;
    sources_credit(sampler, thread, NULL);
    uint64_t unwritten_ns = ledger_unwritten_cpu_ns(&thread->ledger, thread->ledger.cpu_ns);
    if (is_busy || unwritten_ns >= sampler->tick.period_ns / 2)
        (void)sources_want(sampler, thread, SOURCE_SEES_RUNNING, SOURCE_FOR_CPU_TIME);
    enum source_offer read = thread->source.timer.is_running ? SOURCE_NO : sources_read_blocked(sampler, thread);
    if (read == SOURCE_HAS) return;
    thread->ledger.state = read == SOURCE_NO ? LEDGER_RUNNABLE : LEDGER_UNKNOWN;
    if (read == SOURCE_DENIED && ran_ns == 0) {
        ledger_write_unreadable(&sampler->tick, &thread->ledger);
        return;
    }
    if (read == SOURCE_NO) (void)sources_want(sampler, thread, SOURCE_SEES_RUNNING, SOURCE_FOR_CPU_TIME);
    follow_policy(sampler, thread, policy_facts_of_running(sampler, thread, read, is_busy));
}

/* Scans THREAD, which is not blocked and has not run since the previous tick, in wall-clock mode. */
static void scan_waiting(struct sampler *sampler, struct target_thread *thread)
{
    thread->scan.waited_ns += sampler->tick.span_ns;
    if (thread->scan.waited_ns < LONG_WAIT_NS) return;
    (void)sources_want(sampler, thread, SOURCE_SEES_RUNNING, SOURCE_FOR_LONG_WAIT);
    follow_policy(sampler, thread, policy_facts_of_waiting(sampler, thread));
}

static void note_first_seen(struct sampler *sampler, struct target_thread *thread)
{
    if (thread->scan.is_known) return;
    short_lived_threads_first_seen(sampler, thread);
    ledger_open(&thread->ledger);
    thread->scan.is_known = true;
}

/* Reads how long THREAD has run since the last scan. Returns false if it has ended: without a record a reader takes it
 * for blocked. */
static bool read_clock(struct sampler *sampler, struct target_thread *thread, uint64_t *ret_ran_ns)
{
    if (!thread_cpu_ns(thread->files.tid, &thread->source.clock_ns)) {
        thread->scan.is_missing = true;
        ledger_end_tick(&sampler->tick, &thread->ledger);
        return false;
    }
    *ret_ran_ns = thread->source.clock_ns - thread->ledger.cpu_ns;
    thread->ledger.cpu_ns = thread->source.clock_ns;
    return true;
}

/* Scans a thread. Returns false if it has ended. The cheapest proof that it has not moved is tried first. */
static bool scan_thread(struct sampler *sampler, struct listed_thread *listed)
{
    if (idle_thread_continues(listed)) return true;
    struct target_thread *thread = listed->thread;
    uint32_t count = idle_thread_count(thread);
    uint64_t ran_ns = 0;
    if (!read_clock(sampler, thread, &ran_ns)) return false;
    note_first_seen(sampler, thread);
    bool is_busy = policy_note_run(sampler, thread, ran_ns);
    bool is_asleep =
        ran_ns == 0 && !thread->is_asked && (sampler_is_cpu_mode(sampler) || thread->ledger.state == LEDGER_BLOCKED);
    if (is_asleep) {
        idle_thread_note_asleep(sampler, listed, count);
        if (sampler->schedule.is_late) ledger_note_state(&sampler->tick, &thread->ledger);
        return true;
    }
    idle_thread_note_awake(sampler, listed);
    ledger_begin_tick(&sampler->tick, &thread->ledger);
    bool was_running = thread->ledger.state == LEDGER_RUNNABLE, was_asked = thread->is_asked;
    sources_look(sampler, thread);
    if (!was_asked && (ran_ns > 0 || !was_running))
        scan_awake(sampler, thread, ran_ns, is_busy);
    else if (!was_asked)
        scan_waiting(sampler, thread);
    ledger_end_tick(&sampler->tick, &thread->ledger);
    if (sampler->schedule.is_late) ledger_note_state(&sampler->tick, &thread->ledger);
    uint64_t room = sources_room(sampler, thread);
    schedule_note_room(&sampler->schedule, was_running ? room : 0);
    return true;
}

bool tick_all_threads(struct sampler *sampler)
{
    bool all_live = true;
    size_t count = sampler->threads.count;
    struct listed_thread *items = sampler->threads.items;
    sampler->spent = (struct tick_spent){.table_budget = sampler->spent.table_budget};
    recheck_list_clear();
    schedule_begin_scans(&sampler->schedule);
    /* Each tick begins at another thread, so that threads which were postponed for lack of room become the first ones.
     * Each of a thousand sleeping threads costs a cache miss: with prefetching, the misses overlap. */
    for (size_t i = 0, at = count ? sampler->tick.number % count : 0; i < count;
         i++, at = at + 1 < count ? at + 1 : 0) {
        const struct listed_thread *ahead = &items[at + THREADS_AHEAD < count ? at + THREADS_AHEAD : at];
        __builtin_prefetch(ahead->page_asleep ? (const void *)ahead->page_asleep : (const void *)ahead->thread);
        if (!scan_thread(sampler, &items[at])) all_live = false;
    }
    recheck_list_run(sampler);
    schedule_end_scans(&sampler->schedule, all_live);
    return all_live;
}

void tick_new_threads(struct sampler *sampler)
{
    recheck_list_clear();
    for (size_t i = 0; i < sampler->threads.count; i++) {
        if (!sampler->threads.items[i].thread->scan.is_known) (void)scan_thread(sampler, &sampler->threads.items[i]);
    }
    recheck_list_run(sampler);
}

void tick_last(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct target_thread *thread = sampler->threads.items[i].thread;
        uint64_t ran_ns = 0;
        if (!read_clock(sampler, thread, &ran_ns)) continue;
        bool is_asleep = ran_ns == 0 && thread->scan.is_known && thread->ledger.state == LEDGER_BLOCKED;
        note_first_seen(sampler, thread);
        if (is_asleep) continue;
        ledger_begin_tick(&sampler->tick, &thread->ledger);
        sources_credit(sampler, thread, NULL);
        ledger_end_tick(&sampler->tick, &thread->ledger);
    }
}
