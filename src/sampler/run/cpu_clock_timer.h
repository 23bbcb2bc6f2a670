/* Threads that run, where the kernel grants no perf timer. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CPU_CLOCK_TIMER_H
#define OFFBEAT_SAMPLER_CPU_CLOCK_TIMER_H

#include "sampler/run/sampler_state.h"

/* Finds out whether such timers are possible. Called once, on the thread that starts the sampler. */
void cpu_clock_timer_prepare(struct sampler *sampler);

/* Returns true if THREAD, which has run for CPU_NS, should have such a timer: it can have no other one, or one that is
 * blind to system calls in which it spent time. */
bool cpu_clock_timer_is_wanted(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Starts the timer of THREAD, which has run for CPU_NS: it hands over its stack at the kernel's ticks. Does nothing if
 * the thread cannot be sent a signal. */
void cpu_clock_timer_arm(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Ends the timer of THREAD if it can be sent no signal. Called at each scan of a thread that has run. */
void cpu_clock_timer_check(struct sampler *sampler, struct target_thread *thread);

/* Returns the number of periods for which a thread with such a timer has room for replies. */
uint64_t cpu_clock_timer_room(const struct sampler *sampler);

/* Returns true if the timer of THREAD has seen everything: in wall-clock mode, the thread has not slept. */
bool cpu_clock_timer_has_run_on(const struct sampler *sampler, struct target_thread *thread);

/* Returns true if the kernel's ticks do not meet THREAD, which has UNWRITTEN_NS of CPU time without a stack. */
bool cpu_clock_timer_is_late(const struct sampler *sampler, const struct target_thread *thread, uint64_t unwritten_ns);

/* Returns SIGNALS of THREAD, which were just read, and those that ticks in a long call would have been. This and the
 * next function are for a thread with a perf timer that sees user code. */
struct timer_signals cpu_clock_timer_all_signals(const struct sampler *sampler, struct target_thread *thread,
                                                 struct timer_signals signals);

/* Returns how long THREAD had been in the call that was open when its signals were last read, ns; 0: in none, or a
 * short one. */
uint64_t cpu_clock_timer_open_call_ns(const struct sampler *sampler, const struct target_thread *thread);

/* Returns true if the call from which THREAD's reply comes began before the last scan. */
bool cpu_clock_timer_meets_long_call(const struct sampler *sampler, const struct target_thread *thread);

/* Times that timer signals stand for. */
struct timer_signals_time {
    uint64_t cpu_ns;        /* the thread's CPU clock up to which they stand for unwritten time, ns */
    uint64_t long_calls_ns; /* the part of that time in long calls, ns */
};

/* Returns what SIGNALS of THREAD, which were just read, stand for. */
struct timer_signals_time cpu_clock_timer_time_of(const struct sampler *sampler, struct target_thread *thread,
                                                  struct timer_signals signals);

void cpu_clock_timer_forget(struct target_thread *thread);
void cpu_clock_timer_forget_all(struct sampler *sampler);

/* Has all such timers walk with the current snapshot of the modules. Returns true if nothing uses an older one. */
bool cpu_clock_timer_renew_all(struct sampler *sampler);

#endif
