/* The part of a call graph that a report has room for.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GRAPH_TRIM_H
#define OFFBEAT_ANALYZE_GRAPH_TRIM_H

#include "analyze/graph_order.h"
#include "analyze/graph_tags.h"

struct trim_options {
    size_t node_count;     /* greatest number of nodes; 0: all */
    double node_fraction;  /* nodes whose cum is below this part of the sum of all flat are dropped */
    double edge_fraction;  /* the same for edges */
    enum node_order order; /* ORDER_ENTROPY is for drawings: labels take room, and redundant edges go */
    bool keeps_edge_order; /* edges stay as they were found: for reports that show none; not with ORDER_ENTROPY */
    bool drops_negative;   /* omits nodes that have less than in the base of a comparison */
    const char *tag_unit;  /* unit of the numbers of labels in a drawing */
};

/* Filled by trim_graph; all of it is freed by trimmed_graph_fini. */
struct trimmed_graph {
    struct call_graph graph;             /* linked; its listed nodes in order */
    struct graph_tags tags;              /* labels of a drawing */
    bool *kept;                          /* groups that are kept, as call_graph_build takes them; NULL: all */
    size_t original_count;               /* nodes before NODE_COUNT counted */
    size_t dropped_nodes, dropped_edges; /* numbers dropped by the fractions */
};

/* A graph is built again from all samples whenever nodes are dropped, so that the edges across those are there. */
enum status trim_graph(struct trimmed_graph *trimmed, struct graph_source *source, const struct trim_options *options,
                       struct error *error);
void trimmed_graph_fini(struct trimmed_graph *trimmed); /* accepts {0} */

/* Leaves of a tree only the nodes of IS_KEPT (by node): those below a dropped one become children of the one above.
 * What was dropped is in no node's flat. False without memory. */
bool call_tree_trim(struct call_graph *tree, const bool *is_kept);

#endif
