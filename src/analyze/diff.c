/* Both profiles are in one model, so that equal functions have one group: a walk over one tree of stacks sums the
 * values of each, and another one its samples unless a sample always has the same value.
 * SPDX-License-Identifier: MIT */
#include "analyze/diff.h"

#include "analyze/group_sums.h"
#include "analyze/sampling_noise.h"
#include "analyze/totals.h"
#include "profile/stated_costs.h"

#include <math.h>
#include <stdlib.h>

enum { BASE, NEW, SIDES };

struct comparison {
    const struct profile *profile;
    const struct diff_options *options;
    int count_column;
    struct grouping grouping;
    struct stack_tree tree;
    struct group_sums sums;
    bool *is_base;                  /* marks of the label sets of the base; NULL: no set is of the base */
    struct diff_side *sides[SIDES]; /* sums by group; the last one is of samples without a stack */
    struct diff_side all[SIDES];
};

/* The column that counts samples, or -1. */
static int diff_count_column(const struct profile *profile)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        struct slice type = profile_slice(profile, profile->value_types[i].type);
        bool is_samples = slice_equals_text(type, "samples") || slice_equals_text(type, "sample");
        if (is_samples && slice_equals_text(profile_slice(profile, profile->value_types[i].unit), "count"))
            return (int)i;
    }
    return -1;
}

/* --- Sums --------------------------------------------------------------------------------------------------------- */

static uint64_t to_count(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static void add_to_side(struct diff_side *side, bool is_count, int64_t self, int64_t total)
{
    if (is_count) {
        side->self_samples += to_count(self);
        side->total_samples += to_count(total);
    } else {
        side->self = profile_add_values(side->self, self);
        side->total = profile_add_values(side->total, total);
    }
}

static bool take_stated(struct comparison *all, int side, size_t column)
{
    const struct stated_costs *stated = all->profile->stated;
    bool *is_wanted = calloc(stated->functions.count + 1, sizeof(*is_wanted));
    for (size_t i = 0; is_wanted && i < stated->functions.count; i++) {
        bool is_base = all->is_base && all->is_base[stated->functions.items[i].labels.index];
        is_wanted[i] = is_base == (side == BASE);
    }
    bool is_done = is_wanted && group_sums_take_stated(&all->sums, column, is_wanted);
    free(is_wanted);
    return is_done;
}

/* False without memory. */
static bool sum_column(struct comparison *all, int side, size_t column, bool is_count)
{
    const struct profile *profile = all->profile;
    struct diff_side *without_stack = &all->sides[side][all->grouping.count];
    for (size_t i = 0; i < profile->samples.count; i++) {
        bool is_base = all->is_base && all->is_base[profile->samples.labels[i].index];
        int64_t value = profile_sample_values(profile, i)[column];
        if (value == 0 || is_base != (side == BASE)) continue;
        add_to_side(&all->all[side], is_count, value, value);
        if (profile->samples.stack[i].index == 0)
            add_to_side(without_stack, is_count, value, value);
        else
            stack_tree_add(&all->tree, profile->samples.stack[i], value);
    }
    group_sums_walk(&all->sums, &all->tree);
    if (profile->stated && !take_stated(all, side, column)) return false;
    for (size_t i = 0; i < all->sums.used_count; i++) {
        uint32_t group = all->sums.used[i];
        add_to_side(&all->sides[side][group], is_count, all->sums.self[group], all->sums.total[group]);
    }
    group_sums_clear(&all->sums);
    return true;
}

/* The value of one sample if it is the same for all samples, as in profiles of CPU time, else 0. A sum of values
 * is then the number of samples times this value, and needs no second walk. */
static int64_t value_of_a_sample(const struct comparison *all)
{
    const struct profile *profile = all->profile;
    int64_t each = 0, sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        int64_t value = values[all->options->value_index], count = values[all->count_column], product;
        if (value < 0 || count < 0 || __builtin_add_overflow(sum, value, &sum)) return 0;
        if (each == 0 && count > 0 && (each = value / count) == 0) return 0;
        if (__builtin_mul_overflow(each, count, &product) || product != value) return 0;
    }
    return each;
}

