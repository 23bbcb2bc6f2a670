/* A call graph in the format of callgrind, as `pprof -callgrind` writes it: names and addresses are shortened by what
 * was written before.  SPDX-License-Identifier: MIT */
#include "report/report.h"

#include "format/common/callgrind_text.h"

#include <inttypes.h>
#include <stdlib.h>

struct callgrind {
    const struct graph_report *all;
    struct buffer *out;
    struct callgrind_text text;
    uint32_t *nodes_in_order; /* number of each node among those that share file and name; 0: the only one */
    uint32_t *sharers;        /* number of nodes that share file and name, of each node */
};

/* --- Nodes of one name -------------------------------------------------------------------------------------------- */

/* Readers of the format merge functions with equal file and name. Nodes that differ only in callers or start lines
 * therefore get "[1/2]" as part of the name. */
struct sharer {
    uint32_t node, place; /* PLACE: in the order of the report */
};

static const struct group *group_at(const struct callgrind *all, uint32_t node)
{
    return group_of_node(&all->all->trimmed->graph, all->all->source, node);
}

static const char *name_at(const struct callgrind *all, struct name_id name)
{
    return names_text(&all->all->source->grouping->names, name);
}

static int compare_ids(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_names(const struct group *a, const struct group *b)
{
    int order = compare_ids(a->file.index, b->file.index);
    return order != 0 ? order : compare_ids(a->name.index, b->name.index);
}

static uint32_t parent_of(const struct callgrind *all, uint32_t node)
{
    return all->all->source->is_tree ? all->all->trimmed->graph.nodes[node].parent : 0;
}

static int compare_functions(const struct callgrind *all, uint32_t left, uint32_t right)
{
    const struct group *a = group_at(all, left), *b = group_at(all, right);
    int order = compare_ids(a->object.index, b->object.index);
    if (order == 0) order = (a->start_line > b->start_line) - (a->start_line < b->start_line);
    return order != 0 ? order : compare_ids(parent_of(all, left), parent_of(all, right));
}

static int compare_sharers(const void *left, const void *right, void *context)
{
    const struct callgrind *all = context;
    const struct sharer *a = left, *b = right;
    int order = compare_names(group_at(all, a->node), group_at(all, b->node));
    if (order == 0) order = compare_functions(all, a->node, b->node);
    return order != 0 ? order : compare_ids(a->place, b->place);
}

static int compare_places(const void *left, const void *right)
{
    const struct sharer *a = left, *b = right;
    return compare_ids(a->place, b->place);
}

/* Numbers the functions among SHARERS in the order of the report. They have one file and name, and are sorted by
 * function. */
static void number_functions(struct callgrind *all, struct sharer *sharers, size_t count, struct sharer *first)
{
    size_t functions = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_new = i == 0 || compare_functions(all, sharers[i - 1].node, sharers[i].node) != 0;
        if (is_new) first[functions++] = sharers[i];
    }
    if (functions < 2) return;
    qsort(first, functions, sizeof(*first), compare_places);
    for (size_t i = 0; i < functions; i++) all->nodes_in_order[first[i].node] = (uint32_t)i + 1;
    uint32_t number = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_new = i == 0 || compare_functions(all, sharers[i - 1].node, sharers[i].node) != 0;
        if (is_new) number = all->nodes_in_order[sharers[i].node];
        all->nodes_in_order[sharers[i].node] = number;
        all->sharers[sharers[i].node] = (uint32_t)functions;
    }
}

static bool find_sharers(struct callgrind *all)
{
    const struct call_graph *graph = &all->all->trimmed->graph;
    struct sharer *sharers = calloc(graph->listed_count + 1, sizeof(*sharers));
    struct sharer *first = calloc(graph->listed_count + 1, sizeof(*first));
    bool has_memory = sharers && first;
    for (size_t i = 0; has_memory && i < graph->listed_count; i++)
        sharers[i] = (struct sharer){graph->listed[i], (uint32_t)i};
    if (has_memory) qsort_r(sharers, graph->listed_count, sizeof(*sharers), compare_sharers, all);
    for (size_t i = 0, end; has_memory && i < graph->listed_count; i = end) {
        for (end = i + 1; end < graph->listed_count; end++) {
            if (compare_names(group_at(all, sharers[i].node), group_at(all, sharers[end].node)) != 0) break;
        }
        number_functions(all, sharers + i, end - i, first);
    }
    free(sharers);
    free(first);
    return has_memory;
}

