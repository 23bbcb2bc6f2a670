/* Reads the stacks of threads that are blocked, from outside.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_REMOTE_SOURCE_H
#define OFFBEAT_SAMPLER_REMOTE_SOURCE_H

#include "sampler/source/remote_unwind.h"
#include "sampler/run/sampler_state.h"

/* Reads the stack of THREAD unless it runs. In CPU mode little is written for a thread that does not run. */
enum remote_unwind_result remote_source_read(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

#endif
