/* Threads that run for long get a timer of their own (perf_timer.h), where the kernel allows it. By CPU time it takes a
 * stack in each period. By the wall clock it takes one when it is asked to, which is when its thread is met running:
 * then or, if the thread goes to sleep first, as soon as it has run on. So there is one stack for each tick that it ran
 * at, taken whatever it does, and where one comes late, the one before stands for the tick. A timer that runs makes
 * each context switch of its thread a little dearer, so that threads which sleep lose it again.
 * SPDX-License-Identifier: MIT */
#include "sampler/sampler_private.h"

#include "sampler/self.h"
#include "sampler/stack_reader.h"
#include "unwind/copied_stack.h"

#include <errno.h>

enum {
    TIMERS_MAX = 256,
    OPENED_A_TICK_MAX = 8, /* making one costs some 30 µs */
    FRESH_PERIODS = 4,     /* how old a stack may be that stands for a tick */
    PATIENCE_TICKS = 2,    /* without any stack, until a signal is sent */
};

void timer_note_busy(struct sampler *sampler, struct watched_thread *thread)
{
    uint64_t *refusal = &sampler->counters[RECORDING_TIMER_ERRNO];
    if (thread->timer.control || thread->timer_stack_size > PERF_TIMER_STACK_MAX || *refusal) return;
    if (sampler->timers_in_tick >= OPENED_A_TICK_MAX || sampler->counters[RECORDING_TIMERS] >= TIMERS_MAX) return;
    if (thread->timer_stack_size == 0) thread->timer_stack_size = PERF_TIMER_STACK_MIN;
    bool is_confined = sampler->timers_in_tick++ == 0 && self_is_confined();
    uint64_t period_ns = sampler->options.mode == RECORDING_CPU ? sampler->period_ns : 0;
    int result = EPERM;
    if (!is_confined && !sampler->counters[RECORDING_TIMERS_SEE_USER_CODE] &&
        (period_ns != 0 || self_has_own_descriptors())) {
        result = perf_timer_open(&thread->timer, thread->tid, PERF_TIMER_SEES_ALL, period_ns, thread->timer_stack_size);
    }
    if (!is_confined && (result == EPERM || result == EACCES) && self_has_own_descriptors()) {
        result = perf_timer_open(&thread->timer, thread->tid, PERF_TIMER_SEES_USER_CODE, sampler->period_ns,
                                 thread->timer_stack_size);
        if (result == 0) sampler->counters[RECORDING_TIMERS_SEE_USER_CODE] = 1;
        thread->timer_account = (struct timer_account){.start_cpu_ns = thread->cpu_ns_seen};
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

bool timer_ask(struct sampler *sampler, struct watched_thread *thread)
{
    if (!thread->timer.control || timer_sees_user_code(thread)) return false;
    if (thread->waiting_ticks > PATIENCE_TICKS) return false;
    if (sampler->timers_asked == 0 && self_is_confined()) { /* since: a filter may kill for an ioctl */
        sampler->counters[RECORDING_TIMER_ERRNO] = EPERM;
        timer_forget(sampler, thread);
        return false;
    }
    perf_timer_ask(&thread->timer);
    return thread->timer.is_asked;
}

void timer_forget_sleepers(struct sampler *sampler)
{
    if (sampler->counters[RECORDING_TIMERS] == 0) return;
    for (size_t i = 0; i < sampler->threads.count; i++) {
        struct watched_thread *thread = sampler->threads.items[i].thread;
        if (thread->cpu_ns_seen == thread->timer_cpu_ns) timer_forget(sampler, thread);
        thread->timer_cpu_ns = thread->cpu_ns_seen;
    }
}

bool timer_sees_user_code(const struct watched_thread *thread)
{
    return thread->timer.control && thread->timer.sight == PERF_TIMER_SEES_USER_CODE;
}

/* Since the timer was opened. It is not active during context switches: perf attributes no time to them, nor do we. */
static uint64_t active_periods(const struct sampler *sampler, const struct watched_thread *thread)
{
    uint64_t active_ns = 0, late_ns = sampler->period_ns / 8; /* it may go off late, above all in a virtual machine */
    if (!perf_timer_active_ns(&thread->timer, &active_ns) || active_ns < late_ns) return 0;
    return (active_ns - late_ns) / sampler->period_ns;
}

uint64_t timer_kernel_periods(const struct sampler *sampler, const struct watched_thread *thread)
{
    const struct timer_account *account = &thread->timer_account;
    uint64_t all = active_periods(sampler, thread), known = account->user_periods + account->kernel_periods;
    return all > known ? all - known : 0;
}

uint64_t timer_accounted_cpu_ns(const struct sampler *sampler, const struct watched_thread *thread, uint64_t cpu_ns)
{
    const struct timer_account *account = &thread->timer_account;
    uint64_t known = account->user_periods + account->kernel_periods;
    uint64_t all = known + timer_kernel_periods(sampler, thread);
    uint64_t ran_ns = cpu_ns > account->start_cpu_ns ? cpu_ns - account->start_cpu_ns : 0;
    return all == known ? cpu_ns : account->start_cpu_ns + (uint64_t)((double)ran_ns * (double)known / (double)all);
}

/* The answers come from moments that do not depend on what the thread does. So the part A of them that comes from
 * inside calls is the part of its time that it spends in calls, and the timer knows the part K that it spends inside
 * the kernel. K - A is what remains for page faults and interrupts. Answers from outside, which are 1 - A, are
 * therefore told in (K - A) / (1 - A) of all cases. */
bool timer_accepts_answer(const struct sampler *sampler, struct watched_thread *thread, bool was_in_call)
{
    enum { ANSWERS_MAX = 1024 };
    struct timer_account *account = &thread->timer_account;
    double all = (double)active_periods(sampler, thread);
    double kernel = all > 0 ? 1 - (double)account->user_periods / all : 1;
    if (account->answers >= ANSWERS_MAX) {
        account->answers /= 2;
        account->answers_in_call /= 2;
    }
    account->answers++;
    account->answers_in_call += was_in_call;
    if (was_in_call) return true;
    double calls = (account->answers_in_call + kernel) / (account->answers + 1.0);
    if (kernel > calls) account->outside_part += (kernel - calls) / (1 - calls);
    if (account->outside_part < 1) return false;
    account->outside_part -= 1;
    return true;
}

enum { TICK = 1 << 12, TICKS_OWED_MAX = 2 };

void timer_owe_kernel_tick(struct watched_thread *thread)
{
    struct timer_account *account = &thread->timer_account;
    if (account->is_debt_paid && account->kernel_debt < TICKS_OWED_MAX * TICK) account->kernel_debt += TICK;
    account->is_debt_paid = false;
}

bool timer_tick_is_in_kernel(const struct sampler *sampler, struct watched_thread *thread, uint32_t user_periods)
{
    struct timer_account *account = &thread->timer_account;
    uint64_t kernel_periods = timer_kernel_periods(sampler, thread), all = kernel_periods + user_periods;
    account->kernel_periods += kernel_periods;
    account->is_debt_paid = false;
    if (all == 0) return account->is_in_kernel;
    account->kernel_debt += (int32_t)(kernel_periods * TICK / all);
    account->is_in_kernel = account->kernel_debt >= TICK / 2;
    account->is_debt_paid = account->is_in_kernel;
    if (account->is_in_kernel) account->kernel_debt -= TICK;
    return account->is_in_kernel;
}

bool timer_fetch(const struct sampler *sampler, struct watched_thread *thread, struct perf_timer_sample *ret_sample)
{
    if (!thread->timer.control || !perf_timer_newest(&thread->timer, ret_sample)) return false;
    thread->timer_account.user_periods += ret_sample->new_count;
    if (sampler->options.mode == RECORDING_CPU)
        return ret_sample->new_count > 0; /* it stands for CPU time, not for a tick */
    if (timer_sees_user_code(thread))
        return timer_kernel_periods(sampler, thread) < FRESH_PERIODS; /* it may wait for long */
    return self_monotonic_ns() < ret_sample->time_ns + FRESH_PERIODS * sampler->period_ns;
}

/* --- Its stack ---------------------------------------------------------------------------------------------------- */

/* A larger copy, from the next time on that the thread is busy, is more exact than what it left in memory since. */
static void want_larger_copy(struct sampler *sampler, struct watched_thread *thread)
{
    if (thread->timer_stack_size >= PERF_TIMER_STACK_MAX) return;
    thread->timer_stack_size *= 2;
    timer_forget(sampler, thread);
}

bool timer_walk(struct sampler *sampler, struct watched_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome)
{
    static struct stack_reader reader; /* the sampler thread's alone */
    struct unwind_registers registers = sample->registers;
    struct unwind_memory live = stack_reader_memory(&reader);
    const struct copied_stack copy = {
        .start = registers.values[MACHINE_SP], .words = sample->stack, .size = sample->stack_bytes};
    bool has_left_copy = false;
    *ret_outcome = unwind_walk_copied_stack(sampler->modules.current, &registers, &copy, &live, &stack_reader_code,
                                            addresses, RECORDING_FRAMES_MAX, ret_count, &has_left_copy);
    if (!perf_timer_holds(&thread->timer)) return false;
    bool is_cut = has_left_copy && sample->stack_bytes == thread->timer.stack_size;
    if (is_cut && *ret_outcome != UNWIND_PENDING) want_larger_copy(sampler, thread);
    return true;
}
