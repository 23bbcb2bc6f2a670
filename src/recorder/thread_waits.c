/* SPDX-License-Identifier: MIT */
#include "recorder/thread_waits.h"

#include "base/unsigned.h"
#include "recorder/recorded_process.h"

#include <string.h>

enum { FIELD_BYTES = 10, WAIT_FIELDS = 4, OTHER_FIELDS = 5, WAKER_BYTES_MAX = 64 };

void thread_waits_begin(struct recorded_thread *thread, uint64_t began_ns, const struct walked_stack *stack)
{
    struct thread_waits *waits = &thread->waits;
    if (!waits->is_open || waits->began_ns != began_ns) waits->written_ns = 0;
    waits->is_open = true;
    waits->is_running = false;
    waits->began_ns = began_ns;
    waits->outcome = stack->outcome;
    waits->addresses.count = 0;
    if (!ARRAY_RESERVE(&waits->addresses, stack->count, RECORDING_FRAMES_MAX)) return;
    waits->addresses.count = stack->count;
    if (stack->count > 0) memcpy(waits->addresses.items, stack->addresses, stack->count * sizeof(uint64_t));
}

/* Makes NS a number of whole microseconds, with what was left before. */
static void carry_rest(uint64_t *ns, uint64_t *rest_ns)
{
    if (*ns == 0) return;
    *ns += *rest_ns;
    *rest_ns = *ns % RECORDING_TIME_UNIT_NS;
    *ns -= *rest_ns;
}

/* Writes TIME of COUNT waits for REASON, the first of which began at START_NS, with the stack of the open wait if
 * HAS_STACK. */
static void write_wait(struct recorded_thread *thread, const struct tick *tick, enum recording_wait reason,
                       uint64_t start_ns, uint64_t count, struct recording_time time, bool has_stack, const char *waker)
{
    struct thread_waits *waits = &thread->waits;
    recording_begin(tick->writer, RECORDING_WAIT, (WAIT_FIELDS + 1) * FIELD_BYTES + WAKER_BYTES_MAX);
    recording_number(tick->writer, thread->number);
    recording_number(tick->writer, reason);
    recording_number(tick->writer, count);
    recording_signed(tick->writer, (int64_t)(start_ns - tick->time_ns));
    recording_text(tick->writer, waker, strnlen(waker, WAKER_BYTES_MAX));
    carry_rest(&time.runnable_ns, &waits->runnable_rest_ns);
    carry_rest(&time.blocked_ns, &waits->blocked_rest_ns);
    if (has_stack) {
        recording_sample(tick->writer, thread->number, time, (uint32_t)waits->outcome | RECORDING_WITHOUT_SIGNAL,
                         waits->addresses.items, waits->addresses.count, &thread->last);
        return;
    }
    recording_begin(tick->writer, RECORDING_LOST, OTHER_FIELDS * FIELD_BYTES);
    recording_number(tick->writer, thread->number);
    recording_number(tick->writer, RECORDING_LOST_WAIT);
    recording_time(tick->writer, time);
}

static bool is_runnable(enum recording_wait reason)
{
    return reason == RECORDING_WAIT_PREEMPTED || reason == RECORDING_WAIT_STARTING;
}

void thread_waits_end(struct recorded_thread *thread, const struct tick *tick, const struct engine_wait *wait,
                      const char *waker)
{
    struct thread_waits *waits = &thread->waits;
    bool is_seen = waits->is_open && waits->began_ns == wait->began_ns;
    uint64_t written_ns = is_seen ? waits->written_ns : 0, start_ns = greatest(wait->began_ns, written_ns);
    uint64_t woken_ns = wait->woken_ns ? wait->woken_ns : wait->ended_ns;
    if (is_runnable(wait->reason)) woken_ns = start_ns;
    start_ns = least(start_ns, wait->ended_ns);
    woken_ns = least(greatest(woken_ns, start_ns), wait->ended_ns);
    const struct recording_time time = {.runnable_ns = difference(wait->ended_ns, woken_ns) * wait->one_in,
                                        .blocked_ns = difference(woken_ns, start_ns) * wait->one_in};
    write_wait(thread, tick, wait->reason, start_ns, written_ns ? 0 : wait->one_in, time,
               is_seen && waits->addresses.count > 0, waker);
    waits->is_open = false;
}

void thread_waits_flush(struct recorded_thread *thread, const struct tick *tick, uint64_t now_ns)
{
    struct thread_waits *waits = &thread->waits;
    if (!waits->is_open || waits->is_running) return;
    uint64_t start_ns = greatest(waits->began_ns, waits->written_ns), ns = difference(now_ns, start_ns);
    struct recording_time time = {.blocked_ns = ns};
    if (is_runnable(waits->reason)) time = (struct recording_time){.runnable_ns = ns};
    if (ns < RECORDING_TIME_UNIT_NS) return;
    write_wait(thread, tick, waits->reason, start_ns, waits->written_ns ? 0 : 1, time, waits->addresses.count > 0, "");
    waits->written_ns = now_ns;
}

void thread_waits_close(struct recorded_thread *thread, const struct tick *tick, uint64_t now_ns)
{
    const struct engine_other_waits all = thread->waits.others, before = thread->waits.closed;
    thread_waits_flush(thread, tick, now_ns);
    thread->waits.closed = all;
    if (all.short_count == before.short_count && all.left_out_count == before.left_out_count) return;
    recording_begin(tick->writer, RECORDING_OTHER_WAITS, OTHER_FIELDS * FIELD_BYTES);
    recording_number(tick->writer, thread->number);
    recording_number(tick->writer, all.short_count - before.short_count);
    recording_number(tick->writer, (all.short_ns - before.short_ns) / RECORDING_TIME_UNIT_NS);
    recording_number(tick->writer, all.left_out_count - before.left_out_count);
    recording_number(tick->writer, (all.left_out_ns - before.left_out_ns) / RECORDING_TIME_UNIT_NS);
}
