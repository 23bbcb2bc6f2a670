/* A call graph for programs: the object described in doc/man/offbeat-tree.1.  SPDX-License-Identifier: MIT */
#include "base/json_writer.h"
#include "report/report.h"

static void write_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void write_string(struct json_writer *json, const struct graph_report *all, const char *key,
                         struct string_id text)
{
    json_write_key(json, key);
    json_write_string(json, profile_slice(all->report->profile, text));
}

static void write_edges(struct json_writer *json, const struct graph_report *all, uint32_t node, bool is_in)
{
    const struct call_graph *graph = &all->trimmed->graph;
    const uint32_t *edges = is_in ? graph->in : graph->out, *first = is_in ? graph->in_first : graph->out_first;
    json_write_key(json, is_in ? "callers" : "callees");
    json_begin_array(json);
    for (uint32_t i = first[node]; i < first[node + 1]; i++) {
        const struct call_edge *edge = &graph->edges[edges[i]];
        json_begin_object(json);
        json_write_key(json, "name");
        json_write_text(json, node_name(all, is_in ? edge->from : edge->to));
        write_number(json, "weight", mean_of(edge->weight, edge->weight_div));
        json_write_key(json, "inline");
        json_write_bool(json, edge->is_inline);
        json_write_key(json, "indirect");
        json_write_bool(json, edge->is_residual);
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
    json_write_key(json, "name");
    json_write_text(json, node_name(all, node));
    write_string(json, all, "file", profile_function(profile, group->function)->file_name);
    write_string(json, all, "package", profile_mapping(profile, group->mapping)->file_name);
    write_number(json, "self", node_flat(numbers));
    write_number(json, "total", node_cum(numbers));
    write_edges(json, all, node, true);
    write_edges(json, all, node, false);
    json_end_object(json);
}

void graph_write_json(const struct graph_report *all, const bool *peek, struct buffer *out)
{
    const struct report *report = all->report;
    const struct call_graph *graph = &all->trimmed->graph;
    const struct value_type *type = &report->profile->value_types[report->choice.index];
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    json_write_key(&json, "sample_type");
    json_begin_object(&json);
    write_string(&json, all, "type", type->type);
    write_string(&json, all, "unit", type->unit);
    json_end_object(&json);
    write_number(&json, "total", report->total);
    json_write_key(&json, "functions");
    json_begin_array(&json);
    for (size_t i = 0; i < graph->listed_count; i++) {
        if (!peek || peek[i]) write_node(&json, all, graph->listed[i]);
    }
    json_end_array(&json);
    json_end_object(&json);
    buffer_append_text(out, "\n");
}
