/* Filters by the labels of samples: asked once for each group of samples with equal labels.
 * SPDX-License-Identifier: MIT */
#include "analyze/filter.h"
#include "analyze/label_groups.h"
#include "analyze/name_match.h"
#include "analyze/tag_filter.h"
#include "analyze/totals.h"

#include <stdlib.h>

struct label_filter {
    struct profile *profile;
    struct label_groups groups;
    struct label_units units;
    struct sample_labels labels; /* labels of the group at hand */
    struct tag_filter focus, ignore;
    bool has_focused, has_ignored;
    struct regexp show, hide;
    bool shows, hides, has_shown, has_hidden;
    struct label *kept; /* labels to keep of the group at hand; as many as LABELS may have */
};

/* --- Which samples ------------------------------------------------------------------------------------------------ */

static bool keeps_group(struct label_filter *filter)
{
    bool is_focused = !filter->focus.is_set || tag_filter_matches(&filter->focus, &filter->units, &filter->labels);
    bool is_ignored = filter->ignore.is_set && tag_filter_matches(&filter->ignore, &filter->units, &filter->labels);
    filter->has_focused |= is_focused;
    filter->has_ignored |= is_ignored;
    return is_focused && !is_ignored;
}

static void collect(struct label_filter *filter, size_t group)
{
    const struct label_group *item = &filter->groups.items[group];
    sample_labels_collect(&filter->labels, filter->profile, item->labels, item->thread);
}

static bool select_samples(struct label_filter *filter)
{
    const struct sample_columns *samples = &filter->profile->samples;
    bool *keeps = calloc(filter->groups.count + 1, sizeof(*keeps)), *kept = calloc(samples->count + 1, sizeof(*kept));
    bool has_memory = keeps && kept;
    for (size_t i = 0; has_memory && i < filter->groups.count; i++) {
        collect(filter, i);
        keeps[i] = keeps_group(filter);
    }
    for (size_t i = 0; has_memory && i < samples->count; i++) kept[i] = keeps[filter->groups.group_of_sample[i]];
    if (has_memory) profile_keep_samples(filter->profile, kept);
    free(keeps);
    free(kept);
    return has_memory;
}

/* --- Which labels ------------------------------------------------------------------------------------------------- */

/* The label of the base of a difference always stays, because percentages depend on it. */
static bool is_shown(struct label_filter *filter, const char *key)
{
    if (strcmp(key, DIFF_BASE_LABEL) == 0) return true;
    bool shows = !filter->shows || regexp_matches_within(&filter->show, slice_of_text(key));
    bool hides = filter->hides && regexp_matches_within(&filter->hide, slice_of_text(key));
    filter->has_shown |= shows;
    filter->has_hidden |= hides;
    return shows && !hides;
}

/* The set of those labels that stay, the thread's among them, as one without a thread; or what it was. */
static struct label_group shown_labels(struct label_filter *filter, struct label_group group)
{
    struct profile *profile = filter->profile;
    uint32_t count = 0;
    for (uint32_t i = 0; i < filter->labels.count; i++) {
        const struct sample_label *label = &filter->labels.items[i];
        if (!is_shown(filter, label->key)) continue;
        filter->kept[count++] = (struct label){.key = profile_text(profile, label->key),
                                               .is_number = label->is_number,
                                               .text = profile_text(profile, label->text),
                                               .number = label->number,
                                               .unit = profile_text(profile, label->unit)};
    }
    if (count == filter->labels.count) return group;
    return (struct label_group){.labels = profile_add_labels(profile, filter->kept, count)};
}

static bool show_labels(struct label_filter *filter)
{
    struct sample_columns *samples = &filter->profile->samples;
    struct label_groups *groups = &filter->groups;
    size_t most = 0;
    for (size_t i = 0; i < groups->count; i++) {
        collect(filter, i);
        if (filter->labels.count > most) most = filter->labels.count;
    }
    filter->kept = calloc(most + 1, sizeof(*filter->kept));
    if (!filter->kept) return false;
    for (size_t i = 0; i < groups->count; i++) {
        collect(filter, i);
        groups->items[i] = shown_labels(filter, groups->items[i]);
    }
    if (filter->profile->failed != STATUS_OK) return false;
    for (size_t i = 0; i < samples->count; i++) {
        samples->labels[i] = groups->items[groups->group_of_sample[i]].labels;
        samples->thread[i] = groups->items[groups->group_of_sample[i]].thread;
    }
    return true;
}

