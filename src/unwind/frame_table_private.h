/* The layout of a table in its block of memory, to build and to store it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_TABLE_PRIVATE_H
#define OFFBEAT_UNWIND_FRAME_TABLE_PRIVATE_H

#include "unwind/frame_table.h"

/* Offsets of the parts, the most aligned first, by the counts of a table. */
struct frame_table_layout {
    size_t rules, wide, blocks, rows, expressions, size;
};

struct frame_table_layout frame_table_layout(const struct frame_table *table);

/* Gives TABLE, whose counts are set, the block that holds its parts, and owns it from then on. */
void frame_table_take_block(struct frame_table *table, uint8_t *memory);

/* Finds the sorted list in .eh_frame_hdr: *RET_COUNT pairs of two 4-byte distances from the header, of code and FDE.
 * Returns false if there is none, or one in another encoding. */
bool frame_header_pairs(const struct frame_table_source *source, struct cursor *ret_pairs, uint64_t *ret_count);

#endif
