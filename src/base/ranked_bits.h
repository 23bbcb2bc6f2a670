/* A set of numbers that knows of each how many come before it: the place of something in an array that has an item for
 * each number of the set and for no other. It takes two bits for each number that could be in it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_RANKED_BITS_H
#define OFFBEAT_BASE_RANKED_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct ranked_block {
    uint64_t bits;
    uint32_t before; /* the number of members before these 64 */
};

/* {0} is good for ranked_bits_fini only. */
struct ranked_bits {
    struct ranked_block *blocks;
    size_t block_count;
};

/* Makes SET empty, with room for numbers below LIMIT. False without memory. */
static inline bool ranked_bits_init(struct ranked_bits *set, size_t limit)
{
    set->block_count = limit / 64 + 1;
    set->blocks = calloc(set->block_count, sizeof(*set->blocks));
    return set->blocks != NULL;
}

static inline void ranked_bits_fini(struct ranked_bits *set)
{
    free(set->blocks);
    *set = (struct ranked_bits){0};
}

static inline void ranked_bits_add(struct ranked_bits *set, uint32_t number)
{
    set->blocks[number / 64].bits |= (uint64_t)1 << number % 64;
}

static inline bool ranked_bits_has(const struct ranked_bits *set, uint32_t number)
{
    return set->blocks[number / 64].bits >> number % 64 & 1;
}

/* Counts the members, which ranked_bits_rank needs: call it after the last addition. Returns their number. */
static inline uint32_t ranked_bits_count(struct ranked_bits *set)
{
    uint32_t count = 0;
    for (size_t i = 0; i < set->block_count; i++) {
        set->blocks[i].before = count;
        count += (uint32_t)__builtin_popcountll(set->blocks[i].bits);
    }
    return count;
}

/* Returns how many members are less than NUMBER. */
static inline uint32_t ranked_bits_rank(const struct ranked_bits *set, uint32_t number)
{
    const struct ranked_block *block = &set->blocks[number / 64];
    uint64_t lower = block->bits & (((uint64_t)1 << number % 64) - 1);
    return block->before + (uint32_t)__builtin_popcountll(lower);
}

static inline void ranked_bits_prefetch(const struct ranked_bits *set, uint32_t number)
{
    __builtin_prefetch(&set->blocks[number / 64]);
}

#endif
