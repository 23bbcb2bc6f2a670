/* SPDX-License-Identifier: MIT */
#include "cli/report_sources.h"

#include "analyze/function_names.h"
#include "analyze/totals.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/report_page.h"
#include "profile/profile_prune.h"
#include "profile/profile_scale.h"
#include "profile/short_names.h"

#include <string.h>

static enum status merge_base(const char *path, struct profile *profile, struct profile *base, bool is_diff,
                              bool is_negative, struct error *error)
{
    const struct profile_extra_labels labels = {.items = {{.key = DIFF_BASE_LABEL, .text = "true"}}, .count = 1};
    double ratios[PROFILE_VALUES_MAX];
    for (size_t i = 0; i < PROFILE_VALUES_MAX; i++) ratios[i] = -1;
    if (is_negative) profile_scale(base, ratios);
    return merge_opened(path, profile, base, is_diff ? &labels : NULL, error);
}

static struct open_options open_options(const struct report_request *request)
{
    bool has_process = request->filter.process && request->filter.process[0];
    return (struct open_options){.fills_idle = !request->names.keeps_names,
                                 .labels_processes = request->by_process || has_process,
                                 .adds_durations = request->is_pprof};
}

/* Subtracts the base. Equal samples cancel out, unless the label of the base keeps them apart. */
static bool subtract(const struct report_request *request, const struct option_texts *files, bool is_diff,
                     struct profile *profile)
{
    struct error error = {0};
    struct profile base;
    char *paths[OPTION_TEXTS_MAX];
    profile_init(&base);
    memcpy(paths, files->items, sizeof(paths)); /* nobody writes to the words */
    bool is_open = open_profiles(paths, files->count, open_options(request), &base);
    enum status status = STATUS_OK;
    /* These need the samples of both as they are. */
    bool is_comparison = request->kind == REPORT_DIFF || request->kind == REPORT_FLAME;
    uint64_t durations_ns = profile->duration_ns + base.duration_ns;
    bool normalizes = is_open && request->inputs.normalize && !is_comparison;
    if (normalizes) status = profile_compact(profile, &error); /* sums are rounded, not their parts */
    if (normalizes && status == STATUS_OK) status = profile_normalize(profile, &base, &error);
    if (is_open && status == STATUS_OK)
        status = merge_base(files->items[0], profile, &base, is_diff, !is_comparison, &error);
    if (is_open && status == STATUS_OK && !is_comparison) status = profile_compact(profile, &error);
    if (request->is_pprof) profile->duration_ns = durations_ns;
    if (status != STATUS_OK) message_error(files->items[0], &error, false);
    profile_fini(&base);
    return is_open && status == STATUS_OK;
}

bool report_open(const struct report_request *request, char *const *files, size_t count, struct profile *profile)
{
    bool is_diff = request->inputs.diff_base.count > 0 && !report_is_page(request);
    const struct open_options options = open_options(request);
    if (!open_profiles(files, count, options, profile)) return false;
    if (is_diff && !subtract(request, &request->inputs.diff_base, true, profile)) return false;
    if (request->inputs.base.count > 0 && !subtract(request, &request->inputs.base, false, profile)) return false;
    return true;
}

/* False after a line on standard error. */
static bool name_all_functions(const struct report_request *request, struct profile *profile)
{
    struct error error = {0};
    const struct function_naming naming = {.is_short = request->names.short_names,
                                           .compares = request->names.compares,
                                           .is_exact = request->names.exact_names};
    if (request->is_pprof && request->names.short_names) profile_give_short_names(profile);
    if (!request->is_pprof) name_functions(profile, &naming);
    if (profile_failed(profile, &error) == STATUS_OK) return true;
    message("%s", error.message);
    return false;
}

bool report_prepare(const struct report_request *request, struct profile *profile)
{
    struct error error = {0};
    bool sums_equal_samples = request->kind == REPORT_TRACES || request->kind == REPORT_RAW;
    if (sums_equal_samples && request->is_pprof && profile_compact(profile, &error) != STATUS_OK) {
        message("%s", error.message);
        return false;
    }
    if (request->names.keeps_names) return true;
    if (!request->names.all_frames && profile_prune(profile, &error) != STATUS_OK)
        message("all frames are shown: %s", error.message);
    if (!name_all_functions(request, profile)) return false;
    if (request->inputs.comment && request->inputs.comment[0])
        profile_add_comment(profile, slice_of_text(request->inputs.comment));
    return true;
}
