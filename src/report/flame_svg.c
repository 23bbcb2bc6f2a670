/* SPDX-License-Identifier: MIT */
#include "report/flame_report.h"

#include "base/printable.h"
#include "report/quantity.h"
#include "report/text.h"
#include "report/xml_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 10,
    TOP = 72,
    ROW_HEIGHT = 18,
    COLOURS = 8,
    TIP_CHARACTERS = 240, /* characters of a name in a tooltip */
    LINE_CHARACTERS = 140,
    SHORTEST_LABEL = 3,
    PIXEL_PARTS =
        100000, /* parts of a pixel that place narrow boxes: a box that is enlarged 1000 times is still in its place */
    THIN = 2,   /* pixels: such boxes have no edge, which would be most of them */
};

static const double character_width = 6.7; /* pixels, in a monospace font of 11 pixels */

extern const char flame_graph_script[]; /* flame_graph.js */

struct drawing {
    const struct flame_report *flame;
    const struct report *report;
    const struct grouping *grouping;
    const struct flame_layout *layout;
    const struct flame_options *options;
    uint32_t *order;   /* boxes, row by row */
    size_t *row_first; /* index in ORDER of each depth's first box; one more at the end */
    uint32_t row_count;
    int64_t narrowest;  /* width of the narrowest box that is an element; the others are in the table of narrow boxes */
    uint32_t tie_depth; /* greatest depth of the elements that are as wide as NARROWEST; 0: no limit */
    size_t narrow_count;
    struct profile strings; /* the texts of the narrow boxes, each once */
    struct buffer *out;
};

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* Appends "1.20s, 12.5%". */
static void append_share(const struct drawing *drawing, int64_t value, int64_t total)
{
    struct quantity_text share = quantity_share(value, total);
    struct buffer text = {.maximum = SIZE_MAX};
    report_append_value(drawing->report, &text, 0, value);
    append_xml(drawing->out, buffer_slice(&text), LINE_CHARACTERS); /* the unit is from the profile */
    buffer_append_format(drawing->out, ", %s", share.text + strspn(share.text, " "));
    if (text.failed) drawing->out->failed = true;
    buffer_fini(&text);
}

static void append_amount(const struct drawing *drawing, int64_t value)
{
    append_share(drawing, value, drawing->report->total);
}

/* Appends a time of a flamechart, "12.5ms". */
static void append_time(const struct drawing *drawing, uint64_t time_ns)
{
    int64_t value = time_ns < INT64_MAX ? (int64_t)time_ns : INT64_MAX;
    buffer_append_text(drawing->out, quantity_of("nanoseconds", value).text);
}

/* --- Colours ------------------------------------------------------------------------------------------------------ */

/* One colour per package; paler where the profile says that the function is of the system. */
static void append_package_class(const struct drawing *drawing, const struct flame_box *box)
{
    const struct group *group = &drawing->grouping->items[box->group];
    bool is_system = profile_function(drawing->report->profile, group->function)->in_app == IN_APP_NO;
    buffer_append_format(drawing->out, "c%u%s", flame_package_hash(drawing->flame, box) % COLOURS,
                         is_system ? " s" : "");
}

/* Application, system, or unknown. */
static void append_system_class(const struct drawing *drawing, const struct flame_box *box)
{
    const struct group *group = &drawing->grouping->items[box->group];
    enum in_app in_app = profile_function(drawing->report->profile, group->function)->in_app;
    buffer_append_text(drawing->out, in_app == IN_APP_YES ? "c0" : in_app == IN_APP_NO ? "c4" : "merged");
}

static void append_class(const struct drawing *drawing, const struct flame_box *box)
{
    if (drawing->flame->kind == FLAME_DIFF) {
        int step = flame_growth_step(drawing->flame, box);
        buffer_append_format(drawing->out, "%s%d", step > 0 ? "g" : step < 0 ? "b" : "n", abs(step));
    } else if (box->group == FLAME_NO_GROUP) {
        buffer_append_text(drawing->out, "all");
    } else if (box->group == FLAME_MERGED) {
        buffer_append_text(drawing->out, "merged");
    } else if (drawing->flame->colours == FLAME_BY_SYSTEM) {
        append_system_class(drawing, box);
    } else {
        append_package_class(drawing, box);
    }
}

