/* A call graph for programs: the object described in doc/man/offbeat-tree.1.  SPDX-License-Identifier: MIT */
#include "report/profile_json.h"
#include "report/report.h"

static void write_edges(struct json_writer *json, const struct graph_report *all, uint32_t node, bool is_in)
{
    const struct call_graph *graph = &all->trimmed->graph;
    const uint32_t *edges = is_in ? graph->in : graph->out, *first = is_in ? graph->in_first : graph->out_first;
    json_begin_array_member(json, is_in ? "callers" : "callees");
    for (uint32_t i = first[node]; i < first[node + 1]; i++) {
        const struct call_edge *edge = &graph->edges[edges[i]];
        json_begin_object(json);
        json_member_text(json, "name", node_name(all, is_in ? edge->from : edge->to));
        json_member_i64(json, "weight", mean_of(edge->weight, edge->weight_div));
        json_member_bool(json, "inline", edge->is_inline);
        json_member_bool(json, "indirect", edge->is_residual);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_node(struct json_writer *json, const struct graph_report *all, uint32_t node)
{
    const struct profile *profile = all->report->profile;
    const struct call_node *numbers = &all->trimmed->graph.nodes[node];
    const struct group *group = group_of_node(&all->trimmed->graph, all->source, node);
    json_begin_object(json);
    json_member_text(json, "name", node_name(all, node));
    string_write_json(json, profile, "file", profile_function(profile, group->function)->file_name);
    string_write_json(json, profile, "package", profile_mapping(profile, group->mapping)->file_name);
    json_member_i64(json, "self", node_flat(numbers));
    json_member_i64(json, "total", node_cum(numbers));
    write_edges(json, all, node, true);
    write_edges(json, all, node, false);
    json_end_object(json);
}

void graph_write_json(const struct graph_report *all, const bool *peek, struct buffer *out)
{
    const struct report *report = all->report;
    const struct call_graph *graph = &all->trimmed->graph;
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    value_type_write_json(&json, report->profile, "sample_type", &report->profile->value_types[report->choice.index]);
    json_member_i64(&json, "total", report->total);
    json_begin_array_member(&json, "functions");
    for (size_t i = 0; i < graph->listed_count; i++) {
        if (!peek || peek[i]) write_node(&json, all, graph->listed[i]);
    }
    json_end_array(&json);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
