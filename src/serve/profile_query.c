/* Answers that are computed from merged chunks. The numbers come from analyze/, the JSON from report/: the same as the
 * commands of offbeat print.  SPDX-License-Identifier: MIT */
#include "analyze/diff.h"
#include "analyze/filter.h"
#include "analyze/flame_chart.h"
#include "analyze/top.h"
#include "analyze/totals.h"
#include "format/format.h"
#include "profile/comparable_name.h"
#include "profile/full_names.h"
#include "profile/packages.h"
#include "profile/profile_prune.h"
#include "profile/profile_scale.h"
#include "report/diff_report.h"
#include "report/flame_report.h"
#include "report/top_report.h"
#include "serve/serve_private.h"

#include <stdlib.h>
#include <string.h>

/* Diffs as the command has them: one comparison in a hundred shows noise as a change. */
#define NOISE_LEVEL 0.01
enum { BOXES_MAX = 20000, LAYOUTS_MAX = 20, DEPTH_MAX = 1000 };

enum status query_filter(struct request *request, struct profile *profile, struct error *error)
{
    struct filter_outcome outcome;
    const struct filter_options options = {
        .focus = request_parameter(request, "focus"),
        .ignore = request_parameter(request, "ignore"),
        .hide = request_parameter(request, "hide"),
        .show = request_parameter(request, "show"),
        .show_from = request_parameter(request, "show_from"),
        .prune_from = request_parameter(request, "prune_from"),
        .tag_focus = request_parameter(request, "tag_focus"),
        .tag_ignore = request_parameter(request, "tag_ignore"),
    };
    if (profile->samples.count == 0) return STATUS_OK; /* nothing changed between the profiles of a series */
    enum status status = filter_apply(profile, &options, &outcome, error);
    if (status == STATUS_OK && profile->samples.count == 0)
        status = error_set(error, STATUS_NOT_FOUND, 0, "the filters leave no sample");
    return status;
}

bool query_merge(struct request *request, bool keeps_times, struct profile *profile)
{
    struct selection selection;
    struct error error = {0};
    profile_init(profile);
    if (!selection_read(request, "", &selection)) return false;
    enum status status = selection_merge(request, &selection, keeps_times, profile, &error);
    if (status == STATUS_OK) status = query_filter(request, profile, &error);
    if (status == STATUS_OK) return true;
    answer_failure(request, &error);
    return false;
}

/* All answers name functions as comparisons do: they are sums of processes and releases, and the page compares two. */
void query_name_functions(struct profile *profile)
{
    struct error ignored;
    bool *is_base;
    (void)profile_prune(profile, &ignored); /* with a broken expression all frames stay */
    profile_give_full_names(profile, true);
    profile_give_comparable_names(profile);
    if (!find_base_sets(profile, &is_base)) profile_fail(profile, STATUS_NO_MEMORY);
    profile_distinguish_packages(profile, &(struct package_naming){.compares = true, .is_base = is_base});
    free(is_base);
}

bool query_choose_value(struct request *request, struct profile *profile, size_t *ret_column)
{
    int column = profile_value_index(profile, request->kind.type);
    if (column < 0) answer_error(request, 400, "the profiles have no values of type %s in common", request->kind.type);
    *ret_column = column < 0 ? 0 : (size_t)column;
    return column >= 0;
}

