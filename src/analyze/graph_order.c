/* SPDX-License-Identifier: MIT */
#include "analyze/graph_order.h"

#include <math.h>
#include <stdlib.h>

struct context {
    const struct call_graph *graph;
    const struct graph_source *source;
    const int64_t *scores; /* scores by node */
};

static int compare_names(const struct names *names, struct name_id a, struct name_id b)
{
    if (a.index == b.index) return 0;
    return strcmp(names_text(names, a), names_text(names, b));
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Groups of one printable name differ in what it does not show. */
static int compare_groups(const struct names *names, const struct group *a, const struct group *b)
{
    int order = compare_names(names, name_of_string(a->object), name_of_string(b->object));
    if (order == 0) order = compare_names(names, a->file, b->file);
    if (order == 0) order = compare_numbers(a->start_line, b->start_line);
    return order != 0 ? order : compare_numbers(a->line, b->line);
}

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

static int compare_nodes(const void *left, const void *right, void *context)
{
    const struct context *all = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct call_node *first = &all->graph->nodes[a], *second = &all->graph->nodes[b];
    const struct group *first_group = group_of_node(all->graph, all->source, a);
    const struct group *second_group = group_of_node(all->graph, all->source, b);
    const struct names *names = &all->source->grouping->names;
    int order = compare_numbers(magnitude_of(all->scores[b]), magnitude_of(all->scores[a]));
    if (order == 0) order = compare_names(names, first_group->printable, second_group->printable);
    if (order == 0) order = compare_numbers(magnitude_of(second->flat), magnitude_of(first->flat));
    if (order == 0) order = compare_numbers(magnitude_of(second->cum), magnitude_of(first->cum));
    if (order == 0) order = compare_groups(names, first_group, second_group);
    return order != 0 ? order : compare_numbers(a, b);
}

static double entropy(int64_t part, double all)
{
    double fraction = (double)magnitude_of(part) / all;
    return fraction > 0 ? -fraction * log2(fraction) : 0;
}

static double edge_entropy(const struct call_graph *graph, const uint32_t *edges, uint32_t first, uint32_t end,
                           int64_t self)
{
    double total = (double)self, score = 0;
    for (uint32_t i = first; i < end; i++) {
        int64_t weight = graph->edges[edges[i]].weight;
        if (weight > 0) total += (double)weight;
    }
    if (total == 0) return 0;
    for (uint32_t i = first; i < end; i++) score += entropy(graph->edges[edges[i]].weight, total);
    return self > 0 ? score + entropy(self, total) : score;
}

static int64_t entropy_score(const struct call_graph *graph, uint32_t index)
{
    const struct call_node *node = &graph->nodes[index];
    const uint32_t *in = &graph->in_first[index], *out = &graph->out_first[index];
    double score = in[0] == in[1] ? 1 : edge_entropy(graph, graph->in, in[0], in[1], 0);
    score += out[0] == out[1] ? 1 : edge_entropy(graph, graph->out, out[0], out[1], node->flat);
    double sum = score * (double)node->cum;
    if (!(sum > -0x1p62 && sum < 0x1p62)) return sum > 0 ? INT64_MAX : INT64_MIN;
    return profile_add_values((int64_t)sum, node->flat);
}

bool graph_sort(struct call_graph *graph, const struct graph_source *source, enum node_order order)
{
    int64_t *scores = calloc(graph->node_count + 1, sizeof(*scores));
    if (!scores) return false;
    for (size_t i = 0; i < graph->listed_count; i++) {
        uint32_t node = graph->listed[i];
        scores[node] = order == ORDER_FLAT  ? graph->nodes[node].flat
                       : order == ORDER_CUM ? graph->nodes[node].cum
                                            : entropy_score(graph, node);
    }
    struct context context = {.graph = graph, .source = source, .scores = scores};
    qsort_r(graph->listed, graph->listed_count, sizeof(*graph->listed), compare_nodes, &context);
    free(scores);
    return true;
}

/* --- Edges -------------------------------------------------------------------------------------------------------- */

/* All that the order depends on: many edges have the same weight, and to compare names each time would take long. */
struct sorted_edge {
    int64_t weight;    /* weight without its sign */
    uint32_t from, to; /* ranks of the ends in the order of printable names */
    uint32_t edge;
};

static int compare_edges(const void *left, const void *right)
{
    const struct sorted_edge *a = left, *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    if (a->to != b->to) return a->to < b->to ? -1 : 1;
    return (a->edge > b->edge) - (a->edge < b->edge);
}

static int compare_printable(const void *left, const void *right, void *context)
{
    const struct context *all = context;
    const struct grouping *grouping = all->source->grouping;
    const struct group *a = &grouping->items[*(const uint32_t *)left], *b = &grouping->items[*(const uint32_t *)right];
    return compare_names(&grouping->names, a->printable, b->printable);
}

/* Returns the rank of each group's printable name among the names of all groups with edges; equal names have the same
 * rank. NULL without memory. */
static uint32_t *order_names(const struct call_graph *graph, const struct graph_source *source)
{
    struct context context = {.graph = graph, .source = source};
    uint32_t *places = calloc(source->grouping->count + 1, sizeof(*places)), place = 0;
    uint32_t *groups = calloc(source->grouping->count + 1, sizeof(*groups));
    size_t count = 0;
    for (size_t i = 0; places && groups && i < graph->sorted_count; i++) {
        const struct call_edge *edge = &graph->edges[graph->sorted[i]];
        uint32_t ends[] = {graph->nodes[edge->from].group, graph->nodes[edge->to].group};
        for (size_t end = 0; end < 2; end++) {
            if (places[ends[end]] == 0) groups[count++] = ends[end];
            places[ends[end]] = 1;
        }
    }
    if (places && groups) qsort_r(groups, count, sizeof(*groups), compare_printable, &context);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_printable(&groups[i - 1], &groups[i], &context) != 0) place++;
        places[groups[i]] = place;
    }
    if (!groups) {
        free(places);
        places = NULL;
    }
    free(groups);
    return places;
}

