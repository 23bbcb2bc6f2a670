/* A flame graph on a terminal: turned by a quarter, so that names stay readable. A row is a box; its bar is where the
 * box is in the drawing, so that the bars of callees are below the bar of their caller.
 * SPDX-License-Identifier: MIT */
#include "report/flame_report.h"

#include "report/quantity.h"
#include "report/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE_WIDTH = 10,
    BAR_WIDTH = 24,
    BAR_WIDTH_MIN = 8,
    BAR_WIDTH_MAX = 48,
    NAME_WIDTH_MIN = 12,
    INDENT_MAX = 40,
    TERMINAL_COLOURS = 6, /* from red to cyan */
};

struct text {
    const struct flame_report *flame;
    const struct flame_box *boxes;
    uint32_t *first_child, *last_child, *next_sibling; /* box numbers of each box; 0: none */
    size_t bar_width, name_width;                      /* NAME_WIDTH 0: complete */
    struct buffer *out;
};

/* Links each box to its children, in the order of the layout, from left to right. False without memory. */
static bool link_boxes(struct text *text)
{
    size_t count = text->flame->layout->count;
    text->first_child = calloc(count, sizeof(*text->first_child));
    text->last_child = calloc(count, sizeof(*text->last_child));
    text->next_sibling = calloc(count, sizeof(*text->next_sibling));
    if (!text->first_child || !text->last_child || !text->next_sibling) return false;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t parent = text->boxes[i].parent;
        if (text->first_child[parent] == 0)
            text->first_child[parent] = i;
        else
            text->next_sibling[text->last_child[parent]] = i;
        text->last_child[parent] = i;
    }
    return true;
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

static void append_value(const struct text *text, int64_t value)
{
    report_append_value(text->flame->report, text->out, VALUE_WIDTH, value);
}

static void append_share(const struct text *text, int64_t value, int64_t total)
{
    buffer_append_format(text->out, " %7s", quantity_share(value, total).text);
}

static void append_column_names(const struct text *text)
{
    switch (text->flame->kind) {
    case FLAME_GRAPH:
        buffer_append_text(text->out, "     total  total%      self");
        break;
    case FLAME_CHART:
        buffer_append_text(text->out, "      from      total  total%      self");
        break;
    case FLAME_DIFF:
        buffer_append_text(text->out, "       new    new%       base   base%  points");
        break;
    }
    buffer_append_text(text->out, "\n");
}

static size_t columns_width(const struct text *text)
{
    return text->flame->kind == FLAME_GRAPH ? 28 : text->flame->kind == FLAME_CHART ? 39 : 45;
}

static void append_columns(const struct text *text, const struct flame_box *box)
{
    const struct flame_box *root = &text->boxes[0];
    if (text->flame->kind == FLAME_DIFF) {
        append_value(text, box->cum);
        append_share(text, box->cum, root->cum);
        buffer_append_text(text->out, " ");
        append_value(text, box->base);
        append_share(text, box->base, root->base);
        buffer_append_format(text->out, " %+7.2f", 100 * flame_growth(text->flame, box));
        return;
    }
    if (text->flame->kind == FLAME_CHART) {
        int64_t value = (text->flame->start_ns + box->start) < INT64_MAX ? (int64_t)(text->flame->start_ns + box->start)
                                                                         : INT64_MAX;
        buffer_append_format(text->out, "%*s", VALUE_WIDTH, quantity_of("nanoseconds", value).text);
        buffer_append_text(text->out, " ");
    }
    append_value(text, box->cum);
    append_share(text, box->cum, text->flame->report->total);
    append_value(text, box->flat);
}

/* --- Bars --------------------------------------------------------------------------------------------------------- */

static void append_repeated(struct buffer *out, const char *piece, size_t count)
{
    for (; count > 0; count--) buffer_append_text(out, piece);
}

/* Returns the place of VALUE in the bar, in eighths of a character. */
static size_t eighths(const struct text *text, uint64_t value)
{
    double width = (double)text->boxes[0].width;
    return width > 0 ? (size_t)((double)value / width * 8 * (double)text->bar_width + 0.5) : 0;
}

static int colour_of(const struct text *text, const struct flame_box *box)
{
    enum { RED = 31, BLUE = 34, CYAN = 36, GREY = 90 };
    const struct flame_report *flame = text->flame;
    int step = flame->kind == FLAME_DIFF ? flame_growth_step(flame, box) : 0;
    if (flame->kind == FLAME_DIFF) return step > 0 ? RED : step < 0 ? BLUE : GREY;
    if (box->group == FLAME_NO_GROUP || box->group == FLAME_MERGED) return GREY;
    if (flame->colours == FLAME_BY_SYSTEM) {
        const struct group *group = &flame->grouping->items[box->group];
        enum in_app in_app = profile_function(flame->report->profile, group->function)->in_app;
        return in_app == IN_APP_YES ? RED : in_app == IN_APP_NO ? CYAN : GREY;
    }
    return RED + (int)(flame_package_hash(flame, box) % TERMINAL_COLOURS);
}

/* Appends a bar. The first character of a box is full where the box covers half of it, the last one is as wide as its
 * part. */
