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
    recalled->used_from[at] = (uint16_t)part.size;
    recalled->used_to[at] = 0;
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
        uint16_t end = (uint16_t)(skipped + part.size);
        if (recalled->used_from[at] > skipped) recalled->used_from[at] = (uint16_t)skipped;
        if (recalled->used_to[at] < end) recalled->used_to[at] = end;
        recalled->next = at;
        return recalled->bytes + recalled->starts[at] + skipped;
    }
    return NULL;
}

/* Copies those of PIECES that there are copies of. Returns false if some are missing. */
static bool copy_pieces(struct recalled_memory *recalled, const struct memory_pieces *pieces)
{
    bool is_whole = true;
    for (size_t i = 0; i < pieces->count; i++) {
        const uint8_t *copy = find_copy(recalled, pieces->from[i]);
        is_whole &= copy != NULL;
        if (copy) copy_bytes((uint8_t *)(uintptr_t)pieces->to[i].address, copy, pieces->from[i].size);
    }
    return is_whole;
}

/* Copies PIECES. Missing ones become parts, so that all of them go to one place, as far as there is room. */
static bool gather(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    struct recalled_memory *recalled = memory->context;
    struct memory_pieces *missing = &recalled->pieces;
    if (copy_pieces(recalled, pieces)) return true;
    uint32_t count = recalled->now.count, filled = recalled->filled;
    missing->count = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        if (find_copy(recalled, pieces->from[i])) continue;
        uint8_t *to = (uint8_t *)(uintptr_t)pieces->to[i].address;
        if (add_part(recalled, pieces->from[i])) to = recalled->bytes + recalled->starts[recalled->now.count - 1];
        memory_pieces_add(missing, pieces->from[i].address, to, pieces->from[i].size);
    }
    if (recalled->source->gather(recalled->source, missing)) {
        (void)copy_pieces(recalled, pieces);
        return true;
    }
    recalled->now.count = count;
    recalled->filled = filled;
    return false;
}

static const uint8_t *peek(const struct process_memory *memory, uint64_t address, size_t size)
{
    return find_copy(memory->context, (struct memory_range){address, size});
}

const struct process_memory *recalled_memory_begin(struct recalled_memory *recalled,
                                                   const struct process_memory *source,
                                                   const struct recalled_parts *parts)
{
    struct memory_pieces *pieces = &recalled->pieces;
    recalled->memory =
        (struct process_memory){.gather = gather, .peek = peek, .context = recalled, .is_part = source->is_part};
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

/* Notes what was taken, with a little before and behind it, where the next frames will be. Objects that are far from
 * each other would have too much of that. */
void recalled_memory_end(const struct recalled_memory *recalled, struct recalled_parts *parts)
{
    enum { MARGIN = 512 };
    uint64_t margin = recalled->filled < RECALLED_BYTES / 2 ? MARGIN : 0;
    parts->count = 0;
    for (uint32_t i = 0; i < recalled->now.count; i++) {
        struct memory_range part = recalled->now.parts[i];
        uint64_t from = recalled->used_from[i], to = recalled->used_to[i];
        if (to == 0) continue;
        from -= from < margin ? from : margin;
        to += part.size - to < margin ? part.size - to : margin;
        parts->parts[parts->count++] = (struct memory_range){part.address + from, to - from};
    }
}
