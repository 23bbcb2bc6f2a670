/* Finds the rule for one address in .eh_frame itself: a walk uses it until the module's table is complete. It takes
 * microseconds where a table takes nanoseconds, and needs no preparation but a copy of the sections.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_LOOKUP_H
#define OFFBEAT_UNWIND_FRAME_LOOKUP_H

#include "unwind/frame_table.h"
#include "unwind/machine.h"

/* Immutable; read by any number of threads and signal handlers. */
struct frame_lookup {
    struct cfi_section eh_frame;
    uint64_t header_address;
    struct slice pairs; /* sorted list of .eh_frame_hdr */
};

/* Working memory of one thread or signal handler: over 2 KB. Needs no initial value. */
struct frame_lookup_work {
    struct cfi_fde fde;
    struct cfi_machine machine;
    const struct frame_lookup *lookup; /* lookup of the last call */
    uint64_t address;
    bool is_found;
    struct machine_rule rule;
    struct wide_rule wide;
    struct frame_table table; /* table for machine_step; its only wide rule is WIDE */
};

/* Returns false if there is no sorted list. The sections that SOURCE refers to must stay. */
bool frame_lookup_init(const struct frame_table_source *source, struct frame_lookup *ret_lookup);

/* Finds the rule at ADDRESS: WORK->rule, with WORK->table to step with it, and WORK->fde, the function. Returns false
 * if none is known. Signal-safe. */
bool frame_lookup_find(const struct frame_lookup *lookup, uint64_t address, struct frame_lookup_work *work);

#endif
