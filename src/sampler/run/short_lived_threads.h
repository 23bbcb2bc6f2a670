/* Threads that live between two ticks. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SHORT_LIVED_THREADS_H
#define OFFBEAT_SAMPLER_SHORT_LIVED_THREADS_H

#include "sampler/run/sampler_state.h"

/* Reads the events that threads have written. The list of threads must be newer than the events. */
void short_lived_threads_read(struct sampler *sampler);

/* Gives THREAD its begin event, when a tick sees it for the first time. */
void short_lived_threads_first_seen(struct sampler *sampler, struct target_thread *thread);

/* Credits unseen threads to the stacks of THREAD, which has ended and is written completely. If its life was short, its
 * stacks stand for the threads of its routine that no tick saw: ticks fall at random, so they meet each place as often
 * as its share of the time. */
void short_lived_threads_credit(struct sampler *sampler, const struct target_thread *thread);

/* Adds a thread that was listed, but never scanned. */
void short_lived_threads_add(struct sampler *sampler, const struct thread_event *end);

/* Writes the remaining sums without a stack, at the end of a recording. */
void short_lived_threads_write_rest(struct sampler *sampler);

/* Writes CPU_NS of threads that wrote no event, without a stack. */
void short_lived_threads_write_unseen(struct sampler *sampler, uint64_t cpu_ns);

#endif
