/* The layout of a table in memory, and questions to it.  SPDX-License-Identifier: MIT */
#include "unwind/frame_table_private.h"

#include "base/pages.h"
#include "unwind/machine.h"

struct frame_table_layout frame_table_layout(const struct frame_table *table)
{
    struct frame_table_layout layout = {.rules = 0};
    layout.wide = layout.rules + table->rule_count * sizeof(struct machine_rule);
    layout.blocks = layout.wide + table->wide_count * sizeof(struct wide_rule);
    layout.rows = layout.blocks + (table->block_count + (size_t)1) * sizeof(uint32_t);
    layout.expressions = layout.rows + table->row_count * sizeof(uint32_t);
    layout.size = layout.expressions + table->expression_bytes;
    return layout;
}

void frame_table_take_block(struct frame_table *table, uint8_t *memory)
{
    struct frame_table_layout layout = frame_table_layout(table);
    table->memory = memory;
    table->memory_size = layout.size;
    table->rules = (const struct machine_rule *)(void *)(memory + layout.rules);
    table->wide = (const struct wide_rule *)(void *)(memory + layout.wide);
    table->rows = (const uint32_t *)(void *)(memory + layout.rows);
    table->blocks = (const uint32_t *)(void *)(memory + layout.blocks);
    table->expressions = memory + layout.expressions;
}

bool frame_table_function_start(const struct frame_table *table, uint32_t pc, uint32_t *ret_start)
{
    enum { ROWS_BACK_MAX = 4096 };
    const uint32_t *found = frame_table_find(table, pc);
    if (!found || (*found & (FRAME_TABLE_FUNCTION_START - 1)) == RULE_NONE) return false;
    uint32_t block = (pc - table->start) >> FRAME_TABLE_BLOCK_SHIFT;
    uint32_t row = (uint32_t)(found - table->rows);
    for (unsigned back = 0; back < ROWS_BACK_MAX; back++) {
        if (table->rows[row] & FRAME_TABLE_FUNCTION_START) {
            *ret_start =
                table->start + (block << FRAME_TABLE_BLOCK_SHIFT) + (table->rows[row] >> FRAME_TABLE_OFFSET_SHIFT);
            return true;
        }
        if (row == 0) return false;
        if (row == table->blocks[block]) block--;
        row--;
    }
    return false;
}

void frame_table_fini(struct frame_table *table)
{
    pages_free(table->memory, table->memory_size);
    *table = (struct frame_table){0};
}
