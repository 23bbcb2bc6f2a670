/* Each sample with its labels and frames, in the form of `pprof -traces`.  SPDX-License-Identifier: MIT */
#include "profile/label_units.h"
#include "profile/units.h"
#include "report/report.h"

#include <stdlib.h>

#define SEPARATOR "-----------+-------------------------------------------------------\n"

struct traces {
    const struct report *report;
    const struct grouping *grouping;
    struct sample_labels labels;
    struct label_units units;
    struct buffer *out;
};

static bool is_same_key(const struct sample_label *a, const struct sample_label *b)
{
    return a->is_number == b->is_number && strcmp(a->key, b->key) == 0;
}

/* Compares keys as they are printed: right-aligned, so that short keys come first. */
static int compare_labels(const void *left, const void *right)
{
    enum { KEY_WIDTH = 10 };
    const struct sample_label *a = left, *b = right;
    if (a->is_number != b->is_number) return a->is_number - b->is_number;
    size_t a_length = strlen(a->key), b_length = strlen(b->key);
    bool is_padded = a_length < KEY_WIDTH || b_length < KEY_WIDTH;
    if (is_padded && a_length != b_length) return a_length < b_length ? -1 : 1;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static void append_labels(struct traces *traces, size_t sample)
{
    const struct profile *profile = traces->report->profile;
    struct sample_labels *labels = &traces->labels;
    sample_labels_collect(labels, profile, profile->samples.labels[sample], profile->samples.thread[sample]);
    if (labels->count > 1) qsort(labels->items, labels->count, sizeof(*labels->items), compare_labels);
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct sample_label *label = &labels->items[i];
        if (i == 0 || !is_same_key(label, label - 1))
            buffer_append_format(traces->out, "%10s:  ", label->key);
        else
            buffer_append_text(traces->out, " ");
        if (label->is_number)
            unit_append(traces->out, label->number, label_unit(&traces->units, label), "auto");
        else
            buffer_append_text(traces->out, label->text);
        if (i + 1 == labels->count || !is_same_key(label, label + 1)) buffer_append_text(traces->out, "\n");
    }
}

static void append_frames(struct traces *traces, uint32_t location, bool *is_first, int64_t value)
{
    uint32_t count;
    const uint32_t *groups = grouping_frames(traces->grouping, location, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (*is_first)
            report_append_value(traces->report, traces->out, 10, value);
        else
            buffer_append_text(traces->out, "          ");
        *is_first = false;
        buffer_append_text(traces->out, "   ");
        buffer_append_text(traces->out, group_name(traces->grouping, &traces->grouping->items[groups[i]]));
        buffer_append_text(traces->out, i + 1 < count ? " (inline)\n" : "\n");
    }
}

static void append_sample(struct traces *traces, size_t sample)
{
    const struct profile *profile = traces->report->profile;
    const int64_t *values = profile_sample_values(profile, sample);
    struct value_choice choice = traces->report->choice;
    uint32_t stack = profile->samples.stack[sample].index;
    bool is_first = true;
    if (stack == 0) return;
    buffer_append_text(traces->out, SEPARATOR);
    append_labels(traces, sample);
    int64_t value = mean_of(values[choice.index], choice.is_mean ? values[0] : 0);
    for (; stack != 0; stack = profile_parent_at(profile, stack))
        append_frames(traces, profile_stack_location(profile, stack), &is_first, value);
}

void traces_write_text(const struct report *report, const struct grouping *grouping, struct buffer *out)
{
    struct traces traces = {.report = report, .grouping = grouping, .out = out};
    report_append_metadata(report, out);
    if (sample_labels_init(&traces.labels, report->profile) && label_units_init(&traces.units, report->profile)) {
        for (size_t i = 0; i < report->profile->samples.count && !out->failed; i++) append_sample(&traces, i);
        buffer_append_text(out, SEPARATOR);
    } else {
        out->failed = true;
    }
    sample_labels_fini(&traces.labels);
    label_units_fini(&traces.units);
}

void comments_write_text(const struct report *report, struct buffer *out)
{
    for (size_t i = 0; i < report->profile->comments.count; i++)
        buffer_append_format(out, "%s\n", profile_c_string(report->profile, report->profile->comments.items[i]));
}
