/* Functions with the costs of their code and the calls between them, as callgrind and other tracers sum them up,
 * and the stacks that they most likely came from.
 *
 * Such a file does not say which callers of a function its cost belongs to. Each stack gets its share of a function's
 * cost in proportion to what the calls along it cost. The cost of each place is exact. What a function costs with all
 * that it calls is exact, too, but for rounding, unless it is part of a recursion or of more stacks than are made.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_COST_GRAPH_H
#define OFFBEAT_FORMAT_COMMON_COST_GRAPH_H

#include "profile/profile.h"

enum {
    COST_GRAPH_STACKS_FREE = 1 << 16,  /* stacks of any file, and one more for 16 bytes of it */
    COST_GRAPH_SAMPLES_FREE = 1 << 18, /* samples beyond one for each place, and one more for 16 bytes */
    COST_GRAPH_VALUES_FREE = 4 << 20,  /* values of all samples, and one more for each byte */
    COST_GRAPH_STEPS_FREE = 4 << 20,   /* calls that are followed, and 4 more for each byte */
    COST_GRAPH_DEPTH_MAX = 512,        /* frames of a stack */
};

/* A function of a thread. */
struct cost_node {
    struct thread_id thread;
    struct mapping_id mapping;
    struct function_id function;
};

/* Cost of the code of a node at one place. Values that are missing are zero. */
struct place_cost {
    uint32_t node;
    struct location_id place;
    size_t value_first;
    uint32_t value_count;
};

struct call_cost {
    uint32_t caller, callee;
    struct location_id place; /* place of the call */
    double weight;            /* cost of the callee in the first value type */
};

/* clang-format off */
struct cost_graph {
    struct profile *profile;
    struct { struct cost_node *items; size_t count, capacity; struct index_table index; } nodes;
    struct { struct place_cost *items; size_t count, capacity; } places;
    struct { struct call_cost *items; size_t count, capacity; } calls;
    struct { int64_t *items; size_t count, capacity; } values;
    bool failed; /* memory was short */
};
/* clang-format on */

/* The value types of PROFILE must be known when costs are added. */
void cost_graph_init(struct cost_graph *graph, struct profile *profile);
void cost_graph_fini(struct cost_graph *graph);

uint32_t cost_graph_node(struct cost_graph *graph, const struct cost_node *node); /* INDEX_NONE without memory */
void cost_graph_add_cost(struct cost_graph *graph, uint32_t node, struct location_id place, const int64_t *values,
                         uint32_t value_count);
void cost_graph_add_call(struct cost_graph *graph, const struct call_cost *call);

/* Adds the samples to the profile, and a comment that says that their stacks are estimated if there are calls.
 * SOURCE_BYTES is the size of the file. */
enum status cost_graph_add_samples(struct cost_graph *graph, size_t source_bytes, struct error *error);

#endif
