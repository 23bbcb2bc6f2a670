/* The call frame information of one module, compiled into rows that are found by one lookup and a short search.
 *
 * Code is cut into blocks of 1 KB, and the rows of a block are side by side, an offset and the number of a rule in 4
 * bytes: in a program that is doing something else, every cache line and every page that a lookup touches is a cold
 * one. Rules are stored once: even a library of 150 MB has little more than a thousand different ones. A rule that does
 * not fit (rare: stack realignment, signal frames, expressions) is a wide rule. A table is one block of memory without
 * pointers into itself; immutable once built; read by any number of threads and signal handlers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_TABLE_H
#define OFFBEAT_UNWIND_FRAME_TABLE_H

#include "unwind/cfi.h"

enum {
    FRAME_TABLE_ROWS_MAX = 64 << 20,
    FRAME_TABLE_RULES_MAX = 1 << 15,
    FRAME_TABLE_WIDE_MAX = 1 << 16,
    FRAME_TABLE_EXPRESSIONS_MAX = 1 << 20, /* bytes */
    FRAME_TABLE_CODE_MAX = 1 << 30,        /* bytes of code from the base on; further code is left out */

    FRAME_TABLE_BLOCK_SHIFT = 10,
    FRAME_TABLE_BLOCK_SIZE = 1 << FRAME_TABLE_BLOCK_SHIFT,

    /* Parts of a row, from the low bits up: the number of a rule, a bit for the start of an FDE, the offset in its
       block. */
    FRAME_TABLE_FUNCTION_START = 1 << 15,
    FRAME_TABLE_OFFSET_SHIFT = 16,
};

struct machine_rule;
struct wide_rule;

struct frame_table {
    uint32_t start, end;    /* range of the code, relative to the module's base; the first block begins at START */
    const uint32_t *blocks; /* index of each block's first row, then the number of rows */
    const uint32_t *rows;   /* rows, each up to the next one; the first of a block has offset 0; rule 0: unknown */
    const struct machine_rule *rules;
    const struct wide_rule *wide;
    const uint8_t *expressions;
    uint32_t row_count, block_count, rule_count, wide_count, expression_bytes;
    uint32_t fde_count, broken_fde_count, rejected_row_count;
    void *memory; /* memory of base/pages.h */
    size_t memory_size;
};

/* Place of a module's frame information. All addresses are in one space; the table is relative to BASE. Either section
 * may be empty. Code without unwind tables is described in .debug_frame alone, while the start files and the PLT of the
 * same module are in .eh_frame; a function that is in both is taken from .eh_frame. */
struct frame_table_source {
    struct cfi_section eh_frame;
    struct slice header; /* .eh_frame_hdr, for its sorted list of FDEs; empty if there is none */
    uint64_t header_address;
    struct cfi_section debug_frame; /* section with is_debug_frame */
    uint64_t base;
};

/* Allocates pages (base/pages.h), never malloc. Returns false if there is no usable FDE, or no memory. Broken FDEs are
 * counted and left out. Not signal-safe. */
bool frame_table_build(const struct frame_table_source *source, struct frame_table *ret_table);
void frame_table_fini(struct frame_table *table);

/* Prefetches the memory that frame_table_find reads first. */
static inline void frame_table_prefetch(const struct frame_table *table, uint32_t pc)
{
    if (pc >= table->start && pc < table->end)
        __builtin_prefetch(&table->blocks[(pc - table->start) >> FRAME_TABLE_BLOCK_SHIFT]);
}

/* Returns the row that holds PC (relative to the base); NULL if none does. Signal-safe. */
static inline const uint32_t *frame_table_find(const struct frame_table *table, uint32_t pc)
{
    if (pc < table->start || pc >= table->end) return NULL;
    uint32_t offset = pc - table->start;
    const uint32_t *block = &table->blocks[offset >> FRAME_TABLE_BLOCK_SHIFT];
    const uint32_t *row = &table->rows[block[0]];
    uint32_t count = block[1] - block[0];
    uint32_t after = ((offset & (FRAME_TABLE_BLOCK_SIZE - 1)) + 1) << FRAME_TABLE_OFFSET_SHIFT;
    while (count > 1) {
        uint32_t half = count / 2;
        row = row[half] < after ? row + half : row;
        count -= half;
    }
    return row;
}

/* Finds the first address of the function that holds PC, or of the part of it that has a separate FDE. Returns false if
 * no function holds it. Searches back over a bounded number of rows only. Signal-safe. */
bool frame_table_function_start(const struct frame_table *table, uint32_t pc, uint32_t *ret_start);

/* Returns the number of the rule for PC; 0 if it is unknown. Signal-safe. */
static inline uint32_t frame_table_rule_at(const struct frame_table *table, uint32_t pc)
{
    const uint32_t *row = frame_table_find(table, pc);
    return row ? *row & (FRAME_TABLE_FUNCTION_START - 1) : 0;
}

#endif
