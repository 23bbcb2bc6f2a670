/* Runs in the signal handler: no libc. SPDX-License-Identifier: MIT */
#include "interpreters/recalled_memory.h"

/* memcpy may be a sanitizer's. */
static void copy_bytes(uint8_t *to, const uint8_t *from, uint64_t size)
{
    uint64_t at = 0;
    for (; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t))
        __builtin_memcpy(to + at, from + at, sizeof(uint64_t));
    for (; at < size; at++) to[at] = from[at];
}

/* Adds a part, whose copy is to be filled. Returns false if there is no room. */
static bool add_part(struct recalled_memory *recalled, struct memory_range part)
{
    uint32_t at = recalled->now.count;
    if (at == RECALLED_PARTS_MAX || part.size > RECALLED_BYTES - recalled->filled) return false;
    recalled->now.parts[at] = part;
    recalled->starts[at] = (uint16_t)recalled->filled;
    recalled->is_used[at] = false;
    recalled->filled += (uint32_t)part.size;
    recalled->now.count++;
    return true;
}

/* Returns the copy of PART; NULL: there is none. Parts are mostly asked for in the order of the last time. */
static const uint8_t *find_copy(struct recalled_memory *recalled, struct memory_range part)
{
    uint32_t count = recalled->now.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = recalled->next + i < count ? recalled->next + i : recalled->next + i - count;
        uint64_t skipped = part.address - recalled->now.parts[at].address;
        if (skipped > recalled->now.parts[at].size || part.size > recalled->now.parts[at].size - skipped) continue;
        recalled->is_used[at] = true;
        recalled->next = at;
        return recalled->bytes + recalled->starts[at] + skipped;
    }
    return NULL;
}

static bool gather(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    struct recalled_memory *recalled = memory->context;
    struct memory_pieces *missing = &recalled->pieces;
    missing->count = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)pieces->to[i].address;
        const uint8_t *copy = find_copy(recalled, pieces->from[i]);
        if (copy)
            copy_bytes(to, copy, pieces->from[i].size);
        else
            memory_pieces_add(missing, pieces->from[i].address, to, pieces->from[i].size);
    }
    if (missing->count == 0) return true;
    if (!recalled->source->gather(recalled->source, missing)) return false;
    for (size_t i = 0; i < missing->count; i++) {
        const uint8_t *from = (const uint8_t *)(uintptr_t)missing->to[i].address;
        if (find_copy(recalled, missing->from[i]) || !add_part(recalled, missing->from[i])) continue;
        uint32_t at = recalled->now.count - 1;
        copy_bytes(recalled->bytes + recalled->starts[at], from, missing->from[i].size);
        recalled->is_used[at] = true;
    }
    return true;
}

const struct process_memory *recalled_memory_begin(struct recalled_memory *recalled,
                                                   const struct process_memory *source,
                                                   const struct recalled_parts *parts)
{
    struct memory_pieces *pieces = &recalled->pieces;
    recalled->memory = (struct process_memory){.gather = gather, .context = recalled, .is_part = source->is_part};
    recalled->source = source;
    recalled->now.count = recalled->next = recalled->filled = 0;
    pieces->count = 0;
    for (uint32_t i = 0; i < parts->count && i < RECALLED_PARTS_MAX; i++) {
        if (!add_part(recalled, parts->parts[i])) break;
        memory_pieces_add(pieces, parts->parts[i].address, recalled->bytes + recalled->starts[i], parts->parts[i].size);
    }
    if (pieces->count > 0 && !source->gather(source, pieces)) recalled->now.count = recalled->filled = 0;
    return &recalled->memory;
}

void recalled_memory_end(const struct recalled_memory *recalled, struct recalled_parts *parts)
{
    parts->count = 0;
    for (uint32_t i = 0; i < recalled->now.count; i++) {
        if (recalled->is_used[i]) parts->parts[parts->count++] = recalled->now.parts[i];
    }
}
