/* SPDX-License-Identifier: MIT */
#include "cli/reports.h"

#include "cli/message.h"
#include "cli/output.h"
#include "report/diff_report.h"
#include "report/quantity.h"

/* If nothing has changed, one comparison in a hundred shows a difference that exceeds noise. */
#define NOISE_LEVEL 0.01

enum { TABLE_FUNCTIONS = 30, FAILURES_PRINTED = 10 };

static size_t function_max(const struct report_request *request)
{
    if (request->trim.node_count != UINT64_MAX) return (size_t)request->trim.node_count;
    return request->output.json ? 0 : TABLE_FUNCTIONS;
}

/* A growth by more than this part of the base, and by more than noise if that is known. */
static bool is_over(const struct report_request *request, const struct diff *diff, const struct diff_function *function)
{
    double limit = (double)diff->all.base.total * (double)request->fail_over / 1e6;
    return function->difference > 0 && function->noise != DIFF_WITHIN_NOISE && (double)function->difference > limit;
}

static void print_failure(const struct report_request *request, const struct report *report, const struct diff *diff,
                          const struct diff_function *function)
{
    const struct profile *profile = report->profile;
    const char *unit = profile_c_string(profile, profile->value_types[diff->value_index].unit);
    const char *name = function == &diff->all ? "the total" : names_text(&diff->names, function->name);
    double whole = (double)diff->all.base.total;
    if (whole > 0)
        message("%s grew by %s, %.2f%% of the base, over the %g%% of --fail-over", name,
                quantity_of(unit, function->difference).text, 100 * (double)function->difference / whole,
                (double)request->fail_over / 1e4);
    else
        message("%s grew by %s, and the base is 0", name, quantity_of(unit, function->difference).text);
}

static size_t print_failures(const struct report_request *request, const struct report *report, const struct diff *diff)
{
    size_t count = 0;
    if (request->fail_over == UINT64_MAX) return 0;
    if (is_over(request, diff, &diff->all)) {
        print_failure(request, report, diff, &diff->all);
        count++;
    }
    for (size_t i = 0; i < diff->count; i++) {
        if (!is_over(request, diff, &diff->functions[i])) continue;
        if (count++ < FAILURES_PRINTED) print_failure(request, report, diff, &diff->functions[i]);
    }
    if (count > FAILURES_PRINTED) message("and %zu more functions", count - FAILURES_PRINTED);
    return count;
}

enum exit_status report_diff(const struct report_request *request, const struct report *report, const char *file,
                             struct buffer *out)
{
    struct diff diff;
    struct error error = {0};
    const struct diff_options options =
        (struct diff_options){.value_index = report->choice.index,
                              .by_cumulative = request->trim.by_cumulative,
                              .normalizes = request->inputs.normalize,
                              .granularity = (enum granularity)request->frames.granularity,
                              .no_inlines = request->frames.no_inlines,
                              .has_columns = request->frames.columns,
                              .level = NOISE_LEVEL};
    if (diff_compute(report->profile, &options, &diff, &error) != STATUS_OK) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    bool has_failed = print_failures(request, report, &diff) > 0;
    const struct diff_report_options report_options = {.base_name =
                                                           message_name(request->inputs.diff_base.items[0], false),
                                                       .new_name = message_name(file, false),
                                                       .function_max = function_max(request),
                                                       .has_colour = output_has_colour(),
                                                       .width = output_width(),
                                                       .unit = report->unit,
                                                       .filters = report->filters,
                                                       .has_failed = has_failed};
    if (request->output.json)
        diff_write_json(report->profile, &diff, &report_options, out);
    else
        diff_write_table(report->profile, &diff, &report_options, out);
    diff_fini(&diff);
    return has_failed ? EXIT_NO : EXIT_DONE;
}
