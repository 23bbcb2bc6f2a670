/* Gives a thread's time to the stacks that its timers have taken and that it has replied with since the previous scan.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_TAKEN_STACKS_H
#define OFFBEAT_SAMPLER_TAKEN_STACKS_H

#include "sampler/run/sampler_state.h"

/* Writes THREAD's times as the kernel counts them, with the stacks of its timer since the previous scan. OF_WAIT: the
 * stack where it waited for a processor, by the reply to a request, or NULL. */
void taken_stacks_credit(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                         const struct found_stack *of_wait);

/* Fetches the replies to the requests of the open tick, and thereby ends it. */
void taken_stacks_fetch_replies(struct sampler *sampler);

#endif
