/* The values of a sum by stack, and their bytes: (distance to the stack before, values), in LEB128. Stacks are numbers
 * of a stack dictionary.
 *
 * Values that grow since a start (store_rollup.running_count) have three numbers in a sum of several chunks: that of
 * the first chunk, the increases between the chunks, and that of the last one. Two such sums, one after the other, make
 * one sum: between them is an increase, too.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_ROLLUP_VALUES_H
#define OFFBEAT_STORE_ROLLUP_VALUES_H

#include "store/stack_dictionary.h"

enum {
    LEVEL_CHUNK,
    LEVEL_10_MINUTES,
    LEVEL_HOUR,
    LEVEL_DAY,
    LEVELS,
};

/* The start of the 10 minutes, hour or day that has TIME_NS, and its end. */
uint64_t rollup_level_start(int level, uint64_t time_ns);
uint64_t rollup_level_end(int level, uint64_t start_ns);

struct running_values;

/* VALUE_COUNT values for each node of a dictionary. {0} is a valid empty one. */
struct rollup_values {
    uint64_t *values;
    size_t node_count, value_count;
    struct running_values *running; /* NULL: no values grow since a start */
};

void rollup_values_fini(struct rollup_values *rollup);
/* False if the bytes are damaged or have another number of values, or without memory. Values since a start are to be
 * added in the order of time. */
bool rollup_add_entries(struct rollup_values *rollup, struct slice bytes);
void rollup_encode_values(const struct rollup_values *rollup, struct buffer *out);
/* Appends the entries of ROLLUP, whose nodes have the numbers NODES in their dictionary. False without memory. */
bool rollup_encode_entries(const struct store_rollup *rollup, const uint32_t *nodes, struct buffer *out);

/* Calls VISIT with the stacks of DICTIONARY that have VALUES; WHOLE is the header, the labels and the times. *CONTINUES
 * is set to what VISIT returns. STATUS_MALFORMED if VALUES has stacks that DICTIONARY has not. */
struct rollup_receiver {
    store_visit_rollup *visit;
    void *context;
    bool continues;
};
enum status rollup_give(const struct stack_dictionary *dictionary, const struct rollup_values *values,
                        const struct store_rollup *whole, struct rollup_receiver *receiver, struct error *error);

#endif
