/* Memory of a process in which the parts that a thread's last stack took are read again by one call, before they are
 * asked for: most of a stack stays where it was. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_RECALLED_MEMORY_H
#define OFFBEAT_INTERPRETERS_RECALLED_MEMORY_H

#include "interpreters/process_memory.h"

enum { RECALLED_PARTS_MAX = MEMORY_PIECES_MAX, RECALLED_BYTES = 32 << 10 };

/* Parts of memory that the last stack of a thread took, in the order of their use. {0}: there was none. */
struct recalled_parts {
    uint32_t count;
    struct memory_range parts[RECALLED_PARTS_MAX];
};

/* Copies of the parts that one stack takes. Needs no initial value. */
struct recalled_memory {
    struct process_memory memory; /* memory for a reader */
    const struct process_memory *source;
    struct recalled_parts now; /* parts with copies */
    uint16_t starts[RECALLED_PARTS_MAX];
    uint16_t used_from[RECALLED_PARTS_MAX], used_to[RECALLED_PARTS_MAX]; /* bytes of each that were taken; 0: none */
    uint32_t next, filled; /* part that is looked at first; bytes in use */
    struct memory_pieces pieces;
    uint8_t bytes[RECALLED_BYTES];
};

/* Reads PARTS of SOURCE, which stays in use, by one call. Returns the memory for a reader. Signal-safe. */
const struct process_memory *recalled_memory_begin(struct recalled_memory *recalled,
                                                   const struct process_memory *source,
                                                   const struct recalled_parts *parts);

/* Notes in PARTS what was taken since the begin. Signal-safe. */
void recalled_memory_end(const struct recalled_memory *recalled, struct recalled_parts *parts);

#endif
