/* Accounts for threads that live between two ticks. They report their own time (thread_events.h). Ticks see some of
 * them, and their stacks stand for the others with the same start routine. Time without a stack has the name of the
 * routine. SPDX-License-Identifier: MIT */
#include "base/unsigned.h"
#include "sampler/run/short_lived_threads.h"
#include "sampler/run/ended_threads.h"

/* --- Sums by routine ---------------------------------------------------------------------------------------------- */

void short_lived_threads_add(struct sampler *sampler, const struct thread_event *end)
{
    struct routine_sums *routine = routine_sums_of(sampler->tick.routines, end->routine);
    routine->unwritten.ends += end->ends;
    sampler->cpu.ended_ns += end->cpu_ns;
    sampler->cpu.unseen_ns = difference(sampler->cpu.unseen_ns, end->cpu_ns);
    routine->unwritten.cpu_ns += end->cpu_ns;
    if (sampler->tick.mode == RECORDING_CPU) return;
    uint64_t rest_ns = end->wall_ns - least(end->cpu_ns, end->wall_ns);
    uint64_t start_wait_ns = least(end->start_wait_ns, rest_ns);
    routine->unwritten.start_wait_ns += start_wait_ns;
    if (end->sleeps == 0) {
        routine->unwritten.preempted_ns += rest_ns - start_wait_ns;
        return;
    }
    routine->off.ns += rest_ns - start_wait_ns;
    routine->off.sleeps += end->sleeps;
    routine->off.preemptions += end->preemptions;
}

/* Takes whole units of the recording from *NS, and leaves the rest of a unit there. */
static uint64_t take_units(uint64_t *ns)
{
    uint64_t taken_ns = *ns - *ns % RECORDING_TIME_UNIT_NS;
    *ns -= taken_ns;
    return taken_ns;
}

static void write_sum(struct sampler *sampler, struct routine_sums *routine, const struct target_thread *thread,
                      enum recording_share share)
{
    struct recording_time time = {0};
    if (share == RECORDING_OF_RUNNING)
        time = (struct recording_time){.cpu_ns = take_units(&routine->unwritten.cpu_ns),
                                       .runnable_ns = take_units(&routine->unwritten.preempted_ns)};
    if (share == RECORDING_OF_BLOCKED)
        time = (struct recording_time){.runnable_ns = take_units(&routine->unwritten.woken_ns),
                                       .blocked_ns = take_units(&routine->unwritten.blocked_ns)};
    if (share == RECORDING_OF_START) time.runnable_ns = take_units(&routine->unwritten.start_wait_ns);
    if (time.cpu_ns + time.runnable_ns + time.blocked_ns == 0) return;
    recording_begin(sampler->writer, RECORDING_SHORT, 80);
    recording_number(sampler->writer, routine->routine);
    recording_number(sampler->writer, routine->unwritten.ends);
    recording_number(sampler->writer, thread ? (uint64_t)thread->ledger.records.number + 1 : 0);
    recording_number(sampler->writer, share);
    recording_time(sampler->writer, time);
    routine->unwritten.ends = 0;
}

static uint64_t part_of(uint64_t ns, double part, double all)
{
    return all > 0 ? least((uint64_t)(part / all * (double)ns), ns) : 0;
}

/* Divides the time without a processor of threads that no tick saw. They waited for a processor for the same share of
 * it as the seen threads of their routine; all of their waits are taken to be of one length, after a sleep or a
 * preemption. */
static void divide_off_time(struct routine_sums *routine)
{
    double sleeps = (double)routine->off.sleeps, switches = sleeps + (double)routine->off.preemptions;
    uint64_t delay_ns = part_of(routine->off.ns, (double)routine->seen_delay_ns, (double)routine->seen_off_ns);
    uint64_t woken_ns = part_of(delay_ns, sleeps, switches);
    routine->unwritten.woken_ns += woken_ns;
    routine->unwritten.preempted_ns += delay_ns - woken_ns;
    routine->unwritten.blocked_ns += routine->off.ns - delay_ns;
    routine->off.ns = routine->off.sleeps = routine->off.preemptions = 0;
}

