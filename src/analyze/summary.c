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

static bool has_bit(const uint64_t *bits, uint32_t index)
{
    return bits[index / 64] >> index % 64 & 1;
}

/* There are tens of millions of stacks in large profiles, mostly each the child of the one before it. Only the depths
 * of those are kept that are parents of others, in the order of the stacks. */
struct depths {
    uint32_t *frames; /* by location: itself and what is inlined into it */
    struct depth_block {
        uint64_t is_kept; /* a bit for each of 64 stacks */
        uint32_t before;  /* how many are kept of all stacks before these */
    } * blocks;
    uint32_t *kept;
};

static void mark_parents(struct depth_block *blocks, const uint32_t *words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (!(words[i] & PROFILE_BRANCH)) continue;
        uint32_t parent = words[i] & ~PROFILE_BRANCH;
        blocks[parent / 64].is_kept |= (uint64_t)1 << parent % 64;
    }
}

static bool depths_init(struct depths *depths, const struct profile *profile)
{
    size_t count = profile->stacks.count, block_count = count / 64 + 1;
    uint32_t kept_count = 0;
    depths->frames = calloc(profile->locations.count, sizeof(*depths->frames));
    depths->blocks = calloc(block_count, sizeof(*depths->blocks));
    if (!depths->frames || !depths->blocks) return false;
    for (size_t i = 0; i < profile->locations.count; i++) {
        uint32_t lines = profile->locations.items[i].line_count;
        depths->frames[i] = lines ? lines : 1;
    }
    mark_parents(depths->blocks, profile->stacks.items, count);
    for (size_t i = 0; i < block_count; i++) {
        depths->blocks[i].before = kept_count;
        kept_count += (uint32_t)__builtin_popcountll(depths->blocks[i].is_kept);
    }
    depths->kept = calloc((size_t)kept_count + 1, sizeof(*depths->kept));
    return depths->kept != NULL;
}

static void depths_fini(struct depths *depths)
{
    free(depths->frames);
    free(depths->blocks);
    free(depths->kept);
}

/* Where the depth of STACK is, if it is kept. */
static inline uint32_t *place_of(const struct depths *depths, uint32_t stack)
{
    const struct depth_block *block = &depths->blocks[stack / 64];
    uint64_t lower = block->is_kept & (((uint64_t)1 << stack % 64) - 1);
    return depths->kept + block->before + __builtin_popcountll(lower);
}

/* What two branches further on need: without it, most of the time is spent waiting for memory. */
static inline void fetch_ahead(const struct depths *depths, const uint32_t *words, size_t left)
{
    enum { AHEAD = 128 };
    if (left <= (size_t)2 * AHEAD) return;
    uint32_t near = words[AHEAD], far = words[2 * AHEAD];
    if (far & PROFILE_BRANCH) __builtin_prefetch(&depths->blocks[(far & ~PROFILE_BRANCH) / 64]);
    if (near & PROFILE_BRANCH) __builtin_prefetch(place_of(depths, near & ~PROFILE_BRANCH));
}

static void measure_stacks(const struct profile *profile, struct summary *summary, const uint64_t *is_sampled,
                           struct depths *depths)
{
    const uint32_t *words = profile->stacks.items;
    /* They come in their order. The first, if it is kept, is the empty stack's, and 0. */
    uint32_t *next_kept = depths->kept + (depths->blocks[0].is_kept & 1);
    size_t depth = 0;
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        fetch_ahead(depths, words + i, profile->stacks.count - i);
        if (words[i] & PROFILE_BRANCH) {
            depth = *place_of(depths, words[i] & ~PROFILE_BRANCH);
            continue;
        }
        depth += depths->frames[words[i]];
        bool is_kept = depths->blocks[i / 64].is_kept >> i % 64 & 1;
        if (is_kept) *next_kept++ = depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX;
        if (has_bit(is_sampled, i) && depth > summary->deepest_stack) summary->deepest_stack = depth;
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
