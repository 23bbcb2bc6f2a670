/* Threads that sleep, at no cost. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_IDLE_THREADS_H
#define OFFBEAT_SAMPLER_IDLE_THREADS_H

#include "sampler/run/sampler_state.h"

/* Returns the count of THREAD's perf page, to be read before its CPU clock; 0 without a page. */
uint32_t idle_thread_count(const struct target_thread *thread);

/* Returns true if LISTED has a page and has not run since it was last known to be asleep. */
bool idle_thread_continues(const struct listed_thread *listed);

/* Notes that LISTED is asleep: its CPU clock has stopped, and COUNT was read before the clock. */
void idle_thread_note_asleep(struct sampler *sampler, struct listed_thread *listed, uint32_t count);
void idle_thread_note_awake(struct sampler *sampler, struct listed_thread *listed);
void idle_thread_forget(struct sampler *sampler, struct target_thread *thread);

#endif
