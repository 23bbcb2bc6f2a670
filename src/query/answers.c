/* Answers that are computed from merged chunks. The numbers come from analyze/, the JSON from report/: the same as the
 * commands of offbeat print.  SPDX-License-Identifier: MIT */
#include "query/answers.h"

#include "analyze/diff.h"
#include "analyze/filter.h"
#include "analyze/flame_fit.h"
#include "analyze/function_names.h"
#include "analyze/top.h"
#include "analyze/totals.h"
#include "format/format.h"
#include "page/page.h"
#include "profile/full_names.h"
#include "profile/profile_prune.h"
#include "profile/profile_scale.h"
#include "report/diff_report.h"
#include "report/flame_report.h"
#include "report/top_report.h"

#include <stdlib.h>
#include <string.h>

/* Diffs as the command has them: one comparison in a hundred shows noise as a change. */
#define NOISE_LEVEL 0.01
enum { BOXES_MAX = 20000, DEPTH_MAX = 1000 };

/* --- The steps ---------------------------------------------------------------------------------------------------- */

enum status query_filter(const struct query *query, struct profile *profile, struct error *error)
{
    struct filter_outcome outcome;
    const struct filter_options options = {
        .focus = query_text(query, "focus"),
        .ignore = query_text(query, "ignore"),
        .hide = query_text(query, "hide"),
        .show = query_text(query, "show"),
        .show_from = query_text(query, "show_from"),
        .prune_from = query_text(query, "prune_from"),
        .tag_focus = query->has_chosen_tags ? NULL : query_text(query, "tag_focus"),
        .tag_ignore = query->has_chosen_tags ? NULL : query_text(query, "tag_ignore"),
    };
    if (profile->samples.count == 0) return STATUS_OK; /* nothing changed between the profiles of a series */
    enum status status = filter_apply(profile, &options, &outcome, error);
    if (status == STATUS_OK && profile->samples.count == 0)
        status = error_set(error, STATUS_NOT_FOUND, 0, "the filters leave no sample");
    return status;
}

/* Merges the selection of the parameters with PREFIX into PROFILE, which is empty, and filters it. */
static enum status merge_selection(struct query *query, const char *prefix, bool keeps_times, struct profile *profile,
                                   struct error *error)
{
    struct selection selection;
    enum status status = selection_read(query, prefix, &selection, error);
    if (status == STATUS_OK) status = selection_merge(query, &selection, keeps_times, profile, error);
    return status == STATUS_OK ? query_filter(query, profile, error) : status;
}

static enum status choose_value(const struct query *query, const struct profile *profile, size_t *ret_column,
                                struct error *error)
{
    int column = profile_value_index(profile, query->kind.type);
    *ret_column = column < 0 ? 0 : (size_t)column;
    if (column >= 0) return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED, 0, "the profiles have no values of type %s in common",
                     query->kind.type);
}

void query_name_functions(struct profile *profile)
{
    struct error ignored;
    (void)profile_prune(profile, &ignored); /* with a broken expression all frames stay */
    name_functions(profile, &(struct function_naming){.compares = true});
}

enum status query_prepare(struct query *query, struct profile *profile, size_t *ret_column, struct error *error)
{
    profile_init(profile);
    enum status status = merge_selection(query, "", false, profile, error);
    if (status == STATUS_OK) status = choose_value(query, profile, ret_column, error);
    if (status == STATUS_OK) query_name_functions(profile);
    return status;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

enum status query_pprof(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    profile_init(&profile);
    query->detail = DETAIL_LABELS;
    enum status status = merge_selection(query, "", false, &profile, error);
    if (status == STATUS_OK) status = format_pprof.encode(&profile, out, error);
    profile_fini(&profile);
    return status;
}

enum status query_export(struct query *query, struct buffer *out, struct error *error)
{
    const char *name = query_text(query, "format");
    const struct format *format = name ? format_of_name(name) : NULL;
    struct profile profile;
    if (!format || !format_is_written(format))
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "format: one of pprof, speedscope, collapsed, firefox, sentry-v2 is needed");
    bool keeps_times = format->needs_timestamps || format->sentry_version == 2;
    query->detail = keeps_times ? DETAIL_ALL : DETAIL_LABELS;
    profile_init(&profile);
    enum status status = merge_selection(query, "", keeps_times, &profile, error);
    if (status == STATUS_OK && format->needs_full_names) profile_give_full_names(&profile, true);
    if (status == STATUS_OK) status = format_encode(&profile, format, out, error);
    profile_fini(&profile);
    return status;
}