static void count_samples(struct diff_side *side, int64_t value_of_each)
{
    side->self_samples = (uint64_t)(side->self / value_of_each);
    side->total_samples = (uint64_t)(side->total / value_of_each);
}

static bool sum_side(struct comparison *all, int side, int64_t value_of_each)
{
    if (!sum_column(all, side, all->options->value_index, false)) return false;
    if (all->count_column < 0) return true;
    if (value_of_each == 0) return sum_column(all, side, (size_t)all->count_column, true);
    for (size_t i = 0; i <= all->grouping.count; i++) count_samples(&all->sides[side][i], value_of_each);
    count_samples(&all->all[side], value_of_each);
    return true;
}

static int64_t scaled(int64_t value, double ratio)
{
    double product = round((double)value * ratio);
    if (product >= 0x1p63) return INT64_MAX;
    return product < -0x1p63 ? INT64_MIN : (int64_t)product;
}

static void normalize(struct comparison *all)
{
    if (all->all[NEW].self == 0) return;
    double ratio = (double)all->all[BASE].self / (double)all->all[NEW].self;
    for (size_t i = 0; i <= all->grouping.count; i++) {
        all->sides[NEW][i].self = scaled(all->sides[NEW][i].self, ratio);
        all->sides[NEW][i].total = scaled(all->sides[NEW][i].total, ratio);
    }
    all->all[NEW].self = all->all[NEW].total = all->all[BASE].self;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static enum diff_change change_of(const struct diff_function *function)
{
    if (function->base.total == 0 && function->base.self == 0) return DIFF_ADDED;
    if (function->new.total == 0 && function->new.self == 0) return DIFF_REMOVED;
    if (function->difference == 0) return DIFF_SAME;
    return function->difference > 0 ? DIFF_GROWN : DIFF_SHRUNK;
}

static void compare_sides(const struct diff *diff, struct diff_function *function)
{
    const struct diff_side *base = &function->base, *new = &function->new;
    function->difference = diff->by_cumulative ? profile_subtract_values(new->total, base->total)
                                               : profile_subtract_values(new->self, base->self);
    function->change = change_of(function);
    function->probability = 1;
}

static bool is_empty(const struct diff_side *side)
{
    return side->self == 0 && side->total == 0;
}

static void name_function(struct comparison *all, size_t group, struct diff_function *function)
{
    if (group == all->grouping.count) {
        function->name = names_add(&all->grouping.names, slice_of_text("(no stack)"));
        return;
    }
    const struct group *facts = &all->grouping.items[group];
    const struct function *source = profile_function(all->profile, facts->function);
    function->name = facts->printable;
    function->file = source->file_name;
    function->package = profile_mapping(all->profile, facts->mapping)->file_name;
    if (function->package.index == 0) function->package = source->package;
}

static bool list_functions(struct comparison *all, struct diff *diff)
{
    diff->functions = calloc(all->grouping.count + 1, sizeof(*diff->functions));
    if (!diff->functions) return false;
    for (size_t i = 0; i <= all->grouping.count; i++) {
        struct diff_function *function = &diff->functions[diff->count];
        *function = (struct diff_function){.base = all->sides[BASE][i], .new = all->sides[NEW][i]};
        if (is_empty(&function->base) && is_empty(&function->new)) continue;
        name_function(all, i, function);
        compare_sides(diff, function);
        diff->change_counts[function->change]++;
        diff->count++;
    }
    diff->all = (struct diff_function){.base = all->all[BASE], .new = all->all[NEW]};
    compare_sides(diff, &diff->all);
    return true;
}

static int compare_functions(const void *left, const void *right, void *names)
{
    const struct diff_function *a = left, *b = right;
    int64_t first = magnitude_of(a->difference), second = magnitude_of(b->difference);
    if (first != second) return first > second ? -1 : 1;
    first = magnitude_of(a->base.total), second = magnitude_of(b->base.total);
    if (first != second) return first > second ? -1 : 1;
    return strcmp(names_text(names, a->name), names_text(names, b->name));
}

/* --- Noise -------------------------------------------------------------------------------------------------------- */

static struct sample_counts counts_of(const struct diff *diff, const struct diff_function *function)
{
    if (diff->by_cumulative)
        return (struct sample_counts){.base = function->base.total_samples, .new = function->new.total_samples};
    return (struct sample_counts){.base = function->base.self_samples, .new = function->new.self_samples};
}

/* Returns the part of the samples that is expected in the new profile if nothing has changed: by the samples for each
 * unit of value, or by the samples themselves where shares are compared. */
static double expected_share(const struct comparison *all)
{
    double base = (double)all->all[BASE].self_samples, new = (double)all->all[NEW].self_samples;
    if (!all->options->normalizes) {
        base = all->all[BASE].self > 0 ? base / (double)all->all[BASE].self : 0;
        new = all->all[NEW].self > 0 ? new / (double)all->all[NEW].self : 0;
        if (base == 0) base = new;
        if (new == 0) new = base;
    }
    return base + new > 0 ? new / (base + new) : 0.5;
}

static void classify(struct diff *diff, struct diff_function *function, double share, double limit)
{
    function->probability = noise_probability(counts_of(diff, function), share);
    bool exceeds = function->difference != 0 && function->probability <= limit;
    function->noise = exceeds ? DIFF_EXCEEDS_NOISE : DIFF_WITHIN_NOISE;
}

static bool classify_all(const struct comparison *all, struct diff *diff)
{
    if (all->count_column < 0) return true;
    struct sample_counts *counts = calloc(diff->count + 1, sizeof(*counts));
    if (!counts) return false;
    double share = expected_share(all);
    for (size_t i = 0; i < diff->count; i++) counts[i] = counts_of(diff, &diff->functions[i]);
    diff->limit = noise_limit(counts, diff->count, share, diff->level);
    for (size_t i = 0; i < diff->count; i++) {
        classify(diff, &diff->functions[i], share, diff->limit);
        diff->exceeding_count += diff->functions[i].noise == DIFF_EXCEEDS_NOISE;
    }
    classify(diff, &diff->all, share, diff->level);
    free(counts);
    return true;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static bool prepare_sides(struct comparison *all, struct error *error)
{
    const struct diff_options *options = all->options;
    const struct grouping_options grouping = {.granularity = options->granularity,
                                              .no_inlines = options->no_inlines,
                                              .has_columns = options->has_columns,
                                              .names_unsymbolized = true};
    if (grouping_init(&all->grouping, all->profile, &grouping, error) != STATUS_OK) return false;
    for (int side = 0; side < SIDES; side++) {
        all->sides[side] = calloc(all->grouping.count + 1, sizeof(**all->sides));
        if (!all->sides[side]) return false;
    }
    return find_base_sets(all->profile, &all->is_base) && stack_tree_init(&all->tree, all->profile) &&
           group_sums_init(&all->sums, &all->grouping, &all->tree);
}

static bool compute(struct comparison *all, struct diff *diff)
{
    int64_t value_of_each = all->count_column >= 0 ? value_of_a_sample(all) : 0;
    for (int side = 0; side < SIDES; side++) {
        if (!sum_side(all, side, value_of_each)) return false;
    }
    if (all->options->normalizes) normalize(all);
    if (!list_functions(all, diff) || !classify_all(all, diff)) return false;
    qsort_r(diff->functions, diff->count, sizeof(*diff->functions), compare_functions, &all->grouping.names);
    return names_failed(&all->grouping.names, NULL) == STATUS_OK;
}

enum status diff_compute(const struct profile *profile, const struct diff_options *options, struct diff *ret_diff,
                         struct error *error)
{
    struct comparison all = {.profile = profile, .options = options, .count_column = diff_count_column(profile)};
    struct diff diff = {
        .value_index = options->value_index, .by_cumulative = options->by_cumulative, .level = options->level};
    bool is_done = prepare_sides(&all, error) && compute(&all, &diff);
    diff.names = all.grouping.names;
    all.grouping.names = (struct names){0};
    grouping_fini(&all.grouping);
    stack_tree_fini(&all.tree);
    group_sums_fini(&all.sums);
    free(all.is_base);
    for (int side = 0; side < SIDES; side++) free(all.sides[side]);
    if (!is_done) {
        diff_fini(&diff);
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to compare the profiles");
    }
    *ret_diff = diff;
    return STATUS_OK;
}

void diff_fini(struct diff *diff)
{
    free(diff->functions);
    names_fini(&diff->names);
    *diff = (struct diff){0};
}
