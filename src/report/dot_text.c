/* A call graph as a drawing in DOT, as `pprof -dot` writes it: boxes grow with flat, colours and lines with cum.
 * SPDX-License-Identifier: MIT */
#include "report/dot_private.h"
#include "report/quantity.h"
#include "report/short_function_name.h"
#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct drawing {
    const struct graph_report *all;
    struct buffer *out;
    double largest_flat;
    size_t *ids; /* number of each node in the drawing, from 1 on; 0: it is not in it */
    bool *has_tags;
    struct buffer text;
};

/* --- Text --------------------------------------------------------------------------------------------------------- */

void dot_append_escaped(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            buffer_append_text(out, "\\l");
        } else {
            if (*text == '\\' || *text == '"') buffer_append_byte(out, '\\');
            buffer_append_byte(out, (uint8_t)*text);
        }
    }
}

static void append_replaced(struct buffer *out, const char *text)
{
    static const char etc[] = "[...]";
    while (*text) {
        if (strncmp(text, "::", 2) == 0) {
            buffer_append_text(out, "\\n");
            text += 2;
        } else if (strncmp(text, etc, strlen(etc)) == 0) {
            buffer_append_text(out, "[…]"); /* type parameters in Go's own profiles */
            text += strlen(etc);
        } else if (*text == '.') {
            buffer_append_text(out, "\\n");
            text++;
        } else {
            buffer_append_byte(out, (uint8_t)*text++);
        }
    }
}

/* Appends the function's short name over several lines. */
static void append_function(struct drawing *drawing, const char *name)
{
    struct buffer escaped = {.maximum = SIZE_MAX};
    buffer_clear(&drawing->text);
    short_function_name_append(&drawing->text, name);
    buffer_append_byte(&drawing->text, '\0');
    if (!drawing->text.failed) dot_append_escaped(&escaped, (const char *)drawing->text.data);
    buffer_append_byte(&escaped, '\0');
    if (escaped.failed)
        drawing->out->failed = true;
    else
        append_replaced(drawing->out, (const char *)escaped.data);
    buffer_fini(&escaped);
}

/* Appends the parts of a printable name, a line each. */
static void append_name(struct drawing *drawing, const struct group *group)
{
    struct buffer *out = drawing->out;
    const struct names *names = &drawing->all->source->grouping->names;
    const char *name = names_text(names, group->name);
    const char *file = base_name(names_text(names, group->file));
    if (group->address != 0) buffer_append_format(out, "%016" PRIx64 "\\n", group->address);
    if (name[0] != '\0') {
        append_function(drawing, name);
        buffer_append_text(out, "\\n");
    }
    if (group->line != 0) {
        dot_append_escaped(out, file);
        buffer_append_format(out, ":%" PRId64, group->line);
        if (group->column != 0) buffer_append_format(out, ":%" PRId64, group->column);
    } else if (file[0] != '\0') {
        dot_append_escaped(out, file);
    } else if (name[0] != '\0') {
        return;
    } else if (group->object.index != 0) {
        buffer_append_text(out, "[");
        dot_append_escaped(out, base_name(profile_c_string(names->profile, group->object)));
        buffer_append_text(out, "]");
    } else {
        buffer_append_text(out, "<unknown>");
    }
    buffer_append_text(out, "\\n");
}

static void append_value(struct drawing *drawing, int64_t value)
{
    report_append_value(drawing->all->report, drawing->out, 0, value);
}

static void append_share(struct drawing *drawing, int64_t value)
{
    struct quantity_text share = quantity_share(value, drawing->all->report->total);
    buffer_append_format(drawing->out, " (%s)", share.text + strspn(share.text, " "));
}

/* --- Colours ------------------------------------------------------------------------------------------------------ */

/* Appends a colour: red for a positive part of all, green for a negative one, grey for none; small parts are moved away
 * from grey. */
