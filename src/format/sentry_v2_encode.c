/* Writes a Sample Format V2 chunk.
 *
 * First the samples that are asked for are laid out as ticks in time order; what they use of stacks and frames is then
 * numbered by first use and deduplicated; the receiver's rules are held against the result; last it is written, into a
 * buffer of its own, so that nothing is appended to the caller's unless the chunk is whole and acceptable.
 * SPDX-License-Identifier: MIT */
#include "format/sentry_v2.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/index_table.h"
#include "base/json_writer.h"
#include "base/uuid.h"
#include "binary/debug_id.h"

#include <math.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES_MAX = 50 << 20,     /* facts §1.2 (16) */
    TICKS_MAX = 1 << 20,            /* a sample takes 50 bytes at least: more would not fit anyway */
    CHUNK_FRAMES_MAX = 16 << 20,    /* likewise, at 3 bytes for a frame's index in a stack */
    DURATION_US_MAX = 66 * 1000000, /* facts §1.2 (13) */
};

/* One sample as it will be written. */
struct tick {
    uint64_t time_ns;
    uint32_t sample; /* in the profile */
    uint32_t stack;  /* in encoder.stacks */
};

struct written_frame {
    uint64_t address; /* 0 = none */
    int64_t line, column;
    struct function_id function; /* 0 = none */
    struct mapping_id mapping;
};

struct written_stack {
    uint32_t first, count; /* in frame_indices, leaf first */
};

/* clang-format off */
struct encoder {
    const struct profile *profile;
    const struct sentry_v2_options *options;
    struct { struct tick *items; size_t count, capacity; } ticks;
    struct { struct written_frame *items; size_t count, capacity; struct index_table index; } frames;
    struct { struct written_stack *items; size_t count, capacity; struct index_table index; } stacks;
    struct { uint32_t *items; size_t count, capacity; } frame_indices;
    uint32_t *stack_numbers;  /* by the profile's stack id: place in STACKS, plus one; 0 = not yet there */
    uint32_t *thread_samples; /* by the profile's thread id: ticks, and of them not idle, */
    uint32_t *thread_active;
    bool *mapping_is_used;    /* by the profile's mapping id */
    bool no_memory;
};
/* clang-format on */

static enum status refuse(struct error *error, const char *reason)
{
    return error_set(error, STATUS_MALFORMED, 0, "%s", reason);
}

static enum status refuse_size(struct error *error)
{
    return refuse(error, "profiling_exceed_size_limit: the chunk would be over 50 MiB");
}

static enum status refuse_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the chunk");
}

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

static int64_t period_ns(const struct profile *profile)
{
    bool is_time = slice_equals_text(profile_slice(profile, profile->period_type.unit), "nanoseconds");
    return is_time && profile->period > 0 ? profile->period : 0;
}

/* How many ticks SAMPLE stands for. */
static uint64_t tick_count(const struct profile *profile, size_t sample)
{
    bool is_counted = profile->value_type_count > 0 &&
                      slice_equals_text(profile_slice(profile, profile->value_types[0].unit), "count");
    if (!is_counted) return 1;
    int64_t count = profile_sample_values(profile, sample)[0];
    return count > 0 ? (uint64_t)count : 0;
}

/* The first tick at or behind LIMIT_NS of those that begin at TIME_NS. */
static uint64_t tick_at(uint64_t time_ns, uint64_t period, uint64_t limit_ns)
{
    if (limit_ns <= time_ns) return 0;
    uint64_t distance = limit_ns - time_ns;
    return distance / period + (distance % period != 0);
}

