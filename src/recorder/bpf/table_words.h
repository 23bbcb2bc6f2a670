/* A frame table as the words of a BPF array: rules, wide rules, blocks, rows. The array's values have 16 KB, and
 * nothing that the walk reads at once is in two of them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_TABLE_WORDS_H
#define OFFBEAT_RECORDER_BPF_TABLE_WORDS_H

#include "recorder/bpf/bpf_layout.h"
#include "unwind/frame_table.h"

#include <stdbool.h>

enum { TABLE_WORDS_VALUES_MAX = 1 << 14 }; /* 256 MB */

/* Places in words of 4 bytes. The rules are at 0. */
struct table_words_layout {
    uint32_t wide, blocks, rows;
    uint32_t value_count; /* values of BPF_VALUE_WORDS words */
};

/* Returns false if TABLE is too large. */
bool table_words_layout(const struct frame_table *table, struct table_words_layout *ret_layout);

/* Fills WORDS, zeros, with TABLE. */
void table_words_fill(const struct frame_table *table, const struct table_words_layout *layout, uint32_t *words);

#endif