void short_lived_threads_credit(struct sampler *sampler, const struct target_thread *thread)
{
    const struct thread_event *life = &thread->ledger.life;
    uint64_t short_ns = greatest(sampler->tick.period_ns, sampler->tick.span_ns);
    if (life->ends == 0) return;
    struct routine_sums *routine = routine_sums_of(sampler->tick.routines, life->routine);
    if (routine->routine != life->routine) return;
    if (!thread->ledger.beginning.was_there) {
        routine->seen_off_ns += difference(life->wall_ns, life->cpu_ns + life->start_wait_ns);
        routine->seen_delay_ns += difference(thread->ledger.waits.written_ns, life->start_wait_ns);
    }
    if (life->wall_ns > 2 * short_ns) return;
    divide_off_time(routine);
    if (thread->ledger.records.has_run) write_sum(sampler, routine, thread, RECORDING_OF_RUNNING);
    if (thread->ledger.records.has_blocked) write_sum(sampler, routine, thread, RECORDING_OF_BLOCKED);
}

void short_lived_threads_write_rest(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->tick.routines->count; i++) {
        struct routine_sums *routine = &sampler->tick.routines->items[i];
        divide_off_time(routine);
        for (enum recording_share share = 0; share < RECORDING_SHARES; share++)
            write_sum(sampler, routine, NULL, share);
        *routine = (struct routine_sums){0};
    }
    sampler->tick.routines->count = 0;
}

void short_lived_threads_write_unseen(struct sampler *sampler, uint64_t cpu_ns)
{
    struct routine_sums unseen = {.unwritten.cpu_ns = cpu_ns};
    write_sum(sampler, &unseen, NULL, RECORDING_OF_RUNNING);
}

/* --- Events of threads -------------------------------------------------------------------------------------------- */

/* Returns the place of TID in BEGUN, or BEGUN_COUNT. */
static size_t place_of_begun(const struct short_lived_threads *lives, pid_t tid)
{
    size_t i = 0;
    while (i < lives->begun_count && lives->begun[i].tid != tid) i++;
    return i;
}

static bool take_begun(struct short_lived_threads *lives, pid_t tid, struct thread_event *ret)
{
    size_t place = place_of_begun(lives, tid);
    if (place == lives->begun_count) return false;
    *ret = lives->begun[place];
    lives->begun[place] = lives->begun[--lives->begun_count];
    return true;
}

static void note_begin(struct sampler *sampler, const struct thread_event *event)
{
    struct short_lived_threads *lives = &sampler->short_lived_threads;
    struct target_thread *thread = threads_find(&sampler->threads, event->tid);
    if (thread) {
        thread->ledger.life = *event;
        if (thread->scan.is_known) ledger_note_creation(&sampler->tick, &thread->ledger);
        return;
    }
    size_t place = place_of_begun(lives, event->tid);
    if (place == SHORT_LIVED_BEGUN_MAX) return;
    lives->begun[place] = *event;
    if (place == lives->begun_count) lives->begun_count++;
}

/* Returns the part of SUM, of threads without a tid, that no thread accounts for: ticks have seen some of them. */
static struct thread_event without_seen(const struct sampler *sampler, const struct thread_event *sum)
{
    struct thread_event rest = *sum;
    uint64_t unseen_ns = ended_threads_unseen_cpu_ns(sampler);
    if (unseen_ns >= sum->cpu_ns) return rest;
    double part = (double)unseen_ns / (double)sum->cpu_ns;
    rest.cpu_ns = unseen_ns;
    rest.wall_ns = (uint64_t)(part * (double)sum->wall_ns);
    rest.start_wait_ns = (uint64_t)(part * (double)sum->start_wait_ns);
    return rest;
}

static void note_end(struct sampler *sampler, const struct thread_event *event)
{
    if (event->tid == 0) {
        struct thread_event rest = without_seen(sampler, event);
        short_lived_threads_add(sampler, &rest);
        return;
    }
    struct target_thread *thread = threads_find(&sampler->threads, event->tid);
    struct thread_event begun;
    (void)take_begun(&sampler->short_lived_threads, event->tid, &begun);
    if (thread)
        thread->ledger.life = *event;
    else
        short_lived_threads_add(sampler, event);
}

void short_lived_threads_read(struct sampler *sampler)
{
    struct thread_event event;
    while (thread_events_take(&event)) {
        if (event.ends == 0)
            note_begin(sampler, &event);
        else
            note_end(sampler, &event);
    }
}

void short_lived_threads_first_seen(struct sampler *sampler, struct target_thread *thread)
{
    struct thread_event begun;
    if (thread->ledger.life.created_ns == 0 && take_begun(&sampler->short_lived_threads, thread->files.tid, &begun))
        thread->ledger.life = begun;
}
