/* The call graph of a profile: what was spent in each group of frames, and in each call between two.
 *
 * It is built in one walk over the tree of stacks. A group's cum grows by the sum of a stack where the group appears
 * for the first time on the way from the root, and so does the weight of an edge: recursion counts once.
 *
 * As a tree, each node is a group under one parent: there are as many nodes as there are different ways to it.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_CALL_GRAPH_H
#define OFFBEAT_ANALYZE_CALL_GRAPH_H

#include "analyze/grouping.h"
#include "analyze/stack_tree.h"
#include "analyze/totals.h"

#define GRAPH_NONE UINT32_MAX

enum { GRAPH_EDGES_MAX = 1 << 28, GRAPH_NODES_MAX = 1 << 28 };

/* FLAT is what was spent in the node itself, CUM what was spent in it and in what it calls. The …_DIV are the sums of
 * the divisors, for a mean; else 0. */
struct call_node {
    uint32_t group;
    uint32_t parent;  /* private: of a tree, as it was built */
    uint32_t in_edge; /* edge from the parent in a tree; GRAPH_NONE for a root or in a graph */
    uint32_t place;   /* private: where it was on the way from the root when it was last entered */
    int64_t flat, cum, flat_div, cum_div;
};

struct call_edge {
    uint32_t from, to; /* nodes */
    uint32_t place;    /* private: as of a node */
    bool is_residual;  /* some of the calls go through nodes that were left out */
    bool is_inline;    /* all calls were inlined */
    bool is_removed;
    int64_t weight, weight_div;
};

/* The profile, grouping and tree of stacks that graphs are built from. */
struct graph_source {
    const struct profile *profile;
    const struct grouping *grouping;
    struct value_choice choice;
    bool is_tree;
    struct stack_tree stacks;
};

struct call_graph {
    struct call_node *nodes; /* nodes of a graph by group */
    size_t node_count, node_capacity;
    struct call_edge *edges;
    size_t edge_count, edge_capacity;
    uint32_t *listed; /* the nodes that a report shows, in its order */
    size_t listed_count;
    /* Edges of each node, the heaviest first, from IN[IN_FIRST[node]] to IN[IN_FIRST[node + 1]]. Set by
     * call_graph_link; removed edges are not among them. */
    uint32_t *in, *out, *in_first, *out_first;
    uint32_t *sorted; /* all edges that are not removed, in the same order; set by call_graph_link */
    size_t sorted_count;
    struct index_table index; /* edges by their two nodes; of a tree: nodes by parent and group */
};

/* PROFILE and GROUPING must stay as they are. False without memory. */
bool graph_source_init(struct graph_source *source, const struct profile *profile, const struct grouping *grouping,
                       struct value_choice choice, bool is_tree);
void graph_source_fini(struct graph_source *source); /* accepts {0} */

/* Builds the graph of the groups that KEPT has (by group; NULL: all), and lists the nodes that are not 0. A frame that
 * is left out makes the edge across it residual, and what was spent in it is in no node's FLAT; the sums of the
 * other nodes are the same for any KEPT. NO_EDGES: finds nodes only, but of a tree. False without memory. */
bool call_graph_build(struct call_graph *graph, struct graph_source *source, const bool *kept, bool no_edges);
void call_graph_fini(struct call_graph *graph); /* accepts {0} */

/* The marked nodes on the stack of a sample. With it, the samples of a part can be summed up one by one, in any order
 * and for as many parts as there are. */
enum { GRAPH_MARK_WORDS = 4, GRAPH_MARKS_MAX = 64 * GRAPH_MARK_WORDS };
struct stack_marks {
    uint64_t through[GRAPH_MARK_WORDS]; /* a bit for each mark */
    uint32_t flat_mark;                 /* the mark of the node that a sample counts for as FLAT, plus one; 0: none */
};
struct graph_marks {
    uint32_t *mark_of_node; /* mark of each node, plus one; 0: none */
    const bool *is_wanted;  /* samples whose marks are wanted */
    struct stack_marks
        *items; /* marks on the way to each run of the tree of stacks; set for the runs of wanted samples only */
};
/* Sets the ITEMS of MARKS, which has room for all runs, for GRAPH, which was built from SOURCE and KEPT. False without
 * memory. */
bool call_graph_mark(struct call_graph *graph, struct graph_source *source, const bool *kept,
                     const struct graph_marks *marks);

/* Sets IN and OUT: sorts edges by falling weight, then by the printable names of their ends, or keeps their order.
 * False without memory. */
bool call_graph_link(struct call_graph *graph, const struct graph_source *source, bool keeps_order);

static inline const struct group *group_of_node(const struct call_graph *graph, const struct graph_source *source,
                                                uint32_t node)
{
    return &source->grouping->items[graph->nodes[node].group];
}

#endif
