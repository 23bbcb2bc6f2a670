/* What sum.c, which stores sums, and sum_query.c, which reads them, share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_SUM_H
#define OFFBEAT_STORE_SUM_H

#include "store/store_private.h"

/* The key of a sum, and the time range that it covers. CHUNK: its row, or 0 above LEVEL_CHUNK. */
struct sum_row {
    int64_t group;
    int level;
    uint64_t start_ns;
    int64_t chunk;
    uint64_t first_ns, last_ns;
};

/* The start of the 10 minutes, hour or day that has TIME_NS, and its end. */
uint64_t sum_level_start(int level, uint64_t time_ns);
uint64_t sum_level_end(int level, uint64_t start_ns);

/* VALUE_COUNT values for each node of a dictionary. {0} is a valid empty one. */
struct sum_values {
    uint64_t *values;
    size_t node_count, value_count;
};

void sum_values_fini(struct sum_values *sum);
/* Room for NODE_COUNT nodes at least; false without memory, or if the sum has another number of values. */
bool sum_room(struct sum_values *sum, size_t node_count, size_t value_count);
/* False if the bytes are damaged or have another number of values, or without memory. */
bool sum_add_entries(struct sum_values *sum, struct slice bytes);

enum status sum_read_dictionary(sqlite3 *db, int64_t id, bool is_indexed, struct stack_dictionary *dictionary,
                                uint64_t *ret_segments, struct error *error);

#endif