/* Adds the ticks of SAMPLE, the first at TIME_NS, that the options choose. False if there are too many. */
static bool add_ticks(struct encoder *encoder, size_t sample, uint64_t time_ns)
{
    const struct sentry_v2_options *options = encoder->options;
    uint64_t period = (uint64_t)period_ns(encoder->profile);
    uint64_t first = 0, count = tick_count(encoder->profile, sample);
    if (period == 0) { /* nothing tells where more of them would lie */
        if (count > 1) count = 1;
        period = 1;
    }
    if (options && (options->from_ns || options->to_ns)) {
        first = tick_at(time_ns, period, options->from_ns);
        uint64_t end = tick_at(time_ns, period, options->to_ns);
        if (count > end) count = end;
    }
    for (uint64_t i = first; i < count; i++) {
        if (encoder->ticks.count == TICKS_MAX) return false;
        if (!array_reserve(&encoder->ticks.items, &encoder->ticks.capacity, encoder->ticks.count + 1,
                           sizeof(struct tick), TICKS_MAX)) {
            encoder->no_memory = true;
            return false;
        }
        encoder->ticks.items[encoder->ticks.count++] =
            (struct tick){.time_ns = time_ns + i * period, .sample = (uint32_t)sample};
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

/* Where a profile has no times, the samples of each thread follow one another from the profile's start on. */
static enum status lay_out_ticks(struct encoder *encoder, struct error *error)
{
    const struct profile *profile = encoder->profile;
    uint64_t *ends = calloc(profile->threads.count, sizeof(*ends));
    bool fits = ends != NULL;
    encoder->no_memory = !ends;
    for (size_t i = 0; fits && i < profile->samples.count; i++) {
        uint64_t time_ns = profile->samples.time_ns[i];
        if (!profile->has_times) {
            uint64_t *end = &ends[profile->samples.thread[i].index], length;
            time_ns = profile->time_ns + *end;
            if (__builtin_mul_overflow(tick_count(profile, i), (uint64_t)period_ns(profile), &length) ||
                __builtin_add_overflow(*end, length, end))
                fits = false;
        }
        fits = fits && add_ticks(encoder, i, time_ns);
    }
    free(ends);
    if (encoder->no_memory) return refuse_memory(error);
    if (!fits) return refuse_size(error);
    if (encoder->ticks.count) qsort(encoder->ticks.items, encoder->ticks.count, sizeof(struct tick), compare_ticks);
    return STATUS_OK;
}

/* --- Stacks and frames -------------------------------------------------------------------------------------------- */

static bool frame_equal(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    const struct written_frame *a = &encoder->frames.items[index], *b = key;
    return a->address == b->address && a->line == b->line && a->column == b->column &&
           a->function.index == b->function.index && a->mapping.index == b->mapping.index;
}

/* The number of FRAME, which is added if it is new. */
static uint32_t frame_number(struct encoder *encoder, const struct written_frame *frame)
{
    uint64_t hash = hash_mix(frame->address, (uint64_t)frame->line);
    hash = hash_mix(hash, (uint64_t)frame->function.index << 32 | frame->mapping.index);
    hash = hash_mix(hash, (uint64_t)frame->column);
    uint32_t known = index_table_find(&encoder->frames.index, hash, frame_equal, encoder, frame);
    if (known != INDEX_NONE) return known;
    size_t count = encoder->frames.count;
    if (!array_reserve(&encoder->frames.items, &encoder->frames.capacity, count + 1, sizeof(*frame),
                       CHUNK_FRAMES_MAX) ||
        !index_table_add(&encoder->frames.index, hash, (uint32_t)count)) {
        encoder->no_memory = true;
        return 0;
    }
    encoder->frames.items[count] = *frame;
    encoder->frames.count++;
    encoder->mapping_is_used[frame->mapping.index] = true;
    return (uint32_t)count;
}

static void append_frame(struct encoder *encoder, const struct written_frame *frame)
{
    size_t count = encoder->frame_indices.count;
    if (!array_reserve(&encoder->frame_indices.items, &encoder->frame_indices.capacity, count + 1, sizeof(uint32_t),
                       CHUNK_FRAMES_MAX)) {
        encoder->no_memory = true;
        return;
    }
    encoder->frame_indices.items[count] = frame_number(encoder, frame);
    encoder->frame_indices.count++;
}

/* Inlined functions are frames of their own. For all but the leaf a receiver expects the address behind the call. */
static void append_location(struct encoder *encoder, const struct location *location, bool is_leaf)
{
    const struct line *lines = profile_lines(encoder->profile, location);
    struct written_frame frame = {.address = location->address + (!is_leaf && location->address),
                                  .mapping = location->mapping};
    if (location->line_count == 0) append_frame(encoder, &frame);
    for (uint32_t i = 0; i < location->line_count; i++) {
        frame.function = lines[i].function;
        frame.line = lines[i].line;
        frame.column = lines[i].column;
        append_frame(encoder, &frame);
    }
}

static bool stack_equal(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    const struct written_stack *a = &encoder->stacks.items[index], *b = key;
    const uint32_t *frames = encoder->frame_indices.items;
    return a->count == b->count &&
           (a->count == 0 || memcmp(frames + a->first, frames + b->first, a->count * sizeof(*frames)) == 0);
}

/* The number of the stack whose frames were appended from FIRST on; they are taken off again if it is known. */
static uint32_t finish_stack(struct encoder *encoder, uint32_t first)
{
    struct written_stack stack = {.first = first, .count = (uint32_t)encoder->frame_indices.count - first};
    uint64_t hash = hash_bytes(encoder->frame_indices.items + first, stack.count * sizeof(uint32_t));
    uint32_t known = index_table_find(&encoder->stacks.index, hash, stack_equal, encoder, &stack);
    if (known != INDEX_NONE) {
        encoder->frame_indices.count = first;
        return known;
    }
    size_t count = encoder->stacks.count;
    if (!array_reserve(&encoder->stacks.items, &encoder->stacks.capacity, count + 1, sizeof(stack), TICKS_MAX) ||
        !index_table_add(&encoder->stacks.index, hash, (uint32_t)count)) {
        encoder->no_memory = true;
        return 0;
    }
    encoder->stacks.items[count] = stack;
    encoder->stacks.count++;
    return (uint32_t)count;
}

static uint32_t stack_number(struct encoder *encoder, struct stack_id id)
{
    uint32_t *known = &encoder->stack_numbers[id.index];
    if (*known) return *known - 1;
    uint32_t first = (uint32_t)encoder->frame_indices.count;
    for (struct stack_id at = id; at.index && !encoder->no_memory;) {
        const struct stack *stack = profile_stack(encoder->profile, at);
        append_location(encoder, profile_location(encoder->profile, stack->location), at.index == id.index);
        at = stack->parent;
    }
    uint32_t number = finish_stack(encoder, first);
    *known = number + 1;
    return number;
}

static enum status number_stacks(struct encoder *encoder, struct error *error)
{
    const struct sample_columns *samples = &encoder->profile->samples;
    for (size_t i = 0; i < encoder->ticks.count && !encoder->no_memory; i++) {
        struct tick *tick = &encoder->ticks.items[i];
        uint32_t thread = samples->thread[tick->sample].index;
        tick->stack = stack_number(encoder, samples->stack[tick->sample]);
        encoder->thread_samples[thread]++;
        if (!encoder->no_memory && encoder->stacks.items[tick->stack].count) encoder->thread_active[thread]++;
    }
    if (!encoder->no_memory) return STATUS_OK;
    return encoder->frame_indices.count >= CHUNK_FRAMES_MAX ? refuse_size(error) : refuse_memory(error);
}

/* --- The receiver's rules ----------------------------------------------------------------------------------------- */

static uint64_t microseconds(uint64_t time_ns)
{
    return time_ns / 1000 + (time_ns % 1000 >= 500);
}

/* A receiver first drops every thread that has not two samples with frames (facts §1.2, 8); the rest must be left and
 * must not last too long. */
static enum status check_samples(const struct encoder *encoder, struct error *error)
{
    const struct tick *first = NULL, *last = NULL;
    for (size_t i = 0; i < encoder->ticks.count; i++) {
        const struct tick *tick = &encoder->ticks.items[i];
        if (encoder->thread_active[encoder->profile->samples.thread[tick->sample].index] < 2) continue;
        if (!first) first = tick;
        last = tick;
    }
    if (!first) return refuse(error, "profiling_not_enough_samples: no thread has two samples with frames");
    if (microseconds(last->time_ns) - microseconds(first->time_ns) > DURATION_US_MAX) {
        return refuse(error, "profiling_duration_is_too_long: the samples lie over 66 s apart");
    }
    return STATUS_OK;
}

static enum status check_metadata(const struct profile *profile, struct error *error)
{
    if (profile->release.index == 0) {
        return refuse(error, "profiling_invalid_profile_metadata: the profile names no release");
    }
    return STATUS_OK;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void write_member(struct json_writer *writer, const struct profile *profile, const char *key,
                         struct string_id value)
{
    if (value.index == 0) return;
    json_write_key(writer, key);
    json_write_string(writer, profile_slice(profile, value));
}

/* ID where it is a uuid, else a new one. */
static void write_uuid(struct json_writer *writer, const char *key, struct slice id)
{
    char text[UUID_TEXT_SIZE];
    if (!uuid_parse(id, text) && !uuid_new(text)) memset(text, 0, sizeof(text));
    json_write_key(writer, key);
    json_write_text(writer, text);
}

static void write_client_sdk(struct json_writer *writer, const struct profile *profile)
{
    bool has_sdk = profile->sdk_name.index != 0;
    json_write_key(writer, "client_sdk");
    json_begin_object(writer);
    json_write_key(writer, "name");
    json_write_text(writer, has_sdk ? profile_c_string(profile, profile->sdk_name) : "offbeat");
    json_write_key(writer, "version");
    json_write_text(writer, has_sdk ? profile_c_string(profile, profile->sdk_version) : OFFBEAT_VERSION);
    json_end_object(writer);
}

static void write_metadata(struct json_writer *writer, const struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    const char *chunk_id = encoder->options ? encoder->options->chunk_id : NULL;
    json_write_key(writer, "version");
    json_write_text(writer, "2");
    write_uuid(writer, "profiler_id", profile_slice(profile, profile->profiler_id));
    write_uuid(writer, "chunk_id", chunk_id ? slice_of_text(chunk_id) : profile_slice(profile, profile->chunk_id));
    json_write_key(writer, "platform");
    json_write_text(writer, sentry_v2_platform(profile));
    write_member(writer, profile, "release", profile->release);
    write_member(writer, profile, "dist", profile->dist);
    json_write_key(writer, "environment");
    json_write_text(writer,
                    profile->environment.index ? profile_c_string(profile, profile->environment) : "production");
    write_client_sdk(writer, profile);
}

/* Mapping 1 is the program, which is the user's own wherever it lies. */
static bool is_program(const struct profile *profile, struct slice path)
{
    return profile->mappings.count > 1 &&
           slice_equal(path, profile_slice(profile, profile->mappings.items[1].file_name));
}

/* doc/formats/sentry-v2.md has the rule. */
static bool is_in_app(const struct profile *profile, const struct written_frame *frame, struct slice path)
{
    static const char *const system_folders[] = {
        "[",         "/lib/",       "/lib32/",     "/lib64/",      "/libx32/",
        "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", "/usr/libexec/"};
    enum in_app in_app = profile_function(profile, frame->function)->in_app;
    if (in_app != IN_APP_UNKNOWN) return in_app == IN_APP_YES;
    if (path.size == 0) return frame->address == 0;
    if (is_program(profile, path)) return true;
    for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++) {
        size_t size = strlen(system_folders[i]);
        if (path.size >= size && memcmp(path.data, system_folders[i], size) == 0) return false;
    }
    return true;
}

static void write_file(struct json_writer *writer, const struct profile *profile, struct string_id file_name)
{
    struct slice path = profile_slice(profile, file_name);
    if (path.size == 0) return;
    const uint8_t *slash = path.data[0] == '/' ? memrchr(path.data, '/', path.size) : NULL;
    size_t folder_size = slash ? (size_t)(slash - path.data) + 1 : 0;
    json_write_key(writer, "filename");
    json_write_string(writer, slice_of(path.data + folder_size, path.size - folder_size));
    if (slash) write_member(writer, profile, "abs_path", file_name);
}

/* Receivers hold line numbers in 32 bits without a sign. */
static void write_place(struct json_writer *writer, const char *key, int64_t number)
{
    if (number <= 0 || number > UINT32_MAX) return;
    json_write_key(writer, key);
    json_write_i64(writer, number);
}

static void write_frame(struct json_writer *writer, const struct profile *profile, const struct written_frame *frame)
{
    const struct function *function = profile_function(profile, frame->function);
    struct string_id name = function->name.index ? function->name : function->system_name;
    struct string_id package =
        function->package.index ? function->package : profile_mapping(profile, frame->mapping)->file_name;
    json_begin_object(writer);
    if (name.index == 0 && function->file_name.index == 0 && frame->address == 0) { /* FMT-3: never without any */
        json_write_key(writer, "function");
        json_write_text(writer, "<unknown>");
    }
    write_member(writer, profile, "function", name);
    if (function->system_name.index != name.index) write_member(writer, profile, "raw_function", function->system_name);
    write_member(writer, profile, "module", function->module);
    write_file(writer, profile, function->file_name);
    write_place(writer, "lineno", frame->line);
    write_place(writer, "colno", frame->column);
    if (frame->address) {
        json_write_key(writer, "instruction_addr");
        json_write_hex(writer, frame->address);
    }
    write_member(writer, profile, "package", package);
    json_write_key(writer, "in_app");
    json_write_bool(writer, is_in_app(profile, frame, profile_slice(profile, package)));
    json_end_object(writer);
}

static struct slice thread_id_text(const struct profile *profile, struct thread_id id)
{
    struct slice text = profile_slice(profile, profile_thread(profile, id)->id);
    return text.size ? text : slice_of_text("0");
}

static void write_thread_metadata(struct json_writer *writer, const struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    json_write_key(writer, "thread_metadata");
    json_begin_object(writer);
    for (uint32_t i = 1; i < profile->threads.count; i++) {
        const struct thread *thread = &profile->threads.items[i];
        if (encoder->thread_samples[i] == 0) continue;
        json_write_key_slice(writer, thread_id_text(profile, (struct thread_id){i}));
        json_begin_object(writer);
        write_member(writer, profile, "name", thread->name);
        if (thread->has_priority && thread->priority >= 0) { /* a negative one would cost the whole chunk */
            json_write_key(writer, "priority");
            json_write_i64(writer, thread->priority);
        }
        json_end_object(writer);
    }
    json_end_object(writer);
}

static void write_samples(struct json_writer *writer, const struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    json_write_key(writer, "samples");
    json_begin_array(writer);
    for (size_t i = 0; i < encoder->ticks.count && !writer->out->failed; i++) {
        const struct tick *tick = &encoder->ticks.items[i];
        json_begin_object(writer);
        json_write_key(writer, "timestamp");
        json_write_fixed(writer, microseconds(tick->time_ns), 6);
        json_write_key(writer, "stack_id");
        json_write_u64(writer, tick->stack);
        json_write_key(writer, "thread_id");
        json_write_string(writer, thread_id_text(profile, profile->samples.thread[tick->sample]));
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void write_stacks(struct json_writer *writer, const struct encoder *encoder)
{
    json_write_key(writer, "stacks");
    json_begin_array(writer);
    for (size_t i = 0; i < encoder->stacks.count; i++) {
        const struct written_stack *stack = &encoder->stacks.items[i];
        json_begin_array(writer);
        for (uint32_t k = 0; k < stack->count; k++) {
            json_write_u64(writer, encoder->frame_indices.items[stack->first + k]);
        }
        json_end_array(writer);
    }
    json_end_array(writer);
}

static void write_profile(struct json_writer *writer, const struct encoder *encoder)
{
    json_write_key(writer, "profile");
    json_begin_object(writer);
    write_samples(writer, encoder);
    write_stacks(writer, encoder);
    json_write_key(writer, "frames");
    json_begin_array(writer);
    for (size_t i = 0; i < encoder->frames.count; i++) {
        write_frame(writer, encoder->profile, &encoder->frames.items[i]);
    }
    json_end_array(writer);
    write_thread_metadata(writer, encoder);
    json_end_object(writer);
}

static uint64_t image_start(const struct mapping *mapping)
{
    return mapping->image_start ? mapping->image_start : mapping->start;
}

/* The debug id of MAPPING, its own or that of its build id. False if it has neither. */
static bool find_debug_id(const struct profile *profile, const struct mapping *mapping,
                          char ret_text[DEBUG_ID_TEXT_SIZE])
{
    char uuid[UUID_TEXT_SIZE];
    struct slice own = profile_slice(profile, mapping->debug_id);
    if (own.size != DEBUG_ID_TEXT_SIZE - 1 || !uuid_parse(own, uuid)) {
        return debug_id_from_build_id(profile_slice(profile, mapping->build_id), ret_text);
    }
    memcpy(ret_text, own.data, own.size);
    ret_text[own.size] = 0;
    return true;
}

static void write_image(struct json_writer *writer, const struct profile *profile, const struct mapping *mapping,
                        const char *debug_id)
{
    uint64_t start = image_start(mapping);
    uint64_t size = mapping->image_size ? mapping->image_size : mapping->limit - mapping->start;
    json_begin_object(writer);
    json_write_key(writer, "type");
    json_write_text(writer, "symbolic"); /* "elf" would cost the whole chunk (facts §1.3) */
    json_write_key(writer, "debug_id");
    json_write_text(writer, debug_id);
    write_member(writer, profile, "code_id", mapping->build_id);
    write_member(writer, profile, "code_file", mapping->file_name);
    json_write_key(writer, "image_addr");
    json_write_hex(writer, start);
    json_write_key(writer, "image_size");
    json_write_u64(writer, size);
    json_write_key(writer, "image_vmaddr");
    json_write_hex(writer, mapping->image_vmaddr);
    json_end_object(writer);
}

struct image_starts {
    const struct profile *profile;
    struct index_table index; /* of mappings */
};

static bool start_equal(const void *context, uint32_t index, const void *key)
{
    const struct image_starts *starts = context;
    return image_start(&starts->profile->mappings.items[index]) == *(const uint64_t *)key;
}

/* A file is one image, however many segments of it are mappings. */
static void write_debug_meta(struct json_writer *writer, struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct image_starts starts = {.profile = profile};
    char debug_id[DEBUG_ID_TEXT_SIZE];
    json_write_key(writer, "debug_meta");
    json_begin_object(writer);
    json_write_key(writer, "images");
    json_begin_array(writer);
    for (uint32_t i = 1; i < profile->mappings.count; i++) {
        const struct mapping *mapping = &profile->mappings.items[i];
        uint64_t start = image_start(mapping), hash = hash_mix(0, start);
        if (!encoder->mapping_is_used[i] || !find_debug_id(profile, mapping, debug_id)) continue;
        if (index_table_find(&starts.index, hash, start_equal, &starts, &start) != INDEX_NONE) continue;
        if (!index_table_add(&starts.index, hash, i)) encoder->no_memory = true;
        write_image(writer, profile, mapping, debug_id);
    }
    index_table_fini(&starts.index);
    json_end_array(writer);
    json_end_object(writer);
}

/* A unit that is not among these would cost the whole chunk (facts §1.3). */
static bool is_known_unit(struct slice unit)
{
    static const char *const units[] = {"nanosecond", "ns", "hertz", "hz", "byte", "percent", "nanojoule", "nj"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equals_text(unit, units[i])) return true;
    }
    return false;
}

static bool is_chosen(const struct sentry_v2_options *options, uint64_t time_ns)
{
    if (!options || (options->from_ns == 0 && options->to_ns == 0)) return true;
    return time_ns >= options->from_ns && time_ns < options->to_ns;
}

static void write_measurement(struct json_writer *writer, const struct encoder *encoder,
                              const struct measurement *measurement)
{
    json_write_key_slice(writer, profile_slice(encoder->profile, measurement->name));
    json_begin_object(writer);
    write_member(writer, encoder->profile, "unit", measurement->unit);
    json_write_key(writer, "values");
    json_begin_array(writer);
    for (size_t i = 0; i < measurement->count && !writer->out->failed; i++) {
        const struct measurement_value *value = &measurement->values[i];
        if (!is_chosen(encoder->options, value->time_ns) || !isfinite(value->value)) continue;
        json_begin_object(writer);
        json_write_key(writer, "timestamp");
        json_write_fixed(writer, microseconds(value->time_ns), 6);
        json_write_key(writer, "value");
        json_write_double(writer, value->value);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void write_measurements(struct json_writer *writer, const struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    json_write_key(writer, "measurements");
    json_begin_object(writer);
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        if (!is_known_unit(profile_slice(profile, measurement->unit))) continue;
        write_measurement(writer, encoder, measurement);
    }
    json_end_object(writer);
}

static bool is_repeated_fact(const struct profile *profile, size_t fact)
{
    for (size_t i = 0; i < fact; i++) {
        if (profile->facts.items[i].key.index == profile->facts.items[fact].key.index) return true;
    }
    return false;
}

/* What the recorder knows of itself. Other receivers pass over it. */
static void write_offbeat(struct json_writer *writer, const struct profile *profile)
{
    int64_t period = period_ns(profile);
    if (period == 0 && profile->facts.count == 0) return;
    json_write_key(writer, "offbeat");
    json_begin_object(writer);
    if (period) {
        json_write_key(writer, "period_ns");
        json_write_i64(writer, period);
    }
    json_write_key(writer, "facts");
    json_begin_object(writer);
    for (size_t i = 0; i < profile->facts.count; i++) {
        const struct fact *fact = &profile->facts.items[i];
        if (is_repeated_fact(profile, i)) continue;
        json_write_key_slice(writer, profile_slice(profile, fact->key));
        if (fact->is_number)
            json_write_i64(writer, fact->number);
        else
            json_write_string(writer, profile_slice(profile, fact->text));
    }
    json_end_object(writer);
    json_end_object(writer);
}

static void write_chunk(struct encoder *encoder, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    write_metadata(&writer, encoder);
    write_debug_meta(&writer, encoder);
    write_measurements(&writer, encoder);
    write_profile(&writer, encoder);
    write_offbeat(&writer, encoder->profile);
    json_end_object(&writer);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

const char *sentry_v2_platform(const struct profile *profile)
{
    return profile->platform.index ? profile_c_string(profile, profile->platform) : "native";
}

static enum status prepare(struct encoder *encoder, struct error *error)
{
    const struct profile *profile = encoder->profile;
    encoder->stack_numbers = calloc(profile->stacks.count, sizeof(*encoder->stack_numbers));
    encoder->thread_samples = calloc(profile->threads.count, sizeof(*encoder->thread_samples));
    encoder->thread_active = calloc(profile->threads.count, sizeof(*encoder->thread_active));
    encoder->mapping_is_used = calloc(profile->mappings.count, sizeof(*encoder->mapping_is_used));
    if (!encoder->stack_numbers || !encoder->thread_samples || !encoder->thread_active || !encoder->mapping_is_used) {
        return refuse_memory(error);
    }
    enum status status = check_metadata(profile, error);
    if (status == STATUS_OK) status = lay_out_ticks(encoder, error);
    if (status == STATUS_OK) status = number_stacks(encoder, error);
    if (status == STATUS_OK) status = check_samples(encoder, error);
    return status;
}

/* Fills CHUNK, which is empty and of the greatest size that a receiver takes. */
static enum status encode(struct encoder *encoder, struct buffer *chunk, struct error *error)
{
    enum status status = prepare(encoder, error);
    if (status != STATUS_OK) return status;
    write_chunk(encoder, chunk);
    if (encoder->no_memory) return refuse_memory(error);
    return chunk->failed ? refuse_size(error) : STATUS_OK;
}

static void encoder_fini(struct encoder *encoder)
{
    free(encoder->ticks.items);
    free(encoder->frames.items);
    index_table_fini(&encoder->frames.index);
    free(encoder->stacks.items);
    index_table_fini(&encoder->stacks.index);
    free(encoder->frame_indices.items);
    free(encoder->stack_numbers);
    free(encoder->thread_samples);
    free(encoder->thread_active);
    free(encoder->mapping_is_used);
}

/* OUT may be NULL: nothing is kept then. */
static enum status encode_into(const struct profile *profile, const struct sentry_v2_options *options,
                               struct buffer *out, struct error *error)
{
    struct encoder encoder = {.profile = profile, .options = options};
    struct buffer chunk;
    buffer_init(&chunk, CHUNK_BYTES_MAX);
    enum status status = encode(&encoder, &chunk, error);
    if (status == STATUS_OK && out) buffer_append(out, chunk.data, chunk.size);
    if (status == STATUS_OK && out && out->failed) status = refuse_memory(error);
    buffer_fini(&chunk);
    encoder_fini(&encoder);
    return status;
}

enum status sentry_v2_encode(const struct profile *profile, const struct sentry_v2_options *options, struct buffer *out,
                             struct error *error)
{
    return encode_into(profile, options, out, error);
}

enum status sentry_v2_check(const struct profile *profile, const struct sentry_v2_options *options, struct error *error)
{
    return encode_into(profile, options, NULL, error);
}
