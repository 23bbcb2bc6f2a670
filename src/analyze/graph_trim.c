/* SPDX-License-Identifier: MIT */
#include "analyze/graph_trim.h"

#include <math.h>
#include <stdlib.h>

/* Steps that the search for redundant edges may take in all; past them, the rest stays. */
enum { REDUNDANCY_STEPS_MAX = 1 << 26 };

struct trim {
    struct trimmed_graph *trimmed;
    struct graph_source *source;
    const struct trim_options *options;
    int64_t node_cutoff, edge_cutoff;
    struct error *error;
};

static enum status without_memory(const struct trim *trim)
{
    return error_set(trim->error, STATUS_NO_MEMORY, 0, "not enough memory for the call graph");
}

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

static void drop_negative(struct call_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->listed_count; i++) {
        const struct call_node *node = &graph->nodes[graph->listed[i]];
        bool is_negative = node->flat < 0 || (node->flat == 0 && node->cum < 0);
        if (!is_negative) graph->listed[kept++] = graph->listed[i];
    }
    graph->listed_count = kept;
}

static bool build(struct trim *trim, bool no_edges)
{
    struct call_graph *graph = &trim->trimmed->graph;
    call_graph_fini(graph);
    if (!call_graph_build(graph, trim->source, trim->trimmed->kept, no_edges)) return false;
    if (trim->options->drops_negative) drop_negative(graph);
    return true;
}

/* Leaves the first COUNT listed nodes only. */
static bool keep_first(struct trim *trim, size_t count)
{
    struct call_graph *graph = &trim->trimmed->graph;
    bool is_tree = trim->source->is_tree;
    bool *kept = calloc((is_tree ? graph->node_count : trim->source->grouping->count) + 1, sizeof(*kept));
    if (!kept) return false;
    for (size_t i = 0; i < count; i++) kept[is_tree ? graph->listed[i] : graph->nodes[graph->listed[i]].group] = true;
    if (is_tree) {
        bool is_done = call_tree_trim(graph, kept);
        free(kept);
        return is_done;
    }
    free(trim->trimmed->kept);
    trim->trimmed->kept = kept;
    return build(trim, false);
}

/* Moves the large ones to the front of the list; returns how many there are. */
static size_t find_large_nodes(struct trim *trim)
{
    struct call_graph *graph = &trim->trimmed->graph;
    size_t large = 0;
    for (size_t i = 0; i < graph->listed_count; i++) {
        uint32_t node = graph->listed[i];
        if (magnitude_of(graph->nodes[node].cum) < trim->node_cutoff) continue;
        graph->listed[i] = graph->listed[large];
        graph->listed[large++] = node;
    }
    trim->trimmed->dropped_nodes = graph->listed_count - large;
    trim->trimmed->original_count = large;
    return large;
}

/* --- Edges -------------------------------------------------------------------------------------------------------- */

/* Drops redundant edges into listed nodes. */
static size_t drop_small_edges(struct trim *trim)
{
    struct call_graph *graph = &trim->trimmed->graph;
    size_t dropped = 0;
    for (size_t i = 0; i < graph->listed_count; i++) {
        uint32_t node = graph->listed[i];
        for (uint32_t e = graph->in_first[node]; e < graph->in_first[node + 1]; e++) {
            struct call_edge *edge = &graph->edges[graph->in[e]];
            if (edge->is_removed || magnitude_of(edge->weight) >= trim->edge_cutoff) continue;
            edge->is_removed = true;
            dropped++;
        }
    }
    return dropped;
}

struct search {
    const struct call_graph *graph;
    uint32_t *queue, *seen; /* nodes; by node: the last search that came by */
    uint32_t number;
    uint64_t steps_left;
};

