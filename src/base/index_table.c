/* Open addressing with linear probing. Only 32 bits of each hash are kept; they choose the place as well, so that a
 * table can move without asking for the items again.  SPDX-License-Identifier: MIT */
#include "base/index_table.h"

#include "base/array.h"
#include "base/invariant.h"

#include <stdlib.h>

enum { CAPACITY_FIRST = 64, CAPACITY_MAX = 1u << 31 };

uint32_t index_table_find(const struct index_table *table, uint64_t hash, index_equal equal, const void *context,
                          const void *key)
{
    if (table->capacity == 0) return INDEX_NONE;
    uint32_t mask = table->capacity - 1;
    uint32_t kept = index_table_fold(hash);
    for (uint32_t place = kept & mask;; place = (place + 1) & mask) {
        const struct index_slot *slot = &table->slots[place];
        if (slot->index_plus_one == 0) return INDEX_NONE;
        if (slot->hash == kept && equal(context, slot->index_plus_one - 1, key)) return slot->index_plus_one - 1;
    }
}

static void put(struct index_slot *slots, uint32_t capacity, struct index_slot item)
{
    uint32_t mask = capacity - 1;
    uint32_t place = item.hash & mask;
    while (slots[place].index_plus_one != 0) place = (place + 1) & mask;
    slots[place] = item;
}

static bool grow(struct index_table *table, uint32_t capacity)
{
    struct index_slot *slots = calloc(capacity, sizeof(*slots));
    if (!slots) return false;
    pages_prepare(slots, capacity * sizeof(*slots));
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].index_plus_one != 0) put(slots, capacity, table->slots[i]);
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

static uint32_t next_capacity(uint32_t capacity)
{
    return capacity ? capacity * 2 : CAPACITY_FIRST;
}

static uint32_t count_max(uint32_t capacity)
{
    return capacity / 4 * 3;
}

void index_table_reserve(struct index_table *table, size_t count)
{
    uint32_t capacity = table->capacity;
    while (count_max(capacity) < count && capacity < CAPACITY_MAX) capacity = next_capacity(capacity);
    if (capacity > table->capacity) (void)grow(table, capacity);
}

bool index_table_add(struct index_table *table, uint64_t hash, uint32_t index)
{
    if (table->count >= count_max(table->capacity) &&
        (table->capacity >= CAPACITY_MAX || !grow(table, next_capacity(table->capacity)))) {
        return false;
    }
    if (!INVARIANT(index != INDEX_NONE)) return false;
    put(table->slots, table->capacity,
        (struct index_slot){.hash = index_table_fold(hash), .index_plus_one = index + 1});
    table->count++;
    return true;
}

void index_table_fini(struct index_table *table)
{
    free(table->slots);
    *table = (struct index_table){0};
}
