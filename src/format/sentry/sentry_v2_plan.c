/* Plans a chunk before it is written. The samples that are asked for are laid out as ticks in time order; what they use
 * of stacks and frames is numbered by first use and deduplicated.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v2_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "profile/time_line.h"

#include <stdlib.h>

enum {
    TICKS_MAX = 1 << 20,            /* a sample takes 50 bytes at least: more would not fit anyway */
    THINNED_NS = 990000000,         /* a second, less a tick of 101 Hz */
    CHUNK_FRAMES_MAX = 16 << 20,    /* likewise, at 3 bytes for a frame's index in a stack */
    DURATION_US_MAX = 66 * 1000000, /* facts §1.2 (13) */
};

enum status chunk_refuse(struct error *error, const char *reason)
{
    return error_set(error, STATUS_MALFORMED, 0, "%s", reason);
}

enum status chunk_refuse_size(struct error *error)
{
    return chunk_refuse(error, "profiling_exceed_size_limit: the chunk would be over 50 MiB");
}

enum status chunk_refuse_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
}

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

int64_t chunk_period_ns(const struct profile *profile)
{
    bool is_time = slice_equals_text(profile_slice(profile, profile->period_type.unit), "nanoseconds");
    return is_time && profile->period > 0 ? profile->period : 0;
}

/* The first tick at or behind LIMIT_NS of those that begin at TIME_NS. */
static uint64_t tick_at(uint64_t time_ns, uint64_t spacing, uint64_t limit_ns)
{
    if (limit_ns <= time_ns) return 0;
    uint64_t distance = limit_ns - time_ns;
    return distance / spacing + (distance % spacing != 0);
}

static bool add_tick(struct chunk_plan *plan, struct tick tick)
{
    if (plan->ticks.count == TICKS_MAX) return false;
    if (!array_reserve(&plan->ticks.items, &plan->ticks.capacity, plan->ticks.count + 1, sizeof(tick), TICKS_MAX)) {
        plan->no_memory = true;
        return false;
    }
    plan->ticks.items[plan->ticks.count++] = tick;
    return true;
}

/* Adds the ticks of SAMPLE, the first at TIME_NS, that the options choose. False if there are too many. */
static bool add_ticks(struct chunk_plan *plan, size_t sample, uint64_t time_ns)
{
    const struct sentry_v2_options *options = plan->options;
    uint64_t spacing = time_line_spacing_ns(plan->profile, sample, plan->period_ns);
    uint64_t first = 0, count = time_line_ticks(plan->profile, sample);
    if (options && (options->from_ns || options->to_ns)) {
        first = tick_at(time_ns, spacing, options->from_ns);
        uint64_t end = tick_at(time_ns, spacing, options->to_ns);
        if (count > end) count = end;
    }
    uint64_t step = options && options->thins_idle ? THINNED_NS / spacing + 1 : 1;
    for (uint64_t i = first; i < count; i = i + 1 < count && i + step >= count ? count - 1 : i + step) {
        if (!add_tick(plan, (struct tick){.time_ns = time_ns + i * spacing, .sample = (uint32_t)sample})) return false;
    }
    return true;
}

/* Equal times keep the order of the samples. */
static int compare_ticks(const void *left, const void *right)
{
    const struct tick *a = left, *b = right;
    if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
    return (a->sample > b->sample) - (a->sample < b->sample);
}

/* Whether a value tells how long SAMPLE lasted. */
static bool lasts(const struct profile *profile, size_t sample)
{
    return time_line_spacing_ns(profile, sample, 1) > 1;
}

static uint64_t first_tick_ns(const struct chunk_plan *plan)
{
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < plan->ticks.count; i++) {
        if (plan->ticks.items[i].time_ns < first_ns) first_ns = plan->ticks.items[i].time_ns;
    }
    return first_ns;
}

/* A receiver gives a sample the time until the next one of its thread, and the last of a thread none (facts §4.2): an
 * idle one ends what the last lasted. An end never makes a chunk too long. */
