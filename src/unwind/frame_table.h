/* What .eh_frame says about one module, compiled into rows that are found by one lookup and a short search.
 *
 * Row i holds for the addresses from pcs[i] up to pcs[i + 1]: 4 bytes of address and 2 bytes for the number of a rule.
 * Rules are stored once: even a library of 150 MB has little more than a thousand different ones. What does not fit
 * into one (rare: stack realignment, signal frames, expressions) is a wide rule. A table is one block of memory without
 * pointers into itself; immutable once built; read by any number of threads and signal handlers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_FRAME_TABLE_H
#define OFFBEAT_UNWIND_FRAME_TABLE_H

#include "unwind/cfi.h"

enum {
    FRAME_TABLE_ROWS_MAX = 64 << 20,
    FRAME_TABLE_WIDE_MAX = 1 << 16,
    FRAME_TABLE_EXPRESSIONS_MAX = 1 << 20, /* bytes */
    FRAME_TABLE_RULES_MAX = 1 << 15,
    FRAME_TABLE_FUNCTION_START = 1 << 15, /* with the number of a rule: the row is the first of an FDE */
    FRAME_TABLE_BLOCK_SHIFT = 10,         /* one entry of the block index for each KB of code */
};

struct machine_rule;
struct wide_rule;

struct frame_table {
    const uint32_t *pcs;     /* rising, relative to the module's base; one more than rows, the last is the end */
    const uint32_t *blocks;  /* the row that holds the first byte of each block of code, counted from pcs[0] */
    const uint16_t *numbers; /* of the rows' rules, and FRAME_TABLE_FUNCTION_START; rule 0: nothing is known */
    const struct machine_rule *rules;
    const struct wide_rule *wide;
    const uint8_t *expressions;
    uint32_t row_count, block_count, rule_count, wide_count, expression_bytes;
    uint32_t fde_count, broken_fde_count, refused_row_count;
    void *memory; /* of base/pages.h */
    size_t memory_size;
};

/* Where a module's frame information lies. All addresses are in one space; the table is relative to BASE. Either
 * section may be empty. Code without unwind tables is described in .debug_frame alone, while the start files and the
 * PLT of the same module are in .eh_frame; what both describe is taken from .eh_frame. */
struct frame_table_source {
    struct cfi_section eh_frame;
    struct slice header; /* .eh_frame_hdr, for its sorted list of FDEs; empty if there is none */
    uint64_t header_address;
    struct cfi_section debug_frame; /* with is_debug_frame */
    uint64_t base;
};

/* Allocates pages (base/pages.h), never malloc. False if there is no FDE that could be used, or no memory. Broken FDEs
 * are counted and left out. Not signal-safe. */
bool frame_table_build(const struct frame_table_source *source, struct frame_table *ret_table);
void frame_table_fini(struct frame_table *table);

/* The row that holds PC (relative to the base); row_count if none does. Signal-safe. */
static inline uint32_t frame_table_find(const struct frame_table *table, uint32_t pc)
{
    if (table->row_count == 0 || pc < table->pcs[0] || pc >= table->pcs[table->row_count]) return table->row_count;
    uint32_t block = (pc - table->pcs[0]) >> FRAME_TABLE_BLOCK_SHIFT;
    uint32_t low = table->blocks[block];
    uint32_t high = block + 1 < table->block_count ? table->blocks[block + 1] + 1 : table->row_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (table->pcs[middle] <= pc)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first address of the function (or the part of one that has an FDE of its own) that holds PC; false if none does.
 * Looks back over a bounded number of rows only. Signal-safe. */
bool frame_table_function_start(const struct frame_table *table, uint32_t pc, uint32_t *ret_start);

/* The number of the rule for PC; 0 if nothing is known. Signal-safe. */
static inline uint32_t frame_table_rule_at(const struct frame_table *table, uint32_t pc)
{
    uint32_t row = frame_table_find(table, pc);
    return row == table->row_count ? 0 : table->numbers[row] & (FRAME_TABLE_FUNCTION_START - 1);
}

#endif
