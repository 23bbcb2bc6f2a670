/* SPDX-License-Identifier: MIT */
#include "recorder/bpf/table_words.h"

#include "unwind/machine.h"

_Static_assert(sizeof(struct machine_rule) == BPF_RULE_WORDS * sizeof(uint32_t), "a rule has this many words");
_Static_assert(sizeof(struct wide_rule) <= BPF_WIDE_RULE_WORDS * sizeof(uint32_t), "a wide rule has room");

/* Returns the place for COUNT rows, at PLACE or after it, which is in one value. */
static uint64_t place_for_rows(uint64_t place, uint32_t count)
{
    uint64_t left = BPF_VALUE_WORDS - place % BPF_VALUE_WORDS;
    return count > left ? place + left : place;
}

static uint32_t rows_of_block(const struct frame_table *table, uint32_t block)
{
    return table->blocks[block + 1] - table->blocks[block];
}

bool table_words_layout(const struct frame_table *table, struct table_words_layout *ret_layout)
{
    uint64_t rules = (uint64_t)table->rule_count * BPF_RULE_WORDS;
    uint64_t wide = (rules + BPF_WIDE_RULE_WORDS - 1) / BPF_WIDE_RULE_WORDS * BPF_WIDE_RULE_WORDS;
    uint64_t blocks = wide + (uint64_t)table->wide_count * BPF_WIDE_RULE_WORDS;
    uint64_t rows = blocks + (uint64_t)table->block_count * 2, end = rows;
    for (uint32_t i = 0; i < table->block_count; i++) {
        uint32_t count = rows_of_block(table, i);
        if (count > BPF_VALUE_WORDS) return false;
        end = place_for_rows(end, count) + count;
    }
    uint64_t values = (end + BPF_VALUE_WORDS - 1) / BPF_VALUE_WORDS;
    if (values > TABLE_WORDS_VALUES_MAX) return false;
    *ret_layout = (struct table_words_layout){
        .wide = (uint32_t)wide, .blocks = (uint32_t)blocks, .rows = (uint32_t)rows, .value_count = (uint32_t)values};
    return true;
}

void table_words_fill(const struct frame_table *table, const struct table_words_layout *layout, uint32_t *words)
{
    memcpy(words, table->rules, table->rule_count * sizeof(table->rules[0]));
    for (uint32_t i = 0; i < table->wide_count; i++)
        memcpy(words + layout->wide + i * BPF_WIDE_RULE_WORDS, &table->wide[i], sizeof(table->wide[0]));
    uint64_t place = layout->rows;
    for (uint32_t i = 0; i < table->block_count; i++) {
        uint32_t count = rows_of_block(table, i);
        place = place_for_rows(place, count);
        words[layout->blocks + 2 * i] = (uint32_t)place;
        words[layout->blocks + 2 * i + 1] = count;
        memcpy(words + place, table->rows + table->blocks[i], count * sizeof(table->rows[0]));
        place += count;
    }
}
