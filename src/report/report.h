/* What all reports in the form of pprof have in common: the value that they show, its unit, their first lines.
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
    uint64_t start_ns;          /* of the times that filters count from, before the filters; 0: not asked for */
    double ratio;               /* numbers are multiplied by it before they are printed */
    const char *unit;           /* in which numbers are printed: a name, "auto" or "minimum" */
    const char *title;          /* of a drawing; "" */
    bool is_compact;            /* text reports begin without the facts of the profile */
    const char *const *filters; /* "focus=main", one line each; NULL ends them */
    const struct trim_options *trim;
};

/* The unit of the values in the profile. */
const char *report_value_unit(const struct report *report);

/* Appends VALUE with its unit, at least WIDTH characters wide. */
void report_append_value(const struct report *report, struct buffer *out, int width, int64_t value);

/* VALUE as the integer that a format for programs wants, in the report's unit. */
int64_t report_scale(const struct report *report, int64_t value);

/* Replaces the unit "minimum" by the one that suits the smallest value of the listed nodes of GRAPH; IS_INTEGER: by the
 * one in which no value falls below 1. */
void report_choose_unit(struct report *report, const struct call_graph *graph, bool is_integer);

/* The facts of the profile, a line each: file, build id, comments, type, time, duration. */
void report_append_facts(const struct report *report, struct buffer *out);

/* The lines above a table or drawing of TRIMMED; of a drawing with the facts in any case. */
void report_append_header(const struct report *report, const struct trimmed_graph *trimmed, bool is_drawing,
                          struct buffer *out);

/* --- The reports. Each appends to OUT; OUT has failed if memory was short. ----------------------------------
 */

struct graph_report {
    struct report *report;
    struct graph_source *source;
    struct trimmed_graph *trimmed;
};

/* As `pprof -text`, `-tree` and, where PEEK is not NULL (by listed node: whether it is shown), `-peek`. */
void graph_write_table(const struct graph_report *graph, struct buffer *out);
void graph_write_tree(const struct graph_report *graph, const bool *peek, struct buffer *out);
void graph_write_json(const struct graph_report *graph, const bool *peek, struct buffer *out);
/* As `-dot` and `-callgrind`. */
void graph_write_dot(const struct graph_report *graph, struct buffer *out);
void graph_write_callgrind(const struct graph_report *graph, struct buffer *out);
/* As `-topproto`: adds to PROFILE, which must be empty; a failure is the profile's. */
void graph_write_profile(const struct graph_report *graph, struct profile *profile);
/* As `-traces`: each sample with its labels and frames, by GROUPING. */
void traces_write_text(const struct report *report, const struct grouping *grouping, struct buffer *out);
void traces_write_json(const struct report *report, const struct grouping *grouping, struct buffer *out);
/* As `-tags`: what was spent under each value of each label. */
void tags_write_text(const struct report *report, const struct tag_sums *sums, struct buffer *out);
void tags_write_json(const struct report *report, const struct tag_sums *sums, struct buffer *out);
/* As `-comments`. */
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
