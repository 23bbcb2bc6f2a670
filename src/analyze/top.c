/* The hottest functions, in one walk over the tree of stacks for each thread or process.
 * SPDX-License-Identifier: MIT */
#include "analyze/top.h"

#include "analyze/group_sums.h"
#include "analyze/totals.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

struct computation {
    const struct profile *profile;
    const struct top_options *options;
    struct grouping grouping;
    struct group_sums sums; /* sums of the current thread or process */
    struct stack_tree tree;
    uint32_t *sample_order;     /* samples, group by group */
    size_t *group_first;        /* first place of each group in sample_order; one more at the end */
    struct processes processes; /* TOP_BY_PROCESS */
    bool *is_base;              /* marks of the label sets of a difference's base; NULL: there are none */
    size_t *stated_samples;     /* sample with the thread and labels of each stated function, or SIZE_MAX */
    bool *is_stated;            /* marks of the stated functions of the current thread or process */
};

/* --- Groups -------------------------------------------------------------------------------------------------------
 */

static uint32_t group_of_sample(const struct computation *all, size_t sample)
{
    switch (all->options->grouping) {
    case TOP_OF_ALL:
        return 0;
    case TOP_BY_THREAD:
        return all->profile->samples.thread[sample].index;
    case TOP_BY_PROCESS:
        return process_of_sample(&all->processes, all->profile, sample);
    }
    return 0;
}

static size_t group_count_max(const struct computation *all)
{
    switch (all->options->grouping) {
    case TOP_OF_ALL:
        return 1;
    case TOP_BY_THREAD:
        return all->profile->threads.count;
    case TOP_BY_PROCESS:
        return all->processes.count;
    }
    return 1;
}

/* Sorts the samples by group: counts, places, and the start of each group. */
static bool order_samples(struct computation *all, size_t group_count)
{
    size_t sample_count = all->profile->samples.count;
    all->sample_order = calloc(sample_count + 1, sizeof(*all->sample_order));
    all->group_first = calloc(group_count + 2, sizeof(*all->group_first));
    if (!all->sample_order || !all->group_first) return false;
    /* Shifted by two, so that filling leaves each group's start at its own place. */
    for (size_t i = 0; i < sample_count; i++) {
        all->group_first[group_of_sample(all, i) + 2]++;
    }
    for (size_t g = 2; g <= group_count; g++) all->group_first[g] += all->group_first[g - 1];
    for (size_t i = 0; i < sample_count; i++) {
        all->sample_order[all->group_first[group_of_sample(all, i) + 1]++] = (uint32_t)i;
    }
    return true;
}

/* Adds one group's samples to the tree. Of a difference, the base is the total, as pprof has it. */
static void add_samples(struct computation *all, size_t first, size_t end, size_t column, struct top_group *group)
{
    const struct profile *profile = all->profile;
    uint64_t earliest = UINT64_MAX, latest = 0;
    int64_t base_total = 0, divisor = 0, base_divisor = 0;
    for (size_t i = first; i < end; i++) {
        uint32_t sample = all->sample_order[i];
        uint64_t time_ns = profile->samples.time_ns[sample];
        const int64_t *values = profile_sample_values(profile, sample);
        bool is_base = all->is_base && all->is_base[profile->samples.labels[sample].index];
        if (time_ns < earliest) earliest = time_ns;
        if (time_ns > latest) latest = time_ns;
        if (all->options->is_mean) divisor = profile_add_values(divisor, values[0]);
        if (all->options->is_mean && is_base) base_divisor = profile_add_values(base_divisor, values[0]);
        if (values[column] == 0) continue;
        stack_tree_add(&all->tree, profile->samples.stack[sample], values[column]);
        group->total = profile_add_values(group->total, magnitude_of(values[column]));
        if (is_base) base_total = profile_add_values(base_total, magnitude_of(values[column]));
    }
    group->total = base_total > 0 ? mean_of(base_total, base_divisor) : mean_of(group->total, divisor);
    bool is_part = all->options->grouping != TOP_OF_ALL;
    if (is_part && profile->has_times && latest > earliest) group->duration_ns = latest - earliest;
}

struct order {
    const struct names *names;
    bool by_cumulative;
};

static int compare_functions(const void *left, const void *right, void *context)
{
    const struct top_function *a = left, *b = right;
    const struct order *order = context;
    int64_t self[] = {magnitude_of(a->self), magnitude_of(b->self)},
            total[] = {magnitude_of(a->total), magnitude_of(b->total)};
    const int64_t *first = order->by_cumulative ? total : self, *second = order->by_cumulative ? self : total;
    if (first[0] != first[1]) return first[0] > first[1] ? -1 : 1;
    if (second[0] != second[1]) return second[0] > second[1] ? -1 : 1;
    return strcmp(names_text(order->names, a->name), names_text(order->names, b->name));
}

static struct top_function describe(const struct computation *all, uint32_t index)
{
    const struct group *group = &all->grouping.items[index];
    const struct function *function = profile_function(all->profile, group->function);
    struct string_id package = profile_mapping(all->profile, group->mapping)->file_name;
    return (struct top_function){.name = group->printable,
                                 .file = function->file_name,
                                 .package = package.index ? package : function->package,
                                 .self = all->sums.self[index],
                                 .total = all->sums.total[index]};
}

static bool take_functions(struct computation *all, struct top_group *part)
{
    const struct group_sums *sums = &all->sums;
    part->functions = calloc(sums->used_count + 1, sizeof(*part->functions));
    if (!part->functions) return false;
    for (size_t i = 0; i < sums->used_count; i++) {
        int64_t self = sums->self[sums->used[i]], total = sums->total[sums->used[i]];
        bool is_negative = self < 0 || (self == 0 && total < 0);
        if ((self == 0 && total == 0) || (is_negative && all->options->drops_negative)) continue;
        part->functions[part->function_count++] = describe(all, sums->used[i]);
    }
    return true;
}

