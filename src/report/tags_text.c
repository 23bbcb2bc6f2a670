/* What was spent under each value of each label, in the form of `pprof -tags`: columns are aligned to the right within
 * a key.  SPDX-License-Identifier: MIT */
#include "report/quantity.h"
#include "report/report.h"

struct tags {
    const struct report *report;
    const struct tag_sums *sums;
    struct buffer *out;
    struct buffer cell;
};

static int width_of(struct slice text)
{
    int width = 0;
    for (size_t i = 0; i < text.size; i++) width += (text.data[i] & 0xC0) != 0x80;
    return width;
}

/* "1.01s (90.18%):" */
static struct slice make_cell(struct tags *tags, int64_t sum)
{
    buffer_clear(&tags->cell);
    report_append_value(tags->report, &tags->cell, 0, sum);
    if (tags->report->total > 0)
        buffer_append_format(&tags->cell, " (%s)", quantity_share(sum, tags->report->total).text);
    buffer_append_text(&tags->cell, ":");
    return buffer_slice(&tags->cell);
}

static void append_blanks(struct buffer *out, int count)
{
    for (; count > 0; count--) buffer_append_byte(out, ' ');
}

static void append_key(struct tags *tags, const char *key, int64_t sum)
{
    const struct report *report = tags->report;
    buffer_append_format(tags->out, " %s: Total ", key);
    report_append_value(report, tags->out, 0, sum);
    buffer_append_text(tags->out, " of ");
    report_append_value(report, tags->out, 0, report->total);
    if (report->total > 0) buffer_append_format(tags->out, " (%s)", quantity_share(sum, report->total).text);
    buffer_append_text(tags->out, "\n");
}

static void append_values(struct tags *tags, size_t first, size_t end, int indent)
{
    int width = 0;
    for (size_t i = first; i < end; i++) {
        int cell = width_of(make_cell(tags, tags->sums->items[i].sum));
        if (cell > width) width = cell;
    }
    for (size_t i = first; i < end && !tags->out->failed; i++) {
        const struct tag_sum *sum = &tags->sums->items[i];
        struct slice cell = make_cell(tags, sum->sum);
        append_blanks(tags->out, indent + 1 + width - width_of(cell));
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
        append_key(&tags, key, sum);
        append_values(&tags, first, end, width_of(slice_of_text(key)) + 2);
    }
    if (tags.cell.failed) out->failed = true;
    buffer_fini(&tags.cell);
}