static void append_colour(struct drawing *drawing, const char *key, int64_t value, bool is_background)
{
    double total = (double)magnitude_of(drawing->all->report->total);
    double score = total > 0 ? (double)value / total : value > 0 ? 1 : value < 0 ? -1 : 0;
    double saturation = is_background ? 0.1 : 1.0, brightness = is_background ? 0.93 : 0.7;
    score = fmax(-1, fmin(1, score));
    if (fabs(score) < 0.2) saturation *= fabs(score) / 0.2;
    if (score > 0) score = pow(score, 1.0 - 0.7);
    if (score < 0) score = -pow(-score, 1.0 - 0.7);
    double red = score < 0 ? brightness * (1 + saturation * score) : brightness;
    double green = score < 0 ? brightness : brightness * (1 - saturation * score);
    double blue = brightness * (1 - saturation);
    buffer_append_format(drawing->out, " %s=\"#%02x%02x%02x\"", key, (unsigned)(red * 255), (unsigned)(green * 255),
                         (unsigned)(blue * 255));
}

/* --- Nodes and edges ---------------------------------------------------------------------------------------------- */

static int font_size(const struct drawing *drawing, int64_t flat)
{
    enum { SMALLEST = 8 };
    static const double growth = 16;
    double part = (double)magnitude_of(flat);
    if (drawing->largest_flat == 0 || flat == 0 || part > drawing->largest_flat) return SMALLEST;
    return SMALLEST + (int)ceil(growth * sqrt(part / drawing->largest_flat));
}

static void append_numbers(struct drawing *drawing, int64_t flat, int64_t cum)
{
    if (flat != 0) {
        append_value(drawing, flat);
        append_share(drawing, flat);
    } else {
        buffer_append_text(drawing->out, "0");
    }
    if (cum == flat) return;
    buffer_append_text(drawing->out, flat != 0 ? "\\nof " : " of ");
    append_value(drawing, cum);
    append_share(drawing, cum);
}

static void append_node(struct drawing *drawing, uint32_t node)
{
    const struct graph_report *all = drawing->all;
    const struct call_graph *graph = &all->trimmed->graph;
    int64_t flat = node_flat(&graph->nodes[node]), cum = node_cum(&graph->nodes[node]);
    size_t id = drawing->ids[node];
    buffer_append_format(drawing->out, "N%zu [label=\"", id);
    append_name(drawing, group_of_node(graph, all->source, node));
    append_numbers(drawing, flat, cum);
    buffer_append_format(drawing->out, "\" id=\"node%zu\" fontsize=%d shape=box tooltip=\"", id,
                         font_size(drawing, flat));
    dot_append_escaped(drawing->out, node_name(all, node));
    buffer_append_text(drawing->out, " (");
    append_value(drawing, cum);
    buffer_append_text(drawing->out, ")\"");
    append_colour(drawing, "color", cum, false);
    append_colour(drawing, "fillcolor", cum, true);
    buffer_append_text(drawing->out, "]\n");
    drawing->has_tags[node] = dot_append_tags(all, node, id, drawing->out);
}

/* Returns the part of all that WEIGHT is, in STEPS; at most STEPS. */
static int64_t part_of_all(const struct drawing *drawing, int64_t weight, int64_t steps)
{
    int64_t total = drawing->all->report->total, product;
    if (__builtin_mul_overflow(weight, steps, &product)) return steps;
    int64_t part = magnitude_of(mean_of(product, total));
    return part < steps ? part : steps;
}

static void append_edge_tip(struct drawing *drawing, const char *key, const struct call_edge *edge)
{
    buffer_append_format(drawing->out, " %s=\"", key);
    dot_append_escaped(drawing->out, node_name(drawing->all, edge->from));
    buffer_append_text(drawing->out, edge->is_residual ? " ... " : " -> ");
    dot_append_escaped(drawing->out, node_name(drawing->all, edge->to));
    buffer_append_text(drawing->out, " (");
    append_value(drawing, mean_of(edge->weight, edge->weight_div));
    buffer_append_text(drawing->out, ")\"");
}