/* Checks that QUERY names a profiler, chunk or span: chunks of several processes have no common order. */
static enum status check_session(const struct query *query, struct error *error)
{
    if (query_text(query, "profiler") || query_text(query, "chunk") || query_text(query, "span")) return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED, 0,
                     "profiler, chunk or span is needed: the id of a session, a chunk or a span");
}

/* Encodes the data of the page; with times=1 each sample has its time. */
enum status query_page(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    const char *service = query_text(query, "service");
    struct page_options page = {.title = service ? service : "", .grouping = {.names_unsymbolized = true}};
    bool keeps_times = query_text(query, "times") != NULL;
    query->detail = keeps_times ? DETAIL_ALL : DETAIL_THREADS;
    profile_init(&profile);
    enum status status = keeps_times ? check_session(query, error) : STATUS_OK;
    if (status == STATUS_OK) status = merge_selection(query, "", keeps_times, &profile, error);
    if (status == STATUS_OK) status = choose_value(query, &profile, &page.column, error);
    if (status == STATUS_OK) query_name_functions(&profile);
    if (status == STATUS_OK) status = page_data_encode(&profile, &page, out, error);
    profile_fini(&profile);
    return status;
}

enum status query_types(struct query *query, struct buffer *out, struct error *error)
{
    struct selection selection;
    enum status status = selection_read(query, "", &selection, error);
    return status == STATUS_OK ? kinds_write_json(query->store, &selection.query, out, error) : status;
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static bool is_order_of_totals(const struct query *query)
{
    const char *order = query_text(query, "order");
    return order && strcmp(order, "total") == 0;
}

enum status query_top(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct top top;
    const char *by = query_text(query, "by");
    bool by_thread = by && strcmp(by, "thread") == 0;
    struct top_options options = {.grouping = by_thread ? TOP_BY_THREAD : TOP_OF_ALL,
                                  .by_cumulative = is_order_of_totals(query)};
    const struct top_report_options report = {.function_max = query_number(query, "limit", 0)};
    query->detail = by_thread ? DETAIL_THREADS : DETAIL_STACKS;
    enum status status = query_prepare(query, &profile, &options.value_index, error);
    if (status == STATUS_OK) status = top_compute(&profile, &options, &top, error);
    if (status == STATUS_OK) {
        top_write_json(&profile, &top, &report, out);
        top_fini(&top);
    }
    profile_fini(&profile);
    return status;
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

/* Does what query_prepare does for the selection of the parameters and that of the base_ parameters, which gets a
 * label. */
static enum status prepare_with_base(struct query *query, struct profile *profile, size_t *ret_column,
                                     struct error *error)
{
    struct profile base;
    query->detail = DETAIL_STACKS;
    profile_init(profile);
    profile_init(&base);
    enum status status = merge_selection(query, "", false, profile, error);
    if (status == STATUS_OK) status = merge_selection(query, "base_", false, &base, error);
    if (status == STATUS_OK) status = add_base(profile, &base, error);
    profile_fini(&base);
    if (status == STATUS_OK) status = choose_value(query, profile, ret_column, error);
    if (status == STATUS_OK) query_name_functions(profile);
    return status;
}

static enum status write_diff(struct query *query, bool only_regressions, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct diff diff;
    struct diff_options options = {.by_cumulative = is_order_of_totals(query),
                                   .normalizes = only_regressions || query_text(query, "normalize"),
                                   .level = NOISE_LEVEL};
    const struct diff_report_options report = {
        .base_name = "base", .new_name = "new", .function_max = query_number(query, "limit", 0)};
    enum status status = prepare_with_base(query, &profile, &options.value_index, error);
    if (status == STATUS_OK) status = diff_compute(&profile, &options, &diff, error);
    if (status == STATUS_OK) {
        if (only_regressions) keep_regressions(&diff);
        diff_write_json(&profile, &diff, &report, out);
        diff_fini(&diff);
    }
    profile_fini(&profile);
    return status;
}

enum status query_diff(struct query *query, struct buffer *out, struct error *error)
{
    return write_diff(query, false, out, error);
}

/* Shares are compared, so that the two selections need not have the same length. */
enum status query_regressions(struct query *query, struct buffer *out, struct error *error)
{
    return write_diff(query, true, out, error);
}

/* --- Flame graphs ------------------------------------------------------------------------------------------------- */

static void write_boxes(const struct flame_fit *fit, struct buffer *out)
{
    const struct profile *profile = fit->profile;
    const struct report report = {.profile = profile,
                                  .choice = {.index = fit->options.column},
                                  .total = fit->layout.boxes[0].cum,
                                  .ratio = 1,
                                  .unit = "minimum",
                                  .title = ""};
    const struct flame_report flame = {.report = &report,
                                       .grouping = fit->grouping,
                                       .layout = &fit->layout,
                                       .options = &fit->options,
                                       .kind = fit->is_chart          ? FLAME_CHART
                                               : fit->options.is_diff ? FLAME_DIFF
                                                                      : FLAME_GRAPH,
                                       .thread = profile_c_string(profile, profile_thread(profile, fit->thread)->name),
                                       .start_ns = fit->start_ns};
    flame_write_json(&flame, out);
}

/* Lays out and writes PROFILE, whose functions have names; IS_CHART: its default thread in the order of time. */
static enum status draw(struct query *query, const struct profile *profile, struct flame_options options, bool is_chart,
                        struct buffer *out, struct error *error)
{
    struct grouping grouping;
    const struct grouping_options naming = {.names_unsymbolized = true};
    struct flame_fit fit = {.profile = profile, .grouping = &grouping, .options = options, .is_chart = is_chart};
    fit.options.is_inverted = !is_chart && query_text(query, "inverted");
    fit.options.depth_max = DEPTH_MAX;
    if (is_chart) fit.thread = profile_thread_with_samples(profile, profile_default_thread(profile));
    enum status status = grouping_init(&grouping, profile, &naming, error);
    if (status == STATUS_OK) status = flame_fit_init(&fit, query_number(query, "limit", BOXES_MAX), error);
    if (status == STATUS_OK) write_boxes(&fit, out);
    flame_layout_fini(&fit.layout);
    grouping_fini(&grouping);
    return status;
}

enum status query_flame(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct flame_options options = {0};
    query->detail = DETAIL_STACKS;
    enum status status = query_prepare(query, &profile, &options.column, error);
    if (status == STATUS_OK) status = draw(query, &profile, options, false, out, error);
    profile_fini(&profile);
    return status;
}

enum status query_flame_diff(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct flame_options options = {.is_diff = true};
    enum status status = prepare_with_base(query, &profile, &options.column, error);
    if (status == STATUS_OK) status = draw(query, &profile, options, false, out, error);
    profile_fini(&profile);
    return status;
}

enum status query_flamechart(struct query *query, struct buffer *out, struct error *error)
{
    struct profile profile;
    struct flame_options options = {0};
    profile_init(&profile);
    enum status status = check_session(query, error);
    if (status == STATUS_OK) status = merge_selection(query, "", true, &profile, error);
    if (status == STATUS_OK) status = choose_value(query, &profile, &options.column, error);
    if (status == STATUS_OK) query_name_functions(&profile);
    if (status == STATUS_OK) status = draw(query, &profile, options, true, out, error);
    profile_fini(&profile);
    return status;
}