static const char style[] =
    "svg{max-width:100%;height:auto;background:#fff}.ground{fill:#fff;pointer-events:none}text{font:11px "
    "monospace;fill:#111;pointer-events:none}"
    "#title{font-size:16px}#reset{pointer-events:auto;cursor:pointer;text-decoration:underline}"
    "input{width:100%;height:22px;box-sizing:border-box;font:12px sans-serif}"
    "rect{stroke:#fff;stroke-width:.5;cursor:pointer}.t{stroke:none}rect:hover,.current{stroke:#000;stroke-width:1.5}"
    ".all{fill:#ddd}.c0{fill:#f4b183}.c1{fill:#f6d06f}.c2{fill:#b9d989}.c3{fill:#8fd3b6}.c4{fill:#93cbe8}"
    ".c5{fill:#aeb9ee}.c6{fill:#d5aee3}.c7{fill:#f0a5b5}.s{fill-opacity:.45}.caller{fill-opacity:.6}"
    ".merged{fill:#c4c8cc}.n0{fill:#e4e4e4}.g1{fill:#fbdcd2}.g2{fill:#f8b49d}.g3{fill:#f08062}.g4{fill:#e0492f}"
    ".b1{fill:#dbe5fa}.b2{fill:#b0c8f5}.b3{fill:#7da4ec}.b4{fill:#4b7fdd}.match{fill:#e040fb}"
    "@media(prefers-color-scheme:dark){svg{background:#16181c;color-scheme:dark}.ground{fill:#16181c}text{fill:#f2f2f2}"
    "rect{stroke:#16181c}.t{stroke:none}rect:hover,.current{stroke:#fff}.all{fill:#44484f}.c0{fill:#8a4b1f}.c1{fill:#"
    "7a5f0c}"
    ".c2{fill:#4d6b22}.c3{fill:#1f6b4f}.c4{fill:#1f607f}.c5{fill:#414f96}.c6{fill:#6c3f7d}.c7{fill:#86364a}"
    ".merged{fill:#5a6068}.n0{fill:#3a3d42}.g1{fill:#58362e}.g2{fill:#7a3b2b}.g3{fill:#9c3a24}.g4{fill:#c23a1c}"
    ".b1{fill:#2f3b58}.b2{fill:#2f4a80}.b3{fill:#2c58a6}.b4{fill:#2a66cf}.match{fill:#b000d0}}";

/* --- Wide boxes --------------------------------------------------------------------------------------------------- */

static double position(const struct drawing *drawing, uint64_t value)
{
    double total = (double)drawing->layout->boxes[0].width;
    return total > 0 ? (double)value / total * FLAME_WIDTH : 0;
}

static double width_of(const struct drawing *drawing, const struct flame_box *box)
{
    return box->group == FLAME_NO_GROUP ? FLAME_WIDTH : position(drawing, box->width);
}

static void append_name(const struct drawing *drawing, const struct flame_box *box)
{
    append_xml(drawing->out, flame_name(drawing->flame, box), TIP_CHARACTERS);
    if (box->group == FLAME_MERGED) buffer_append_format(drawing->out, ": %" PRIu32, box->hidden_count);
}

/* Appends the lines that follow the name. */
static void append_values(const struct drawing *drawing, const struct flame_box *box)
{
    struct buffer *out = drawing->out;
    if (drawing->flame->kind == FLAME_DIFF) {
        const struct flame_box *root = &drawing->layout->boxes[0];
        buffer_append_text(drawing->out, "\nnew: ");
        append_share(drawing, box->cum, root->cum);
        buffer_append_text(drawing->out, "\nbase: ");
        append_share(drawing, box->base, root->base);
        buffer_append_format(drawing->out, "\n%+.2f points", 100 * flame_growth(drawing->flame, box));
        return;
    }
    buffer_append_text(out, "\n");
    append_amount(drawing, box->cum);
    if (!drawing->options->is_inverted && box->flat != 0) {
        buffer_append_text(out, "\nitself: ");
        append_amount(drawing, box->flat);
    }
    if (drawing->flame->kind != FLAME_CHART) return;
    buffer_append_text(out, "\nfrom ");
    append_time(drawing, drawing->flame->start_ns + box->start);
    buffer_append_text(out, " for ");
    append_time(drawing, box->width);
}

