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

/* --- cpython_place.c ---------------------------------------------------------------------------------------------- */

bool cpython_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                   const struct process_memory *memory, struct interpreted_work *work,
                   struct interpreted_place *ret_place);

#endif
