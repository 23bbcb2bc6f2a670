/* From the arrays of a chunk to the model: images become mappings, frames functions and locations, stacks a tree, and
 * each sample gets the time until the next one of its thread. Only what samples use is taken.
 *
 * Sentry has return addresses in all frames but the leaf (facts §3.5); the model wants addresses inside the call.
 * Frames next to each other with the same address are one location with inlined functions. SPDX-License-Identifier: MIT
 */
#include "format/sentry/sentry_v2_private.h"
#include "format/sentry/sentry_extension.h"

#include <stdlib.h>

enum { INLINED_MAX = 64 }; /* functions of one location; more become a separate location */

struct builder {
    struct chunk *chunk;
    struct profile *profile;
    struct chunk_image **by_address; /* the images, in order of their start */
};

static int compare_images(const void *left, const void *right)
{
    const struct chunk_image *const *a = left, *const *b = right;
    return ((*a)->mapping.start > (*b)->mapping.start) - ((*a)->mapping.start < (*b)->mapping.start);
}

/* Returns the image that holds ADDRESS, or NULL. One of unknown size reaches up to the next. */
static struct chunk_image *image_at(const struct builder *builder, uint64_t address)
{
    size_t low = 0, high = builder->chunk->images.count;
    while (low < high) { /* the first image that starts after ADDRESS is one of LOW to HIGH */
        size_t middle = low + (high - low) / 2;
        if (builder->by_address[middle]->mapping.start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct chunk_image *image = low ? builder->by_address[low - 1] : NULL;
    return image && (image->mapping.image_size == 0 || address < image->mapping.limit) ? image : NULL;
}

/* Finds the image of FRAME. A mapping counts as symbolized in a way if all frames in it are. */
static void find_image(struct builder *builder, struct chunk_frame *frame)
{
    frame->image = image_at(builder, frame->address);
    /* A call may be the last instruction of an image. */
    if (!frame->image && frame->address) frame->image = image_at(builder, frame->address - 1);
    if (!frame->image) return;
    struct mapping *mapping = &frame->image->mapping;
    bool is_first = !frame->image->has_frames, has_file = frame->file_name.index || frame->absolute_path.index;
    mapping->has_functions = frame->function.name.index && (is_first || mapping->has_functions);
    mapping->has_filenames = has_file && (is_first || mapping->has_filenames);
    mapping->has_line_numbers = frame->line && (is_first || mapping->has_line_numbers);
    mapping->has_inline_frames = mapping->has_functions;
    frame->image->has_frames = true;
}

static enum status find_images(struct builder *builder, struct error *error)
{
    struct chunk *chunk = builder->chunk;
    if (chunk->images.count == 0) return STATUS_OK;
    builder->by_address = calloc(chunk->images.count, sizeof(struct chunk_image *));
    if (!builder->by_address) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
    for (size_t i = 0; i < chunk->images.count; i++) builder->by_address[i] = &chunk->images.items[i];
    qsort(builder->by_address, chunk->images.count, sizeof(struct chunk_image *), compare_images);
    for (size_t i = 0; i < chunk->frames.count; i++) {
        if (chunk->frames.items[i].has_address) find_image(builder, &chunk->frames.items[i]);
    }
    for (size_t i = 0; i < chunk->images.count; i++) {
        chunk->images.items[i].id = profile_add_mapping(builder->profile, &chunk->images.items[i].mapping);
    }
    free(builder->by_address);
    return STATUS_OK;
}

static void resolve_frame(struct builder *builder, struct chunk_frame *frame)
{
    struct function function = frame->function;
    frame->is_resolved = true;
    /* A file that is no image ("[vdso]") has a mapping with its name alone. */
    if (frame->image)
        frame->mapping = frame->image->id;
    else if (frame->has_address && function.package.index)
        frame->mapping = profile_add_mapping(builder->profile, &(struct mapping){.file_name = function.package});
    if (function.package.index == profile_mapping(builder->profile, frame->mapping)->file_name.index) {
        function.package.index = 0;
    }
    function.file_name = frame->absolute_path.index ? frame->absolute_path : frame->file_name;
    bool is_named = function.name.index || function.file_name.index || function.module.index || frame->line;
    if (is_named || !frame->has_address) frame->function_id = profile_add_function(builder->profile, &function);
}

static struct chunk_frame *frame_of(struct builder *builder, uint32_t place)
{
    struct chunk_frame *frame = &builder->chunk->frames.items[builder->chunk->frame_indices.items[place]];
    if (!frame->is_resolved) resolve_frame(builder, frame);
    return frame;
}

static bool is_same_code(const struct chunk_frame *a, const struct chunk_frame *b)
{
    return a->function_id.index == b->function_id.index && a->line == b->line && a->column == b->column &&
           a->attributes.index == b->attributes.index;
}

/* Returns the number of frames up to PLACE, from FIRST at the earliest, that are one location: different neighbours
 * with one address. A frame that comes twice is a function that called itself. */
static uint32_t count_inlined(struct builder *builder, uint32_t first, uint32_t place)
{
    const struct chunk_frame *outermost = frame_of(builder, place);
    uint32_t count = 1;
    if (!outermost->address || !outermost->function_id.index) return 1;
    for (; place - first >= count && count < INLINED_MAX; count++) {
        const struct chunk_frame *frame = frame_of(builder, place - count);
        if (frame->address != outermost->address || !frame->function_id.index) break;
        for (uint32_t i = 0; i < count; i++) {
            if (is_same_code(frame, frame_of(builder, place - i))) return count;
        }
    }
    return count;
}

/* Returns the location of the COUNT frames from PLACE on; IS_LEAF if the innermost of them is the stack's leaf. */
static struct location_id add_location(struct builder *builder, uint32_t place, uint32_t count, bool is_leaf)
{
    struct chunk_frame *frame = frame_of(builder, place);
    struct location_id *known = is_leaf ? &frame->as_leaf : &frame->as_caller;
    if (count == 1 && known->index) return *known;

    struct line lines[INLINED_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct chunk_frame *inlined = frame_of(builder, place + i);
        lines[i] = (struct line){.function = inlined->function_id,
                                 .attributes = inlined->attributes,
                                 .line = inlined->line,
                                 .column = inlined->column};
    }
    struct location location = {
        .mapping = frame->mapping,
        .address = frame->address - (!is_leaf && frame->address), /* a return address is one after the call */
    };
    uint32_t line_count = frame->function_id.index ? count : 0;
    if (line_count == 0) location.attributes = frame->attributes;
    struct location_id id = profile_add_location(builder->profile, &location, lines, line_count);
    if (count == 1) *known = id;
    return id;
}

static struct stack_id resolve_stack(struct builder *builder, struct chunk_stack *stack)
{
    if (stack->is_resolved) return stack->id;
    struct stack_id id = {0};
    for (uint32_t left = stack->count; left > 0;) {
        uint32_t count = count_inlined(builder, stack->first, stack->first + left - 1);
        left -= count;
        id = profile_add_stack(builder->profile, id, add_location(builder, stack->first + left, count, left == 0));
    }
    stack->is_resolved = true;
    stack->id = id;
    return id;
}

static enum status check_indices(const struct chunk *chunk, struct error *error)
{
    for (size_t i = 0; i < chunk->frame_indices.count; i++) {
        if (chunk->frame_indices.items[i] < chunk->frames.count) continue;
        return chunk_reject(error, REJECT_MALFORMED_STACKS, "a stack has a frame that is not there");
    }
    return STATUS_OK;
}

struct chunk_thread *chunk_count_samples(const struct chunk *chunk, size_t thread_count)
{
    struct chunk_thread *threads = calloc(thread_count, sizeof(*threads));
    for (size_t i = 0; threads && i < chunk->samples.count; i++) {
        const struct chunk_sample *sample = &chunk->samples.items[i];
        struct chunk_thread *thread = &threads[sample->thread.index];
        thread->samples++;
        thread->active += sample->stack < chunk->stacks.count && chunk->stacks.items[sample->stack].count;
    }
    return threads;
}

/* A thread that a server of V2 drops may have a sample whose stack index is out of range. */
static enum status check_stacks(const struct chunk *chunk, const struct profile *profile, struct error *error)
{
    struct chunk_thread *threads = NULL;
    enum status status = STATUS_OK;
    uint32_t spared_below = sentry_extension(profile)->sample_format == 1 ? 0 : 2;
    for (size_t i = 0; status == STATUS_OK && i < chunk->samples.count; i++) {
        const struct chunk_sample *sample = &chunk->samples.items[i];
        if (sample->stack < chunk->stacks.count) continue;
        if (!threads) threads = chunk_count_samples(chunk, profile->threads.count);
        if (!threads)
            status = error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
        else if (threads[sample->thread.index].active >= spared_below)
            status = error_set(error, STATUS_MALFORMED, 0, "%s: sample %zu has a stack that is not there",
                               reject_reason_name(REJECT_MALFORMED_SAMPLES), i);
    }
    free(threads);
    return status;
}

static const char *time_type(const struct chunk *chunk)
{
    return chunk->counts_cpu_time ? "cpu" : "wall";
}

/* Returns whether SAMPLE only ends the run before it, as an idle one in CPU time. */
static bool is_idle(const struct builder *builder, size_t sample)
{
    return builder->chunk->counts_cpu_time && builder->profile->samples.stack[sample].index == 0;
}

/* A sample lasts until the next one of its thread; the last one of a thread only ends the one before (facts §4.2). */
static enum status set_times(struct builder *builder, struct error *error)
{
    struct profile *profile = builder->profile;
    struct sample_columns *samples = &profile->samples;
    uint64_t *next_ns = calloc(profile->threads.count, sizeof(*next_ns));
    if (!next_ns) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
    for (size_t i = samples->count; i-- > 0;) {
        uint64_t *next = &next_ns[samples->thread[i].index];
        uint64_t ns = *next ? *next - samples->time_ns[i] : 0;
        samples->values[2 * i + 1] = ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
        if (is_idle(builder, i)) samples->values[2 * i] = samples->values[2 * i + 1] = 0;
        *next = samples->time_ns[i];
    }
    free(next_ns);
    return STATUS_OK;
}

static enum status add_samples(struct builder *builder, struct error *error)
{
    static const int64_t values[2] = {1, 0};
    struct profile *profile = builder->profile;
    bool is_v1 = sentry_extension(profile)->sample_format == 1;
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, time_type(builder->chunk), "nanoseconds");
    profile_expect_samples(profile, builder->chunk->samples.count);
    for (size_t i = 0; i < builder->chunk->samples.count; i++) {
        const struct chunk_sample *from = &builder->chunk->samples.items[i];
        if (from->stack >= builder->chunk->stacks.count) continue;
        struct sample sample = {
            .stack = resolve_stack(builder, &builder->chunk->stacks.items[from->stack]),
            .thread = from->thread,
            .time_ns = is_v1 ? from->time_ns : chunk_seconds_to_ns(from->seconds),
        };
        /* The attributes of a sample are a label. */
        struct label label = {.text = from->attributes};
        if (label.text.index) {
            label.key = profile_text(profile, PROFILE_ATTRIBUTES_LABEL);
            sample.labels = profile_add_labels(profile, &label, 1);
        }
        profile_add_sample(profile, &sample, values);
    }
    enum status status = profile_sort_by_time(profile, error);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    if (status == STATUS_OK) status = set_times(builder, error);
    if (status != STATUS_OK || profile->samples.count == 0) return status;
    uint64_t first_ns = profile->samples.time_ns[0];
    profile->time_ns = profile_start_at(first_ns);
    profile->duration_ns = profile->samples.time_ns[profile->samples.count - 1] - first_ns;
    return STATUS_OK;
}

enum status chunk_to_profile(struct chunk *chunk, struct profile *profile, struct error *error)
{
    struct builder builder = {.chunk = chunk, .profile = profile};
    enum status status = profile_failed(profile, error); /* threads that were not added have no place in tables */
    if (status == STATUS_OK) status = check_indices(chunk, error);
    if (status == STATUS_OK) status = check_stacks(chunk, profile, error);
    if (status != STATUS_OK) return status;
    profile->has_times = true;
    profile_expect(profile, &(struct profile_expected){.functions = chunk->frames.count,
                                                       .locations = chunk->frames.count,
                                                       .samples = chunk->stacks.count});
    if (profile->period) {
        profile->period_type = (struct value_type){.type = profile_text(profile, time_type(chunk)),
                                                   .unit = profile_text(profile, "nanoseconds")};
    }
    status = find_images(&builder, error);
    if (status != STATUS_OK) return status;
    return add_samples(&builder, error);
}
