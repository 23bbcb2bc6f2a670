/* Writes the functions of an interpreted program to a recording, each of them and each of its lines once.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RECORDED_PLACES_H
#define OFFBEAT_SAMPLER_RECORDED_PLACES_H

#include "interpreters/place_table.h"
#include "sampler/record/recording_writer.h"

/* Writes which interpreter was found, unless ATTACHED says that there is none yet. */
void recorded_interpreter(struct recording_writer *writer, enum interpreter_attached attached,
                          const struct interpreter_state *state);

/* The needs of a search for places. */
struct recorded_places {
    struct recording_writer *writer;
    struct place_table *table; /* places that the recording has */
    const struct interpreter_state *state;
    const struct process_memory *memory;
    struct interpreted_work *work;
};

/* Replaces frames of STACK in COUNT ADDRESSES, where frame I is RECORDING_PLACES + I, by numbers of places. Returns how
 * many of them were gone before they had a name. */
size_t recorded_places_number(const struct recorded_places *places, const struct interpreted_stack *stack,
                              uint64_t *addresses, size_t count);

/* Adds to COUNT ADDRESSES with places, which have room for MAX, that the innermost function waits for the interpreter's
 * lock. Returns the new count. */
size_t recorded_places_add_wait(const struct recorded_places *places, uint64_t *addresses, size_t count, size_t max);

/* Returns true if PATH is that of the C library. */
bool recorded_path_is_libc(const char *path);

#endif
