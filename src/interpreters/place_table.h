/* Numbers for the places in an interpreted program, each of which is read and told once.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_PLACE_TABLE_H
#define OFFBEAT_INTERPRETERS_PLACE_TABLE_H

#include "interpreters/interpreter.h"

enum { PLACE_TABLE_ENTRIES_MAX = 1 << 20 };

/* Receives what is new. Numbers count up from 0. */
struct place_listener {
    void (*function)(void *context, uint32_t number, const struct interpreted_place *place);
    void (*line)(void *context, uint32_t number, uint32_t function, uint32_t line);
    void *context;
};

/* {0} is empty. */
struct place_table {
    struct place_entry *entries; /* open addressing */
    size_t capacity, count;
    uint32_t function_count, line_count;
};

/* Returns the number of the place of FRAME, which is told to LISTENER if it is new. A code object that is gone
 * has the place of a function "[gone]", the first one; so have all new ones of a full table. */
uint32_t place_table_number(struct place_table *table, const struct interpreter_state *state,
                            const struct interpreted_frame *frame, const struct process_memory *memory,
                            struct interpreted_work *work, const struct place_listener *listener, bool *ret_is_gone);

/* Returns the number of a place that is in no file and is called NAME. */
uint32_t place_table_named(struct place_table *table, const char *name, const struct place_listener *listener);

void place_table_clear(struct place_table *table);

#endif
