/* Texts, each once, numbered from 1; number 0 is "".  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_TEXT_TABLE_H
#define OFFBEAT_SYMBOLIZE_TEXT_TABLE_H

#include "base/buffer.h"
#include "base/index_table.h"

enum { TEXT_TABLE_TEXTS_MAX = (1 << 24) - 1 }; /* numbers fit into 24 bits: see place.h */

struct text_table {
    struct buffer bytes; /* each text with its NUL */
    uint32_t *offsets;   /* offset of each text */
    size_t count, capacity;
    struct index_table index;
};

/* False without memory; call text_table_fini in both cases. */
bool text_table_init(struct text_table *table);
void text_table_fini(struct text_table *table);

/* The number of TEXT (NULL = ""); 0 if it is new and there is no room for it. */
uint32_t text_table_add(struct text_table *table, const char *text);

/* Valid until the next addition. */
static inline const char *text_table_get(const struct text_table *table, uint32_t number)
{
    return (const char *)table->bytes.data + table->offsets[number];
}

#endif
