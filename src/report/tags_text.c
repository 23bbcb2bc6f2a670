/* The sums of each value of each label, in the form of `pprof -tags`: columns are aligned to the right within a key.
 * SPDX-License-Identifier: MIT */
#include "report/quantity.h"
#include "report/report.h"
#include "report/text.h"

struct tags {
    const struct report *report;
    const struct tag_sums *sums;
    struct buffer *out;
    struct buffer cell;
};

/* Returns "1.01s (90.18%):", valid until the next call. */
static struct slice make_cell(struct tags *tags, int64_t sum)
{
    buffer_clear(&tags->cell);
    report_append_value(tags->report, &tags->cell, 0, sum);
    if (tags->report->total > 0)
        buffer_append_format(&tags->cell, " (%s)", quantity_share(sum, tags->report->total).text);
    buffer_append_text(&tags->cell, ":");
    return buffer_slice(&tags->cell);
}

static void append_values(struct tags *tags, size_t first, size_t end, int indent)
{
    int width = 0;
    for (size_t i = first; i < end; i++) {
        int cell = (int)character_count(make_cell(tags, tags->sums->items[i].sum));
        if (cell > width) width = cell;
    }
    for (size_t i = first; i < end && !tags->out->failed; i++) {
        const struct tag_sum *sum = &tags->sums->items[i];
        struct slice cell = make_cell(tags, sum->sum);
        buffer_append_format(tags->out, "%*s", indent + 1 + width - (int)character_count(cell), "");
        buffer_append(tags->out, cell.data, cell.size);
        buffer_append_format(tags->out, " %s\n", profile_c_string(&tags->sums->strings, sum->value));
    }
    buffer_append_text(tags->out, "\n");
}

void tags_write_text(const struct report *report, const struct tag_sums *sums, struct buffer *out)
{
    struct tags tags = {.report = report, .sums = sums, .out = out, .cell = {.maximum = SIZE_MAX}};
    for (size_t first = 0, end; first < sums->count; first = end) {
        int64_t sum;
        end = tag_sums_key_end(sums, first, &sum);
        const char *key = profile_c_string(&sums->strings, sums->items[first].key);
        buffer_append_format(out, " %s: Total ", key);
        report_append_value(report, out, 0, sum);
        buffer_append_text(out, " of ");
        report_append_value(report, out, 0, report->total);
        if (report->total > 0) buffer_append_format(out, " (%s)", quantity_share(sum, report->total).text);
        buffer_append_text(out, "\n");
        append_values(&tags, first, end, (int)character_count(slice_of_text(key)) + 2);
    }
    if (tags.cell.failed) out->failed = true;
    buffer_fini(&tags.cell);
}
