/* Writes what remains of threads that have ended.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_ENDED_THREADS_H
#define OFFBEAT_SAMPLER_ENDED_THREADS_H

#include <stdint.h>

struct sampler;
struct target_thread;

/* Returns the CPU time of the process that no thread accounts for: ended threads spent it after their last scan. */
uint64_t ended_threads_unseen_cpu_ns(const struct sampler *sampler);

/* Writes what remains of THREAD, which is about to be forgotten. */
void ended_thread_close(struct sampler *sampler, struct target_thread *thread);

#endif
