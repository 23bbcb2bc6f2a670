/* Stacks with which threads have replied to requests. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_REPLY_STACK_H
#define OFFBEAT_SAMPLER_REPLY_STACK_H

#include "sampler/source/source.h"

/* Reads the stack of REPLY by THREAD, which was asked at CPU_NS of its clock. Returns false if it needs a table first.
 */
bool reply_stack_read(struct source_tick *tick, struct source_thread *thread, struct sample_reply *reply,
                      uint64_t cpu_ns, struct found_stack *ret_stack);

#endif
