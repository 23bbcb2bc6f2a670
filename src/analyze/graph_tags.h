/* The labels of the samples at the nodes of a call graph: which parts of a node have which labels.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GRAPH_TAGS_H
#define OFFBEAT_ANALYZE_GRAPH_TAGS_H

#include "analyze/call_graph.h"

enum {
    GRAPH_TAGS_MAX = 4 << 20, /* the rest is not shown, and counted */
    NODE_TAGS_SHOWN = 4,      /* greatest number of each kind */
};

struct node_tag {
    uint32_t node;
    uint32_t texts; /* the texts of the samples, joined: a string of GRAPH_TAGS; 0: they have none */
    uint32_t name;  /* printed form of a number, a string of GRAPH_TAGS; 0: the tag is that of the texts */
    int64_t number;
    int64_t flat, cum, flat_div, cum_div;
};

struct graph_tags {
    struct node_tag *items; /* sorted by node */
    size_t count, capacity;
    size_t left_out;
    uint32_t *first;        /* tags of each node are the items from FIRST[node] to FIRST[node + 1] */
    struct profile strings; /* private: where NAME and TEXTS are kept */
    char unit[64];          /* unit of the numbers: that of the label "bytes" */
};

struct graph_tag_options {
    const char *unit; /* unit of printed numbers, as for unit_scale */
    size_t node_max;  /* greatest number of listed nodes, the first ones */
    int64_t cutoff;   /* tags whose flat and cum are both below it are left out */
};

/* The tags of the listed nodes of GRAPH, which was built from SOURCE and KEPT. Strings are "key:value", joined by "\n"
 * (two characters). Numbers count only under the key "bytes", as in pprof. */
enum status graph_tags_init(struct graph_tags *tags, struct call_graph *graph, struct graph_source *source,
                            const bool *kept, const struct graph_tag_options *options, struct error *error);
void graph_tags_fini(struct graph_tags *tags); /* accepts {0} */

/* Returns the number of tags of NODE with a self value. */
size_t graph_tags_count_flat(const struct graph_tags *tags, uint32_t node);

static inline const char *graph_tag_string(const struct graph_tags *tags, uint32_t string)
{
    return profile_c_string(&tags->strings, (struct string_id){string});
}

#endif
