/* Counts, one pass a table: a parent's index is below its children's, so that depths follow in order.
 * SPDX-License-Identifier: MIT */
#include "analyze/summary.h"

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

/* A bit for each stack. */
static bool take_bit(uint64_t *bits, uint32_t index)
{
    uint64_t bit = (uint64_t)1 << index % 64;
    bool was_set = bits[index / 64] & bit;
    bits[index / 64] |= bit;
    return was_set;
}

static void count_samples(const struct profile *profile, struct summary *summary, uint64_t *is_sampled)
{
    const struct sample_columns *samples = &profile->samples;
    bool is_counted = counts_samples(profile);
    summary->entry_count = samples->count;
    summary->first_ns = samples->count ? UINT64_MAX : 0;
    for (size_t i = 0; i < samples->count; i++) {
        summary->stack_count += !take_bit(is_sampled, samples->stack[i].index);
        int64_t count = is_counted ? profile_sample_values(profile, i)[0] : 1;
        if (count > 0) add_limited(&summary->sample_count, (uint64_t)count);
        if (count > 0) add_limited(&summary->thread_samples[samples->thread[i].index], (uint64_t)count);
        if (samples->time_ns[i] < summary->first_ns) summary->first_ns = samples->time_ns[i];
        if (samples->time_ns[i] > summary->last_ns) summary->last_ns = samples->time_ns[i];
    }
    if (!profile->has_times) summary->first_ns = summary->last_ns = 0;
}

/* There are tens of millions of stacks in large profiles, mostly each the child of the one before it: only every so
 * many have their depth kept. The others are a few steps, mostly to neighbours, away from one of these. */
enum { STACKS_A_DEPTH = 4 };

struct depths {
    uint32_t *frames; /* by location: itself and what is inlined into it */
    uint32_t *kept;   /* of every so many stacks */
};

static bool depths_init(struct depths *depths, const struct profile *profile)
{
    depths->frames = calloc(profile->locations.count, sizeof(*depths->frames));
    depths->kept = calloc(profile->stacks.count / STACKS_A_DEPTH + 1, sizeof(*depths->kept));
    if (!depths->frames || !depths->kept) return false;
    for (size_t i = 0; i < profile->locations.count; i++) {
        uint32_t lines = profile->locations.items[i].line_count;
        depths->frames[i] = lines ? lines : 1;
    }
    return true;
}

static void depths_fini(struct depths *depths)
{
    free(depths->frames);
    free(depths->kept);
}

/* Those up to STACK are kept. */
static size_t depth_of(const struct depths *depths, const struct stack *stacks, uint32_t stack)
{
    size_t depth = 0;
    for (; stack % STACKS_A_DEPTH != 0; stack = stacks[stack].parent.index) {
        depth += depths->frames[stacks[stack].location.index];
    }
    return depth + depths->kept[stack / STACKS_A_DEPTH];
}

/* Where the parent of a stack further on lies: without it, half of the time is spent waiting for memory. */
static inline void fetch_ahead(const struct profile *profile, const struct depths *depths, uint32_t stack)
{
    enum { AHEAD = 256 };
    if (profile->stacks.count - stack <= AHEAD) return;
    uint32_t parent = profile->stacks.items[stack + AHEAD].parent.index;
    __builtin_prefetch(&profile->stacks.items[parent]);
    __builtin_prefetch(&depths->kept[parent / STACKS_A_DEPTH]);
}

static void measure_stacks(const struct profile *profile, struct summary *summary, const uint64_t *is_sampled,
                           struct depths *depths)
{
    const struct stack *stacks = profile->stacks.items;
    size_t depth = 0;
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        fetch_ahead(profile, depths, i);
        if (stacks[i].parent.index != i - 1) depth = depth_of(depths, stacks, stacks[i].parent.index);
        depth += depths->frames[stacks[i].location.index];
        if (i % STACKS_A_DEPTH == 0)
            depths->kept[i / STACKS_A_DEPTH] = depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX;
        bool counts = is_sampled[i / 64] >> i % 64 & 1;
        if (counts && depth > summary->deepest_stack) summary->deepest_stack = depth;
    }
}

static void count_tables(const struct profile *profile, struct summary *summary)
{
    summary->frame_count = profile->locations.count - 1;
    summary->image_count = profile->mappings.count - 1;
    for (size_t i = 1; i < profile->locations.count; i++) {
        summary->nameless_count += is_nameless(profile, &profile->locations.items[i]);
    }
    for (size_t i = 0; i < summary->thread_table_count; i++) {
        summary->thread_count += i > 0 && summary->thread_samples[i] > 0;
    }
}

enum status summary_compute(const struct profile *profile, struct summary *ret_summary, struct error *error)
{
    struct summary summary = {.thread_table_count = profile->threads.count};
    uint64_t *is_sampled = calloc(profile->stacks.count / 64 + 1, sizeof(*is_sampled));
    struct depths depths = {0};
    summary.thread_samples = calloc(profile->threads.count, sizeof(*summary.thread_samples));
    bool has_memory = is_sampled && depths_init(&depths, profile) && summary.thread_samples;
    if (has_memory) {
        count_samples(profile, &summary, is_sampled);
        measure_stacks(profile, &summary, is_sampled, &depths);
        count_tables(profile, &summary);
        *ret_summary = summary;
    } else {
        summary_fini(&summary);
    }
    free(is_sampled);
    depths_fini(&depths);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to sum the profile up");
}

void summary_fini(struct summary *summary)
{
    free(summary->thread_samples);
    *summary = (struct summary){0};
}
