/* In which order a report shows the nodes of a call graph.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GRAPH_ORDER_H
#define OFFBEAT_ANALYZE_GRAPH_ORDER_H

#include "analyze/call_graph.h"

enum node_order {
    ORDER_FLAT,
    ORDER_CUM,
    /* Nodes with a large self value, and nodes where paths meet or split, come before nodes with one caller and one
     * callee: by cum times the entropy of the edges, plus flat. The graph must be linked. */
    ORDER_ENTROPY,
};

/* Sorts the listed nodes: the larger first, whatever the sign, then by printable name. False without memory. */
bool graph_sort(struct call_graph *graph, const struct graph_source *source, enum node_order order);

#endif
