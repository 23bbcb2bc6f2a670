/* Threads that an interpreter runs in this process: their stacks get the functions of the program. The sampler thread
 * finds the interpreter and its threads, reads stacks of sleeping ones, and gives numbers to the places in all stacks;
 * a running thread reads its own functions in the signal handler. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_INTERPRETED_THREADS_H
#define OFFBEAT_SAMPLER_INTERPRETED_THREADS_H

#include "sampler/run/sampler_state.h"
#include "sampler/source/remote_unwind.h"

/* Forgets everything, at a start of the sampler. */
void interpreted_threads_reset(void);

/* Looks for an interpreter and its new threads. Called at each tick, after the modules are listed. */
void interpreted_threads_refresh(struct sampler *sampler);

/* Writes the interpreter to a recording that has just begun; places are written again as they come. */
void interpreted_threads_begin_recording(struct sampler *sampler);

/* Lets the handler of REQUEST, which was just taken for THREAD, read functions if THREAD has some. */
void interpreted_threads_prepare(struct sample_request *request, const struct target_thread *thread);

/* Replaces the functions in REPLY by numbers of places in the recording. */
void interpreted_threads_finish(struct sampler *sampler, struct sample_reply *reply);

/* Adds functions to STACK of THREAD, which sleeps. Returns false if the thread has run meanwhile: its CPU clock showed
 * CPU_NS. */
bool interpreted_threads_add(struct sampler *sampler, const struct target_thread *thread, uint64_t cpu_ns,
                             struct remote_stack *stack);

#endif
