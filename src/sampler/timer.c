/* Threads that run for long get a timer of their own (perf_timer.h), where the kernel allows it. The stack that it took
 * last stands for a tick at which its thread is met running: stacks are taken at equal distances of CPU time, whatever
 * the thread does, and so are as good as one of this very moment, which cannot be had without a signal. A timer makes
 * each context switch of its thread a little dearer, so that threads which sleep lose it again.
 * SPDX-License-Identifier: MIT */
#include "sampler/sampler_private.h"

#include "sampler/self.h"

#include <errno.h>

enum {
    TIMERS_MAX = 256,
    OPENED_A_TICK_MAX = 8, /* making one costs some 30 µs */
    FRESH_PERIODS = 4,     /* how old a stack may be that stands for a tick */
    TIMER_PERIOD_NS_MIN = 1000000,
    TIMERS_A_PERIOD = 4,
    RED_ZONE = 128, /* below SP: System V ABI for AMD64 §3.2.2 */
};

/* By the wall clock, a few times in a period of ours, so that there is a fresh stack also of a thread that runs for a
 * part of the time. By CPU time each stack counts: of those that a tick finds, the last one only would be told, and
 * what a thread does right after a tick, too seldom. */
static uint64_t timer_period_ns(const struct sampler *sampler)
{
    if (sampler->options.mode == RECORDING_CPU) return sampler->period_ns;
    uint64_t period_ns = sampler->period_ns / TIMERS_A_PERIOD;
    if (period_ns < TIMER_PERIOD_NS_MIN) period_ns = TIMER_PERIOD_NS_MIN;
    return period_ns < sampler->period_ns ? period_ns : sampler->period_ns;
}

void timer_note_busy(struct sampler *sampler, struct watched_thread *thread)
{
    uint64_t *refusal = &sampler->counters[RECORDING_TIMER_ERRNO];
    if (thread->timer.control || thread->timer_stack_size > PERF_TIMER_STACK_MAX || *refusal) return;
    if (sampler->timers_in_tick >= OPENED_A_TICK_MAX || sampler->counters[RECORDING_TIMERS] >= TIMERS_MAX) return;
    if (thread->timer_stack_size == 0) thread->timer_stack_size = PERF_TIMER_STACK_MIN;
    bool is_confined = sampler->timers_in_tick++ == 0 && self_is_confined();
    int result = EPERM;
    if (!is_confined) {
        result = perf_timer_open(&thread->timer, thread->tid, timer_period_ns(sampler), thread->timer_stack_size);
    }
    if (result == 0)
        sampler->counters[RECORDING_TIMERS]++;
    else if (result != ESRCH)
        *refusal = (uint64_t)result;
}

void timer_forget(struct sampler *sampler, struct watched_thread *thread)
{
    if (!thread->timer.control) return;
    perf_timer_close(&thread->timer);
    sampler->counters[RECORDING_TIMERS]--;
}

void timer_forget_sleepers(struct sampler *sampler)
{
    if (sampler->counters[RECORDING_TIMERS] == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct watched_thread *thread = sampler->threads.items[i];
        if (thread->cpu_ns_seen == thread->timer_cpu_ns) timer_forget(sampler, thread);
        thread->timer_cpu_ns = thread->cpu_ns_seen;
    }
}

bool timer_fetch(const struct sampler *sampler, struct watched_thread *thread, struct perf_timer_sample *ret_sample)
{
    if (!thread->timer.control || !perf_timer_newest(&thread->timer, ret_sample)) return false;
    if (sampler->options.mode == RECORDING_CPU) return ret_sample->is_new; /* it stands for CPU time, not for a tick */
    return self_monotonic_ns() < ret_sample->time_ns + FRESH_PERIODS * sampler->period_ns;
}

/* --- Its stack ---------------------------------------------------------------------------------------------------- */

static bool refuse(struct unwind_memory *memory, uint64_t address)
{
    uint64_t *asked = memory->context;
    *asked = address;
    return false;
}

bool timer_walk(struct sampler *sampler, struct watched_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome)
{
    struct unwind_registers registers = sample->registers;
    uint64_t sp = registers.values[MACHINE_SP], end = sp + sample->stack_bytes;
    uint64_t asked = sp; /* the last address that is not in the copy, and was wanted */
    struct unwind_memory memory = {
        .low = sp, .high = end, .shift = (uint64_t)(uintptr_t)sample->stack - sp, .extend = refuse, .context = &asked};
    *ret_outcome =
        unwind_walk(sampler->modules.current, &registers, &memory, addresses, RECORDING_FRAMES_MAX, ret_count);
    if (!perf_timer_holds(&thread->timer)) return false;
    bool is_done = *ret_outcome == UNWIND_ROOT || *ret_outcome == UNWIND_PENDING;
    bool is_behind = asked + sizeof(uint64_t) > end && asked < end + PERF_TIMER_STACK_MAX;
    bool is_near = is_behind || (asked <= sp && sp - asked <= RED_ZONE);
    bool is_cut = is_behind && sample->stack_bytes == thread->timer.stack_size;
    if (is_done || (is_near && !is_cut)) return true;
    if (!is_cut) return false;     /* on another stack: a signal handler's, and from there on */
    thread->timer_stack_size *= 2; /* from the next time that it is busy on */
    timer_forget(sampler, thread);
    return false;
}
