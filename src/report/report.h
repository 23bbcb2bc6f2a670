/* The common parts of all reports in the form of pprof: the value that they show, its unit, their first lines.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_REPORT_H
#define OFFBEAT_REPORT_REPORT_H

#include "analyze/graph_trim.h"
#include "analyze/tag_sums.h"
#include "base/buffer.h"

struct report {
    const struct profile *profile;
    struct value_choice choice;
    int64_t total;              /* 100 % */
    uint64_t start_ns;          /* start of the times that filters count from, before the filters; 0: not asked for */
    double ratio;               /* factor of all printed numbers */
    const char *unit;           /* unit of printed numbers: a name, "auto" or "minimum" */
    const char *title;          /* title of a drawing; "" */
    bool is_compact;            /* text reports begin without the metadata of the profile */
    const char *const *filters; /* "focus=main", one line each; NULL ends them */
    const struct trim_options *trim;
};

/* Returns the unit of the values in the profile. */
const char *report_value_unit(const struct report *report);

/* Appends VALUE with its unit, at least WIDTH characters wide. */
void report_append_value(const struct report *report, struct buffer *out, int width, int64_t value);

/* Returns VALUE as the integer that a format for programs wants, in the report's unit. */
int64_t report_scale(const struct report *report, int64_t value);

/* Replaces the unit "minimum" by the one that suits the smallest value of the listed nodes of GRAPH; IS_INTEGER: by the
 * one in which no value falls below 1. */
void report_choose_unit(struct report *report, const struct call_graph *graph, bool is_integer);

/* Appends the metadata of the profile, a line each: file, build id, comments, type, time, duration. */
void report_append_metadata(const struct report *report, struct buffer *out);

/* Appends the lines above a table or drawing of TRIMMED; a drawing has the metadata in any case. */
void report_append_header(const struct report *report, const struct trimmed_graph *trimmed, bool is_drawing,
                          struct buffer *out);

/* --- The reports. Each appends to OUT; OUT has failed if memory was short. ----------------------------------
 */

struct graph_report {
    struct report *report;
    struct graph_source *source;
    struct trimmed_graph *trimmed;
};

/* Write a graph as `pprof -text`, `-tree` and, where PEEK is not NULL (by listed node: whether it is shown), `-peek`
 * do. */
void graph_write_table(const struct graph_report *graph, struct buffer *out);
void graph_write_tree(const struct graph_report *graph, const bool *peek, struct buffer *out);
void graph_write_json(const struct graph_report *graph, const bool *peek, struct buffer *out);
/* Write a graph as `-dot` and `-callgrind` do. */
void graph_write_dot(const struct graph_report *graph, struct buffer *out);
void graph_write_callgrind(const struct graph_report *graph, struct buffer *out);
/* Adds a profile as that of `-topproto` to PROFILE, which must be empty; a failure is the profile's. */
void graph_write_profile(const struct graph_report *graph, struct profile *profile);
/* Write each sample with its labels and frames, by GROUPING, as `-traces` does. */
void traces_write_text(const struct report *report, const struct grouping *grouping, struct buffer *out);
void traces_write_json(const struct report *report, const struct grouping *grouping, struct buffer *out);
/* Write the sum of each value of each label, as `-tags` does. */
void tags_write_text(const struct report *report, const struct tag_sums *sums, struct buffer *out);
void tags_write_json(const struct report *report, const struct tag_sums *sums, struct buffer *out);
/* Writes the comments, as `-comments` does. */
void comments_write_text(const struct report *report, struct buffer *out);

static inline const char *node_name(const struct graph_report *graph, uint32_t node)
{
    const struct group *group = group_of_node(&graph->trimmed->graph, graph->source, node);
    return group_name(graph->source->grouping, group);
}

static inline int64_t node_flat(const struct call_node *node)
{
    return mean_of(node->flat, node->flat_div);
}

static inline int64_t node_cum(const struct call_node *node)
{
    return mean_of(node->cum, node->cum_div);
}

#endif
