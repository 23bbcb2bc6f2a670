/* Finds out where threads wait for a processor. Mostly they wait where they run, so that the stacks of their CPU time
 * can stand for their waits, too. There are two exceptions: the ends of system calls, at which the kernel often stops a
 * thread, and long waits, during which the kernel takes no other stack. So a thread that waits much gets a timer that
 * sees its stops; without the right to one it is sent a signal when a tick sees it waiting, which arrives where it was
 * stopped. SPDX-License-Identifier: MIT */
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/chance.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/run/run_queue_waits.h"

#include "sampler/run/timer.h"
#include "sampler/kernel/process_info.h"

enum {
    WAITS_PART = 32,           /* divisor of a period: shorter waits matter little */
    STOPS_A_SECOND_MAX = 5000, /* limit for a timer, which writes a record at each stop */
    STOPS_A_PERIOD = 4,        /* samples in a period, each with a copy of the stack */
    RING_SIZE = 64 << 10,
    SMALL_COPY = 8 << 10,
    SAMPLES_A_DRAW = 8, /* samples after which the timer's period is drawn again */
};

/* Returns a random number of stops between two samples, so that no program is in step with it. */
static uint64_t chance_stops(struct sampler *sampler, const struct target_thread *thread)
{
    double stops = perf_timer_stops_in(&thread->perf.timer, sampler->tick.period_ns);
    if (stops < 2 * STOPS_A_PERIOD) return 1;
    uint64_t period = chance_timer_ns(&sampler->random_state, (uint64_t)(stops / STOPS_A_PERIOD));
    return period > 0 ? period : 1;
}

/* Observes no waits of THREAD for a while, each time for twice as long: a program may change its behaviour. */
static void leave_alone(const struct sampler *sampler, struct target_thread *thread)
{
    enum { SECONDS_MIN = 5, SECONDS_MAX = 320 };
    uint32_t before = thread->stops.waits.seconds_alone;
    uint32_t seconds = before == 0 ? SECONDS_MIN : (uint32_t)least(2 * before, SECONDS_MAX);
    perf_timer_close(&thread->stops.timer);
    thread->stops.waits = (struct run_queue_waits){
        .seconds_alone = seconds, .until_tick = sampler->tick.number + seconds * sampler->schedule.ticks_a_second};
}

/* Opens a stop timer with room for twice as many samples as are expected: a wait that has not ended is read at the next
 * tick. Small copies are enough, unless frames are large: the rest of the stack hardly changes during a wait. */
static void open_stop_timer(struct sampler *sampler, struct target_thread *thread)
{
    uint32_t large = thread->perf.stack_size;
    uint32_t size = thread->perf.has_large_stack ? large : (uint32_t)least(SMALL_COPY, large);
    uint32_t ring_size = 2 * STOPS_A_PERIOD * size;
    uint64_t period = chance_stops(sampler, thread);
    thread->stops.waits.period = period;
    thread->stops.waits.samples = 0;
    sampler->spent.timers++;
    int result = perf_timer_open(&thread->stops.timer, thread->files.tid, PERF_TIMER_SEES_STOPS, period, size,
                                 ring_size > RING_SIZE ? ring_size : RING_SIZE);
    if (result != 0) leave_alone(sampler, thread);
}

bool run_queue_waits_may_have_timer(const struct target_thread *thread)
{
    /* A timer that sees all needs the same right. */
    return thread->perf.timer.control && !timer_sees_user_code(thread) && process_has_own_descriptors();
}

bool run_queue_waits_are_seen(const struct sampler *sampler, const struct target_thread *thread)
{
    /* A sampler that hardly gets a processor does not see threads at random moments. */
    bool is_asked = thread->stops.waits.is_asked && thread->stops.waits.has_replied && !sampler->tick.is_starved;
    return thread->stops.timer.control || is_asked;
}

void run_queue_waits_note(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns)
{
    if (run_queue_waits_are_seen(sampler, thread) || wait_ns < sampler->tick.period_ns / WAITS_PART) return;
    if (sampler->tick.number < thread->stops.waits.until_tick) return;
    if (!run_queue_waits_may_have_timer(thread)) {
        thread->stops.waits.is_asked |=
            !sampler->schedule.is_late && (thread->perf.timer.control || timer_is_denied(sampler, thread));
        return;
    }
    /* If the kernel can lock no further memory, threads without any timer need it more. */
    bool may_open = sampler->timers.full_at == 0 && timer_may_open(sampler) && filter_allows(FILTER_PERF);
    if (may_open && perf_timer_stops_in(&thread->perf.timer, SECOND_NS) <= STOPS_A_SECOND_MAX)
        open_stop_timer(sampler, thread);
}

static void note_place(struct run_queue_waits *waits, bool is_elsewhere)
{
    waits->seen++;
    waits->are_where_it_runs &= !is_elsewhere;
    waits->elsewhere += is_elsewhere;
}

/* Returns true if all waits were where the thread spends its CPU time: observing them is not worth its cost. If a tenth
 * of them were elsewhere, this would be missed once in 12 times. */
static bool may_be_left_alone(struct run_queue_waits *waits)
{
    enum { ENOUGH = 24 };
    if (waits->seen < ENOUGH) return false;
    bool are_elsewhere = waits->elsewhere > 0;
    waits->seen = waits->elsewhere = 0;
    if (are_elsewhere) waits->seconds_alone = 0;
    return !are_elsewhere;
}

/* Draws a new period after some SAMPLES. Changing it interrupts the processor that the thread runs on. */
static void draw_period(struct sampler *sampler, struct target_thread *thread, uint32_t samples)
{
    struct run_queue_waits *waits = &thread->stops.waits;
    waits->samples += samples;
    if (waits->samples < SAMPLES_A_DRAW || !filter_allows(FILTER_PERF)) return;
    uint64_t period = chance_stops(sampler, thread);
    waits->samples = 0;
    if (period != waits->period) perf_timer_run_freely(&thread->stops.timer, period);
    waits->period = period;
}

bool run_queue_waits_fetch_stop(struct sampler *sampler, struct target_thread *thread,
                                struct perf_timer_sample *ret_sample)
{
    struct perf_timer_stops stops;
    if (may_be_left_alone(&thread->stops.waits)) {
        leave_alone(sampler, thread);
        thread->stops.waits.are_where_it_runs = true;
    }
    if (!thread->stops.timer.control) return false;
    perf_timer_read_stops(&thread->stops.timer, &sampler->random_state, &stops);
    draw_period(sampler, thread, stops.count);
    if (!perf_timer_stop(&thread->stops.timer, &stops, ret_sample)) return false;
    note_place(&thread->stops.waits,
               stops.its_wait_ns >= LONG_WAIT_NS || registers_are_in_call(&ret_sample->registers));
    return true;
}

bool run_queue_waits_are_asked(const struct target_thread *thread)
{
    return thread->stops.waits.is_asked && !thread->stops.timer.control &&
           (thread->perf.timer.control || thread->cpu_clock.request);
}

void run_queue_waits_note_request(const struct sampler *sampler, struct target_thread *thread, bool is_sent)
{
    enum { UNSENT_MAX = 8 };
    thread->stops.waits.unsent = is_sent ? 0 : thread->stops.waits.unsent + 1;
    if (thread->stops.waits.unsent >= UNSENT_MAX) leave_alone(sampler, thread);
}

void run_queue_waits_note_reply(struct target_thread *thread, bool was_in_call)
{
    thread->stops.waits.has_replied = true;
    note_place(&thread->stops.waits, was_in_call);
}
