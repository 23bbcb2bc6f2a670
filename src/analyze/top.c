/* The hottest functions, in one walk over the tree of stacks for each thread or process.
 *
 * A function's total grows by a stack's sum where the function appears for the first time on the way from the root,
 * which counts recursion once. The cost is that of the distinct stacks, not of the samples times their depth.
 * SPDX-License-Identifier: MIT */
#include "analyze/top.h"

#include "analyze/place_name.h"
#include "analyze/stack_tree.h"
#include "analyze/totals.h"

#include <stdlib.h>

/* The functions of one name: what the walk counts, as little as can be, for it goes everywhere in it. */
struct group {
    int64_t self, total;
    uint32_t active; /* frames of it on the way from the root to where the walk is */
    bool is_used;    /* it is in the current group's stacks */
};

struct group_names {
    struct string_id name, file, package;
};

struct computation {
    struct profile *profile;
    const struct top_options *options;
    struct group *groups; /* [0] is for frames without name and address */
    struct group_names *names;
    size_t group_count;
    uint32_t *group_of_name; /* by string; 0: no group yet */
    uint32_t *groups_at;     /* by location: its group, or where in LISTS its groups are, marked */
    uint32_t *lists;         /* how many, and the groups, innermost first: of locations that have several */
    struct stack_tree tree;
    uint32_t *used; /* those of the current thread or process */
    size_t used_count;
    uint32_t *sample_order;     /* samples, group by group */
    size_t *group_first;        /* by group: its first place in sample_order; one more at the end */
    struct processes processes; /* TOP_BY_PROCESS */
    bool *is_base;              /* by label set: samples of the base of a difference; NULL: there are none */
};

/* --- Names -------------------------------------------------------------------------------------------------------- */

static struct string_id name_of_function(const struct function *function)
{
    return function->name.index ? function->name : function->system_name;
}

/* The group called NAME; FUNCTION and MAPPING say where a new one lives. */
static uint32_t group_of(struct computation *all, struct string_id name, const struct function *function,
                         const struct mapping *mapping)
{
    uint32_t *place = &all->group_of_name[name.index];
    if (name.index == 0 || *place) return *place;
    struct group_names *names = &all->names[all->group_count];
    *names = (struct group_names){.name = name, .file = function->file_name, .package = mapping->file_name};
    if (names->package.index == 0) names->package = function->package;
    *place = (uint32_t)all->group_count++;
    return *place;
}

static void name_nameless(struct computation *all, struct string_id *names)
{
    struct profile *profile = all->profile;
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct line *lines = profile_lines(profile, location);
        bool is_nameless = location->line_count == 0;
        for (uint32_t l = 0; l < location->line_count && !is_nameless; l++) {
            is_nameless = name_of_function(profile_function(profile, lines[l].function)).index == 0;
        }
        if (is_nameless) names[i] = place_name(profile, location);
    }
}

/* Marks a place in LISTS. */
#define SEVERAL 0x80000000u

/* Frames without a name of their own are called by NAMES, one for each location. */
static void group_locations(struct computation *all, const struct string_id *names)
{
    const struct profile *profile = all->profile;
    const struct function *nobody = profile_function(profile, (struct function_id){0});
    uint32_t list_size = 0;
    for (uint32_t i = 0; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct mapping *mapping = profile_mapping(profile, location->mapping);
        const struct line *lines = profile_lines(profile, location);
        uint32_t *list = &all->lists[list_size];
        list[0] = location->line_count;
        for (uint32_t l = 0; l < location->line_count; l++) {
            const struct function *function = profile_function(profile, lines[l].function);
            struct string_id name = name_of_function(function);
            list[1 + l] = group_of(all, name.index ? name : names[i], function, mapping);
        }
        if (location->line_count == 0) list[1] = group_of(all, names[i], nobody, mapping);
        bool has_several = location->line_count > 1;
        all->groups_at[i] = has_several ? list_size | SEVERAL : list[1];
        if (has_several) list_size += 1 + location->line_count;
    }
}

/* The groups of LOCATION's frames, innermost first; at least one. */
static inline const uint32_t *groups_of(const struct computation *all, uint32_t location, uint32_t *ret_count)
{
    const uint32_t *at = &all->groups_at[location];
    *ret_count = 1;
    if (!(*at & SEVERAL)) return at;
    at = &all->lists[*at & ~SEVERAL];
    *ret_count = at[0];
    return at + 1;
}

/* Strings are added first, so that the table by string is made once, in its final size. */
static bool make_groups(struct computation *all)
{
    struct profile *profile = all->profile;
    size_t location_count = profile->locations.count;
    struct string_id *names = calloc(location_count, sizeof(*names));
    if (!names) return false;
    name_nameless(all, names);
    /* No more groups than there are functions and locations, one name each, and the nameless. */
    size_t group_max = profile->functions.count + location_count + 1;
    all->groups = calloc(group_max, sizeof(*all->groups));
    all->names = calloc(group_max, sizeof(*all->names));
    all->used = calloc(group_max, sizeof(*all->used));
    all->group_of_name = calloc(profile->strings.count, sizeof(*all->group_of_name));
    all->groups_at = calloc(location_count, sizeof(*all->groups_at));
    all->lists = calloc(profile->lines.count + location_count + 2, sizeof(*all->lists));
    bool is_made = all->groups && all->names && all->used && all->group_of_name && all->groups_at && all->lists;
    if (is_made) {
        all->group_count = 1;
        group_locations(all, names);
    }
    free(names);
    return is_made && profile->failed == STATUS_OK;
}

