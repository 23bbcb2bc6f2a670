/* Signals of a timer on a thread's CPU clock (sample_requests.h), and the time that they stand for.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CLOCK_SIGNALS_H
#define OFFBEAT_SAMPLER_CLOCK_SIGNALS_H

#include "sampler/source/sample_requests.h"

struct source_tick;
struct source_thread;

/* Clocks of a thread when the signals of its CPU clock were last read. */
struct clock_reading {
    uint64_t cpu_ns, wait_ns; /* CPU time, and waits for a processor, ns */
    uint64_t tick_ns;         /* the tick that read them, CLOCK_MONOTONIC */
    uint64_t uncovered_ns;    /* CPU time before that without a signal, perhaps in a call, ns */
};

/* Notes a reading in the open tick, before which THREAD has had UNCOVERED_NS without a signal. */
void clock_signals_note(const struct source_tick *tick, struct source_thread *thread, uint64_t uncovered_ns);

/* Returns true if THREAD has slept since the previous reading: it has not run all the time, apart from waits for a
 * processor. */
bool clock_signals_missed_sleep(const struct source_tick *tick, const struct source_thread *thread);

/* The next three functions are for a thread with a perf timer that sees user code.
 *
 * Return SIGNALS of THREAD, which were just read, and those that ticks in a long call would have been. */
struct timer_signals clock_signals_all(const struct source_tick *tick, struct source_thread *thread,
                                       struct timer_signals signals);

/* Returns how long THREAD had been in the call that was open when its signals were last read, ns; 0: in none, or a
 * short one. */
uint64_t clock_signals_open_call_ns(const struct source_tick *tick, const struct source_thread *thread);

/* Returns true if the call from which THREAD's reply comes began before the last scan. */
bool clock_signals_meet_long_call(const struct source_tick *tick, const struct source_thread *thread);

/* Length of a long call, in signals. */
enum { LONG_CALL_SIGNALS = 2 };

#endif
