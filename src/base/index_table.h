/* Finds the index of an item in somebody's array by the item's content: the half of an interning map that does not
 * depend on what is interned.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_INDEX_TABLE_H
#define OFFBEAT_BASE_INDEX_TABLE_H

#include "base/array.h"

#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_slot {
    uint32_t hash;           /* distinguishes most other items without reading them */
    uint32_t index_plus_one; /* 0: empty */
};

/* {0} is a valid empty table. Open addressing, at most 3/4 full. */
struct index_table {
    struct index_slot *slots;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
};

/* True if the item at INDEX is the one that KEY describes. */
typedef bool (*index_equal)(const void *context, uint32_t index, const void *key);

/* The index of the item that equals KEY, or INDEX_NONE. */
uint32_t index_table_find(const struct index_table *table, uint64_t hash, index_equal equal, const void *context,
                          const void *key);

static inline uint32_t index_table_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* Fetches the slot of HASH into the cache, for a caller that looks for many items. */
static inline void index_table_prefetch(const struct index_table *table, uint64_t hash)
{
    if (table->capacity > 0) __builtin_prefetch(&table->slots[index_table_fold(hash) & (table->capacity - 1)]);
}

/* Returns the first item with HASH, most likely the one that index_table_find finds, or INDEX_NONE. */
static inline uint32_t index_table_peek(const struct index_table *table, uint64_t hash)
{
    if (table->capacity == 0) return INDEX_NONE;
    uint32_t kept = index_table_fold(hash), mask = table->capacity - 1;
    uint32_t place = kept & mask;
    while (table->slots[place].index_plus_one != 0 && table->slots[place].hash != kept) place = (place + 1) & mask;
    return table->slots[place].index_plus_one - 1; /* INDEX_NONE for an empty one */
}

/* Makes room for COUNT items, so that the table need not grow later. A hint: if memory is short, nothing happens. */
void index_table_reserve(struct index_table *table, size_t count);

/* Adds INDEX (below INDEX_NONE), which must not be there yet. False if memory is short. */
bool index_table_add(struct index_table *table, uint64_t hash, uint32_t index);

void index_table_fini(struct index_table *table);

/* A member for an array that grows and has a table of its items. */
#define INDEXED_ARRAY_OF(type)                                                                                         \
    struct {                                                                                                           \
        type *items;                                                                                                   \
        size_t count, capacity;                                                                                        \
        struct index_table index;                                                                                      \
    }

/* Appends an item to LIST, a pointer to an INDEXED_ARRAY_OF, and to its table. False, with LIST as it was, when it has
 * MAXIMUM items or memory is short. */
#define INDEXED_ARRAY_PUSH(list, maximum, hash, ...)                                                                   \
    (ARRAY_RESERVE(list, 1, maximum) && index_table_add(&(list)->index, (hash), (uint32_t)(list)->count) &&            \
     ((list)->items[(list)->count++] = (__VA_ARGS__), true))

#endif
