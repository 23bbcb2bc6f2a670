/* Memory of a process in a file: what reading a stack has read there. The file has the image, the number of pieces, the
 * pieces, and the stack that was seen, as text. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_STORED_MEMORY_H
#define OFFBEAT_TEST_STORED_MEMORY_H

#include "interpreters/interpreter.h"

#include <stdio.h>
#include <string.h>

enum { STORED_PIECES_MAX = 4096, STORED_BYTES_MAX = 1 << 20 };

struct stored_piece {
    uint64_t address, size, offset; /* place of its bytes in the file */
};

struct stored_header {
    struct interpreter_image image;
    uint64_t piece_count;
};

/* Writes the stack of each thread of STATE, one frame a line. */
static inline void write_stacks(FILE *out, const struct interpreter_state *state, const struct process_memory *memory)
{
    static struct interpreted_work work;
    static struct interpreted_stack stack;
    static struct interpreted_place place;
    struct interpreted_thread threads[8];
    int tids[8];
    size_t count = state->interpreter->threads(state, memory, &work, threads, tids, 8);
    for (size_t i = 0; i < count; i++) {
        enum interpreted_result result = state->interpreter->read(state, threads[i], memory, &work, &stack);
        fprintf(out, "thread %zu: %u frames, result %d\n", i, result == INTERPRETED_READ ? stack.count : 0, result);
        for (uint32_t j = 0; result == INTERPRETED_READ && j < stack.count; j++) {
            if (!state->interpreter->place(state, &stack.frames[j], memory, &work, &place)) continue;
            const char *name = strrchr(place.file, '/');
            fprintf(out, "%s %s:%u from %u%s\n", place.function, name ? name + 1 : place.file, place.line,
                    place.first_line, stack.frames[j].record ? " record" : "");
        }
    }
}

#endif
