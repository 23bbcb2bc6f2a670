/* Parents have lower numbers than their children, so one pass finds for each node the nearest one above that stays.
 * SPDX-License-Identifier: MIT */
#include "analyze/graph_trim.h"

#include <stdlib.h>

/* The way to a node from the nearest node above that stays. */
struct way {
    uint32_t from; /* GRAPH_NONE: nothing above stays */
    bool is_residual, is_inline;
};

/* An edge that was dropped before makes its node a root. */
static struct way way_to(const struct call_graph *tree, const bool *is_kept, const struct way *ways, uint32_t node)
{
    uint32_t index = tree->nodes[node].in_edge;
    if (index == GRAPH_NONE || tree->edges[index].is_removed) return (struct way){.from = GRAPH_NONE};
    const struct call_edge *edge = &tree->edges[index];
    struct way way = {.from = edge->from, .is_residual = edge->is_residual, .is_inline = edge->is_inline};
    if (is_kept[edge->from]) return way;
    const struct way *above = &ways[edge->from];
    return (struct way){.from = above->from, .is_residual = true, .is_inline = way.is_inline && above->is_inline};
}

bool call_tree_trim(struct call_graph *tree, const bool *is_kept)
{
    struct way *ways = calloc(tree->node_count + 1, sizeof(*ways));
    if (!ways) return false;
    for (uint32_t i = 0; i < tree->node_count; i++) ways[i] = way_to(tree, is_kept, ways, i);
    for (uint32_t i = 0; i < tree->node_count; i++) {
        if (tree->nodes[i].in_edge == GRAPH_NONE) continue;
        struct call_edge *edge = &tree->edges[tree->nodes[i].in_edge];
        edge->is_removed |= !is_kept[i] || ways[i].from == GRAPH_NONE;
        if (edge->is_removed) continue;
        edge->from = ways[i].from;
        edge->is_residual = ways[i].is_residual;
        edge->is_inline = ways[i].is_inline;
    }
    size_t listed = 0;
    for (size_t i = 0; i < tree->listed_count; i++) {
        if (is_kept[tree->listed[i]]) tree->listed[listed++] = tree->listed[i];
    }
    tree->listed_count = listed;
    free(ways);
    return true;
}
