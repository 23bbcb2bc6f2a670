/* Keeps the rules of return addresses of earlier walks. A hit takes one cache line; without it, a walk reads the
 * list of modules and three dependent places of a table. In a large program these are not in the cache, and a walk
 * mostly waits for memory. The same return addresses occur in many stacks.
 *
 * An entry is one word that holds all of its address, so that any number of threads and signal handlers can read
 * and write at once: what is read was written so by one of them. It encodes the rule in numbers that mean something in
 * one list of modules only: each list has its own cache. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_RULE_CACHE_H
#define OFFBEAT_UNWIND_RULE_CACHE_H

#include "unwind/frame_table.h"

#include <stdatomic.h>

enum {
    RULE_CACHE_SLOT_BITS = 12,
    RULE_CACHE_RULE_BITS = 15,
    RULE_CACHE_MODULE_BITS = 12,
    RULE_CACHE_TAG_SHIFT = RULE_CACHE_RULE_BITS + RULE_CACHE_MODULE_BITS,
    RULE_CACHE_ADDRESS_BITS = 64 - RULE_CACHE_TAG_SHIFT + RULE_CACHE_SLOT_BITS,
};
_Static_assert(1 << RULE_CACHE_RULE_BITS == FRAME_TABLE_RULES_MAX, "a rule's number fits");

/* {0} is empty. */
struct rule_cache {
    _Atomic uint32_t first_module; /* module in which the last walk began */
    /* Parts from the low bits up: the rule, never 0; the module; the address without its lowest bits, which the slot
     * implies. */
    _Atomic uint64_t entries[1 << RULE_CACHE_SLOT_BITS];
};

static inline size_t rule_cache_slot(uint64_t address)
{
    return (address ^ address >> RULE_CACHE_SLOT_BITS) & ((1 << RULE_CACHE_SLOT_BITS) - 1);
}

/* Returns the number of the rule for ADDRESS, and sets that of its module; 0 if it is not cached. */
static inline uint32_t rule_cache_find(const struct rule_cache *cache, uint64_t address, uint32_t *ret_module)
{
    uint64_t entry = atomic_load_explicit(&cache->entries[rule_cache_slot(address)], memory_order_relaxed);
    if (entry >> RULE_CACHE_TAG_SHIFT != address >> RULE_CACHE_SLOT_BITS) return 0;
    *ret_module = entry >> RULE_CACHE_RULE_BITS & ((1 << RULE_CACHE_MODULE_BITS) - 1);
    return entry & ((1 << RULE_CACHE_RULE_BITS) - 1);
}

static inline void rule_cache_keep(struct rule_cache *cache, uint64_t address, size_t module, uint32_t rule)
{
    if (rule == 0 || module >> RULE_CACHE_MODULE_BITS != 0 || address >> RULE_CACHE_ADDRESS_BITS != 0) return;
    uint64_t entry = address >> RULE_CACHE_SLOT_BITS << RULE_CACHE_TAG_SHIFT | module << RULE_CACHE_RULE_BITS | rule;
    atomic_store_explicit(&cache->entries[rule_cache_slot(address)], entry, memory_order_relaxed);
}

#endif
