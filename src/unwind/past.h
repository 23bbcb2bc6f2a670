/* What the last walk of a stack met. From one sample to the next most of a stack stays as it is, and a walk that meets
 * a frame of the one before needs no rules from there on: what follows from a frame depends on its IP, SP and FP and on
 * the words that are read on the way. Where all of these are what they were, the rest of the walk is what it was. The
 * words lie in places that are known, so that cache misses overlap; following rules, each waits for the one before.
 * Frames that lead on by other registers, and what lies inside of them, are not kept. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_PAST_H
#define OFFBEAT_UNWIND_PAST_H

#include "unwind/machine.h"

enum { PAST_FRAMES_MAX = 256 };

struct past_frame {
    uint64_t ip; /* 0: the end of the stack, and no frame any more */
    uint64_t sp;
    uint64_t fp;
    uint64_t fp_place; /* where it was read; 0: it is what it was in the frame before */
};

/* {0} is empty. Belongs to one walk at a time. */
struct unwind_past {
    uint64_t generation; /* of the modules */
    size_t count;        /* of kept frames: FRAMES from 0 on, the outermost first */
    size_t fresh;        /* those of the walk that goes on: FRAMES from here to the end, the innermost last */
    bool is_rejoined;    /* it met one of the kept frames, and they lie behind it */
    struct past_frame frames[PAST_FRAMES_MAX];
};

/* Asks for the frames of the walk before. */
void past_prefetch(const struct unwind_past *past);

/* A walk of the stack at SP begins, with modules of GENERATION. */
void past_begin(struct unwind_past *past, uint64_t generation, uint64_t sp, const struct unwind_memory *memory);

/* The walk took a STEP by RULE (NULL: by the frame pointer) to REGISTERS. */
void past_note(struct unwind_past *past, const struct machine_rule *rule, enum machine_step step,
               const struct unwind_registers *registers);

/* If what was noted last is a frame of the walk before, and everything behind it is as it was: the addresses behind it.
 * Else, or if there are more than ADDRESSES_MAX, 0. */
size_t past_rejoin(struct unwind_past *past, struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max);

/* The walk is over; it is kept if it HAS_ROOT. */
void past_end(struct unwind_past *past, bool has_root);

#endif
