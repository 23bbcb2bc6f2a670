/* Reads memory of a process block by block. Signal-safe. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_BLOCK_VIEW_H
#define OFFBEAT_INTERPRETERS_BLOCK_VIEW_H

#include "interpreters/interpreter.h"

/* Forgets what was read before. */
void view_begin(struct interpreted_work *work);

/* Returns SIZE bytes at ADDRESS, copied with the rest of their page, or what is before them if they end in the next
 * one: frames of callers are there. NULL: they cannot be read. */
const uint8_t *view_memory(struct interpreted_work *work, const struct process_memory *memory, uint64_t address,
                           size_t size);

static inline uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
    uint64_t word;
    __builtin_memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

/* Adds VALUE to the hash KEY. */
static inline uint64_t mix_key(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0x9E3779B97F4A7C15u;
    return key ^ key >> 29;
}

#endif
