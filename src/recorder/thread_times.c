/* SPDX-License-Identifier: MIT */
#include "recorder/thread_times.h"

#include "base/clocks.h"
#include "base/unsigned.h"

#include <string.h>

enum {
    FIELD_BYTES = 10,
    LOST_FIELDS = 5,
    KERNEL_PERIODS = 2, /* CPU time without a stack in user code, periods, from which on it was spent in the kernel */
};
#define LENT_NS_MAX ((uint64_t)10000000) /* age of the kernel's count of a running thread */
#define UNREADABLE_NS SECOND_NS          /* time after which blocked time without a stack is written */

void thread_times_begin(struct recorded_thread *thread, const struct tick *tick, const struct engine_thread *seen,
                        bool is_new)
{
    if (is_new) thread->unwritten.cpu_ns = least(seen->cpu_ns, difference(tick->time_ns, tick->observed_ns));
    thread->time_ns = tick->time_ns;
    thread->cpu_ns = seen->cpu_ns;
    thread->run_delay_ns = seen->run_delay_ns;
    thread->is_known = thread->is_observed = true;
}

/* Adds DELAY_NS, for which THREAD waited for a processor. The kernel tells it when the wait has ended: it is part of
 * the blocked time that is not written yet, and of that before, which the reader has extended. */
static void add_delay(struct recorded_thread *thread, const struct tick *tick, uint64_t delay_ns)
{
    uint64_t unwritten_ns = least(delay_ns, thread->unwritten.blocked_ns), written_ns = delay_ns - unwritten_ns;
    thread->run_delay_ns += delay_ns;
    thread->unwritten.blocked_ns -= unwritten_ns;
    thread->unwritten.runnable_ns += unwritten_ns;
    if (written_ns < RECORDING_TIME_UNIT_NS || !thread->has_blocked) return;
    recording_begin(tick->writer, RECORDING_WOKEN, 2 * FIELD_BYTES);
    recording_number(tick->writer, thread->number);
    recording_number(tick->writer, written_ns);
}

/* Adds CPU_NS of the clock. The kernel's count of a running thread is some milliseconds old, so that a part may belong
 * to the time before; and a part may be written already. */
static void add_cpu(struct recorded_thread *thread, uint64_t cpu_ns)
{
    uint64_t repaid_ns = least(cpu_ns, thread->lent_ns);
    uint64_t added_ns = least(cpu_ns - repaid_ns, thread->unwritten.blocked_ns);
    thread->lent_ns -= repaid_ns;
    thread->cpu_ns += repaid_ns + added_ns;
    thread->unwritten.blocked_ns -= added_ns;
    thread->unwritten.cpu_ns += added_ns;
}

void thread_times_add(struct recorded_thread *thread, const struct tick *tick, const struct engine_thread *seen)
{
    thread->unwritten.blocked_ns += difference(tick->time_ns, thread->time_ns);
    thread->time_ns = tick->time_ns;
    if (seen) add_cpu(thread, difference(seen->cpu_ns, thread->cpu_ns));
    if (seen && !tick->is_cpu_mode) add_delay(thread, tick, difference(seen->run_delay_ns, thread->run_delay_ns));
    if (tick->is_cpu_mode) thread->unwritten.blocked_ns = least(thread->unwritten.blocked_ns, LENT_NS_MAX);
    thread->is_resting = false;
    thread->is_observed = true;
}

/* Whole microseconds are written: the rest stays. */
static uint64_t take(uint64_t *ns, uint64_t wanted_ns)
{
    uint64_t taken = least(*ns, wanted_ns);
    taken -= taken % RECORDING_TIME_UNIT_NS;
    *ns -= taken;
    return taken;
}

static void write_sample(struct recorded_thread *thread, const struct tick *tick, const struct walked_stack *stack,
                         struct recording_time time, uint32_t flags)
{
    recording_sample(tick->writer, thread->number, time, (uint32_t)stack->outcome | RECORDING_WITHOUT_SIGNAL | flags,
                     stack->addresses, stack->count, &thread->last);
    thread->has_record = true;
}

/* Returns the CPU time that one stack stands for: an equal share of what is not written, and at least a period; where
 * only user code is seen, a period. */
static uint64_t due_cpu_ns(const struct recorded_thread *thread, const struct tick *tick)
{
    if (tick->sees_user_code_only) return thread->owed_ns + tick->period_ns;
    return greatest(thread->unwritten.cpu_ns / greatest(thread->stack_count, 1), tick->period_ns);
}

/* Takes WANTED_NS of CPU time; a part that the clock does not show yet is lent from the rest of the thread's time. */
static uint64_t take_cpu(struct recorded_thread *thread, uint64_t wanted_ns)
{
    uint64_t given_ns = take(&thread->unwritten.cpu_ns, wanted_ns);
    uint64_t lent_ns = take(&thread->unwritten.blocked_ns,
                            least(difference(wanted_ns, given_ns), difference(LENT_NS_MAX, thread->lent_ns)));
    thread->lent_ns += lent_ns;
    return given_ns + lent_ns;
}

void thread_times_write_running(struct recorded_thread *thread, const struct tick *tick,
                                const struct walked_stack *stack)
{
    uint64_t due_ns = due_cpu_ns(thread, tick);
    struct recording_time time = {.cpu_ns = take_cpu(thread, due_ns),
                                  .runnable_ns = take(&thread->unwritten.runnable_ns, UINT64_MAX)};
    if (tick->sees_user_code_only)
        thread->owed_ns = least(difference(due_ns, time.cpu_ns), KERNEL_PERIODS * tick->period_ns);
    if (thread->stack_count > 0) thread->stack_count--;
    write_sample(thread, tick, stack, time, 0);
    thread->has_running = true;
}

