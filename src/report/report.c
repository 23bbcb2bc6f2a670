/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include "profile/units.h"
#include "report/text.h"

#include <math.h>

const char *report_value_unit(const struct report *report)
{
    return profile_c_string(report->profile, report->profile->value_types[report->choice.index].unit);
}

static int64_t as_integer(double value)
{
    if (!(fabs(value) < 0x1p63)) return value > 0 ? INT64_MAX : INT64_MIN;
    return (int64_t)value;
}

static int64_t divided(const struct report *report, int64_t value)
{
    if (report->ratio <= 0 || report->ratio == 1) return value;
    return as_integer((double)value * report->ratio);
}

void report_append_value(const struct report *report, struct buffer *out, int width, int64_t value)
{
    size_t first = out->size;
    unit_append(out, divided(report, value), report_value_unit(report), report->unit);
    size_t count = character_count(slice_of(out->data + first, out->size - first)), size = out->size - first;
    if (width <= 0 || count >= (size_t)width) return;
    size_t blanks = (size_t)width - count;
    if (!buffer_reserve(out, blanks)) return;
    memmove(out->data + first + blanks, out->data + first, size);
    memset(out->data + first, ' ', blanks);
    buffer_grow(out, blanks);
}

int64_t report_scale(const struct report *report, int64_t value)
{
    return as_integer(unit_scale(value, report_value_unit(report), report->unit).value);
}

static int64_t smallest_value(const struct call_graph *graph)
{
    int64_t smallest = 0;
    for (size_t i = 0; i < graph->listed_count; i++) {
        const struct call_node *node = &graph->nodes[graph->listed[i]];
        int64_t value = magnitude_of(node_flat(node));
        if (value == 0) value = magnitude_of(node_cum(node));
        if (value > 0 && (smallest == 0 || value < smallest)) smallest = value;
    }
    return smallest;
}

/* Chooses the unit. Where the values reach over several units, a hundredth of a unit is still readable. */
void report_choose_unit(struct report *report, const struct call_graph *graph, bool is_integer)
{
    if (strcmp(report->unit, "minimum") != 0 || graph->listed_count == 0) return;
    const char *own = report_value_unit(report);
    int64_t smallest = smallest_value(graph), largest = report->total;
    if (smallest == 0) smallest = largest;
    smallest = divided(report, smallest);
    largest = divided(report, largest);
    const char *unit = unit_scale(smallest, own, "minimum").unit;
    bool is_wide = strcmp(unit, unit_scale(largest, own, "minimum").unit) != 0 && smallest < largest / 100 + 1 &&
                   smallest * 100 < largest;
    if (is_wide && !is_integer) unit = unit_scale(smallest * 100, own, "minimum").unit;
    report->unit = unit[0] != '\0' ? unit : own;
}