/* --- Names ---------------------------------------------------------------------------------------------------------
 */

/* Appends the name of a callee with its number; the name of the node itself has none, as in pprof. */
static void append_callee(struct callgrind *all, uint32_t node)
{
    struct buffer text = {.maximum = SIZE_MAX};
    buffer_append_text(&text, name_at(all, group_at(all, node)->name));
    if (all->nodes_in_order[node] != 0)
        buffer_append_format(&text, " [%" PRIu32 "/%" PRIu32 "]", all->nodes_in_order[node], all->sharers[node]);
    if (text.failed)
        all->out->failed = true;
    else
        callgrind_append_name(&all->text, "cfn", CALLGRIND_FUNCTION, buffer_slice(&text));
    buffer_fini(&text);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static bool is_same_function(const struct group *a, const struct group *b)
{
    return a->object.index == b->object.index && a->file.index == b->file.index && a->name.index == b->name.index;
}

static void append_text(struct callgrind *all, const char *key, enum callgrind_kind kind, const char *name)
{
    callgrind_append_name(&all->text, key, kind, slice_of_text(name));
}

static void append_address(struct callgrind *all, const struct group *before, uint64_t address)
{
    callgrind_append_address(all->out, before ? &before->address : NULL, address);
}

static void append_calls(struct callgrind *all, uint32_t node, const struct group *before)
{
    const struct call_graph *graph = &all->all->trimmed->graph;
    for (uint32_t i = graph->out_first[node]; i < graph->out_first[node + 1]; i++) {
        const struct call_edge *edge = &graph->edges[graph->out[i]];
        const struct group *callee = group_at(all, edge->to);
        append_text(all, "cfl", CALLGRIND_FILE, name_at(all, callee->file));
        append_callee(all, edge->to);
        buffer_append_text(all->out, "calls=0 "); /* the profile does not count calls */
        append_address(all, before, callee->address);
        buffer_append_format(all->out, " %" PRId64 "\n* * %" PRId64 "\n", callee->line,
                             report_scale(all->all->report, edge->weight));
    }
}

static void append_nodes(struct callgrind *all)
{
    const struct call_graph *graph = &all->all->trimmed->graph;
    const struct group *before = NULL;
    for (size_t i = 0; i < graph->listed_count && !all->out->failed; i++) {
        uint32_t node = graph->listed[i];
        const struct group *group = group_at(all, node);
        if (!before || !is_same_function(before, group)) {
            buffer_append_text(all->out, "\n");
            append_text(all, "ob", CALLGRIND_OBJECT, profile_c_string(all->all->report->profile, group->object));
            append_text(all, "fl", CALLGRIND_FILE, name_at(all, group->file));
            append_text(all, "fn", CALLGRIND_FUNCTION, name_at(all, group->name));
        }
        append_address(all, before, group->address);
        buffer_append_format(all->out, " %" PRId64 " %" PRId64 "\n", group->line,
                             report_scale(all->all->report, node_flat(&graph->nodes[node])));
        append_calls(all, node, before);
        before = group;
    }
}

static bool number_nodes(struct callgrind *all)
{
    const struct call_graph *graph = &all->all->trimmed->graph;
    all->nodes_in_order = calloc(graph->node_count + 1, sizeof(*all->nodes_in_order));
    all->sharers = calloc(graph->node_count + 1, sizeof(*all->sharers));
    return all->nodes_in_order && all->sharers && find_sharers(all);
}

void graph_write_callgrind(const struct graph_report *graph, struct buffer *out)
{
    struct callgrind all = {.all = graph, .out = out};
    const struct report *report = graph->report;
    const char *type = profile_c_string(report->profile, report->profile->value_types[report->choice.index].type);
    buffer_append_format(out, "positions: instr line\nevents: %s%s(%s)\n", report->choice.is_mean ? "mean_" : "", type,
                         report->unit);
    callgrind_text_init(&all.text, out);
    if (number_nodes(&all))
        append_nodes(&all);
    else
        out->failed = true;
    callgrind_text_fini(&all.text);
    free(all.nodes_in_order);
    free(all.sharers);
}
