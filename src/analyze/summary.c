/* Counts, one pass a table: a parent's index is below its children's, so that depths follow in order.
 * SPDX-License-Identifier: MIT */
#include "analyze/summary.h"

#include "base/ranked_bits.h"

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

/* There are tens of millions of stacks in large profiles, mostly each the child of the one before it. Only the depths
 * of those are kept that branches name as their parent, in the order of the stacks. */
struct depths {
    uint32_t *frames; /* by location: itself and what is inlined into it */
    struct ranked_bits forks;
    uint32_t *kept; /* by rank in FORKS */
};

static bool depths_init(struct depths *depths, const struct profile *profile)
{
    depths->frames = calloc(profile->locations.count, sizeof(*depths->frames));
    if (!depths->frames || !ranked_bits_init(&depths->forks, profile->stacks.count)) return false;
    for (size_t i = 0; i < profile->locations.count; i++) {
        uint32_t lines = profile->locations.items[i].line_count;
        depths->frames[i] = lines ? lines : 1;
    }
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        if (!profile_is_stack(profile, i)) ranked_bits_add(&depths->forks, profile->stacks.items[i] & ~PROFILE_BRANCH);
    }
    depths->kept = calloc((size_t)ranked_bits_count(&depths->forks) + 1, sizeof(*depths->kept));
    return depths->kept != NULL;
}

static void depths_fini(struct depths *depths)
{
    free(depths->frames);
    ranked_bits_fini(&depths->forks);
    free(depths->kept);
}

static inline uint32_t *depth_of_fork(const struct depths *depths, uint32_t branch)
{
    return &depths->kept[ranked_bits_rank(&depths->forks, branch & ~PROFILE_BRANCH)];
}

/* What two branches further on need: without it, most of the time is spent waiting for memory. */
static inline void fetch_ahead(const struct depths *depths, const uint32_t *words, size_t left)
{
    enum { AHEAD = 128 };
    if (left <= (size_t)2 * AHEAD) return;
    uint32_t near = words[AHEAD], far = words[2 * AHEAD];
    if (far & PROFILE_BRANCH) ranked_bits_prefetch(&depths->forks, far & ~PROFILE_BRANCH);
    if (near & PROFILE_BRANCH) __builtin_prefetch(depth_of_fork(depths, near));
}

static void measure_stacks(const struct profile *profile, struct summary *summary, const struct ranked_bits *sampled,
                           struct depths *depths)
{
    const uint32_t *words = profile->stacks.items;
    /* They come in their order. The first, if it is a fork, is the empty stack, whose depth is 0. */
    uint32_t *next_kept = depths->kept + ranked_bits_has(&depths->forks, 0);
    size_t depth = 0;
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        fetch_ahead(depths, words + i, profile->stacks.count - i);
        if (!profile_is_stack(profile, i)) {
            depth = *depth_of_fork(depths, words[i]);
            continue;
        }
        depth += depths->frames[words[i]];
        if (ranked_bits_has(&depths->forks, i)) *next_kept++ = depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX;
        if (ranked_bits_has(sampled, i) && depth > summary->deepest_stack) summary->deepest_stack = depth;
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
    struct ranked_bits sampled;
    struct depths depths = {0};
    summary.thread_samples = calloc(profile->threads.count, sizeof(*summary.thread_samples));
    bool has_memory =
        ranked_bits_init(&sampled, profile->stacks.count) && depths_init(&depths, profile) && summary.thread_samples;
    if (has_memory) {
        count_samples(profile, &summary, &sampled);
        measure_stacks(profile, &summary, &sampled, &depths);
        count_tables(profile, &summary);
        *ret_summary = summary;
    } else {
        summary_fini(&summary);
    }
    ranked_bits_fini(&sampled);
    depths_fini(&depths);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to sum the profile up");
}

void summary_fini(struct summary *summary)
{
    free(summary->thread_samples);
    *summary = (struct summary){0};
}