static void append_box(const struct drawing *drawing, const struct flame_box *box)
{
    struct buffer *out = drawing->out;
    buffer_append_format(out, "<rect x=\"%.3f\" width=\"%.3f\" height=\"17\" class=\"", position(drawing, box->start),
                         width_of(drawing, box));
    append_class(drawing, box);
    buffer_append_text(out, width_of(drawing, box) < THIN ? " t\"><title>" : "\"><title>");
    append_name(drawing, box);
    append_values(drawing, box);
    buffer_append_text(out, "</title></rect>\n");
}

static void append_label(const struct drawing *drawing, const struct flame_box *box)
{
    double room = (width_of(drawing, box) - 6) / character_width;
    if (room < SHORTEST_LABEL) return;
    buffer_append_format(drawing->out, "<text x=\"%.1f\" y=\"13\">", position(drawing, box->start) + 3);
    append_xml(drawing->out, flame_name(drawing->flame, box), (size_t)room);
    buffer_append_text(drawing->out, "</text>\n");
}

static bool is_element(const struct drawing *drawing, const struct flame_box *box)
{
    if (box->depth == 0 || box->width > (uint64_t)drawing->narrowest) return true;
    bool is_kept_tie = drawing->tie_depth == 0 || box->depth <= drawing->tie_depth;
    return box->width == (uint64_t)drawing->narrowest && is_kept_tie;
}

static void append_row(const struct drawing *drawing, uint32_t depth)
{
    const struct flame_box *boxes = drawing->layout->boxes;
    size_t first = drawing->row_first[depth], end = drawing->row_first[depth + 1];
    buffer_append_format(drawing->out, "<g class=\"row\" transform=\"translate(%d,%u)\">\n", MARGIN,
                         TOP + depth * ROW_HEIGHT);
    for (size_t i = first; i < end; i++) {
        if (is_element(drawing, &boxes[drawing->order[i]])) append_box(drawing, &boxes[drawing->order[i]]);
    }
    for (size_t i = first; i < end; i++) {
        if (is_element(drawing, &boxes[drawing->order[i]])) append_label(drawing, &boxes[drawing->order[i]]);
    }
    buffer_append_text(drawing->out, "</g>\n");
}

static int compare_starts(const void *a, const void *b, void *context)
{
    const struct flame_box *boxes = context;
    uint64_t left = boxes[*(const uint32_t *)a].start, right = boxes[*(const uint32_t *)b].start;
    return (left > right) - (left < right);
}

/* Sets ORDER, each row from left to right, and ROW_FIRST. False without memory. */
static bool order_rows(struct drawing *drawing)
{
    const struct flame_layout *layout = drawing->layout;
    for (size_t i = 0; i < layout->count; i++) {
        if (layout->boxes[i].depth >= drawing->row_count) drawing->row_count = layout->boxes[i].depth + 1;
    }
    drawing->order = calloc(layout->count, sizeof(*drawing->order));
    drawing->row_first = calloc((size_t)drawing->row_count + 2, sizeof(*drawing->row_first));
    if (!drawing->order || !drawing->row_first) return false;
    size_t *next = drawing->row_first + 1; /* the next free place of each depth; at the end the start of the next row */
    for (size_t i = 0; i < layout->count; i++) next[layout->boxes[i].depth + 1]++;
    for (uint32_t depth = 1; depth <= drawing->row_count; depth++) next[depth] += next[depth - 1];
    for (size_t i = 0; i < layout->count; i++) drawing->order[next[layout->boxes[i].depth]++] = (uint32_t)i;
    for (uint32_t depth = 0; depth < drawing->row_count; depth++) {
        size_t first = drawing->row_first[depth], count = drawing->row_first[depth + 1] - first;
        qsort_r(drawing->order + first, count, sizeof(*drawing->order), compare_starts, layout->boxes);
    }
    return true;
}

/* --- Narrow boxes ------------------------------------------------------------------------------------------------- */

