/* Where threads wait for a processor (run_queue_waits.h), by a timer of their stops. SPDX-License-Identifier: MIT */
#include "base/seccomp_filter.h"
#include "base/timespec.h"
#include "base/unsigned.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/source/chance.h"
#include "sampler/source/remote_unwind.h"
#include "sampler/source/sample_walk.h"
#include "sampler/source/sources.h"

enum {
    WAITS_PART = 32,           /* divisor of a period: shorter waits matter little */
    STOPS_A_SECOND_MAX = 5000, /* limit for a timer, which writes a record at each stop */
    STOPS_A_PERIOD = 4,        /* samples in a period, each with a copy of the stack */
    RING_SIZE = 64 << 10,
    SMALL_COPY = 8 << 10,
    SAMPLES_A_DRAW = 8, /* samples after which the timer's period is drawn again */
};

struct stop_state {
    struct perf_timer timer;
    uint64_t period;  /* stops between two samples of the stop timer */
    uint32_t samples; /* samples since the period was drawn */
    bool is_unread;   /* true if nothing was taken since it was observed */
};

static void close_timer(struct source_thread *thread, struct stop_state *own)
{
    perf_timer_close(&own->timer);
    thread->waits.have_timer = false;
}

/* Returns a random number of stops between two samples, so that no program is in step with it. */
static uint64_t chance_stops(struct source_tick *tick, const struct source_thread *thread)
{
    double stops = perf_timer_stops_in(thread->timer.open, tick->period_ns);
    if (stops < 2 * STOPS_A_PERIOD) return 1;
    uint64_t period = chance_timer_ns(tick->random_state, (uint64_t)(stops / STOPS_A_PERIOD));
    return period > 0 ? period : 1;
}

/* Opens a stop timer with room for twice as many samples as are expected: a wait that has not ended is read at the next
 * tick. Small copies are enough, unless frames are large: the rest of the stack hardly changes during a wait. */
static void open_timer(struct source_tick *tick, struct source_thread *thread, struct stop_state *own)
{
    uint32_t large = thread->timer.stack_size;
    uint32_t size = thread->timer.has_large_stack ? large : (uint32_t)least(SMALL_COPY, large);
    uint32_t ring_size = 2 * STOPS_A_PERIOD * size;
    own->period = chance_stops(tick, thread);
    own->samples = 0;
    tick->spent->timers++;
    int result = perf_timer_open(&own->timer, thread->files->tid, PERF_TIMER_SEES_STOPS, own->period, size,
                                 ring_size > RING_SIZE ? ring_size : RING_SIZE);
    thread->waits.have_timer = result == 0;
    if (result != 0) close_timer(thread, own);
    if (result != 0) run_queue_waits_leave_alone(tick, thread);
}

/* A timer that sees all needs the same right. */
static enum source_offer offer(struct source_tick *tick, struct source_thread *thread, void *state)
{
    (void)tick, (void)state;
    bool may_have_timer = thread->timer.open && !timer_sees_user_code(thread) && process_has_own_descriptors();
    return may_have_timer ? SOURCE_WILL_HAVE : SOURCE_DENIED;
}

/* Closes the timer if there is none of the CPU time, which says how often the thread stops. */
static void observe(struct source_tick *tick, struct source_thread *thread, void *state)
{
    struct stop_state *own = state;
    (void)tick;
    own->is_unread = true;
    if (!thread->timer.open) close_timer(thread, own);
}

/* Has the waits of THREAD be observed from now on, if they are long. */
static enum source_offer want(struct source_tick *tick, struct source_thread *thread, void *state,
                              enum source_need need)
{
    (void)need;
    uint64_t wait_ns = thread->account.unwritten_wait_ns;
    if (run_queue_waits_are_seen(thread, tick->is_starved) || wait_ns < tick->period_ns / WAITS_PART) return SOURCE_NO;
    if (tick->number < thread->waits.until_tick) return SOURCE_NO;
    if (offer(tick, thread, state) == SOURCE_DENIED) {
        thread->waits.is_asked |= !tick->is_late && (thread->timer.open || timer_is_denied(tick, thread));
        return SOURCE_DENIED;
    }
    /* If the kernel can lock no further memory, threads without any timer need it more. */
    bool may_open = tick->limits->full_at == 0 && timer_may_open(tick) && filter_allows(FILTER_PERF);
    if (may_open && perf_timer_stops_in(thread->timer.open, SECOND_NS) <= STOPS_A_SECOND_MAX)
        open_timer(tick, thread, state);
    return thread->waits.have_timer ? SOURCE_WILL_HAVE : SOURCE_NO;
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
static void draw_period(struct source_tick *tick, struct source_thread *thread, struct stop_state *own,
                        uint32_t samples)
{
    own->samples += samples;
    if (own->samples < SAMPLES_A_DRAW || !filter_allows(FILTER_PERF)) return;
    uint64_t period = chance_stops(tick, thread);
    own->samples = 0;
    if (period != own->period) perf_timer_run_freely(&own->timer, period);
    own->period = period;
}

/* Takes the stack of one of the waits that have ended, chosen at random in proportion to their lengths. */
static enum source_offer take(struct source_tick *tick, struct source_thread *thread, void *state,
                              struct source_stack *ret)
{
    struct stop_state *own = state;
    struct perf_timer_stops stops;
    struct perf_timer_sample sample;
    struct sample_walk walk;
    if (!own->is_unread) return SOURCE_NO;
    own->is_unread = false;
    if (may_be_left_alone(&thread->waits)) {
        close_timer(thread, own);
        run_queue_waits_leave_alone(tick, thread);
        thread->waits.are_where_it_runs = true;
    }
    if (!own->timer.control) return SOURCE_NO;
    perf_timer_read_stops(&own->timer, tick->random_state, &stops);
    draw_period(tick, thread, own, stops.count);
    if (!perf_timer_stop(&own->timer, &stops, &sample)) return SOURCE_NO;
    run_queue_waits_note_place(&thread->waits,
                               stops.its_wait_ns >= LONG_WAIT_NS || registers_are_in_call(&sample.registers));
    if (!sample_walk(tick, thread, &sample, &walk)) return SOURCE_NO;
    *ret = (struct source_stack){.kind = SOURCE_STACK_WAIT, .found = walk.found};
    return SOURCE_HAS;
}

static void forget(struct source_tick *tick, struct source_thread *thread, void *state, enum source_end end)
{
    (void)tick, (void)end;
    close_timer(thread, state);
}

const struct source stop_source = {
    .sight = SOURCE_SEES_WAITS,
    .state_bytes = sizeof(struct stop_state),
    .offer = offer,
    .observe = observe,
    .take = take,
    .want = want,
    .forget = forget,
};
