/* Plans a chunk before it is written. The samples that are asked for are laid out as ticks in time order; what they use
 * of stacks and frames is numbered by first use and deduplicated.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v2_private.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/hash.h"
#include "profile/sample_times.h"

#include <stdlib.h>

enum {
    TICKS_MAX = 1 << 20,            /* a sample takes 50 bytes at least: more would not fit anyway */
    THINNED_NS = 990000000,         /* a second, less a tick of 101 Hz */
    CHUNK_FRAMES_MAX = 16 << 20,    /* an index in a stack takes 3 bytes: more would not fit */
    DURATION_US_MAX = 66 * 1000000, /* facts §1.2 (13) */
};

#define V1_DURATION_NS_MAX (30 * SECOND_NS)

enum status chunk_reject(struct error *error, enum reject_reason reason, const char *message)
{
    return error_set(error, STATUS_MALFORMED, 0, "%s: %s", reject_reason_name(reason), message);
}

enum status chunk_no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
}

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

int64_t chunk_period_ns(const struct profile *profile)
{
    bool is_time = slice_equals_text(profile_slice(profile, profile->period_type.unit), "nanoseconds");
    return is_time && profile->period > 0 ? profile->period : 0;
}

/* Returns the number of the first tick at LIMIT_NS or later; tick 0 is at TIME_NS. */
static uint64_t tick_at(uint64_t time_ns, uint64_t spacing, uint64_t limit_ns)
{
    if (limit_ns <= time_ns) return 0;
    uint64_t distance = limit_ns - time_ns;
    return distance / spacing + (distance % spacing != 0);
}

static bool add_tick(struct chunk_plan *plan, struct tick tick)
{
    if (plan->ticks.count == TICKS_MAX) return false;
    struct tick *added = ARRAY_ADD(&plan->ticks, TICKS_MAX);
    if (added) *added = tick;
    plan->no_memory |= !added;
    return added != NULL;
}

/* Returns the value of SAMPLE in the column TYPE, a time; 0 if there is none. */
static uint64_t time_value_ns(const struct profile *profile, size_t sample, const char *type)
{
    for (size_t i = 1; i < profile->value_type_count; i++) {
        if (!slice_equals_text(profile_slice(profile, profile->value_types[i].type), type) ||
            !slice_equals_text(profile_slice(profile, profile->value_types[i].unit), "nanoseconds"))
            continue;
        int64_t value = profile_sample_values(profile, sample)[i];
        return value > 0 ? (uint64_t)value : 0;
    }
    return 0;
}

/* SES-12: whether the thread ran, or waited for a processor, in at least one of the ticks of SAMPLE, each SPACING_NS
 * long. Less than half a tick in all of them is a thread that woke up for a moment. */
static bool has_run(const struct profile *profile, size_t sample, uint64_t spacing_ns)
{
    uint64_t cpu_ns = time_value_ns(profile, sample, "cpu");
    return cpu_ns + time_value_ns(profile, sample, "runnable") >= spacing_ns / 2 + 1;
}