/* An element of a box costs a browser 50 µs and the file 150 bytes. Therefore only as many boxes as a drawing shows at
 * once are elements. The others are lines of numbers, from which the script makes the boxes that are wide enough once a
 * part of the drawing is enlarged. */

/* Returns the number of the string that APPEND writes of BOX. */
static uint32_t add_string(struct drawing *drawing, const struct flame_box *box,
                           void (*append)(const struct drawing *drawing, const struct flame_box *box))
{
    struct buffer text = {.maximum = SIZE_MAX}, *out = drawing->out;
    drawing->out = &text;
    append(drawing, box);
    drawing->out = out;
    uint32_t number = profile_string(&drawing->strings, buffer_slice(&text)).index;
    if (text.failed) out->failed = true;
    buffer_fini(&text);
    return number;
}

/* Appends "7 12 3 4 5" for each box: a gap to the box before and a width, in parts of a pixel, and the strings that are
 * the box's name, values and class. */
static void append_narrow_row(struct drawing *drawing, uint32_t depth)
{
    double last = 0;
    const char *separator = "";
    for (size_t i = drawing->row_first[depth]; i < drawing->row_first[depth + 1]; i++) {
        const struct flame_box *box = &drawing->layout->boxes[drawing->order[i]];
        if (is_element(drawing, box)) continue;
        double from = round(PIXEL_PARTS * position(drawing, box->start));
        double to = round(PIXEL_PARTS * position(drawing, box->start + box->width));
        uint32_t name = add_string(drawing, box, append_name), values = add_string(drawing, box, append_values);
        buffer_append_format(drawing->out, "%s%.0f %.0f %" PRIu32 " %" PRIu32 " %" PRIu32, separator, from - last,
                             to - from, name, values, add_string(drawing, box, append_class));
        last = to;
        separator = " ";
    }
    buffer_append_text(drawing->out, "\n");
}

/* Appends a line for each row, an empty one, and a line for each string from number 1 on. Line breaks of values are
 * tabs. */
static void append_narrow_boxes(struct drawing *drawing)
{
    struct error error;
    profile_init(&drawing->strings);
    buffer_append_text(drawing->out, "<script type=\"text/plain\" id=\"narrow\">");
    for (uint32_t depth = 0; depth < drawing->row_count; depth++) append_narrow_row(drawing, depth);
    for (uint32_t i = 1; i < drawing->strings.strings.count; i++) {
        struct slice text = profile_slice(&drawing->strings, (struct string_id){i});
        buffer_append_byte(drawing->out, '\n');
        for (size_t at = 0; at < text.size; at++)
            buffer_append_byte(drawing->out, text.data[at] == '\n' ? '\t' : text.data[at]);
    }
    buffer_append_text(drawing->out, "</script>\n");
    if (profile_failed(&drawing->strings, &error) != STATUS_OK) drawing->out->failed = true;
    profile_fini(&drawing->strings);
}

/* --- The drawing -------------------------------------------------------------------------------------------------- */

static void append_left_out(const struct drawing *drawing)
{
    const struct flame_layout *layout = drawing->layout;
    if (layout->narrow_count > 0) {
        double limit =
            fmax((double)FLAME_WIDTH / FLAME_PARTS, position(drawing, (uint64_t)drawing->options->narrowest));
        bool is_chart = drawing->flame->kind == FLAME_CHART;
        buffer_append_format(drawing->out, "; %s: %zu boxes %s %.3g pixels (",
                             is_chart ? "merged or left out" : "left out", layout->narrow_count,
                             drawing->options->tie_depth > 0 ? "of at most" : "narrower than", limit);
        append_amount(drawing, layout->narrow_sum);
        buffer_append_text(drawing->out, ")");
    }
    if (layout->deep_count > 0) {
        buffer_append_format(drawing->out, "; left out: %zu boxes below row %d (", layout->deep_count, FLAME_DEPTH_MAX);
        append_amount(drawing, layout->deep_sum);
        buffer_append_text(drawing->out, ")");
    }
    if (layout->removed_count > 0) {
        buffer_append_format(drawing->out, "; only in the base: %zu box%s (", layout->removed_count,
                             layout->removed_count == 1 ? "" : "es");
        append_share(drawing, layout->removed_sum, layout->boxes[0].base);
        buffer_append_text(drawing->out, ")");
    }
}