size_t query_limit(const struct request *request, size_t usual)
{
    const char *text = request_parameter(request, "limit");
    return text ? (size_t)strtoull(text, NULL, 10) : usual;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

void query_pprof(struct request *request)
{
    struct profile profile;
    struct error error = {0};
    request->detail = DETAIL_LABELS;
    if (query_merge(request, false, &profile))
        answer_result(request, format_pprof.encode(&profile, &request->answer, &error), &error,
                      "application/octet-stream");
    profile_fini(&profile);
}

void query_export(struct request *request)
{
    const char *name = request_parameter(request, "format");
    const struct format *format = name ? format_of_name(name) : NULL;
    struct profile profile;
    struct error error = {0};
    if (!format || !format_is_written(format)) {
        answer_error(request, 400, "format: one of pprof, speedscope, collapsed, firefox, sentry-v2 is needed");
        return;
    }
    bool keeps_times = format->needs_timestamps || format->sentry_version == 2;
    request->detail = keeps_times ? DETAIL_ALL : DETAIL_LABELS;
    if (query_merge(request, keeps_times, &profile)) {
        if (format->needs_full_names) profile_give_full_names(&profile, true);
        answer_result(request, format_encode(&profile, format, &request->answer, &error), &error,
                      "application/octet-stream");
    }
    profile_fini(&profile);
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static void write_top(struct request *request, struct profile *profile)
{
    struct top top;
    struct error error = {0};
    size_t column;
    const char *by = request_parameter(request, "by"), *order = request_parameter(request, "order");
    if (!query_choose_value(request, profile, &column)) return;
    query_name_functions(profile);
    const struct top_options options = {.value_index = column,
                                        .grouping = by && strcmp(by, "thread") == 0 ? TOP_BY_THREAD : TOP_OF_ALL,
                                        .by_cumulative = order && strcmp(order, "total") == 0};
    enum status status = top_compute(profile, &options, &top, &error);
    if (status == STATUS_OK) {
        const struct top_report_options report = {.function_max = query_limit(request, 0)};
        top_write_json(profile, &top, &report, &request->answer);
        top_fini(&top);
    }
    answer_result(request, status, &error, "application/json");
}

void query_top(struct request *request)
{
    struct profile profile;
    const char *by = request_parameter(request, "by");
    request->detail = by && strcmp(by, "thread") == 0 ? DETAIL_THREADS : DETAIL_STACKS;
    if (query_merge(request, false, &profile)) write_top(request, &profile);
    profile_fini(&profile);
}

/* Leaves the functions whose share grew by more than chance explains, in the order that they have. */
static void keep_regressions(struct diff *diff)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->count; i++) {
        bool has_grown = diff->functions[i].change == DIFF_ADDED || diff->functions[i].change == DIFF_GROWN;
        if (has_grown && diff->functions[i].noise == DIFF_EXCEEDS_NOISE) diff->functions[count++] = diff->functions[i];
    }
    diff->count = count;
}

static void write_diff(struct request *request, struct profile *profile, bool only_regressions)
{
    struct diff diff;
    struct error error = {0};
    size_t column;
    const char *order = request_parameter(request, "order");
    bool normalizes = only_regressions || request_parameter(request, "normalize");
    if (!query_choose_value(request, profile, &column)) return;
    query_name_functions(profile);
    const struct diff_options options = {.value_index = column,
                                         .by_cumulative = order && strcmp(order, "total") == 0,
                                         .normalizes = normalizes,
                                         .level = NOISE_LEVEL};
    enum status status = diff_compute(profile, &options, &diff, &error);
    if (status == STATUS_OK) {
        if (only_regressions) keep_regressions(&diff);
        const struct diff_report_options report = {
            .base_name = "base", .new_name = "new", .function_max = query_limit(request, 0)};
        diff_write_json(profile, &diff, &report, &request->answer);
        diff_fini(&diff);
    }
    answer_result(request, status, &error, "application/json");
}

/* The samples of the base get the label by which analyze/diff.h knows them. */
static enum status add_base(struct profile *profile, struct profile *base, struct error *error)
{
    const struct profile_extra_labels labels = {.items = {{.key = DIFF_BASE_LABEL, .text = "true"}}, .count = 1};
    struct profile labelled;
    profile_init(&labelled);
    enum status status = profile_merge(&labelled, base, &labels, error);
    if (status == STATUS_OK) status = profile_make_compatible(profile, &labelled, error);
    if (status == STATUS_OK) status = profile_merge(profile, &labelled, NULL, error);
    profile_fini(&labelled);
    return status;
}

/* Merges the selection of the parameters and that of the base_ parameters, which gets a label. False: answered. */
static bool merge_with_base(struct request *request, struct profile *profile)
{
    struct profile base;
    struct selection selection;
    struct error error = {0};
    request->detail = DETAIL_STACKS;
    if (!query_merge(request, false, profile) || !selection_read(request, "base_", &selection)) return false;
    profile_init(&base);
    enum status status = selection_merge(request, &selection, false, &base, &error);
    if (status == STATUS_OK) status = query_filter(request, &base, &error);
    if (status == STATUS_OK) status = add_base(profile, &base, &error);
    profile_fini(&base);
    if (status != STATUS_OK) answer_failure(request, &error);
    return status == STATUS_OK;
}

void query_diff(struct request *request)
{
    struct profile profile;
    if (merge_with_base(request, &profile)) write_diff(request, &profile, false);
    profile_fini(&profile);
}

/* Shares are compared, so that the two selections need not have the same length. */
void query_regressions(struct request *request)
{
    struct profile profile;
    if (merge_with_base(request, &profile)) write_diff(request, &profile, true);
    profile_fini(&profile);
}

