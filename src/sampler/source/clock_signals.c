/* SPDX-License-Identifier: MIT */
#include "sampler/source/clock_signals.h"

#include "base/unsigned.h"
#include "sampler/source/shared_timer.h"

void clock_signals_note(const struct source_tick *tick, struct source_thread *thread, uint64_t uncovered_ns)
{
    thread->clock_read =
        (struct clock_reading){thread->account.cpu_ns, thread->account.delay_ns, tick->start_ns, uncovered_ns};
}

bool clock_signals_missed_sleep(const struct source_tick *tick, const struct source_thread *thread)
{
    const struct clock_reading *before = &thread->clock_read;
    uint64_t ran_ns = thread->account.cpu_ns - before->cpu_ns, span_ns = tick->start_ns - before->tick_ns;
    return ran_ns + (thread->account.delay_ns - before->wait_ns) < span_ns - span_ns / 16;
}

/* Returns the CPU time of THREAD up to the last scan that COUNT signals, all since the previous reading, do not stand
 * for. However many ticks meet a thread in a call, the signal comes once, at the call's end. For a thread that has
 * slept this is unknown, and 0. */
static uint64_t uncovered_ns(const struct source_tick *tick, const struct source_thread *thread, uint32_t count)
{
    const struct clock_reading *before = &thread->clock_read;
    uint64_t ran_ns = thread->account.cpu_ns - before->cpu_ns;
    return clock_signals_missed_sleep(tick, thread)
               ? 0
               : difference(before->uncovered_ns + ran_ns, count * tick->limits->signal_ns);
}

struct timer_signals clock_signals_all(const struct source_tick *tick, struct source_thread *thread,
                                       struct timer_signals signals)
{
    uint64_t ns = uncovered_ns(tick, thread, signals.count);
    uint32_t unseen = signals.in_call > 0 ? (uint32_t)(ns / tick->limits->signal_ns) : 0;
    clock_signals_note(tick, thread,
                       signals.in_call > 0 ? 0 : least(ns, thread->account.cpu_ns - thread->clock_read.cpu_ns));
    signals.count += unseen;
    signals.in_call += unseen;
    return signals;
}

uint64_t clock_signals_open_call_ns(const struct source_tick *tick, const struct source_thread *thread)
{
    uint64_t ns = thread->clock_read.uncovered_ns;
    return ns >= LONG_CALL_SIGNALS * tick->limits->signal_ns ? ns : 0;
}

bool clock_signals_meet_long_call(const struct source_tick *tick, const struct source_thread *thread)
{
    bool are_counted = thread->clock && timer_sees_user_code(thread); /* only then the reading is noted */
    return are_counted && uncovered_ns(tick, thread, 0) >= LONG_CALL_SIGNALS * tick->limits->signal_ns;
}
