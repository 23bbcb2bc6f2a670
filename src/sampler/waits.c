/* Where threads wait for a processor. Mostly that is where they run, so that the stacks of their CPU time can stand for
 * their waits, too. Not at the ends of system calls, at which the kernel often stops a thread; nor in a long wait,
 * during which the kernel takes no other stack. So threads that wait for long get a timer that sees their stops.
 * SPDX-License-Identifier: MIT */
#include "base/seccomp_filter.h"
#include "base/unsigned.h"
#include "sampler/blocked.h"
#include "sampler/chance.h"
#include "sampler/sampler_private.h"
#include "sampler/self.h"

enum {
    WAITS_PART = 32,           /* of a period: shorter waits matter little */
    STOPS_A_SECOND_MAX = 5000, /* such a timer writes a record at each stop, and a copy of the stack at some: */
    STOPS_A_PERIOD = 4,
    RING_SIZE = 64 << 10,
    SMALL_COPY = 8 << 10,
    SAMPLES_A_DRAW = 8, /* of its period */
    NANOSECONDS = 1000000000,
};

/* No program is in step with the number of stops between two samples. */
static uint64_t chance_stops(struct sampler *sampler, const struct watched_thread *thread)
{
    double stops = perf_timer_stops_in(&thread->timer, sampler->period_ns);
    if (stops < 2 * STOPS_A_PERIOD) return 1;
    uint64_t period = chance_timer_ns(&sampler->random_state, (uint64_t)(stops / STOPS_A_PERIOD));
    return period > 0 ? period : 1;
}

/* What is further up in the stack hardly changes during a wait, unless frames are large. */
static uint32_t stack_size(const struct watched_thread *thread)
{
    return thread->has_large_stack ? thread->timer_stack_size : (uint32_t)least(SMALL_COPY, thread->timer_stack_size);
}

/* There is room for twice as many samples as are expected: a wait that has not ended is read at the next tick. */
static void open_timer(struct sampler *sampler, struct watched_thread *thread)
{
    uint32_t size = stack_size(thread), ring_size = 2 * STOPS_A_PERIOD * size;
    uint64_t period = chance_stops(sampler, thread);
    thread->waits = (struct thread_waits){.period = period};
    sampler->timers_in_tick++;
    (void)perf_timer_open(&thread->stop_timer, thread->tid, PERF_TIMER_SEES_STOPS, period, size,
                          ring_size > RING_SIZE ? ring_size : RING_SIZE);
}

static bool may_have_timer(const struct sampler *sampler, const struct watched_thread *thread)
{
    if (!thread->timer.control || timer_sees_user_code(thread) || !self_has_own_descriptors()) return false;
    if (!filter_allows(FILTER_PERF) || !timer_may_open(sampler)) return false;
    return perf_timer_stops_in(&thread->timer, NANOSECONDS) <= STOPS_A_SECOND_MAX;
}

bool waits_are_seen(const struct watched_thread *thread)
{
    return thread->stop_timer.control != NULL;
}

void waits_note(struct sampler *sampler, struct watched_thread *thread, uint64_t wait_ns)
{
    if (waits_are_seen(thread) || wait_ns < sampler->period_ns / WAITS_PART) return;
    if (sampler->tick < thread->waits.until_tick) return;
    if (may_have_timer(sampler, thread)) open_timer(sampler, thread);
}

/* A timer that tells nothing is not worth its cost. */
static void note_telling(struct sampler *sampler, struct watched_thread *thread, bool is_telling)
{
    enum { ENOUGH = 64, PART = 32, TICKS_WITHOUT = 512 };
    struct thread_waits *waits = &thread->waits;
    waits->telling += is_telling;
    if (++waits->seen < ENOUGH) return;
    if (waits->telling < ENOUGH / PART) waits->until_tick = sampler->tick + TICKS_WITHOUT;
    waits->seen = waits->telling = 0;
}

/* To change the period interrupts the processor that the thread runs on. */
static void draw_period(struct sampler *sampler, struct watched_thread *thread, uint32_t samples)
{
    struct thread_waits *waits = &thread->waits;
    waits->samples += samples;
    if (waits->samples < SAMPLES_A_DRAW || !filter_allows(FILTER_PERF)) return;
    uint64_t period = chance_stops(sampler, thread);
    waits->samples = 0;
    if (period != waits->period) perf_timer_run_freely(&thread->stop_timer, period);
    waits->period = period;
}

bool waits_fetch_stop(struct sampler *sampler, struct watched_thread *thread, struct perf_timer_sample *ret_sample)
{
    enum { LONG_WAIT_NS = 8000000 };
    struct perf_timer_stops stops;
    if (sampler->tick < thread->waits.until_tick) waits_forget(thread);
    if (!waits_are_seen(thread)) return false;
    perf_timer_read_stops(&thread->stop_timer, &sampler->random_state, &stops);
    draw_period(sampler, thread, stops.count);
    if (!perf_timer_stop(&thread->stop_timer, &stops, ret_sample)) return false;
    note_telling(sampler, thread, stops.its_wait_ns >= LONG_WAIT_NS || blocked_was_in_call(&ret_sample->registers));
    return true;
}

void waits_forget(struct watched_thread *thread)
{
    perf_timer_close(&thread->stop_timer);
}