/* Adds the ticks of SAMPLE, the first at TIME_NS, that the options choose. False if there are too many. */
static bool add_ticks(struct chunk_plan *plan, size_t sample, uint64_t time_ns)
{
    const struct sentry_v2_options *options = plan->options;
    uint64_t spacing = sample_times_spacing_ns(plan->profile, sample, plan->period_ns);
    uint64_t first = 0, count = sample_ticks(plan->profile, sample);
    if (options && (options->from_ns || options->to_ns)) {
        first = tick_at(time_ns, spacing, options->from_ns);
        uint64_t end = tick_at(time_ns, spacing, options->to_ns);
        if (count > end) count = end;
    }
    bool is_thinned = plan->is_thinned && !has_run(plan->profile, sample, spacing);
    uint64_t step = is_thinned ? THINNED_NS / spacing + 1 : 1;
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

/* Whether a value says how long SAMPLE lasted. */
static bool lasts(const struct profile *profile, size_t sample)
{
    return sample_times_spacing_ns(profile, sample, 1) > 1;
}

/* Returns the latest time that a chunk, or a profile of V1, may reach. */
static uint64_t end_limit_ns(const struct chunk_plan *plan)
{
    uint64_t first_ns = plan->is_v1 ? plan->start_ns : UINT64_MAX, limit_ns;
    uint64_t longest_ns = plan->is_v1 ? V1_DURATION_NS_MAX : DURATION_US_MAX * (uint64_t)1000;
    for (size_t i = 0; !plan->is_v1 && i < plan->ticks.count; i++) {
        if (plan->ticks.items[i].time_ns < first_ns) first_ns = plan->ticks.items[i].time_ns;
    }
    return __builtin_add_overflow(first_ns, longest_ns, &limit_ns) ? UINT64_MAX : limit_ns;
}

/* Returns whether the profile has a second value of TYPE and UNIT; NULL is any. Wall time passes also where a thread
 * does nothing. */
static bool second_value_is(const struct profile *profile, const char *type, const char *unit)
{
    const struct value_type *second = &profile->value_types[1];
    return profile->value_type_count > 1 && (!type || slice_equals_text(profile_slice(profile, second->type), type)) &&
           (!unit || slice_equals_text(profile_slice(profile, second->unit), unit));
}

/* Returns whether the time between TICK, which lasts SPACING_NS, and NEXT_NS, the next tick of its thread, is more than
 * TICK's own. Clocks are not exact: a little more is not a gap. In wall time the sample after missed ticks has their
 * time, too: its length NEXT_SPACING_NS covers them. */
static bool has_gap(const struct chunk_plan *plan, const struct tick *tick, uint64_t spacing_ns, uint64_t next_ns,
                    uint64_t next_spacing_ns)
{
    enum { SMALL_PART = 16 };
    uint64_t distance_ns = next_ns - tick->time_ns;
    bool has_length = lasts(plan->profile, tick->sample);
    if (has_length && !second_value_is(plan->profile, "wall", NULL))
        return distance_ns > spacing_ns + spacing_ns / SMALL_PART;
    uint64_t longest_ns = spacing_ns > next_spacing_ns ? spacing_ns : next_spacing_ns;
    return distance_ns > longest_ns && distance_ns - longest_ns > longest_ns / 2;
}

static int compare_lengths(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The length of samples whose values do not say it (perf's cycles): the median time until the next sample of the
 * thread. 0: nothing is known. The ticks are in order of time. */
static uint64_t typical_length_ns(struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    uint64_t *last = calloc(profile->threads.count, sizeof(*last)); /* last tick of each thread; 0: none */
    uint64_t *lengths = calloc(plan->ticks.count + 1, sizeof(*lengths));
    size_t count = 0;
    for (size_t i = 0; last && lengths && i < plan->ticks.count; i++) {
        const struct tick *tick = &plan->ticks.items[i];
        uint64_t *before = &last[profile->samples.thread[tick->sample].index];
        if (*before && tick->time_ns > *before) lengths[count++] = tick->time_ns - *before;
        *before = tick->time_ns;
    }
    plan->no_memory |= !last || !lengths;
    if (count > 0) qsort(lengths, count, sizeof(*lengths), compare_lengths);
    uint64_t typical_ns = count > 0 ? lengths[count / 2] : 0;
    free(last);
    free(lengths);
    return typical_ns;
}

static uint64_t length_ns(const struct chunk_plan *plan, uint32_t sample)
{
    return lasts(plan->profile, sample) ? sample_times_spacing_ns(plan->profile, sample, plan->period_ns)
                                        : plan->typical_ns;
}

/* Adds an idle tick where TICK ends, if it lasts, and NEXT (NULL: there is none) does not follow at once. False if
 * there are too many. */
static bool add_end(struct chunk_plan *plan, struct tick tick, const struct tick *next, uint64_t limit_ns)
{
    uint64_t start_ns = tick.time_ns, spacing_ns = length_ns(plan, tick.sample);
    bool is_idle = plan->profile->samples.stack[tick.sample].index == 0;
    if (is_idle || spacing_ns == 0 || (next && next->sample == tick.sample)) return true;
    uint64_t next_spacing_ns = next ? length_ns(plan, next->sample) : 0;
    if (next && !has_gap(plan, &tick, spacing_ns, next->time_ns, next_spacing_ns)) return true;
    if (__builtin_add_overflow(start_ns, spacing_ns, &tick.time_ns)) return true;
    if (tick.time_ns > limit_ns) tick.time_ns = limit_ns;
    tick.is_end = true;
    return tick.time_ns <= start_ns || add_tick(plan, tick);
}

/* A server gives a sample the time until the next one of its thread, and the last of a thread none (facts §4.2): an
 * idle one ends every run. An end never makes a chunk too long. The ticks are in order of time. */
static bool add_ends(struct chunk_plan *plan)
{
    uint64_t limit_ns = end_limit_ns(plan);
    size_t tick_count = plan->ticks.count;
    size_t *later = calloc(plan->profile->threads.count, sizeof(*later)); /* next tick of each thread, plus one */
    bool fits = later != NULL;
    plan->no_memory = !later;
    if (plan->profile->has_times && !second_value_is(plan->profile, NULL, "nanoseconds")) {
        int64_t period_ns = chunk_period_ns(plan->profile);
        plan->typical_ns = period_ns ? (uint64_t)period_ns : typical_length_ns(plan);
    }
    for (size_t i = tick_count; i-- > 0 && fits;) {
        struct tick tick = plan->ticks.items[i], next;
        size_t *later_one = &later[plan->profile->samples.thread[tick.sample].index];
        if (*later_one) next = plan->ticks.items[*later_one - 1];
        fits = add_end(plan, tick, *later_one ? &next : NULL, limit_ns);
        *later_one = i + 1;
    }
    free(later);
    return fits;
}

static void sort_ticks(struct chunk_plan *plan)
{
    if (plan->ticks.count) qsort(plan->ticks.items, plan->ticks.count, sizeof(struct tick), compare_ticks);
}

/* Lays out the ticks in order of time. Without times, the samples of each thread follow one another from the profile's
 * start on. Returns false if there are too many. */
static bool lay_out_ticks(struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    uint64_t *ends = calloc(profile->threads.count, sizeof(*ends));
    bool fits = ends != NULL;
    plan->no_memory = !ends;
    for (size_t i = 0; fits && i < profile->samples.count; i++) {
        uint64_t time_ns = profile->samples.time_ns[i];
        if (!profile->has_times) {
            uint64_t *end = &ends[profile->samples.thread[i].index], length;
            time_ns = profile_start_ns(profile) + *end;
            uint64_t spacing = sample_times_spacing_ns(profile, i, plan->period_ns);
            if (__builtin_mul_overflow(sample_ticks(profile, i), spacing, &length) ||
                __builtin_add_overflow(*end, length, end))
                fits = false;
        }
        fits = fits && add_ticks(plan, i, time_ns);
    }
    free(ends);
    sort_ticks(plan);
    fits = fits && add_ends(plan);
    sort_ticks(plan);
    return fits;
}

/* Thousands of threads have more ticks than a chunk has room for. Fewer ticks of a waiting thread last as long. */
static void lay_out(struct chunk_plan *plan)
{
    plan->is_thinned = plan->options && plan->options->thins_idle;
    bool fits = lay_out_ticks(plan);
    if (!fits && !plan->no_memory && !plan->is_thinned) {
        plan->ticks.count = 0;
        plan->is_thinned = true;
        fits = lay_out_ticks(plan);
    }
    plan->is_too_large = !fits && !plan->no_memory;
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

/* Returns the number of FRAME, which is added if it is new. */
static uint32_t frame_number(struct chunk_plan *plan, const struct written_frame *frame)
{
    uint64_t hash = hash_mix(frame->address, (uint64_t)frame->line);
    hash = hash_mix(hash, (uint64_t)frame->function.index << 32 | frame->mapping.index);
    hash = hash_mix(hash, (uint64_t)frame->column ^ (uint64_t)frame->attributes.index << 32);
    uint32_t known = index_table_find(&plan->frames.index, hash, frame_equal, plan, frame);
    if (known != INDEX_NONE) return known;
    size_t count = plan->frames.count;
    if (!ARRAY_RESERVE(&plan->frames, 1, CHUNK_FRAMES_MAX) ||
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
    uint32_t *index = ARRAY_ADD(&plan->frame_indices, CHUNK_FRAMES_MAX);
    if (index)
        *index = frame_number(plan, frame);
    else
        plan->no_memory = true;
}

/* Inlined functions are separate frames. For all frames but the leaf, servers expect the address after the call. */
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

/* Returns the number of the stack whose frames were appended from FIRST on; removes them if the stack is known. */
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
    if (!ARRAY_RESERVE(&plan->stacks, 1, TICKS_MAX) || !index_table_add(&plan->stacks.index, hash, (uint32_t)count)) {
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

/* The format has no processes: threads of several processes that have one id are one thread there. */
static void join_equal_ids(struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    if (profile->processes.count <= 1) return;
    uint32_t *first = calloc(profile->strings.count, sizeof(*first)); /* thread by id */
    plan->no_memory |= !first;
    for (uint32_t i = 1; first && i < profile->threads.count; i++) {
        uint32_t *known = &first[profile->threads.items[i].id.index];
        if (plan->thread_samples[i] == 0) continue;
        if (*known == 0) {
            *known = i;
            continue;
        }
        plan->thread_samples[*known] += plan->thread_samples[i];
        plan->thread_samples[i] = 0;
    }
    free(first);
}

static void number_stacks(struct chunk_plan *plan)
{
    const struct sample_columns *samples = &plan->profile->samples;
    for (size_t i = 0; i < plan->ticks.count && !plan->no_memory; i++) {
        struct tick *tick = &plan->ticks.items[i];
        uint32_t thread = samples->thread[tick->sample].index;
        tick->stack = stack_number(plan, tick->is_end ? (struct stack_id){0} : samples->stack[tick->sample]);
        plan->thread_samples[thread]++;
    }
    join_equal_ids(plan);
    if (!plan->no_memory || plan->frame_indices.count < CHUNK_FRAMES_MAX) return;
    plan->no_memory = false;
    plan->is_too_large = true;
}

/* --- The plan -------------------------------------------------------------------------------------------------------
 */

uint64_t chunk_microseconds(uint64_t time_ns)
{
    return time_ns / 1000 + (time_ns % 1000 >= 500);
}

bool chunk_plan_make(struct chunk_plan *plan, const struct profile *profile, const struct sentry_v2_options *options)
{
    plan->profile = profile;
    plan->options = options;
    plan->period_ns = sample_times_period_ns(profile);
    plan->stack_numbers = calloc(profile_stack_limit(profile), sizeof(*plan->stack_numbers));
    plan->thread_samples = calloc(profile->threads.count, sizeof(*plan->thread_samples));
    plan->mapping_is_used = calloc(profile->mappings.count, sizeof(*plan->mapping_is_used));
    plan->no_memory = !plan->stack_numbers || !plan->thread_samples || !plan->mapping_is_used;
    if (!plan->no_memory) lay_out(plan);
    if (!plan->no_memory && !plan->is_too_large) number_stacks(plan);
    return !plan->no_memory && !plan->is_too_large;
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

/* --- Enough samples --------------------------------------------------------------------------------------- */

bool sentry_v2_has_enough_samples(const struct profile *profile, uint64_t from_ns, uint64_t to_ns)
{
    enum { TICKS_MIN = 2 };
    uint64_t period_ns = sample_times_period_ns(profile);
    uint64_t *counts = calloc(profile->threads.count, sizeof(*counts));
    bool is_enough = !counts; /* the encoder reports it */
    for (size_t i = 0; !is_enough && i < profile->samples.count; i++) {
        uint64_t time_ns = profile->samples.time_ns[i], first = 0, end = sample_ticks(profile, i);
        if (profile->samples.stack[i].index == 0) continue;
        if (from_ns || to_ns) {
            uint64_t spacing = sample_times_spacing_ns(profile, i, period_ns), limit = tick_at(time_ns, spacing, to_ns);
            first = tick_at(time_ns, spacing, from_ns);
            if (end > limit) end = limit;
        }
        uint64_t *count = &counts[profile->samples.thread[i].index];
        if (end > first) *count += end - first < TICKS_MIN ? end - first : TICKS_MIN;
        is_enough = *count >= TICKS_MIN;
    }
    free(counts);
    return is_enough;
}
