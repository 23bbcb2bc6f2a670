/* Tells the ledgers of threads what was observed. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_THREAD_TIME_H
#define OFFBEAT_SAMPLER_THREAD_TIME_H

#include "sampler/run/sampler_state.h"

/* Reads how long THREAD, which has run since the last scan, waited for a processor. Does nothing in CPU mode. */
void thread_time_read_delay(struct sampler *sampler, struct target_thread *thread);

/* Write STACK for time that is not written yet: CPU time up to CPU_NS of THREAD's clock, waits for a processor, or
 * blocked time. IS_AWAKE: THREAD has been woken since. */
void thread_time_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                                const struct found_stack *stack);
void thread_time_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);
void thread_time_credit_blocked(struct sampler *sampler, struct target_thread *thread, bool is_awake,
                                const struct found_stack *stack);

/* Write the rest of THREAD: because the recording ends, or because THREAD has ended and ran for UNSEEN_CPU_NS after the
 * last scan, and perhaps has reported when it ended. */
void thread_time_write_rest(struct sampler *sampler, struct target_thread *thread);
void thread_time_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);
void thread_time_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

#endif
