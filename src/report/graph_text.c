/* The rows of a call graph, in the columns that users of pprof know.  SPDX-License-Identifier: MIT */
#include "report/quantity.h"
#include "report/report.h"

#define SEPARATOR "----------------------------------------------------------+-------------\n"

/* --- The table ---------------------------------------------------------------------------------------------------- */

static const char *inline_mark(const struct call_graph *graph, uint32_t node)
{
    bool is_inlined = false, is_called = false;
    for (uint32_t i = graph->in_first[node]; i < graph->in_first[node + 1]; i++) {
        bool is_inline = graph->edges[graph->in[i]].is_inline;
        is_inlined |= is_inline;
        is_called |= !is_inline;
    }
    if (!is_inlined) return "";
    return is_called ? " (partial-inline)" : " (inline)";
}

/* Appends flat, flat%, sum%, cum, cum%. */
static void append_columns(const struct graph_report *all, const struct call_node *node, int64_t running,
                           struct buffer *out)
{
    int64_t flat = node_flat(node), cum = node_cum(node), total = all->report->total;
    report_append_value(all->report, out, 10, flat);
    buffer_append_format(out, " %s %s ", quantity_share(flat, total).text, quantity_share(running, total).text);
    report_append_value(all->report, out, 10, cum);
    buffer_append_format(out, " %s", quantity_share(cum, total).text);
}

void graph_write_table(const struct graph_report *all, struct buffer *out)
{
    const struct call_graph *graph = &all->trimmed->graph;
    int64_t running = 0;
    report_append_header(all->report, all->trimmed, false, out);
    buffer_append_format(out, "%10s %6s %6s %10s %6s\n", "flat", "flat%", "sum%", "cum", "cum%");
    for (size_t i = 0; i < graph->listed_count && !out->failed; i++) {
        uint32_t node = graph->listed[i];
        running = profile_add_values(running, node_flat(&graph->nodes[node]));
        append_columns(all, &graph->nodes[node], running, out);
        buffer_append_text(out, "  ");
        buffer_append_text(out, node_name(all, node));
        buffer_append_text(out, inline_mark(graph, node));
        buffer_append_text(out, "\n");
    }
}

/* --- The tree ----------------------------------------------------------------------------------------------------- */

static void append_edges(const struct graph_report *all, uint32_t node, bool is_in, struct buffer *out)
{
    const struct call_graph *graph = &all->trimmed->graph;
    const uint32_t *edges = is_in ? graph->in : graph->out, *first = is_in ? graph->in_first : graph->out_first;
    int64_t cum = node_cum(&graph->nodes[node]);
    for (uint32_t i = first[node]; i < first[node + 1]; i++) {
        const struct call_edge *edge = &graph->edges[edges[i]];
        report_append_value(all->report, out, 50, edge->weight);
        buffer_append_format(out, " %s |   ", quantity_share(edge->weight, cum).text);
        buffer_append_text(out, node_name(all, is_in ? edge->from : edge->to));
        buffer_append_text(out, edge->is_inline ? " (inline)\n" : "\n");
    }
}

void graph_write_tree(const struct graph_report *all, const bool *peek, struct buffer *out)
{
    const struct call_graph *graph = &all->trimmed->graph;
    int64_t running = 0;
    report_append_header(all->report, all->trimmed, false, out);
    buffer_append_text(out, SEPARATOR);
    buffer_append_text(out, "      flat  flat%   sum%        cum   cum%   calls calls% + context \t \t \n");
    for (size_t i = 0; i < graph->listed_count && !out->failed; i++) {
        uint32_t node = graph->listed[i];
        if (peek && !peek[i]) continue;
        buffer_append_text(out, SEPARATOR);
        append_edges(all, node, true, out);
        running = profile_add_values(running, node_flat(&graph->nodes[node]));
        append_columns(all, &graph->nodes[node], running, out);
        buffer_append_text(out, "                | ");
        buffer_append_text(out, node_name(all, node));
        buffer_append_text(out, "\n");
        append_edges(all, node, false, out);
    }
    if (graph->listed_count > 0) buffer_append_text(out, SEPARATOR);
}
