/* One stack of the native frames of a thread and the functions that an interpreter runs there.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_MERGED_STACK_H
#define OFFBEAT_INTERPRETERS_MERGED_STACK_H

#include "interpreters/interpreter.h"

/* Native frames, the innermost first. */
struct native_stack {
    const uint64_t *addresses;
    const uint64_t *stack_pointers; /* stack pointer of each frame: its memory ends at that of its caller */
    size_t count;
    bool has_root; /* true if the last frame is the outermost one */
};

/* The choice of native frames that are shown. */
struct native_view {
    struct memory_range interpreter; /* addresses of the interpreter's code: hidden */
    struct memory_range evaluation;  /* addresses of the evaluation function, if stacks have no records */
    struct memory_range libc;        /* addresses of the C library: hidden outside of all functions of the program */
    bool shows_all;
    bool links_first; /* true if a frame is in the chain before the evaluation function is called for it */
};

/* Writes to MERGED, which has room for MAX, the addresses of NATIVE with the frames of INTERPRETED at their places:
 * frame I as FIRST + I. A native frame that holds the record of a frame is the evaluation function that ran it, and
 * those before it; frames without a record go on in the native frame of their caller. Returns the number of addresses;
 * 0 if a record is in no native frame of a whole stack. If INTERPRETED has no records, there must be as many native
 * frames of the evaluation function as entry frames, and their stack pointers become the records. Signal-safe. */
size_t merge_stacks(const struct native_stack *native, struct interpreted_stack *interpreted,
                    const struct native_view *view, uint64_t first, uint64_t *merged, size_t max);

#endif
