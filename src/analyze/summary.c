/* Counts, one pass a table: a parent run comes before its children, so that depths follow in order.
 * SPDX-License-Identifier: MIT */
#include "analyze/summary.h"

#include "analyze/stack_tree.h"
#include "profile/frame_kind.h"

#include <stdlib.h>

static bool is_nameless(const struct profile *profile, const struct location *location)
{
    const struct line *lines = profile_lines(profile, location);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct function *function = profile_function(profile, lines[i].function);
        if (function->name.index || function->system_name.index) return false;
    }
    return true;
}

static bool counts_samples(const struct profile *profile)
{
    const struct value_type *first = &profile->value_types[0];
    return profile->value_type_count > 0 && slice_equals_text(profile_slice(profile, first->type), "samples") &&
           slice_equals_text(profile_slice(profile, first->unit), "count");
}

static void add_limited(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum)) *sum = UINT64_MAX;
}

static void count_samples(const struct profile *profile, struct summary *summary, struct ranked_bits *sampled)
{
    const struct sample_columns *samples = &profile->samples;
    bool is_counted = counts_samples(profile);
    summary->entry_count = samples->count;
    summary->first_ns = samples->count ? UINT64_MAX : 0;
    for (size_t i = 0; i < samples->count; i++) {
        ranked_bits_add(sampled, samples->stack[i].index);
        int64_t count = is_counted ? profile_sample_values(profile, i)[0] : 1;
        if (count > 0) add_limited(&summary->sample_count, (uint64_t)count);
        if (count > 0) add_limited(&summary->thread_samples[samples->thread[i].index], (uint64_t)count);
        if (samples->time_ns[i] < summary->first_ns) summary->first_ns = samples->time_ns[i];
        if (samples->time_ns[i] > summary->last_ns) summary->last_ns = samples->time_ns[i];
    }
    summary->stack_count = ranked_bits_count(sampled);
    if (!profile->has_times) summary->first_ns = summary->last_ns = 0;
}

/* Returns the number of frames of each location: itself and inlined ones. NULL without memory. */
static uint32_t *count_frames(const struct profile *profile)
{
    uint32_t *frames = calloc(profile->locations.count, sizeof(*frames));
    for (size_t i = 0; frames && i < profile->locations.count; i++) {
        uint32_t lines = profile->locations.items[i].line_count;
        frames[i] = lines ? lines : 1;
    }
    return frames;
}

static uint32_t add_depths(uint32_t a, uint32_t b)
{
    return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

/* DEPTHS, by run, is filled. */
static void measure_runs(const struct stack_tree *tree, const uint32_t *frames, uint32_t *depths)
{
    enum { AHEAD = 16 }; /* in runs; a parent may be anywhere */
    for (uint32_t i = 1; i < tree->run_count; i++) {
        const struct stack_run *run = &tree->runs[i];
        uint32_t depth = depths[run->parent];
        if (tree->run_count - i > AHEAD) __builtin_prefetch(&depths[run[AHEAD].parent]);
        for (uint32_t stack = run->first; stack <= run->last; stack++)
            depth = add_depths(depth, frames[profile_stack_location(tree->profile, stack)]);
        depths[i] = depth;
    }
}

/* Each sampled stack is the last of its run. False without memory. */
static bool measure_stacks(const struct profile *profile, struct summary *summary, const struct ranked_bits *sampled)
{
    struct stack_tree tree;
    bool has_tree = stack_tree_init(&tree, profile);
    uint32_t *frames = count_frames(profile), *depths = has_tree ? calloc(tree.run_count, sizeof(*depths)) : NULL;
    bool has_memory = frames && depths;
    if (has_memory) measure_runs(&tree, frames, depths);
    for (uint32_t i = 1; has_memory && i < tree.run_count; i++) {
        if (depths[i] > summary->deepest_stack && ranked_bits_has(sampled, tree.runs[i].last))
            summary->deepest_stack = depths[i];
    }
    free(frames);
    free(depths);
    stack_tree_fini(&tree);
    return has_memory;
}

static void count_kinds(const struct profile *profile, const struct location *location, struct summary *summary)
{
    uint32_t inlined = location->line_count > 0 ? location->line_count - 1 : 0;
    summary->kinds[frame_kind_of(profile, location, inlined)]++;
    summary->kinds[FRAME_INLINED] += inlined;
}

static void count_tables(const struct profile *profile, struct summary *summary)
{
    summary->frame_count = profile->locations.count - 1;
    summary->image_count = profile->mappings.count - 1;
    for (size_t i = 1; i < profile->locations.count; i++) {
        summary->nameless_count += is_nameless(profile, &profile->locations.items[i]);
        count_kinds(profile, &profile->locations.items[i], summary);
    }
    for (size_t i = 0; i < summary->thread_table_count; i++) {
        summary->thread_count += i > 0 && summary->thread_samples[i] > 0;
    }
}

enum status summary_compute(const struct profile *profile, struct summary *ret_summary, struct error *error)
{
    struct summary summary = {.thread_table_count = profile->threads.count};
    struct ranked_bits sampled;
    summary.thread_samples = calloc(profile->threads.count, sizeof(*summary.thread_samples));
    bool has_memory = ranked_bits_init(&sampled, profile_stack_limit(profile)) && summary.thread_samples;
    if (has_memory) count_samples(profile, &summary, &sampled);
    has_memory = has_memory && measure_stacks(profile, &summary, &sampled);
    if (has_memory) {
        count_tables(profile, &summary);
        *ret_summary = summary;
    } else {
        summary_fini(&summary);
    }
    ranked_bits_fini(&sampled);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to sum the profile up");
}

void summary_fini(struct summary *summary)
{
    free(summary->thread_samples);
    *summary = (struct summary){0};
}

struct measurement_extent measurement_extent(const struct measurement *measurement)
{
    struct measurement_extent extent = {0};
    double sum = 0;
    for (size_t i = 0; i < measurement->count; i++) {
        double value = measurement->values[i].value;
        if (!__builtin_isfinite(value)) continue;
        if (extent.count == 0 || value < extent.least) extent.least = value;
        if (extent.count == 0 || value > extent.greatest) extent.greatest = value;
        extent.count++;
        sum += value;
    }
    if (extent.count > 0) extent.mean = sum / (double)extent.count;
    return extent;
}