/* "work: wall, inverted" */
static void append_title(const struct drawing *drawing)
{
    const struct report *report = drawing->report;
    struct buffer *out = drawing->out;
    const char *type = profile_c_string(report->profile, report->profile->value_types[report->choice.index].type);
    buffer_append_format(out, "<text id=\"title\" x=\"%d\" y=\"24\">", MARGIN);
    if (report->title[0] != '\0') {
        append_xml(out, slice_of_text(report->title), LINE_CHARACTERS / 2);
        buffer_append_text(out, ": ");
    }
    append_xml(out, slice_of_text(type), LINE_CHARACTERS / 4);
    if (drawing->options->is_inverted) buffer_append_text(out, ", inverted");
    if (drawing->flame->kind == FLAME_DIFF) buffer_append_text(out, ", compared: red has grown, blue has shrunk");
    if (drawing->flame->kind == FLAME_CHART) {
        buffer_append_text(out, ", thread ");
        append_xml(out, slice_of_text(drawing->flame->thread), LINE_CHARACTERS / 4);
    }
    buffer_append_text(out, "</text>\n");
}

/* Appends program, value, filters, and what is left out. */
static void append_heading(const struct drawing *drawing)
{
    const struct flame_box *root = &drawing->layout->boxes[0];
    struct buffer *out = drawing->out;
    append_title(drawing);
    buffer_append_format(out, "<text x=\"%d\" y=\"44\">", MARGIN);
    if (drawing->flame->kind == FLAME_DIFF) {
        buffer_append_text(out, "new: ");
        append_share(drawing, root->cum, root->cum);
        buffer_append_text(out, "; base: ");
        append_share(drawing, root->base, root->base);
    } else {
        append_amount(drawing, root->cum);
    }
    if (drawing->flame->kind == FLAME_CHART) {
        buffer_append_text(out, "; from ");
        append_time(drawing, drawing->flame->start_ns);
        buffer_append_text(out, " for ");
        append_time(drawing, root->width);
    }
    for (const char *const *filter = drawing->report->filters; filter && *filter; filter++) {
        buffer_append_text(out, "; ");
        append_xml(out, slice_of_text(*filter), LINE_CHARACTERS / 2);
    }
    append_left_out(drawing);
    if (drawing->narrow_count > 0)
        buffer_append_format(out, "; %zu narrow boxes appear when a part is enlarged", drawing->narrow_count);
    buffer_append_text(out, "</text>\n");
}

void flame_write_svg(const struct flame_report *flame, struct buffer *out)
{
    struct drawing drawing = {.flame = flame,
                              .report = flame->report,
                              .grouping = flame->grouping,
                              .layout = flame->layout,
                              .options = flame->options,
                              .out = out};
    bool has_memory = flame_layout_narrowest(flame->layout, FLAME_ELEMENTS_MAX, &drawing.narrowest, &drawing.tie_depth);
    if (has_memory && order_rows(&drawing)) {
        for (size_t i = 0; i < flame->layout->count; i++)
            drawing.narrow_count += !is_element(&drawing, &flame->layout->boxes[i]);
        unsigned width = FLAME_WIDTH + 2 * MARGIN, height = TOP + drawing.row_count * ROW_HEIGHT + MARGIN;
        buffer_append_format(out,
                             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                             "width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n<style>%s</style>\n",
                             width, height, width, height, style);
        /* for what draws no background of an svg element: librsvg, and pages that show the file as an image */
        buffer_append_text(out, "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
        append_heading(&drawing);
        for (uint32_t depth = 0; depth < drawing.row_count; depth++) append_row(&drawing, depth);
        if (drawing.narrow_count > 0) append_narrow_boxes(&drawing);
        buffer_append_text(out, "<script><![CDATA[\n");
        buffer_append_text(out, flame_graph_script);
        buffer_append_text(out, "]]></script>\n");
        buffer_append_text(out, "</svg>\n");
    } else {
        out->failed = true;
    }
    free(drawing.order);
    free(drawing.row_first);
}
