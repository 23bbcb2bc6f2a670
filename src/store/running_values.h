/* Values of a sum that grow since the start of a process: the first ones, the last ones, and the increases between the
 * chunks. A chunk in which stacks have less than in the one before it is of a restarted process, and counts as it is.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_RUNNING_VALUES_H
#define OFFBEAT_STORE_RUNNING_VALUES_H

#include "store/store.h"

/* The numbers of one node of a row that is added. */
struct running_entry {
    uint32_t node;
    uint64_t first[STORE_ROLLUP_VALUES_MAX], increase[STORE_ROLLUP_VALUES_MAX], last[STORE_ROLLUP_VALUES_MAX];
};

/* COUNT values of each of NODE_COUNT nodes. {0} with a COUNT is a valid empty one. */
struct running_values {
    size_t count, node_count;
    uint64_t *first, *last;
    uint32_t *used; /* nodes with last values */
    size_t used_count, used_capacity;
    uint64_t last_sums[STORE_ROLLUP_VALUES_MAX];
    uint64_t restart_count;
    bool has_any; /* something was added */
    struct running_entry *entries;
    size_t entry_count, entry_capacity;
};

/* Appends an entry of the row that is read, or adds its values to the entry before if that has the same node. Nodes
 * come in order. False without memory. */
bool running_values_note(struct running_values *running, const struct running_entry *entry);
/* Adds the noted entries as the row that is next in time, in which RESTART_COUNT restarts were, and its increases to
 * SUMS: VALUE_COUNT values for each node, which has room for all nodes. False without memory. */
bool running_values_add(struct running_values *running, uint64_t *sums, size_t value_count, uint64_t restart_count);
void running_values_fini(struct running_values *running);

#endif
