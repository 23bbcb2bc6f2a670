/* The boxes for labels beside the nodes of a drawing: at most four for texts, and at most four for numbers, which are
 * brought together in ranges.  SPDX-License-Identifier: MIT */
#include "profile/units.h"
#include "report/dot_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct box {
    struct node_tag tag;
    const char *name;
    int64_t least, most; /* limits of a range of numbers */
};

struct boxes {
    const struct graph_report *all;
    struct buffer *out;
    struct buffer names; /* names of ranges, each with a 0 after it */
    bool by_flat;        /* a node that calls others shows what was spent in itself */
};

static int64_t tag_flat(const struct node_tag *tag)
{
    return mean_of(tag->flat, tag->flat_div);
}

static int64_t tag_cum(const struct node_tag *tag)
{
    return mean_of(tag->cum, tag->cum_div);
}

static int compare_boxes(const void *left, const void *right, void *context)
{
    const struct box *a = left, *b = right;
    const struct boxes *boxes = context;
    int64_t flat[] = {magnitude_of(a->tag.flat), magnitude_of(b->tag.flat)};
    int64_t cum[] = {magnitude_of(a->tag.cum), magnitude_of(b->tag.cum)};
    if (!boxes->by_flat && cum[0] != cum[1]) return cum[0] > cum[1] ? -1 : 1;
    if (flat[0] != flat[1]) return flat[0] > flat[1] ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void sort_boxes(struct boxes *boxes, struct box *items, size_t count)
{
    if (count > 1) qsort_r(items, count, sizeof(*items), compare_boxes, boxes);
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

/* Keeps the heaviest numbers; each other number is added to the nearest of them. */
static size_t collapse(struct boxes *boxes, struct box *items, size_t count)
{
    int64_t centres[NODE_TAGS_SHOWN];
    sort_boxes(boxes, items, count);
    if (count <= NODE_TAGS_SHOWN) return count;
    for (size_t i = 0; i < NODE_TAGS_SHOWN; i++) centres[i] = items[i].tag.number;
    for (size_t i = NODE_TAGS_SHOWN; i < count; i++) {
        size_t nearest = 0;
        for (size_t c = 1; c < NODE_TAGS_SHOWN; c++) {
            double known = fabs((double)centres[nearest] - (double)items[i].tag.number);
            if (fabs((double)centres[c] - (double)items[i].tag.number) < known) nearest = c;
        }
        struct box *range = &items[nearest];
        const struct node_tag *tag = &items[i].tag;
        if (tag->number < range->least) range->least = tag->number;
        if (tag->number > range->most) range->most = tag->number;
        range->tag.flat = profile_add_values(range->tag.flat, tag->flat);
        range->tag.cum = profile_add_values(range->tag.cum, tag->cum);
        range->tag.flat_div = profile_add_values(range->tag.flat_div, tag->flat_div);
        range->tag.cum_div = profile_add_values(range->tag.cum_div, tag->cum_div);
    }
    return NODE_TAGS_SHOWN;
}

/* Names the ranges that ITEMS have become, and sorts them again, by their means where there are some. */
static void name_ranges(struct boxes *boxes, struct box *items)
{
    size_t places[NODE_TAGS_SHOWN];
    const char *unit = boxes->all->trimmed->tags.unit;
    buffer_clear(&boxes->names);
    for (size_t i = 0; i < NODE_TAGS_SHOWN; i++) {
        places[i] = boxes->names.size;
        unit_append(&boxes->names, items[i].least, unit, "auto");
        if (items[i].least != items[i].most) {
            buffer_append_text(&boxes->names, "..");
            unit_append(&boxes->names, items[i].most, unit, "auto");
        }
        buffer_append_byte(&boxes->names, '\0');
    }
    for (size_t i = 0; i < NODE_TAGS_SHOWN; i++) {
        items[i].name = boxes->names.failed ? "" : (const char *)boxes->names.data + places[i];
        items[i].tag.flat = tag_flat(&items[i].tag);
        items[i].tag.cum = tag_cum(&items[i].tag);
        items[i].tag.flat_div = items[i].tag.cum_div = 0;
    }
    sort_boxes(boxes, items, NODE_TAGS_SHOWN);
}

static void append_weight(struct boxes *boxes, int64_t value)
{
    report_append_value(boxes->all->report, boxes->out, 0, value);
}

static void append_arrow(struct boxes *boxes, const char *from, const char *to, int64_t value, const char *style)
{
    buffer_append_format(boxes->out, "%s -> %s [label=\" ", from, to);
    append_weight(boxes, value);
    buffer_append_text(boxes->out, "\" weight=100 tooltip=\"");
    append_weight(boxes, value);
    buffer_append_text(boxes->out, "\" labeltooltip=\"");
    append_weight(boxes, value);
    buffer_append_format(boxes->out, "\"%s]\n", style);
}

/* Appends the numbers among ITEMS, as boxes that follow the box SOURCE. */
static void append_numbers(struct boxes *boxes, struct box *items, size_t count, const char *source)
{
    size_t shown = collapse(boxes, items, count);
    if (shown < count) name_ranges(boxes, items);
    for (size_t i = 0; i < shown; i++) {
        char name[96];
        int64_t flat = tag_flat(&items[i].tag), cum = tag_cum(&items[i].tag);
        bool is_flat = boxes->by_flat || flat == cum;
        int64_t value = is_flat ? flat : cum;
        if (value == 0) continue;
        (void)snprintf(name, sizeof(name), "N%s_%zu", source, i);
        buffer_append_format(boxes->out, "%s [label = \"", name);
        dot_append_escaped(boxes->out, items[i].name);
        buffer_append_format(boxes->out, "\" id=\"%s\" fontsize=8 shape=box3d tooltip=\"", name);
        append_weight(boxes, value);
        buffer_append_text(boxes->out, "\"]\n");
        append_arrow(boxes, source, name, value, is_flat ? "" : " style=\"dotted\"");
    }
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static struct box box_of(const struct graph_tags *tags, const struct node_tag *tag)
{
    uint32_t name = tag->name ? tag->name : tag->texts;
    return (struct box){.tag = *tag, .name = graph_tag_string(tags, name), .least = tag->number, .most = tag->number};
}

/* Collects the tags of NODE that are numbers under TEXTS. */
static size_t take_numbers(const struct graph_tags *tags, uint32_t node, uint32_t texts, struct box *items)
{
    size_t count = 0;
    for (uint32_t i = tags->first[node]; i < tags->first[node + 1]; i++) {
        if (tags->items[i].name != 0 && tags->items[i].texts == texts) items[count++] = box_of(tags, &tags->items[i]);
    }
    return count;
}

static void append_text(struct boxes *boxes, const struct box *box, size_t id, size_t place, struct box *numbers)
{
    const struct graph_tags *tags = &boxes->all->trimmed->tags;
    char source[48], name[64];
    int64_t value = boxes->by_flat ? tag_flat(&box->tag) : tag_cum(&box->tag);
    if (value == 0) return;
    (void)snprintf(source, sizeof(source), "N%zu", id);
    (void)snprintf(name, sizeof(name), "N%zu_%zu", id, place);
    buffer_append_format(boxes->out, "%s [label = \"", name);
    /* The line break between the texts of a name is in DOT's words and stays; quotes are escaped. */
    for (const char *at = box->name; *at; at++) {
        if (*at == '"') buffer_append_byte(boxes->out, '\\');
        buffer_append_byte(boxes->out, (uint8_t)*at);
    }
    buffer_append_format(boxes->out, "\" id=\"%s\" fontsize=8 shape=box3d tooltip=\"", name);
    append_weight(boxes, value);
    buffer_append_text(boxes->out, "\"]\n");
    append_arrow(boxes, source, name, value, "");
    append_numbers(boxes, numbers, take_numbers(tags, box->tag.node, box->tag.texts, numbers), name);
}

bool dot_append_tags(const struct graph_report *all, uint32_t node, size_t id, struct buffer *out)
{
    const struct graph_tags *tags = &all->trimmed->tags;
    const struct call_graph *graph = &all->trimmed->graph;
    size_t most = tags->first[node + 1] - tags->first[node], before = out->size;
    struct boxes boxes = {.all = all,
                          .out = out,
                          .names = {.maximum = SIZE_MAX},
                          .by_flat = graph->out_first[node] != graph->out_first[node + 1]};
    if (most == 0) return false;
    struct box *texts = calloc(most, sizeof(*texts)), *numbers = calloc(most, sizeof(*numbers));
    if (texts && numbers) {
        char source[48];
        size_t count = 0;
        for (uint32_t i = tags->first[node]; i < tags->first[node + 1]; i++) {
            if (tags->items[i].name == 0) texts[count++] = box_of(tags, &tags->items[i]);
        }
        sort_boxes(&boxes, texts, count);
        for (size_t i = 0; i < count && i < NODE_TAGS_SHOWN; i++) append_text(&boxes, &texts[i], id, i, numbers);
        (void)snprintf(source, sizeof(source), "N%zu", id);
        append_numbers(&boxes, numbers, take_numbers(tags, node, 0, numbers), source);
    } else {
        out->failed = true;
    }
    if (boxes.names.failed) out->failed = true;
    buffer_fini(&boxes.names);
    free(texts);
    free(numbers);
    return out->size != before;
}