static bool add_ends(struct chunk_plan *plan)
{
    uint64_t limit_ns;
    if (__builtin_add_overflow(first_tick_ns(plan), DURATION_US_MAX * (uint64_t)1000, &limit_ns)) return true;
    size_t thread_count = plan->profile->threads.count, tick_count_before = plan->ticks.count;
    size_t *last = calloc(thread_count, sizeof(*last)); /* of each thread, plus one */
    plan->no_memory = !last;
    for (size_t i = 0; last && i < tick_count_before; i++) {
        uint32_t thread = plan->profile->samples.thread[plan->ticks.items[i].sample].index;
        if (!last[thread] || compare_ticks(&plan->ticks.items[i], &plan->ticks.items[last[thread] - 1]) > 0) {
            last[thread] = i + 1;
        }
    }
    bool fits = last != NULL;
    for (size_t i = 0; i < thread_count && fits; i++) {
        if (!last[i]) continue;
        struct tick end = plan->ticks.items[last[i] - 1];
        uint64_t start_ns = end.time_ns;
        bool is_idle = plan->profile->samples.stack[end.sample].index == 0;
        if (!lasts(plan->profile, end.sample)) continue;
        uint64_t spacing = time_line_spacing_ns(plan->profile, end.sample, plan->period_ns);
        if (__builtin_add_overflow(start_ns, spacing, &end.time_ns)) continue;
        if (end.time_ns > limit_ns) end.time_ns = limit_ns;
        end.is_end = true;
        if (end.time_ns > start_ns && !is_idle) fits = add_tick(plan, end);
    }
    free(last);
    return fits;
}

/* Where a profile has no times, the samples of each thread follow one another from the profile's start on. */
static enum status lay_out_ticks(struct chunk_plan *plan, struct error *error)
{
    const struct profile *profile = plan->profile;
    uint64_t *ends = calloc(profile->threads.count, sizeof(*ends));
    bool fits = ends != NULL;
    plan->no_memory = !ends;
    for (size_t i = 0; fits && i < profile->samples.count; i++) {
        uint64_t time_ns = profile->samples.time_ns[i];
        if (!profile->has_times) {
            uint64_t *end = &ends[profile->samples.thread[i].index], length;
            time_ns = profile->time_ns + *end;
            uint64_t spacing = time_line_spacing_ns(profile, i, plan->period_ns);
            if (__builtin_mul_overflow(time_line_ticks(profile, i), spacing, &length) ||
                __builtin_add_overflow(*end, length, end))
                fits = false;
        }
        fits = fits && add_ticks(plan, i, time_ns);
    }
    free(ends);
    fits = fits && add_ends(plan);
    if (plan->no_memory) return chunk_refuse_memory(error);
    if (!fits) return chunk_refuse_size(error);
    if (plan->ticks.count) qsort(plan->ticks.items, plan->ticks.count, sizeof(struct tick), compare_ticks);
    return STATUS_OK;
}

/* --- Stacks and frames -------------------------------------------------------------------------------------------- */

static bool frame_equal(const void *context, uint32_t index, const void *key)
{
    const struct chunk_plan *plan = context;
    const struct written_frame *a = &plan->frames.items[index], *b = key;
    return a->address == b->address && a->line == b->line && a->column == b->column &&
           a->function.index == b->function.index && a->mapping.index == b->mapping.index &&
           a->attributes.index == b->attributes.index;
}

/* The number of FRAME, which is added if it is new. */
static uint32_t frame_number(struct chunk_plan *plan, const struct written_frame *frame)
{
    uint64_t hash = hash_mix(frame->address, (uint64_t)frame->line);
    hash = hash_mix(hash, (uint64_t)frame->function.index << 32 | frame->mapping.index);
    hash = hash_mix(hash, (uint64_t)frame->column ^ (uint64_t)frame->attributes.index << 32);
    uint32_t known = index_table_find(&plan->frames.index, hash, frame_equal, plan, frame);
    if (known != INDEX_NONE) return known;
    size_t count = plan->frames.count;
    if (!array_reserve(&plan->frames.items, &plan->frames.capacity, count + 1, sizeof(*frame), CHUNK_FRAMES_MAX) ||
        !index_table_add(&plan->frames.index, hash, (uint32_t)count)) {
        plan->no_memory = true;
        return 0;
    }
    plan->frames.items[count] = *frame;
    plan->frames.count++;
    plan->mapping_is_used[frame->mapping.index] = true;
    return (uint32_t)count;
}

static void append_frame(struct chunk_plan *plan, const struct written_frame *frame)
{
    size_t count = plan->frame_indices.count;
    if (!array_reserve(&plan->frame_indices.items, &plan->frame_indices.capacity, count + 1, sizeof(uint32_t),
                       CHUNK_FRAMES_MAX)) {
        plan->no_memory = true;
        return;
    }
    plan->frame_indices.items[count] = frame_number(plan, frame);
    plan->frame_indices.count++;
}

