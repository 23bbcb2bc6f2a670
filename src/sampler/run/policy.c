/* SPDX-License-Identifier: MIT */
#include "sampler/run/policy.h"

#include "sampler/run/recheck_list.h"
#include "sampler/run/thread_sources.h"
#include "sampler/source/shared_timer.h"

const struct policy_row policy_rows[] = {
    /* A timer has seen where it was stopped, or will: a signal costs 40 µs. */
    {POLICY_WAITS_LONG | POLICY_STOPS_SEEN, SOURCE_FOR_NOTHING, POLICY_NO_RECHECK},
    {POLICY_WAITS_LONG, SOURCE_WHERE_IT_WAITS, POLICY_NO_RECHECK},
    /* It is blocked: no signal may reach it. */
    {POLICY_NEEDS_TABLE, SOURCE_FOR_NOTHING, POLICY_NO_RECHECK},
    /* A timer measures its CPU time, but not where it waits. */
    {POLICY_COMES | POLICY_RUNS | POLICY_WAITS_ARE_ASKED, SOURCE_FOR_NOTHING, POLICY_RECHECK_WAIT},
    {POLICY_COMES, SOURCE_FOR_NOTHING, POLICY_NO_RECHECK},
    /* A thread that runs all the time is not about to sleep. */
    {POLICY_BUSY, SOURCE_NOW, POLICY_NO_RECHECK},
    /* The reply has to come from the call, so the thread may not leave it before. */
    {POLICY_IN_CALLS, SOURCE_NOW, POLICY_NO_RECHECK},
    /* The pause before a recheck is a large part of a period. */
    {POLICY_NO_TIME, SOURCE_NOW, POLICY_NO_RECHECK},
    {POLICY_NO_ROOM, SOURCE_NOW, POLICY_NO_RECHECK},
    /* A late tick checks no thread again: it asks one that was preempted, or has never slept. */
    {POLICY_LATE, SOURCE_NOW_UNLESS_ASLEEP, POLICY_RECHECK},
    /* A first stack need not be exact. */
    {POLICY_SEES_USER_CODE, SOURCE_NOW_UNLESS_ASLEEP, POLICY_RECHECK},
    /* Young threads may end soon, and do not wait for a recheck. */
    {POLICY_STARTER, SOURCE_NOW_UNLESS_ASLEEP, POLICY_RECHECK},
    {POLICY_NEW, SOURCE_NOW_UNLESS_ASLEEP, POLICY_RECHECK},
    /* A thread that runs only for a moment would be about to sleep when a signal arrives. */
    {0, SOURCE_FOR_NOTHING, POLICY_RECHECK},
};

const struct policy_row *policy_choose(uint32_t facts)
{
    const struct policy_row *row = policy_rows;
    while ((row->facts & facts) != row->facts) row++;
    return row;
}

/* Returns true if the CPU time of THREAD needs no request, because a source brings its stacks. A thread without a stack
 * is asked at a late tick. */
static bool stack_comes(struct sampler *sampler, struct target_thread *thread)
{
    if (sampler->schedule.is_late && !thread->ledger.records.has_run) return false;
    return sources_offer(sampler, thread, SOURCE_SEES_RUNNING) <= SOURCE_WILL_HAVE;
}

static uint32_t fact(bool holds, enum policy_fact bit)
{
    return holds ? (uint32_t)bit : 0;
}

uint32_t policy_facts_of_running(struct sampler *sampler, struct target_thread *thread, enum source_offer read,
                                 bool is_busy)
{
    const struct ledger *ledger = &thread->ledger;
    bool has_run = ledger->records.has_run, sees_user_code = timer_sees_user_code(&thread->source);
    bool has_lasted = thread->source.clock_ns >= SOURCE_LASTING_NS;
    return fact(stack_comes(sampler, thread), POLICY_COMES) | fact(read == SOURCE_WILL_HAVE, POLICY_NEEDS_TABLE) |
           fact(read == SOURCE_NO, POLICY_RUNS) |
           fact(run_queue_waits_are_asked(&thread->source), POLICY_WAITS_ARE_ASKED) | fact(is_busy, POLICY_BUSY) |
           fact(sees_user_code && has_run, POLICY_IN_CALLS) |
           fact(sampler->tick.period_ns / POLICY_SELDOM_AWAKE < SOURCE_LASTING_NS, POLICY_NO_TIME) |
           fact(!recheck_list_has_room(), POLICY_NO_ROOM) | fact(sampler->schedule.is_late, POLICY_LATE) |
           fact(sees_user_code && !has_run, POLICY_SEES_USER_CODE) |
           fact(thread->files.tid == sampler->start.thread && !has_run, POLICY_STARTER) |
           fact(ledger->beginning.is_first_scan && has_lasted, POLICY_NEW);
}

uint32_t policy_facts_of_waiting(struct sampler *sampler, struct target_thread *thread)
{
    bool are_seen = sources_offer(sampler, thread, SOURCE_SEES_WAITS) <= SOURCE_WILL_HAVE;
    return POLICY_WAITS_LONG | fact(are_seen, POLICY_STOPS_SEEN);
}

uint32_t policy_requests_max(const struct sampler *sampler, const struct target_thread *thread)
{
    return sampler->timers.requests_in_tick_max *
           (thread->ledger.records.has_run ? 1 : sampler->schedule.periods_in_tick);
}

bool policy_allows_first_scan(struct sampler *sampler, const struct target_thread *thread)
{
    if (sampler_is_cpu_mode(sampler) || thread->ledger.state != LEDGER_UNKNOWN) return true;
    uint32_t scans_max =
        (POLICY_FIRST_SCANS_A_SECOND / sampler->schedule.ticks_a_second + 1) * sampler->schedule.periods_in_tick;
    return sampler->spent.first_scans++ < scans_max;
}

bool policy_note_run(const struct sampler *sampler, struct target_thread *thread, uint64_t ran_ns)
{
    uint64_t span_ns = sampler->schedule.is_late ? sampler->tick.span_ns : sampler->tick.period_ns;
    bool ran_long = ran_ns >= span_ns / POLICY_SELDOM_AWAKE, is_busy = ran_long && thread->scan.ran_long;
    thread->scan.ran_long = ran_long;
    return is_busy;
}
