/* SPDX-License-Identifier: MIT */
#include "symbolize/text_table.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

static bool is_text(const void *context, uint32_t index, const void *key)
{
    return strcmp(text_table_get(context, index), key) == 0;
}

static uint32_t append_text(struct text_table *table, const char *text, size_t size, uint64_t hash)
{
    if (!array_reserve(&table->offsets, &table->capacity, table->count + 1, sizeof(*table->offsets),
                       TEXT_TABLE_TEXTS_MAX + 1) ||
        !buffer_reserve(&table->bytes, size + 1) || !index_table_add(&table->index, hash, (uint32_t)table->count))
        return 0;
    table->offsets[table->count] = (uint32_t)table->bytes.size;
    buffer_append(&table->bytes, text, size + 1);
    return (uint32_t)table->count++;
}

bool text_table_init(struct text_table *table)
{
    *table = (struct text_table){0};
    buffer_init(&table->bytes, UINT32_MAX);
    return append_text(table, "", 0, hash_bytes("", 0)) == 0 && table->count == 1;
}

void text_table_fini(struct text_table *table)
{
    buffer_fini(&table->bytes);
    free(table->offsets);
    index_table_fini(&table->index);
    *table = (struct text_table){0};
}

uint32_t text_table_add(struct text_table *table, const char *text)
{
    if (!text || text[0] == '\0') return 0;
    size_t size = strlen(text);
    uint64_t hash = hash_bytes(text, size);
    uint32_t known = index_table_find(&table->index, hash, is_text, table, text);
    return known != INDEX_NONE ? known : append_text(table, text, size, hash);
}