/* Inlined functions are frames of their own. For all but the leaf a receiver expects the address behind the call. */
static void append_location(struct chunk_plan *plan, const struct location *location, bool is_leaf)
{
    const struct line *lines = profile_lines(plan->profile, location);
    struct written_frame frame = {.address = location->address + (!is_leaf && location->address),
                                  .mapping = location->mapping,
                                  .attributes = location->attributes};
    if (location->line_count == 0) append_frame(plan, &frame);
    for (uint32_t i = 0; i < location->line_count; i++) {
        frame.function = lines[i].function;
        frame.line = lines[i].line;
        frame.column = lines[i].column;
        bool is_real = i + 1 == location->line_count; /* the others were inlined into it */
        frame.attributes = lines[i].attributes.index || !is_real ? lines[i].attributes : location->attributes;
        append_frame(plan, &frame);
    }
}

static bool stack_equal(const void *context, uint32_t index, const void *key)
{
    const struct chunk_plan *plan = context;
    const struct written_stack *a = &plan->stacks.items[index], *b = key;
    const uint32_t *frames = plan->frame_indices.items;
    return a->count == b->count &&
           (a->count == 0 || memcmp(frames + a->first, frames + b->first, a->count * sizeof(*frames)) == 0);
}

/* The number of the stack whose frames were appended from FIRST on; they are taken off again if it is known. */
static uint32_t finish_stack(struct chunk_plan *plan, uint32_t first)
{
    struct written_stack stack = {.first = first, .count = (uint32_t)plan->frame_indices.count - first};
    uint64_t hash = stack.count ? hash_bytes(plan->frame_indices.items + first, stack.count * sizeof(uint32_t)) : 0;
    uint32_t known = index_table_find(&plan->stacks.index, hash, stack_equal, plan, &stack);
    if (known != INDEX_NONE) {
        plan->frame_indices.count = first;
        return known;
    }
    size_t count = plan->stacks.count;
    if (!array_reserve(&plan->stacks.items, &plan->stacks.capacity, count + 1, sizeof(stack), TICKS_MAX) ||
        !index_table_add(&plan->stacks.index, hash, (uint32_t)count)) {
        plan->no_memory = true;
        return 0;
    }
    plan->stacks.items[count] = stack;
    plan->stacks.count++;
    return (uint32_t)count;
}

static uint32_t stack_number(struct chunk_plan *plan, struct stack_id id)
{
    uint32_t *known = &plan->stack_numbers[id.index];
    if (*known) return *known - 1;
    uint32_t first = (uint32_t)plan->frame_indices.count;
    for (struct stack_id at = id; at.index && !plan->no_memory;) {
        struct stack stack = profile_stack(plan->profile, at);
        append_location(plan, profile_location(plan->profile, stack.location), at.index == id.index);
        at = stack.parent;
    }
    uint32_t number = finish_stack(plan, first);
    *known = number + 1;
    return number;
}

static enum status number_stacks(struct chunk_plan *plan, struct error *error)
{
    const struct sample_columns *samples = &plan->profile->samples;
    for (size_t i = 0; i < plan->ticks.count && !plan->no_memory; i++) {
        struct tick *tick = &plan->ticks.items[i];
        uint32_t thread = samples->thread[tick->sample].index;
        tick->stack = stack_number(plan, tick->is_end ? (struct stack_id){0} : samples->stack[tick->sample]);
        plan->thread_samples[thread]++;
    }
    if (!plan->no_memory) return STATUS_OK;
    return plan->frame_indices.count >= CHUNK_FRAMES_MAX ? chunk_refuse_size(error) : chunk_refuse_memory(error);
}

/* --- The whole -------------------------------------------------------------------------------------------------------
 */

uint64_t chunk_microseconds(uint64_t time_ns)
{
    return time_ns / 1000 + (time_ns % 1000 >= 500);
}

enum status chunk_plan_make(struct chunk_plan *plan, const struct profile *profile,
                            const struct sentry_v2_options *options, struct error *error)
{
    plan->profile = profile;
    plan->options = options;
    plan->period_ns = time_line_period_ns(profile);
    plan->stack_numbers = calloc(profile->stacks.count, sizeof(*plan->stack_numbers));
    plan->thread_samples = calloc(profile->threads.count, sizeof(*plan->thread_samples));
    plan->mapping_is_used = calloc(profile->mappings.count, sizeof(*plan->mapping_is_used));
    if (!plan->stack_numbers || !plan->thread_samples || !plan->mapping_is_used) {
        return chunk_refuse_memory(error);
    }
    enum status status = lay_out_ticks(plan, error);
    if (status == STATUS_OK) status = number_stacks(plan, error);
    return status;
}

void chunk_plan_fini(struct chunk_plan *plan)
{
    free(plan->ticks.items);
    free(plan->frames.items);
    index_table_fini(&plan->frames.index);
    free(plan->stacks.items);
    index_table_fini(&plan->stacks.index);
    free(plan->frame_indices.items);
    free(plan->stack_numbers);
    free(plan->thread_samples);
    free(plan->mapping_is_used);
}
