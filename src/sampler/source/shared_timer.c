/* SPDX-License-Identifier: MIT */
#include "sampler/source/shared_timer.h"

#include "base/unsigned.h"

enum { OPENED_A_TICK_MAX = 8 }; /* timers to open in a tick; opening one costs some 30 µs */

bool timer_may_open(const struct source_tick *tick)
{
    return tick->spent->timers < OPENED_A_TICK_MAX * tick->periods;
}

bool timer_is_denied(const struct source_tick *tick, const struct source_thread *thread)
{
    bool is_full = tick->limits->full_at && tick->counters[RECORDING_TIMERS] >= tick->limits->full_at;
    bool is_too_large = thread->timer.stack_size > PERF_TIMER_STACK_MAX;
    return !thread->timer.open && (tick->counters[RECORDING_TIMER_ERRNO] || is_full || is_too_large);
}

bool timer_sees_user_code(const struct source_thread *thread)
{
    return thread->timer.open && thread->timer.open->sight == PERF_TIMER_SEES_USER_CODE;
}

bool timer_asks_for_calls(const struct source_thread *thread)
{
    return timer_sees_user_code(thread) && thread->account.has_run;
}

/* Returns the time since the timer was opened in which it can have gone off, ns; 0: unknown. The event is not active
 * during most of a context switch, to which perf attributes no time. It is active while the kernel looks for other work
 * before a switch, and while the host of a virtual machine has the processor; the thread's CPU clock then stands still.
 * Reading the event interrupts the processor that the thread runs on, so between two readings the event is taken to be
 * as active as the thread. */
static uint64_t watched_ns(const struct source_tick *tick, struct source_thread *thread, uint64_t cpu_ns)
{
    enum { PERIODS_BETWEEN = 8 };
    struct sample_credit *credit = &thread->credit;
    uint64_t active_ns = 0, charged_ns = difference(cpu_ns, credit->event.start_cpu_ns);
    if (charged_ns >= credit->event.read_at_ns + PERIODS_BETWEEN * tick->period_ns || credit->event.read_at_ns == 0) {
        if (!perf_timer_active_ns(thread->timer.open, &active_ns)) return 0;
        credit->event.read_at_ns = charged_ns;
        credit->event.inactive_ns = difference(charged_ns, active_ns);
    }
    return difference(charged_ns, credit->event.inactive_ns);
}

uint64_t timer_kernel_periods(const struct source_tick *tick, struct source_thread *thread)
{
    uint64_t period_ns = thread->credit.period_ns;
    uint64_t late_ns = period_ns / 8; /* the timer may go off late, above all in a virtual machine */
    uint64_t ns = watched_ns(tick, thread, thread->account.cpu_ns);
    return difference(difference(ns, late_ns) / period_ns, sample_credit_given(&thread->credit));
}

bool timer_wants_reply(const struct source_tick *tick, struct source_thread *thread)
{
    double wait_ns = sample_credit_periods_between(&thread->credit) * (double)tick->period_ns;
    if (thread->clock_ns < thread->asked_cpu_ns + (uint64_t)wait_ns) return false;
    return timer_kernel_periods(tick, thread) > 0;
}

uint64_t timer_switching_ns(const struct source_thread *thread)
{
    return timer_sees_user_code(thread) ? sample_credit_switching_ns(&thread->credit) : 0;
}

uint64_t timer_accounted_cpu_ns(const struct source_tick *tick, struct source_thread *thread, uint64_t cpu_ns)
{
    return sample_credit_accounted_cpu_ns(&thread->credit, cpu_ns, watched_ns(tick, thread, cpu_ns));
}

void timer_note_request(const struct source_tick *tick, struct source_thread *thread)
{
    uint64_t in_kernel = timer_sees_user_code(thread) ? timer_kernel_periods(tick, thread) : 0;
    sample_credit_note_request(&thread->credit, in_kernel);
}

void timer_note_cpu_clock_start(const struct source_tick *tick, struct source_thread *thread)
{
    if (!timer_sees_user_code(thread)) return;
    timer_note_request(tick, thread);
    sample_credit_note_cpu_clock_start(&thread->credit);
}

enum signal_origin timer_preferred_origin(const struct source_thread *thread)
{
    return timer_sees_user_code(thread) ? sample_credit_preferred_origin(&thread->credit) : ORIGIN_ANY;
}
