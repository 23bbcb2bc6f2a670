/* Walks the stacks that perf timers have copied. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLE_WALK_H
#define OFFBEAT_SAMPLER_SAMPLE_WALK_H

#include "sampler/source/source.h"
#include "unwind/copied_stack.h"

struct sample_walk {
    struct found_stack found; /* valid until the next walk */
    struct copied_stack copy;
    uint64_t end;     /* stack pointer of the last frame */
    uint64_t outside; /* address of the first word that was not in the copy; 0: all were */
    bool has_table;   /* false if the walk ended where there never will be a table */
};

/* Walks the stack of SAMPLE, and reads from THREAD's memory what is not in the copy. Returns false if it is not
 * available yet, or never will be. A stack in our own handler is not used: the reply has the place that the handler
 * interrupted, and the kernel's copy does not reach there. */
bool sample_walk(struct source_tick *tick, struct source_thread *thread, const struct perf_timer_sample *sample,
                 struct sample_walk *ret);

#endif
