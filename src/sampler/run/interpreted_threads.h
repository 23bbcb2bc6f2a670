/* Threads that an interpreter runs in this process: their stacks get the functions of the program. The sampler thread
 * finds the interpreter and its threads here; source/interpreted_stacks.h reads their stacks. SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_SAMPLER_INTERPRETED_THREADS_H
#define OFFBEAT_SAMPLER_INTERPRETED_THREADS_H

#include "sampler/run/sampler_state.h"

/* Forgets everything, at a start of the sampler. */
void interpreted_threads_reset(void);

/* Looks for an interpreter and its new threads. Called at each tick, after the modules are listed. */
void interpreted_threads_refresh(struct sampler *sampler);

/* Writes the interpreter to a recording that has just begun; places are written again as they come. */
void interpreted_threads_begin_recording(struct sampler *sampler);

#endif