static void append_bar(const struct text *text, const struct flame_box *box)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t start = (eighths(text, box->start) + 4) / 8, end = eighths(text, box->start + box->width);
    if (start >= text->bar_width) start = text->bar_width - 1;
    if (end > 8 * text->bar_width) end = 8 * text->bar_width;
    if (end <= 8 * start) end = 8 * start + 1;
    size_t full = (end - 8 * start) / 8, rest = (end - 8 * start) % 8;
    append_repeated(text->out, " ", start);
    if (text->flame->has_colour) buffer_append_format(text->out, "\033[%dm", colour_of(text, box));
    append_repeated(text->out, "█", full);
    buffer_append_text(text->out, parts[rest]);
    if (text->flame->has_colour) append_normal(text->out);
    append_repeated(text->out, " ", text->bar_width - start - full - (rest != 0));
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static void append_name(const struct text *text, const struct flame_box *box)
{
    size_t indent_max = text->name_width > 0 ? text->name_width / 2 : INDENT_MAX;
    size_t indent = box->depth < indent_max ? box->depth : indent_max;
    append_repeated(text->out, " ", indent);
    if (box->group == FLAME_MERGED) {
        buffer_append_format(text->out, "… %" PRIu32 " narrow box%s\n", box->hidden_count,
                             box->hidden_count == 1 ? "" : "es");
        return;
    }
    append_shortened(text->out, (const char *)flame_name(text->flame, box).data,
                     text->name_width > 0 ? text->name_width - indent : 0);
    buffer_append_text(text->out, "\n");
}

static void append_row(const struct text *text, const struct flame_box *box, bool has_bar)
{
    append_columns(text, box);
    buffer_append_text(text->out, "  ");
    if (has_bar)
        append_bar(text, box);
    else
        append_repeated(text->out, " ", text->bar_width);
    buffer_append_text(text->out, "  ");
    append_name(text, box);
}

/* Appends what is left out of the box INDEX, as a row below its children. In a comparison it is what the children
 * lack. */
static void append_hidden(const struct text *text, uint32_t index)
{
    const struct flame_box *box = &text->boxes[index];
    struct flame_box rest = {.group = FLAME_MERGED,
                             .depth = box->depth + 1,
                             .hidden_count = box->hidden_count,
                             .start = box->start,
                             .cum = box->cum - box->flat,
                             .base = box->base};
    if (box->hidden_count == 0) return;
    for (uint32_t child = text->first_child[index]; child != 0; child = text->next_sibling[child]) {
        rest.cum -= text->boxes[child].cum;
        rest.base -= text->boxes[child].base;
    }
    append_row(text, &rest, false);
}

/* Appends the rows depth first, without recursion: stacks may be deep. */
static void append_rows(const struct text *text)
{
    uint32_t at = 0;
    append_row(text, &text->boxes[0], true);
    while (!text->out->failed) {
        uint32_t next = text->first_child[at];
        while (next == 0) {
            append_hidden(text, at); /* all its children are done */
            if (at == 0) return;
            next = text->next_sibling[at];
            at = text->boxes[at].parent;
        }
        at = next;
        append_row(text, &text->boxes[at], true);
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void append_heading(const struct text *text)
{
    const struct flame_report *flame = text->flame;
    const struct report *report = flame->report;
    const struct flame_layout *layout = flame->layout;
    struct buffer *out = text->out;
    if (report->title[0] != '\0') {
        append_printable(out, report->title);
        buffer_append_text(out, ": ");
    }
    append_printable(out, profile_c_string(report->profile, report->profile->value_types[report->choice.index].type));
    if (flame->options->is_inverted) buffer_append_text(out, ", inverted");
    if (flame->kind == FLAME_CHART) {
        buffer_append_text(out, ", thread ");
        append_printable(out, flame->thread);
    }
    for (const char *const *filter = report->filters; filter && *filter; filter++) {
        buffer_append_text(out, "; ");
        append_printable(out, *filter);
    }
    if (layout->removed_count > 0) {
        struct quantity_text share = quantity_share(layout->removed_sum, layout->boxes[0].base);
        buffer_append_format(out, "; only in the base: %zu box%s (", layout->removed_count,
                             layout->removed_count == 1 ? "" : "es");
        report_append_value(report, out, 0, layout->removed_sum);
        buffer_append_format(out, ", %s)", share.text + strspn(share.text, " "));
    }
    buffer_append_text(out, "\n");
}

static void choose_widths(struct text *text)
{
    size_t width = text->flame->width, used = columns_width(text) + 4;
    text->bar_width = BAR_WIDTH;
    if (width == 0) return;
    size_t room = width > used ? width - used : 0, part = room / 3;
    text->bar_width = part < BAR_WIDTH_MIN ? BAR_WIDTH_MIN : part > BAR_WIDTH_MAX ? BAR_WIDTH_MAX : part;
    text->name_width = room > text->bar_width + NAME_WIDTH_MIN ? room - text->bar_width : NAME_WIDTH_MIN;
}

void flame_write_text(const struct flame_report *flame, struct buffer *out)
{
    struct text text = {.flame = flame, .boxes = flame->layout->boxes, .out = out};
    if (link_boxes(&text)) {
        choose_widths(&text);
        append_heading(&text);
        append_column_names(&text);
        append_rows(&text);
    } else {
        out->failed = true;
    }
    free(text.first_child);
    free(text.last_child);
    free(text.next_sibling);
}
