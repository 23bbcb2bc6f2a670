/* Threads that run for long, sampled by the kernel. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_TIMER_H
#define OFFBEAT_SAMPLER_TIMER_H

#include "sampler/run/sampler_state.h"

/* Opens a perf timer for THREAD, which runs, unless it has one or may have none. */
void timer_note_busy(struct sampler *sampler, struct target_thread *thread);
/* Returns true if the open tick has time to open one more timer. */
bool timer_may_open(const struct sampler *sampler);
/* Returns true if THREAD has no timer, and the kernel grants none or its stacks are too large for one. */
bool timer_is_denied(const struct sampler *sampler, const struct target_thread *thread);
void timer_forget(struct sampler *sampler, struct target_thread *thread);
/* Closes the timers of threads that have not run for a while. Called once a second. */
void timer_forget_sleepers(struct sampler *sampler);

/* Returns true if THREAD runs, or waits for a processor, by the last record of its timer. */
bool timer_is_running(const struct target_thread *thread);

/* Returns true if THREAD has done nothing else since the previous reading of its timer. */
bool timer_has_run_on(const struct target_thread *thread);

/* Returns the number of periods whose samples the memory of THREAD's timer holds. */
uint64_t timer_room(const struct target_thread *thread);

/* Returns true if THREAD has a timer that sees only user code, and is blind to system calls. */
bool timer_sees_user_code(const struct target_thread *thread);

/* The next five functions are for such a timer (sample_credit.h).
 *
 * Returns true if THREAD was inside the kernel at the end of some periods and is to be asked where: a request is due by
 * CPU_NS of its clock. */
bool timer_wants_reply(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Returns the CPU time of context switches that is not written yet, ns. Nearly all switches of a thread that blocks
 * begin and end where it blocks. */
uint64_t timer_switching_ns(const struct target_thread *thread);

/* Returns the CPU time up to CPU_NS that counted periods and switches stand for. */
uint64_t timer_accounted_cpu_ns(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Notes for which periods THREAD is about to be asked for a stack: the reply is fetched after further periods, whose
 * stacks have not been read. */
void timer_note_request(const struct sampler *sampler, struct target_thread *thread);

/* Notes that THREAD's CPU clock asks it from now on. */
void timer_note_cpu_clock_start(const struct sampler *sampler, struct target_thread *thread);

/* Returns the origin that the next reply of THREAD should have. */
enum signal_origin timer_preferred_origin(const struct target_thread *thread);

/* Reads the new records of THREAD's timer, if it has one. Returns the number of samples that are still in memory. */
uint32_t timer_fetch(struct sampler *sampler, struct target_thread *thread, struct perf_timer_news *ret_news);

/* Returns true if the oldest of NEWS is the sample that was requested when THREAD's timer was opened. */
bool timer_was_asked(const struct target_thread *thread, const struct perf_timer_news *news);

/* Shortens the timer's period, because a sample said nothing about THREAD's CPU time, unless it would be under 1 ms. */
void timer_sample_soon(struct sampler *sampler, struct target_thread *thread);

/* Walks the stack of SAMPLE, and reads from the thread's memory what is not in the copy. After UNWIND_PENDING the
 * caller builds a table and calls again. Returns false if the kernel has overwritten the copy. */
bool timer_walk(struct sampler *sampler, struct target_thread *thread, const struct perf_timer_sample *sample,
                uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count, enum unwind_outcome *ret_outcome);

#endif
