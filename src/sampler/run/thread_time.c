/* Tells a thread's ledger what was observed, and notes what it has written.  SPDX-License-Identifier: MIT */
#include "sampler/run/thread_time.h"

#include "sampler/run/context_switches.h"
#include "sampler/source/shared_timer.h"

void thread_time_read_delay(struct sampler *sampler, struct target_thread *thread)
{
    enum { COUNTS_A_TICK_MAX = 32 };
    const struct perf_timer *timer = thread->source.timer.open;
    struct ledger_delay delay = {0};
    if (timer) delay.timer = (struct ledger_timer){true, timer->has_seen_switch, timer->preempted_ns};
    struct ended_waits waits;
    if (sampler_is_cpu_mode(sampler) || !thread_read_delay(&thread->files, &delay.ns)) return;
    delay.read_ns = monotonic_ns();
    if (sampler->spent.switch_counts < COUNTS_A_TICK_MAX &&
        ledger_wants_waits(&thread->ledger, delay.ns, &delay.timer)) {
        sampler->spent.switch_counts++;
        if (context_switches_count_waits(thread, &waits)) delay.waits = &waits;
    }
    ledger_note_delay(&sampler->tick, &thread->ledger, &delay);
}

static void note_sample(struct sampler *sampler, struct target_thread *thread)
{
    thread->listing.may_have_new_name = sampler->chores.has_news = true;
}

/* Counts the waits in TIME, which was written for where THREAD ran, if nobody saw where they began. */
static void note_unseen_waits(struct sampler *sampler, const struct target_thread *thread, struct recording_time time)
{
    if (!thread->source.waits.are_where_it_runs) sampler->counters[RECORDING_UNSEEN_WAITS_NS] += time.runnable_ns;
}

void thread_time_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                                const struct found_stack *stack)
{
    bool is_observed = run_queue_waits_are_seen(&thread->source, sampler->tick.is_starved);
    struct recording_time time = ledger_credit_running(&sampler->tick, &thread->ledger, cpu_ns, is_observed, stack);
    if (time.cpu_ns + time.runnable_ns == 0) return;
    note_unseen_waits(sampler, thread, time);
    note_sample(sampler, thread);
    thread->source.ticks_without_table = 0;
}

void thread_time_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack)
{
    struct recording_time time = ledger_credit_wait(&sampler->tick, &thread->ledger, stack);
    if (time.runnable_ns > 0) note_sample(sampler, thread);
}

void thread_time_credit_blocked(struct sampler *sampler, struct target_thread *thread, bool is_awake,
                                const struct found_stack *stack)
{
    uint64_t switching_ns = timer_switching_ns(&thread->source);
    uint64_t written_ns = is_awake ? ledger_credit_sleep(&sampler->tick, &thread->ledger, switching_ns, stack)
                                   : ledger_credit_blocked(&sampler->tick, &thread->ledger, switching_ns, stack);
    thread->source.credit.switches.written_ns += written_ns;
    note_sample(sampler, thread);
}

void thread_time_write_rest(struct sampler *sampler, struct target_thread *thread)
{
    note_unseen_waits(sampler, thread, ledger_write_rest(&sampler->tick, &thread->ledger, thread->source.timer.open));
}

void thread_time_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns)
{
    const struct ledger_end end = {.unseen_cpu_ns = unseen_cpu_ns, .has_timer = thread->source.timer.open};
    note_unseen_waits(sampler, thread, ledger_close(&sampler->tick, &thread->ledger, &end));
}

void thread_time_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns)
{
    struct ledger_end end = {
        .unseen_cpu_ns = unseen_cpu_ns, .has_timer = thread->source.timer.open, .is_missing = thread->scan.is_missing};
    struct ended_waits waits;
    ledger_note_creation(&sampler->tick, &thread->ledger);
    if (context_switches_count_last_waits(thread, &waits)) end.waits = &waits;
    note_unseen_waits(sampler, thread, ledger_close_as_reported(&sampler->tick, &thread->ledger, &end));
}