/* --- The walk ------------------------------------------------------------------------------------------------------
 */

static inline void enter_frame(struct computation *all, uint32_t index)
{
    struct group *group = &all->groups[index];
    if (!group->is_used) {
        group->is_used = true;
        group->self = group->total = 0;
        all->used[all->used_count++] = index;
    }
    group->active++;
}

static void enter(struct computation *all, const struct stack_visit *visit)
{
    const uint32_t *locations = all->profile->stacks.items;
    uint32_t count;
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        const uint32_t *groups = groups_of(all, locations[stack], &count);
        for (uint32_t i = 0; i < count; i++) enter_frame(all, groups[i]);
    }
    struct group *innermost = &all->groups[groups_of(all, locations[visit->last], &count)[0]];
    innermost->self = profile_add_values(innermost->self, visit->value);
}

static void leave(struct computation *all, const struct stack_visit *visit)
{
    const uint32_t *locations = all->profile->stacks.items;
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        uint32_t count;
        const uint32_t *groups = groups_of(all, locations[stack], &count);
        for (uint32_t i = 0; i < count; i++) {
            struct group *group = &all->groups[groups[i]];
            if (--group->active == 0) group->total = profile_add_values(group->total, visit->value);
        }
    }
}

static void walk(struct computation *all)
{
    struct stack_visit visit;
    all->used_count = 0;
    while (stack_tree_next(&all->tree, &visit)) {
        if (visit.is_entry) {
            enter(all, &visit);
        } else {
            leave(all, &visit);
        }
    }
}

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
static void add_samples(struct computation *all, size_t first, size_t end, struct top_group *group)
{
    const struct profile *profile = all->profile;
    uint64_t earliest = UINT64_MAX, latest = 0;
    int64_t base_total = 0;
    for (size_t i = first; i < end; i++) {
        uint32_t sample = all->sample_order[i];
        uint64_t time_ns = profile->samples.time_ns[sample];
        int64_t value = profile->samples.values[sample * profile->value_type_count + all->options->value_index];
        if (time_ns < earliest) earliest = time_ns;
        if (time_ns > latest) latest = time_ns;
        if (value == 0) continue;
        stack_tree_add(&all->tree, profile->samples.stack[sample], value);
        group->total = profile_add_values(group->total, magnitude_of(value));
        bool is_base = all->is_base && all->is_base[profile->samples.labels[sample].index];
        if (is_base) base_total = profile_add_values(base_total, magnitude_of(value));
    }
    if (base_total > 0) group->total = base_total;
    bool is_part = all->options->grouping != TOP_OF_ALL;
    if (is_part && profile->has_times && latest > earliest) group->duration_ns = latest - earliest;
}

struct order {
    const struct profile *profile;
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
    return strcmp(profile_c_string(order->profile, a->name), profile_c_string(order->profile, b->name));
}

static bool take_functions(struct computation *all, struct top_group *part)
{
    part->functions = calloc(all->used_count + 1, sizeof(*part->functions));
    if (!part->functions) return false;
    for (size_t i = 0; i < all->used_count; i++) {
        struct group *group = &all->groups[all->used[i]];
        group->is_used = false;
        if (group->self == 0 && group->total == 0) continue;
        const struct group_names *names = &all->names[all->used[i]];
        part->functions[part->function_count++] = (struct top_function){.name = names->name,
                                                                        .file = names->file,
                                                                        .package = names->package,
                                                                        .self = group->self,
                                                                        .total = group->total};
    }
    struct order order = {.profile = all->profile, .by_cumulative = all->options->by_cumulative};
    qsort_r(part->functions, part->function_count, sizeof(*part->functions), compare_functions, &order);
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
    if (!top->groups || !order_samples(all, group_count) || !stack_tree_init(&all->tree, all->profile)) return false;
    for (uint32_t g = 0; g < group_count; g++) {
        size_t first = all->group_first[g], end = all->group_first[g + 1];
        if (first == end && grouping != TOP_OF_ALL) continue;
        struct top_group *group = &top->groups[top->group_count++];
        if (grouping == TOP_BY_THREAD) group->thread.index = g;
        if (grouping == TOP_BY_PROCESS) group->process = all->processes.items[g];
        add_samples(all, first, end, group);
        walk(all);
        if (!take_functions(all, group)) return false;
        top->total = profile_add_values(top->total, group->total);
    }
    if (grouping == TOP_BY_PROCESS) qsort(top->groups, top->group_count, sizeof(*top->groups), compare_totals);
    return true;
}

enum status top_compute(struct profile *profile, const struct top_options *options, struct top *ret_top,
                        struct error *error)
{
    struct computation all = {.profile = profile, .options = options};
    struct top top = {.value_index = options->value_index, .grouping = options->grouping};
    bool is_done = find_base_sets(profile, &all.is_base) && make_groups(&all) && compute_groups(&all, &top);
    free(all.groups);
    free(all.names);
    free(all.group_of_name);
    free(all.groups_at);
    free(all.lists);
    stack_tree_fini(&all.tree);
    free(all.used);
    free(all.sample_order);
    free(all.group_first);
    free(all.is_base);
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
    *top = (struct top){0};
}
