/* SPDX-License-Identifier: MIT */
#include "cli/reports.h"

#include "cli/message.h"
#include "cli/output.h"
#include "report/completeness_text.h"
#include "report/top_report.h"

enum { TABLE_FUNCTIONS = 30, PROCESS_FUNCTIONS = 10 }; /* shown unless asked otherwise */

static size_t function_max(const struct report_request *request)
{
    if (request->trim.node_count != UINT64_MAX) return (size_t)request->trim.node_count;
    if (request->output.json) return 0;
    return request->by_process ? PROCESS_FUNCTIONS : TABLE_FUNCTIONS;
}

static void append_completeness(const struct completeness *completeness, struct buffer *out)
{
    struct buffer line;
    buffer_init(&line, 1024);
    if (completeness_append_short(completeness, &line)) {
        buffer_append_format(out, "Incomplete profile: %.*s; offbeat info says why\n",
                             SLICE_ARGUMENTS(buffer_slice(&line)));
    }
    buffer_fini(&line);
}

enum exit_status report_top(const struct report_request *request, const struct report *report,
                            const struct completeness *completeness, struct buffer *out)
{
    struct top top;
    struct error error = {0};
    const struct top_options options = (struct top_options){
        .value_index = report->choice.index,
        .grouping = request->by_thread    ? TOP_BY_THREAD
                    : request->by_process ? TOP_BY_PROCESS
                                          : TOP_OF_ALL,
        .by_cumulative = request->trim.by_cumulative,
        .is_mean = request->values.mean,
        .drops_negative = request->trim.drop_negative,
        .granularity = (enum granularity)request->frames.granularity,
        .no_inlines = request->frames.no_inlines,
        .has_columns = request->frames.columns,
    };
    if (top_compute(report->profile, &options, &top, &error) != STATUS_OK) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    /* A thread or process has its own total: what the filters left of it. */
    if (options.grouping == TOP_OF_ALL) top.total = top.groups[0].total = report->total;
    const struct top_report_options report_options = {.function_max = function_max(request),
                                                      .has_colour = !request->output.path && output_has_colour(),
                                                      .width = output_width(),
                                                      .unit = report->unit,
                                                      .ratio = report->ratio,
                                                      .filters = report->filters};
    if (request->output.json)
        top_write_json(report->profile, &top, &report_options, out);
    else
        top_write_table(report->profile, &top, &report_options, out);
    append_completeness(completeness, out);
    top_fini(&top);
    return EXIT_DONE;
}