/* Finds the samples that tell the thread or process of each stated function. */
static bool place_stated(struct computation *all)
{
    const struct stated_costs *stated = all->profile->stated;
    if (!stated) return true;
    all->stated_samples = calloc(stated->functions.count + 1, sizeof(*all->stated_samples));
    all->is_stated = calloc(stated->functions.count + 1, sizeof(*all->is_stated));
    return all->stated_samples && all->is_stated && stated_costs_find_samples(all->profile, all->stated_samples);
}

/* Sums column COLUMN over the samples of group INDEX, as the file states it or along the stacks. */
static bool sum_group(struct computation *all, struct group_sums *sums, uint32_t index, size_t column)
{
    const struct stated_costs *stated = all->profile->stated;
    bool is_all = all->options->grouping == TOP_OF_ALL;
    group_sums_walk(sums, &all->tree);
    if (!stated) return true;
    for (size_t i = 0; i < stated->functions.count && !is_all; i++) {
        size_t sample = all->stated_samples[i];
        all->is_stated[i] = sample != SIZE_MAX && group_of_sample(all, sample) == index;
    }
    return group_sums_take_stated(sums, column, is_all ? NULL : all->is_stated);
}

/* Divides the sums of the functions by their sums of the first value, which a second walk finds. */
static bool divide_sums(struct computation *all, uint32_t index)
{
    struct group_sums divisors;
    struct top_group ignored = {0};
    bool has_memory = group_sums_init(&divisors, &all->grouping, &all->tree);
    if (has_memory) {
        add_samples(all, all->group_first[index], all->group_first[index + 1], 0, &ignored);
        has_memory = sum_group(all, &divisors, index, 0);
        for (size_t i = 0; has_memory && i < all->sums.used_count; i++) {
            uint32_t used = all->sums.used[i];
            all->sums.self[used] = mean_of(all->sums.self[used], divisors.self[used]);
            all->sums.total[used] = mean_of(all->sums.total[used], divisors.total[used]);
        }
    }
    group_sums_fini(&divisors);
    return has_memory;
}

static bool compute_group(struct computation *all, uint32_t index, struct top_group *group)
{
    size_t first = all->group_first[index], end = all->group_first[index + 1];
    add_samples(all, first, end, all->options->value_index, group);
    if (!sum_group(all, &all->sums, index, all->options->value_index)) return false;
    if (all->options->is_mean && !divide_sums(all, index)) return false;
    if (!take_functions(all, group)) return false;
    group_sums_clear(&all->sums);
    struct order order = {.names = &all->grouping.names, .by_cumulative = all->options->by_cumulative};
    qsort_r(group->functions, group->function_count, sizeof(*group->functions), compare_functions, &order);
    return true;
}

static int compare_totals(const void *left, const void *right)
{
    const struct top_group *a = left, *b = right;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    return (a->process.pid > b->process.pid) - (a->process.pid < b->process.pid);
}

static bool compute_groups(struct computation *all, struct top *top)
{
    enum top_grouping grouping = all->options->grouping;
    if (grouping == TOP_BY_PROCESS && !processes_find(&all->processes, all->profile)) return false;
    size_t group_count = group_count_max(all);
    top->groups = calloc(group_count, sizeof(*top->groups));
    if (!top->groups || !order_samples(all, group_count)) return false;
    for (uint32_t g = 0; g < group_count; g++) {
        if (all->group_first[g] == all->group_first[g + 1] && grouping != TOP_OF_ALL) continue;
        struct top_group *group = &top->groups[top->group_count++];
        if (grouping == TOP_BY_THREAD) group->thread.index = g;
        if (grouping == TOP_BY_PROCESS) group->process = all->processes.items[g];
        if (!compute_group(all, g, group)) return false;
        top->total = profile_add_values(top->total, group->total);
    }
    if (grouping == TOP_BY_PROCESS) qsort(top->groups, top->group_count, sizeof(*top->groups), compare_totals);
    return true;
}

static bool make_groups(struct computation *all, struct error *error)
{
    const struct grouping_options grouping = {.granularity = all->options->granularity,
                                              .no_inlines = all->options->no_inlines,
                                              .has_columns = all->options->has_columns,
                                              .names_unsymbolized = true};
    return grouping_init(&all->grouping, all->profile, &grouping, error) == STATUS_OK &&
           stack_tree_init(&all->tree, all->profile) && group_sums_init(&all->sums, &all->grouping, &all->tree);
}

enum status top_compute(const struct profile *profile, const struct top_options *options, struct top *ret_top,
                        struct error *error)
{
    struct computation all = {.profile = profile, .options = options};
    struct top top = {.value_index = options->value_index, .grouping = options->grouping};
    bool is_done = make_groups(&all, error) && find_base_sets(profile, &all.is_base) && place_stated(&all) &&
                   compute_groups(&all, &top);
    top.names = all.grouping.names;
    all.grouping.names = (struct names){0};
    grouping_fini(&all.grouping);
    group_sums_fini(&all.sums);
    stack_tree_fini(&all.tree);
    free(all.sample_order);
    free(all.group_first);
    free(all.is_base);
    free(all.stated_samples);
    free(all.is_stated);
    processes_fini(&all.processes);
    if (!is_done) {
        top_fini(&top);
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to find the hottest functions");
    }
    *ret_top = top;
    return STATUS_OK;
}

void top_fini(struct top *top)
{
    for (size_t i = 0; i < top->group_count; i++) free(top->groups[i].functions);
    free(top->groups);
    names_fini(&top->names);
    *top = (struct top){0};
}