/* Whether EDGE's source leads to its target on another way, too. */
static bool is_redundant(struct search *search, uint32_t edge)
{
    const struct call_graph *graph = search->graph;
    uint32_t source = graph->edges[edge].from;
    size_t count = 1;
    search->number++;
    search->queue[0] = graph->edges[edge].to;
    search->seen[search->queue[0]] = search->number;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = search->queue[i];
        for (uint32_t e = graph->in_first[node]; e < graph->in_first[node + 1]; e++) {
            const struct call_edge *into = &graph->edges[graph->in[e]];
            if (search->steps_left == 0) return false;
            search->steps_left--;
            if (graph->in[e] == edge || into->is_removed || search->seen[into->from] == search->number) continue;
            if (into->from == source) return true;
            search->seen[into->from] = search->number;
            search->queue[count++] = into->from;
        }
    }
    return false;
}

/* Residual edges that are lighter than all others into their node, and not the only way. */
static void drop_redundant_into(struct search *search, struct call_graph *graph, uint32_t node)
{
    for (uint32_t e = graph->in_first[node + 1]; e-- > graph->in_first[node];) {
        struct call_edge *edge = &graph->edges[graph->in[e]];
        if (edge->is_removed) continue;
        if (!edge->is_residual) return;
        if (is_redundant(search, graph->in[e])) edge->is_removed = true;
    }
}