void thread_times_write_blocked(struct recorded_thread *thread, const struct tick *tick,
                                const struct walked_stack *stack)
{
    struct recording_time time = {.runnable_ns = take(&thread->unwritten.runnable_ns, UINT64_MAX),
                                  .blocked_ns = take(&thread->unwritten.blocked_ns, UINT64_MAX)};
    write_sample(thread, tick, stack, time, RECORDING_BLOCKED);
    thread->has_blocked = true;
    thread->is_resting = true;
}

/* Writes a record of KIND for TIME. REASON says why it is lost, or whose stacks have it. */
static void write_time(struct recorded_thread *thread, const struct tick *tick, enum recording_kind kind,
                       unsigned reason, struct recording_time time)
{
    if (time.cpu_ns + time.runnable_ns + time.blocked_ns == 0) return;
    recording_begin(tick->writer, kind, LOST_FIELDS * FIELD_BYTES);
    recording_number(tick->writer, thread->number);
    recording_number(tick->writer, reason);
    recording_time(tick->writer, time);
}

static void write_lost(struct recorded_thread *thread, const struct tick *tick, enum recording_loss cause,
                       struct recording_time time)
{
    write_time(thread, tick, RECORDING_LOST, cause, time);
}

/* Writes CPU time for which the engine takes no stack: all of it, or the part inside the kernel. */
static void write_unseen_cpu(struct recorded_thread *thread, const struct tick *tick)
{
    struct recording_time time = {0};
    if (!tick->sees_running) {
        time.cpu_ns = take(&thread->unwritten.cpu_ns, UINT64_MAX);
        /* Waits of a thread that is seen blocked follow a wake-up, mostly. */
        if (!thread->has_blocked) time.runnable_ns = take(&thread->unwritten.runnable_ns, UINT64_MAX);
        write_lost(thread, tick, RECORDING_LOST_RUNNING, time);
    } else if (tick->sees_user_code_only && thread->unwritten.cpu_ns > KERNEL_PERIODS * tick->period_ns) {
        time.cpu_ns = take(&thread->unwritten.cpu_ns, thread->unwritten.cpu_ns - tick->period_ns);
        write_lost(thread, tick, RECORDING_LOST_IN_KERNEL, time);
    }
}

static void write_waiting(struct recorded_thread *thread, const struct tick *tick)
{
    recording_begin(tick->writer, RECORDING_WAITING, FIELD_BYTES);
    recording_number(tick->writer, thread->number);
}

void thread_times_end_tick(struct recorded_thread *thread, const struct tick *tick)
{
    write_unseen_cpu(thread, tick);
    /* Blocked time of a thread that runs comes with its next blocked stack, unless there may never be one. */
    if (!thread->is_resting && !thread->has_blocked && !thread->is_running &&
        thread->unwritten.blocked_ns > UNREADABLE_NS) {
        struct recording_time time = {.blocked_ns = take(&thread->unwritten.blocked_ns, UINT64_MAX)};
        write_lost(thread, tick, RECORDING_LOST_UNREADABLE, time);
    }
    if (!thread->has_record && !thread->is_resting && !tick->is_cpu_mode) write_waiting(thread, tick);
    if (thread->is_resting) thread->time_ns = tick->time_ns; /* the reader extends its blocked time */
    thread->has_record = thread->is_observed = false;
    thread->stack_count = 0;
}

static void write_more(struct recorded_thread *thread, const struct tick *tick, enum recording_share share,
                       struct recording_time time)
{
    write_time(thread, tick, RECORDING_MORE, share, time);
}

void thread_times_write_stopped(struct recorded_thread *thread, const struct tick *tick)
{
    struct recording_time time = {.blocked_ns = take(&thread->unwritten.blocked_ns, UINT64_MAX)};
    write_more(thread, tick, RECORDING_OF_STOPPED, time);
}

void thread_times_close(struct recorded_thread *thread, const struct tick *tick)
{
    struct recording_time cpu = {.cpu_ns = take(&thread->unwritten.cpu_ns, UINT64_MAX)};
    struct recording_time rest = {.runnable_ns = take(&thread->unwritten.runnable_ns, UINT64_MAX),
                                  .blocked_ns = take(&thread->unwritten.blocked_ns, UINT64_MAX)};
    bool has_stack = thread->has_running || thread->has_blocked;
    bool is_only_blocked = thread->has_blocked && !thread->has_running;
    bool has_run = thread->has_ended || thread->is_running;
    if (tick->is_cpu_mode) rest = (struct recording_time){0};
    /* Without a stack, the reader takes RECORDING_MORE for a thread that was too short to be sampled. */
    if (has_stack || tick->sees_running)
        write_more(thread, tick, is_only_blocked ? RECORDING_OF_BLOCKED : RECORDING_OF_RUNNING, cpu);
    else
        write_lost(thread, tick, RECORDING_LOST_RUNNING, cpu);
    if (has_stack || (has_run && tick->sees_running))
        write_more(thread, tick, thread->has_blocked ? RECORDING_OF_BLOCKED : RECORDING_OF_RUNNING, rest);
    else
        write_lost(thread, tick, has_run ? RECORDING_LOST_RUNNING : RECORDING_LOST_UNREADABLE, rest);
    thread_times_end_tick(thread, tick);
}