static void append_edge(struct drawing *drawing, const struct call_edge *edge)
{
    int64_t weight = mean_of(edge->weight, edge->weight_div);
    buffer_append_format(drawing->out, "N%zu -> N%zu [label=\" ", drawing->ids[edge->from], drawing->ids[edge->to]);
    append_value(drawing, weight);
    buffer_append_text(drawing->out, edge->is_inline ? "\\n (inline)\"" : "\"");
    if (drawing->all->report->total != 0) {
        int64_t straightness = part_of_all(drawing, weight, 100), width = part_of_all(drawing, weight, 5);
        if (straightness > 0) buffer_append_format(drawing->out, " weight=%" PRId64, straightness + 1);
        if (width > 0) buffer_append_format(drawing->out, " penwidth=%" PRId64, width + 1);
        append_colour(drawing, "color", weight, false);
    }
    append_edge_tip(drawing, "tooltip", edge);
    append_edge_tip(drawing, "labeltooltip", edge);
    if (edge->is_residual) buffer_append_text(drawing->out, " style=\"dotted\"");
    if (drawing->has_tags[edge->from]) buffer_append_text(drawing->out, " minlen=2");
    buffer_append_text(drawing->out, "]\n");
}

/* --- The drawing -------------------------------------------------------------------------------------------------- */

static void append_start(struct drawing *drawing)
{
    const struct report *report = drawing->all->report;
    struct buffer *out = drawing->out, legend = {.maximum = SIZE_MAX};
    buffer_append_text(out, "digraph \"");
    dot_append_escaped(out, report->title[0] != '\0' ? report->title : "unnamed");
    buffer_append_text(out, "\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\nsubgraph cluster_L { \"");
    report_append_header(report, drawing->all->trimmed, true, &legend);
    buffer_append_byte(&legend, '\0');
    if (legend.failed) {
        out->failed = true;
    } else {
        char *lines = (char *)legend.data;
        size_t first = strcspn(lines, "\n");
        lines[first] = '\0';
        dot_append_escaped(out, lines);
        lines[first] = '\n';
        buffer_append_text(out, "\" [shape=box fontsize=16 label=\"");
        dot_append_escaped(out, lines);
        buffer_append_text(out, "\"");
        if (report->title[0] != '\0') {
            buffer_append_text(out, " tooltip=\"");
            dot_append_escaped(out, report->title);
            buffer_append_text(out, "\"");
        }
        buffer_append_text(out, "] }\n");
    }
    buffer_fini(&legend);
}

static void append_nodes(struct drawing *drawing)
{
    const struct call_graph *graph = &drawing->all->trimmed->graph;
    for (size_t i = 0; i < graph->listed_count; i++) {
        double flat = (double)magnitude_of(node_flat(&graph->nodes[graph->listed[i]]));
        if (flat > drawing->largest_flat) drawing->largest_flat = flat;
        drawing->ids[graph->listed[i]] = i + 1;
    }
    for (size_t i = 0; i < graph->listed_count && !drawing->out->failed; i++) append_node(drawing, graph->listed[i]);
}

void graph_write_dot(const struct graph_report *all, struct buffer *out)
{
    const struct call_graph *graph = &all->trimmed->graph;
    size_t node_count = graph->node_count;
    struct drawing drawing = {.all = all,
                              .out = out,
                              .ids = calloc(node_count + 1, sizeof(*drawing.ids)),
                              .has_tags = calloc(node_count + 1, sizeof(*drawing.has_tags)),
                              .text = {.maximum = SIZE_MAX}};
    if (drawing.ids && drawing.has_tags) {
        append_start(&drawing);
        append_nodes(&drawing);
        /* The heaviest edges come first, which helps the layout. */
        for (size_t i = 0; i < graph->sorted_count && !out->failed; i++) {
            const struct call_edge *edge = &graph->edges[graph->sorted[i]];
            if (drawing.ids[edge->from] != 0 && drawing.ids[edge->to] != 0) append_edge(&drawing, edge);
        }
        buffer_append_text(out, "}\n");
    } else {
        out->failed = true;
    }
    if (drawing.text.failed) out->failed = true;
    free(drawing.ids);
    free(drawing.has_tags);
    buffer_fini(&drawing.text);
}