static bool drop_redundant_edges(struct call_graph *graph)
{
    struct search search = {.graph = graph,
                            .queue = calloc(graph->node_count + 1, sizeof(*search.queue)),
                            .seen = calloc(graph->node_count + 1, sizeof(*search.seen)),
                            .steps_left = REDUNDANCY_STEPS_MAX};
    bool has_memory = search.queue && search.seen;
    for (size_t i = graph->listed_count; has_memory && i-- > 0;) drop_redundant_into(&search, graph, graph->listed[i]);
    free(search.queue);
    free(search.seen);
    return has_memory;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static enum status find_tags(struct trim *trim, size_t node_max)
{
    struct trimmed_graph *trimmed = trim->trimmed;
    if (trim->options->order != ORDER_ENTROPY) return STATUS_OK;
    struct graph_tag_options options = {
        .unit = trim->options->tag_unit, .node_max = node_max, .cutoff = trim->node_cutoff};
    graph_tags_fini(&trimmed->tags);
    return graph_tags_init(&trimmed->tags, &trimmed->graph, trim->source, trimmed->kept, &options, trim->error);
}

/* Whether the labels that were collected to choose the nodes can be used for the chosen nodes. The labels of a node do
 * not depend on the other nodes. In a tree, trimming renumbers the nodes. */
static bool has_tags(const struct trim *trim)
{
    const struct graph_tags *tags = &trim->trimmed->tags;
    return tags->first && tags->left_out == 0 && !trim->source->is_tree;
}

/* Returns the number of nodes for which there is room: in a drawing, the labels of a node take some of it. */
static size_t room_for_nodes(const struct trim *trim)
{
    const struct trimmed_graph *trimmed = trim->trimmed;
    size_t most = trim->options->node_count, taken = 0;
    for (size_t i = 0; trim->options->order == ORDER_ENTROPY && i < trimmed->graph.listed_count; i++) {
        size_t tags = graph_tags_count_flat(&trimmed->tags, trimmed->graph.listed[i]);
        taken += 1 + (tags < NODE_TAGS_SHOWN ? tags : NODE_TAGS_SHOWN);
        if (taken < most) continue;
        most = i + 1;
        break;
    }
    return most < trimmed->graph.listed_count ? most : trimmed->graph.listed_count;
}

static bool sort(struct trim *trim)
{
    return call_graph_link(&trim->trimmed->graph, trim->source, trim->options->keeps_edge_order) &&
           graph_sort(&trim->trimmed->graph, trim->source, trim->options->order);
}

static enum status select_nodes(struct trim *trim)
{
    enum status status = find_tags(trim, trim->options->node_count);
    if (status != STATUS_OK) return status;
    (void)drop_small_edges(trim);
    size_t count = room_for_nodes(trim);
    if (count == trim->trimmed->graph.listed_count) return STATUS_OK;
    return keep_first(trim, count) && sort(trim) ? STATUS_OK : without_memory(trim);
}

static int64_t part_of(double total, double fraction)
{
    double part = fabs(total * fraction);
    return part < 0x1p62 ? (int64_t)part : INT64_MAX;
}

static void find_cutoffs(struct trim *trim)
{
    const struct call_graph *graph = &trim->trimmed->graph;
    int64_t total = 0;
    for (size_t i = 0; i < graph->listed_count; i++)
        total = profile_add_values(total, graph->nodes[graph->listed[i]].flat);
    trim->node_cutoff = part_of((double)total, trim->options->node_fraction);
    trim->edge_cutoff = part_of((double)total, trim->options->edge_fraction);
}

/* The order of rows depends on the nodes alone, whose sums stay the same: the first graph needs no edges, and the
 * second one is the last. */
static bool choose_rows(struct trim *trim)
{
    struct call_graph *graph = &trim->trimmed->graph;
    size_t most = trim->options->node_count;
    if (!build(trim, true)) return false;
    find_cutoffs(trim);
    size_t all = graph->listed_count;
    graph->listed_count = find_large_nodes(trim);
    if (!graph_sort(graph, trim->source, trim->options->order)) return false;
    if (most > 0 && most < graph->listed_count) graph->listed_count = most;
    bool is_done = graph->listed_count == all ? build(trim, false) : keep_first(trim, graph->listed_count);
    return is_done && sort(trim);
}

/* Trims in two steps: for a drawing or a tree, the second choice depends on the edges that the first one leaves. */
static enum status choose_boxes(struct trim *trim)
{
    struct call_graph *graph = &trim->trimmed->graph;
    bool is_preliminary = trim->options->node_fraction > 0 && !trim->source->is_tree;
    if (!build(trim, is_preliminary)) return without_memory(trim);
    find_cutoffs(trim);
    bool is_done = true;
    size_t all = graph->listed_count, large = find_large_nodes(trim);
    if (large < all)
        is_done = keep_first(trim, large);
    else if (is_preliminary)
        is_done = build(trim, false);
    if (!is_done || !sort(trim)) return without_memory(trim);
    return trim->options->node_count > 0 ? select_nodes(trim) : STATUS_OK;
}

static enum status trim_all(struct trim *trim)
{
    struct trimmed_graph *trimmed = trim->trimmed;
    bool is_drawing = trim->options->order == ORDER_ENTROPY;
    enum status status = STATUS_OK;
    if (is_drawing || trim->source->is_tree)
        status = choose_boxes(trim);
    else if (!choose_rows(trim))
        status = without_memory(trim);
    if (status == STATUS_OK && !has_tags(trim)) status = find_tags(trim, SIZE_MAX);
    if (status != STATUS_OK) return status;
    trimmed->dropped_edges = drop_small_edges(trim);
    if (is_drawing && !drop_redundant_edges(&trimmed->graph)) return without_memory(trim);
    bool is_linked = call_graph_link(&trimmed->graph, trim->source, trim->options->keeps_edge_order);
    return is_linked ? STATUS_OK : without_memory(trim);
}

enum status trim_graph(struct trimmed_graph *trimmed, struct graph_source *source, const struct trim_options *options,
                       struct error *error)
{
    struct trim trim = {.trimmed = trimmed, .source = source, .options = options, .error = error};
    *trimmed = (struct trimmed_graph){0};
    enum status status = trim_all(&trim);
    if (status != STATUS_OK) trimmed_graph_fini(trimmed);
    return status;
}

void trimmed_graph_fini(struct trimmed_graph *trimmed)
{
    call_graph_fini(&trimmed->graph);
    graph_tags_fini(&trimmed->tags);
    free(trimmed->kept);
    *trimmed = (struct trimmed_graph){0};
}
