/* Shared parts of rollup.c, which stores rollups, and rollup_query.c, which reads them.  SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_STORE_ROLLUP_H
#define OFFBEAT_STORE_ROLLUP_H

#include "store/store_private.h"

/* The key of a rollup, and the time range that it covers. CHUNK: its row, or 0 above LEVEL_CHUNK. */
struct rollup_row {
    int64_t group;
    int level;
    uint64_t start_ns;
    int64_t chunk;
    uint64_t first_ns, last_ns;
};

/* The start of the 10 minutes, hour or day that has TIME_NS, and its end. */
uint64_t rollup_level_start(int level, uint64_t time_ns);
uint64_t rollup_level_end(int level, uint64_t start_ns);

/* VALUE_COUNT values for each node of a dictionary. {0} is a valid empty one. */
struct rollup_values {
    uint64_t *values;
    size_t node_count, value_count;
};

void rollup_values_fini(struct rollup_values *rollup);
/* Room for NODE_COUNT nodes at least; false without memory, or if the rollup has another number of values. */
bool rollup_room(struct rollup_values *rollup, size_t node_count, size_t value_count);
/* False if the bytes are damaged or have another number of values, or without memory. */
bool rollup_add_entries(struct rollup_values *rollup, struct slice bytes);

enum status rollup_read_dictionary(sqlite3 *db, int64_t id, bool is_indexed, struct stack_dictionary *dictionary,
                                   uint64_t *ret_segments, struct error *error);

#endif
