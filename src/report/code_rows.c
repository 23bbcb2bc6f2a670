/* Rows and headings that lists of source lines and of instructions share.  SPDX-License-Identifier: MIT */
#include "base/printable.h"
#include "report/code_report.h"
#include "report/profile_json.h"
#include "report/quantity.h"
#include "report/text.h"

/* Appends LINE with its tabs, which indent source code. */
void code_append_source(const struct code_report *all, struct slice line)
{
    printable_append(all->out, line, "\t");
}

void code_append_sums(const struct code_report *all, int64_t flat, int64_t cum)
{
    report_append_value(all->report, all->out, 10, flat);
    buffer_append_text(all->out, " ");
    report_append_value(all->report, all->out, 10, cum);
    buffer_append_format(all->out, " (flat, cum) %s of Total\n", quantity_share(cum, all->report->total).text);
}

static void append_cost(const struct code_report *all, int64_t value)
{
    if (value != 0)
        report_append_value(all->report, all->out, 10, value);
    else
        buffer_append_text(all->out, "         .");
    buffer_append_text(all->out, " ");
}

bool code_append_costs(const struct code_report *all, int64_t flat, int64_t cum)
{
    bool is_bold = all->has_colour && is_hot(flat, all->report->total);
    if (is_bold) append_bold(all->out);
    append_cost(all, flat);
    append_cost(all, cum);
    return is_bold;
}

void code_append_end(const struct code_report *all, bool is_bold)
{
    if (is_bold) append_normal(all->out);
    buffer_append_text(all->out, "\n");
}

void code_begin_json(struct code_report *all)
{
    const struct report *report = all->report;
    all->json = json_writer_of(all->out);
    json_begin_object(&all->json);
    value_type_write_json(&all->json, report->profile, "sample_type",
                          &report->profile->value_types[report->choice.index]);
    json_member_i64(&all->json, "total", report->total);
    json_begin_array_member(&all->json, "functions");
}
