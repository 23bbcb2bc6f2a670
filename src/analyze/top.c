/* The hottest functions, in one walk over the tree of stacks for each thread.
 *
 * A function's total grows by a stack's sum where the function appears for the first time on the way from the root,
 * which counts recursion once. The cost is that of the distinct stacks, not of the samples times their depth.
 * SPDX-License-Identifier: MIT */
#include "analyze/top.h"

#include "analyze/stack_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES_MAX = 4096 };

/* The functions of one name: what the walk counts, as little as can be, for it goes everywhere in it. */
struct group {
    int64_t self, total;
    uint32_t active; /* frames of it on the way from the root to where the walk is */
    bool is_used;    /* it is in the current thread's stacks */
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
    uint32_t *used; /* groups of the current thread */
    size_t used_count;
    uint32_t *sample_order; /* samples, thread by thread */
    size_t *thread_first;   /* by thread: its first place in sample_order; one more at the end */
};

static int64_t magnitude(int64_t value)
{
    if (value == INT64_MIN) return INT64_MAX;
    return value < 0 ? -value : value;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static struct string_id name_of_function(const struct function *function)
{
    return function->name.index ? function->name : function->system_name;
}

static struct string_id name_of_place(struct profile *profile, const struct location *location)
{
    char name[NAME_BYTES_MAX];
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    if (location->address == 0) return (struct string_id){0};
    if (location->mapping.index == 0 || mapping->file_name.index == 0) {
        (void)snprintf(name, sizeof(name), "0x%" PRIx64, location->address);
        return profile_text(profile, name);
    }
    const char *path = profile_c_string(profile, mapping->file_name);
    const char *slash = strrchr(path, '/');
    uint64_t file_address = mapping->image_start ? location->address - mapping->image_start + mapping->image_vmaddr
                                                 : location->address - mapping->start + mapping->file_offset;
    (void)snprintf(name, sizeof(name), "%.4000s+0x%" PRIx64, slash ? slash + 1 : path, file_address);
    return profile_text(profile, name);
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
        if (is_nameless) names[i] = name_of_place(profile, location);
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

/* --- Threads -------------------------------------------------------------------------------------------------------
 */

static uint32_t thread_of_sample(const struct computation *all, size_t sample)
{
    return all->options->by_thread ? all->profile->samples.thread[sample].index : 0;
}

/* Sorts the samples by thread: counts, places, and the start of each thread. */
static bool order_samples(struct computation *all, size_t thread_count)
{
    size_t sample_count = all->profile->samples.count;
    all->sample_order = calloc(sample_count + 1, sizeof(*all->sample_order));
    all->thread_first = calloc(thread_count + 2, sizeof(*all->thread_first));
    if (!all->sample_order || !all->thread_first) return false;
    /* Shifted by two, so that filling leaves each thread's start at its own place. */
    for (size_t i = 0; i < sample_count; i++) {
        all->thread_first[thread_of_sample(all, i) + 2]++;
    }
    for (size_t t = 2; t <= thread_count; t++) all->thread_first[t] += all->thread_first[t - 1];
    for (size_t i = 0; i < sample_count; i++) {
        all->sample_order[all->thread_first[thread_of_sample(all, i) + 1]++] = (uint32_t)i;
    }
    return true;
}

/* Adds one thread's samples to the tree. */
static void add_samples(struct computation *all, size_t first, size_t end, struct top_thread *thread)
{
    const struct profile *profile = all->profile;
    uint64_t earliest = UINT64_MAX, latest = 0;
    for (size_t i = first; i < end; i++) {
        uint32_t sample = all->sample_order[i];
        uint64_t time_ns = profile->samples.time_ns[sample];
        int64_t value = profile->samples.values[sample * profile->value_type_count + all->options->value_index];
        if (time_ns < earliest) earliest = time_ns;
        if (time_ns > latest) latest = time_ns;
        if (value == 0) continue;
        stack_tree_add(&all->tree, profile->samples.stack[sample], value);
        thread->total = profile_add_values(thread->total, magnitude(value));
    }
    if (all->options->by_thread && profile->has_times) thread->duration_ns = latest - earliest;
}

struct order {
    const struct profile *profile;
    bool by_cumulative;
};

static int compare_functions(const void *left, const void *right, void *context)
{
    const struct top_function *a = left, *b = right;
    const struct order *order = context;
    int64_t self[] = {magnitude(a->self), magnitude(b->self)}, total[] = {magnitude(a->total), magnitude(b->total)};
    const int64_t *first = order->by_cumulative ? total : self, *second = order->by_cumulative ? self : total;
    if (first[0] != first[1]) return first[0] > first[1] ? -1 : 1;
    if (second[0] != second[1]) return second[0] > second[1] ? -1 : 1;
    return strcmp(profile_c_string(order->profile, a->name), profile_c_string(order->profile, b->name));
}

static bool take_functions(struct computation *all, struct top_thread *thread)
{
    thread->functions = calloc(all->used_count + 1, sizeof(*thread->functions));
    if (!thread->functions) return false;
    for (size_t i = 0; i < all->used_count; i++) {
        struct group *group = &all->groups[all->used[i]];
        group->is_used = false;
        if (group->self == 0 && group->total == 0) continue;
        const struct group_names *names = &all->names[all->used[i]];
        thread->functions[thread->function_count++] = (struct top_function){.name = names->name,
                                                                            .file = names->file,
                                                                            .package = names->package,
                                                                            .self = group->self,
                                                                            .total = group->total};
    }
    struct order order = {.profile = all->profile, .by_cumulative = all->options->by_cumulative};
    qsort_r(thread->functions, thread->function_count, sizeof(*thread->functions), compare_functions, &order);
    return true;
}

static bool compute_threads(struct computation *all, struct top *top)
{
    size_t thread_count = all->options->by_thread ? all->profile->threads.count : 1;
    top->threads = calloc(thread_count, sizeof(*top->threads));
    if (!top->threads || !order_samples(all, thread_count) || !stack_tree_init(&all->tree, all->profile)) return false;
    for (uint32_t t = 0; t < thread_count; t++) {
        size_t first = all->thread_first[t], end = all->thread_first[t + 1];
        if (first == end && all->options->by_thread) continue;
        struct top_thread *thread = &top->threads[top->thread_count++];
        thread->thread.index = t;
        add_samples(all, first, end, thread);
        walk(all);
        if (!take_functions(all, thread)) return false;
        top->total = profile_add_values(top->total, thread->total);
    }
    return true;
}

enum status top_compute(struct profile *profile, const struct top_options *options, struct top *ret_top,
                        struct error *error)
{
    struct computation all = {.profile = profile, .options = options};
    struct top top = {.value_index = options->value_index, .by_thread = options->by_thread};
    bool is_done = make_groups(&all) && compute_threads(&all, &top);
    free(all.groups);
    free(all.names);
    free(all.group_of_name);
    free(all.groups_at);
    free(all.lists);
    stack_tree_fini(&all.tree);
    free(all.used);
    free(all.sample_order);
    free(all.thread_first);
    if (!is_done) {
        top_fini(&top);
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to find the hottest functions");
    }
    *ret_top = top;
    return STATUS_OK;
}

void top_fini(struct top *top)
{
    for (size_t t = 0; t < top->thread_count; t++) free(top->threads[t].functions);
    free(top->threads);
    *top = (struct top){0};
}
