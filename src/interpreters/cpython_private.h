/* Shared by the files of CPython. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_CPYTHON_PRIVATE_H
#define OFFBEAT_INTERPRETERS_CPYTHON_PRIVATE_H

#include "interpreters/cpython_offsets.h"

/* --- cpython_stack.c: runs in the signal handler ------------------------------------------------------------------ */

enum interpreted_result cpython_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                     const struct process_memory *memory, struct interpreted_work *work,
                                     struct interpreted_stack *ret_stack);

struct interpreter_chain cpython_chain(const struct interpreter_state *state);

/* Computes the keys of COUNT frames. Returns false if the code object of one is none. Signal-safe. */
bool cpython_read_keys(const struct interpreter_state *state, const struct process_memory *memory,
                       struct interpreted_work *work, struct interpreted_frame *frames, size_t count);

/* Returns the bytes of a character of a string with STATE; 0: it is none. */
static inline unsigned cpython_string_width(uint32_t state)
{
    enum { KIND_SHIFT = 2, KIND_MASK = 7, COMPACT = 1 << 5 };
    unsigned width = state >> KIND_SHIFT & KIND_MASK;
    bool is_one = width == 1 || width == 2 || width == 4;
    return is_one && (state & COMPACT) ? width : 0;
}

/* Returns the offset of the first character of a string with STATE. */
static inline uint32_t cpython_string_text(const struct cpython_offsets *offsets, uint32_t state)
{
    enum { ASCII = 1 << 6 };
    return state & ASCII ? offsets->string.ascii : offsets->string.other;
}

/* --- cpython_place.c ---------------------------------------------------------------------------------------------- */

bool cpython_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                   const struct process_memory *memory, struct interpreted_work *work,
                   struct interpreted_place *ret_place);

#endif