/* --- Both --------------------------------------------------------------------------------------------------------- */

static bool collect_groups(struct label_filter *filter)
{
    sample_labels_fini(&filter->labels);
    label_units_fini(&filter->units);
    label_groups_fini(&filter->groups);
    return sample_labels_init(&filter->labels, filter->profile) && label_units_init(&filter->units, filter->profile) &&
           label_groups_init(&filter->groups, filter->profile);
}

static enum status compile(struct label_filter *filter, const struct filter_options *options, struct error *error)
{
    enum status status = tag_filter_init(&filter->focus, "tagfocus", options->tag_focus, error);
    if (status == STATUS_OK) status = tag_filter_init(&filter->ignore, "tagignore", options->tag_ignore, error);
    filter->shows = options->tag_show && options->tag_show[0];
    filter->hides = options->tag_hide && options->tag_hide[0];
    if (status == STATUS_OK && filter->shows)
        status = compile_option(&filter->show, "tagshow", slice_of_text(options->tag_show), error);
    if (status == STATUS_OK && filter->hides)
        status = compile_option(&filter->hide, "taghide", slice_of_text(options->tag_hide), error);
    return status;
}

static bool filter_groups(struct label_filter *filter)
{
    bool selects = filter->focus.is_set || filter->ignore.is_set;
    if (selects && !(collect_groups(filter) && select_samples(filter))) return false;
    if (!filter->shows && !filter->hides) return true;
    return collect_groups(filter) && show_labels(filter);
}

static enum status check_tag_steps(const struct tag_filter *filter, const char *option, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < filter->expression_count && status == STATUS_OK; i++)
        status = check_steps(&filter->expressions[i], option, error);
    return status;
}

static enum status check_all_steps(const struct label_filter *filter, struct error *error)
{
    enum status status = check_tag_steps(&filter->focus, "tagfocus", error);
    if (status == STATUS_OK) status = check_tag_steps(&filter->ignore, "tagignore", error);
    if (status == STATUS_OK) status = check_steps(&filter->show, "tagshow", error);
    return status == STATUS_OK ? check_steps(&filter->hide, "taghide", error) : status;
}

static void note_unmatched(const struct label_filter *filter, struct filter_outcome *outcome)
{
    if (filter->focus.is_set && !filter->has_focused) filter_note_unmatched(outcome, "tagfocus");
    if (filter->ignore.is_set && !filter->has_ignored) filter_note_unmatched(outcome, "tagignore");
    if (filter->shows && !filter->has_shown) filter_note_unmatched(outcome, "tagshow");
    if (filter->hides && !filter->has_hidden) filter_note_unmatched(outcome, "taghide");
    outcome->tag_focus_is_range = filter->focus.is_range;
    outcome->tag_ignore_is_range = filter->ignore.is_range;
}

enum status filter_labels(struct profile *profile, const struct filter_options *options, struct filter_outcome *outcome,
                          struct error *error)
{
    struct label_filter filter = {.profile = profile};
    enum status status = compile(&filter, options, error);
    if (status == STATUS_OK && !filter_groups(&filter)) {
        status = profile_failed(profile, error);
        if (status == STATUS_OK) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to filter");
    }
    if (status == STATUS_OK) status = check_all_steps(&filter, error);
    if (status == STATUS_OK) note_unmatched(&filter, outcome);
    free(filter.kept);
    regexp_fini(&filter.show);
    regexp_fini(&filter.hide);
    tag_filter_fini(&filter.focus);
    tag_filter_fini(&filter.ignore);
    sample_labels_fini(&filter.labels);
    label_units_fini(&filter.units);
    label_groups_fini(&filter.groups);
    return status;
}
