/* Memory of a process that runs an interpreter: this process, another one, or stored pages of a test.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_PROCESS_MEMORY_H
#define OFFBEAT_INTERPRETERS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_PIECES_MAX = 256 };

/* The kernel's struct iovec. */
struct memory_range {
    uint64_t address, size;
};

/* Pieces of memory that one call copies: FROM in the process, TO in this one. */
struct memory_pieces {
    size_t count;
    struct memory_range from[MEMORY_PIECES_MAX], to[MEMORY_PIECES_MAX];
};

/* GATHER copies all PIECES, or returns false if one of them cannot be read. Signal-safe where the memory is that of the
 * interrupted thread. */
struct process_memory {
    bool (*gather)(const struct process_memory *memory, const struct memory_pieces *pieces);
    /* Returns memory that was copied before, in place; NULL: it was not. May be NULL itself. */
    const uint8_t *(*peek)(const struct process_memory *memory, uint64_t address, size_t size);
    void *context;
    bool is_part; /* true if it is a copy that may lack the rest of a stack */
};

static inline void memory_pieces_add(struct memory_pieces *pieces, uint64_t address, void *bytes, size_t size)
{
    pieces->from[pieces->count] = (struct memory_range){address, size};
    pieces->to[pieces->count] = (struct memory_range){(uint64_t)(uintptr_t)bytes, size};
    pieces->count++;
}

/* Copies SIZE bytes at ADDRESS with the help of PIECES, whose content is replaced. */
static inline bool process_memory_read(const struct process_memory *memory, struct memory_pieces *pieces,
                                       uint64_t address, void *bytes, size_t size)
{
    pieces->count = 0;
    memory_pieces_add(pieces, address, bytes, size);
    return memory->gather(memory, pieces);
}

#endif