/* --- Flame graphs ------------------------------------------------------------------------------------------------- */

struct drawing {
    struct profile *profile;
    struct grouping grouping;
    struct flame_options options;
    struct flame_layout layout;
    bool is_chart, is_diff;
    struct thread_id thread;
    uint64_t start_ns;
};

static enum status lay_out_once(struct drawing *drawing, struct error *error)
{
    if (!drawing->is_chart)
        return flame_layout_init(&drawing->layout, drawing->profile, &drawing->grouping, &drawing->options, error);
    return flame_chart_init(&drawing->layout, drawing->profile, &drawing->grouping, drawing->thread, &drawing->options,
                            &drawing->start_ns, error);
}

/* Lays out the graph, again while it has more than BOXES_MAX boxes: then the narrow ones are left out, and counted
 * in the answer. */
static enum status lay_out(struct drawing *drawing, size_t boxes_max, struct error *error)
{
    enum status status = lay_out_once(drawing, error);
    for (int i = 1; i < LAYOUTS_MAX && status == STATUS_OK && boxes_max && drawing->layout.count > boxes_max; i++) {
        uint32_t *tie_depth = drawing->is_chart ? NULL : &drawing->options.tie_depth;
        bool has_memory = flame_layout_narrowest(&drawing->layout, boxes_max, &drawing->options.narrowest, tie_depth);
        flame_layout_fini(&drawing->layout);
        if (!has_memory) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
        status = lay_out_once(drawing, error);
    }
    return status;
}

static void write_flame(struct request *request, struct drawing *drawing)
{
    struct error error = {0};
    const struct grouping_options grouping = {.names_unsymbolized = true};
    size_t column;
    if (!query_choose_value(request, drawing->profile, &column)) return;
    query_name_functions(drawing->profile);
    drawing->options =
        (struct flame_options){.column = column,
                               .is_diff = drawing->is_diff,
                               .is_inverted = !drawing->is_chart && request_parameter(request, "inverted"),
                               .depth_max = DEPTH_MAX};
    enum status status = grouping_init(&drawing->grouping, drawing->profile, &grouping, &error);
    if (status == STATUS_OK) status = lay_out(drawing, query_limit(request, BOXES_MAX), &error);
    if (status == STATUS_OK) {
        const struct report report = {.profile = drawing->profile,
                                      .choice = {.index = column},
                                      .total = drawing->layout.boxes[0].cum,
                                      .ratio = 1,
                                      .unit = "minimum",
                                      .title = ""};
        const struct thread *thread = profile_thread(drawing->profile, drawing->thread);
        const struct flame_report flame = {.report = &report,
                                           .grouping = &drawing->grouping,
                                           .layout = &drawing->layout,
                                           .options = &drawing->options,
                                           .kind = drawing->is_chart  ? FLAME_CHART
                                                   : drawing->is_diff ? FLAME_DIFF
                                                                      : FLAME_GRAPH,
                                           .thread = profile_c_string(drawing->profile, thread->name),
                                           .start_ns = drawing->start_ns};
        flame_write_json(&flame, &request->answer);
    }
    answer_result(request, status, &error, "application/json");
    flame_layout_fini(&drawing->layout);
    grouping_fini(&drawing->grouping);
}

void query_flame(struct request *request)
{
    struct profile profile;
    struct drawing drawing = {.profile = &profile};
    request->detail = DETAIL_STACKS;
    if (query_merge(request, false, &profile)) write_flame(request, &drawing);
    profile_fini(&profile);
}

void query_flame_diff(struct request *request)
{
    struct profile profile;
    struct drawing drawing = {.profile = &profile, .is_diff = true};
    if (merge_with_base(request, &profile)) write_flame(request, &drawing);
    profile_fini(&profile);
}

bool request_names_session(struct request *request)
{
    if (request_parameter(request, "profiler") || request_parameter(request, "chunk") ||
        request_parameter(request, "span"))
        return true;
    answer_error(request, 400, "profiler, chunk or span is needed: the id of a session, a chunk or a span");
    return false;
}

void query_flamechart(struct request *request)
{
    struct profile profile;
    struct drawing drawing = {.profile = &profile, .is_chart = true};
    if (!request_names_session(request)) return;
    if (query_merge(request, true, &profile)) {
        drawing.thread = profile_thread_with_samples(&profile, profile_default_thread(&profile));
        write_flame(request, &drawing);
    }
    profile_fini(&profile);
}