static bool sort_edges(struct call_graph *graph, const struct graph_source *source)
{
    uint32_t *places = order_names(graph, source);
    struct sorted_edge *edges = calloc(graph->sorted_count + 1, sizeof(*edges));
    bool has_memory = places && edges;
    for (size_t i = 0; has_memory && i < graph->sorted_count; i++) {
        const struct call_edge *edge = &graph->edges[graph->sorted[i]];
        edges[i] = (struct sorted_edge){.weight = magnitude_of(edge->weight),
                                        .from = places[graph->nodes[edge->from].group],
                                        .to = places[graph->nodes[edge->to].group],
                                        .edge = graph->sorted[i]};
    }
    if (has_memory) qsort(edges, graph->sorted_count, sizeof(*edges), compare_edges);
    for (size_t i = 0; has_memory && i < graph->sorted_count; i++) graph->sorted[i] = edges[i].edge;
    free(places);
    free(edges);
    return has_memory;
}

/* Puts the sorted edges into the lists of their nodes, which stay sorted. */
static void distribute(const struct call_graph *graph, bool is_in, uint32_t *items, uint32_t *first)
{
    const uint32_t *sorted = graph->sorted;
    size_t count = graph->sorted_count;
    memset(first, 0, (graph->node_count + 2) * sizeof(*first));
    /* Shifted by two, so that filling leaves each node's start at its own place. */
    for (size_t i = 0; i < count; i++) {
        const struct call_edge *edge = &graph->edges[sorted[i]];
        first[(is_in ? edge->to : edge->from) + 2]++;
    }
    for (size_t n = 2; n <= graph->node_count; n++) first[n] += first[n - 1];
    for (size_t i = 0; i < count; i++) {
        const struct call_edge *edge = &graph->edges[sorted[i]];
        items[first[(is_in ? edge->to : edge->from) + 1]++] = sorted[i];
    }
}

static bool reserve_lists(struct call_graph *graph)
{
    if (graph->in) return true;
    graph->in = calloc(graph->edge_count + 1, sizeof(*graph->in));
    graph->out = calloc(graph->edge_count + 1, sizeof(*graph->out));
    graph->in_first = calloc(graph->node_count + 3, sizeof(*graph->in_first));
    graph->out_first = calloc(graph->node_count + 3, sizeof(*graph->out_first));
    graph->sorted = calloc(graph->edge_count + 1, sizeof(*graph->sorted));
    return graph->in && graph->out && graph->in_first && graph->out_first && graph->sorted;
}

bool call_graph_link(struct call_graph *graph, const struct graph_source *source, bool keeps_order)
{
    if (!reserve_lists(graph)) return false;
    graph->sorted_count = 0;
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        if (!graph->edges[i].is_removed) graph->sorted[graph->sorted_count++] = i;
    }
    if (!keeps_order && !sort_edges(graph, source)) return false;
    distribute(graph, true, graph->in, graph->in_first);
    distribute(graph, false, graph->out, graph->out_first);
    return true;
}
