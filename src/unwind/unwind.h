/* Walks a stack: from registers and modules to a list of addresses.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_UNWIND_H
#define OFFBEAT_UNWIND_UNWIND_H

#include "unwind/machine.h"

/* One executable segment. */
struct unwind_module {
    uint64_t start, end;             /* where it lies */
    uint64_t base;                   /* what the table's addresses are relative to */
    const struct frame_table *table; /* NULL: there is none, or it is not built yet */
    bool is_pending;                 /* not built yet */
};

/* Sorted by START, without overlaps; immutable while anybody walks. */
struct unwind_modules {
    const struct unwind_module *items;
    size_t count;
};

enum unwind_outcome {
    UNWIND_ROOT = 0,         /* the outermost frame was reached */
    UNWIND_TOO_DEEP,         /* more frames than there is room for */
    UNWIND_NO_TABLE,         /* code that nothing is known of, and no frame pointer led on */
    UNWIND_BAD_MEMORY,       /* a frame lies where nothing can be read */
    UNWIND_BAD_FRAME,        /* a rule gave a frame that cannot be one */
    UNWIND_UNKNOWN_REGISTER, /* a rule needs a register that was not there to be had */
    UNWIND_OUTCOMES,
    UNWIND_PENDING =
        UNWIND_OUTCOMES, /* the last address lies in a module whose table is still to be built: try again */
};

/* Walks from REGISTERS (which are used up) and fills ADDRESSES, innermost first: the first as it is, each further one a
 * return address, except those behind a signal frame, which are stored plus one, so that "less one" is right for all
 * but the first. Always at least one. Signal-safe: no allocation, no locks, reads memory only through MEMORY. Uses less
 * than 512 bytes of stack. */
enum unwind_outcome unwind_walk(const struct unwind_modules *modules, struct unwind_registers *registers,
                                struct unwind_memory *memory, uint64_t *addresses, size_t addresses_max,
                                size_t *ret_count);

/* The module that holds ADDRESS, or NULL. Signal-safe. */
const struct unwind_module *unwind_find_module(const struct unwind_modules *modules, uint64_t address);

#endif
