/* The perf timer of a thread's CPU time, as all sources see it: whether there is one, and if it sees only user code,
 * the time in system calls that signals have to find (sample_credit.h). perf_source.c owns the timer.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SHARED_TIMER_H
#define OFFBEAT_SAMPLER_SHARED_TIMER_H

#include "sampler/source/source.h"

/* Returns true if the open tick has time to open one more timer. */
bool timer_may_open(const struct source_tick *tick);
/* Returns true if THREAD has no timer, and the kernel grants none or its stacks are too large for one. */
bool timer_is_denied(const struct source_tick *tick, const struct source_thread *thread);

/* Returns true if THREAD has a timer that sees only user code, and is blind to system calls. */
bool timer_sees_user_code(const struct source_thread *thread);

/* Returns true if THREAD has such a timer and a stack. Signals are for its calls, and come from its CPU clock where
 * that is possible. A first stack need not be exact. */
bool timer_asks_for_calls(const struct source_thread *thread);

/* The rest is for such a timer.
 *
 * Returns the periods at whose end THREAD was inside the kernel, and that are given to no stack. */
uint64_t timer_kernel_periods(const struct source_tick *tick, struct source_thread *thread);

/* Returns true if THREAD was inside the kernel at the end of some periods and is to be asked where: a request is due by
 * its clock. */
bool timer_wants_reply(const struct source_tick *tick, struct source_thread *thread);

/* Returns the CPU time of context switches that is not written yet, ns. Nearly all switches of a thread that blocks
 * begin and end where it blocks. */
uint64_t timer_switching_ns(const struct source_thread *thread);

/* Returns the CPU time up to CPU_NS that counted periods and switches stand for. */
uint64_t timer_accounted_cpu_ns(const struct source_tick *tick, struct source_thread *thread, uint64_t cpu_ns);

/* Notes for which periods THREAD is about to be asked for a stack: the reply is fetched after further periods, whose
 * stacks have not been read. */
void timer_note_request(const struct source_tick *tick, struct source_thread *thread);

/* Notes that THREAD's CPU clock asks it from now on. */
void timer_note_cpu_clock_start(const struct source_tick *tick, struct source_thread *thread);

/* Returns the origin that the next reply of THREAD should have. */
enum signal_origin timer_preferred_origin(const struct source_thread *thread);

#endif
