/* Reads the JSON of Ruby's stackprof (stackprof --json, StackProf.results as JSON): frames by number, and "raw", stacks
 * one after the other: the number of frames, these from the root on, the number of samples. Values are samples/count
 * and, if the interval is a time, wall or cpu/nanoseconds; objects/count for allocations. A file without "raw" states
 * of each frame how many samples are in it, in each of its lines, in it and all that it calls, and in each of its
 * calls ("edges"). A comment says that it has no stacks.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/common/json_members.h"
#include "format/common/stack_estimate.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

enum { STACKPROF_DEPTH_MAX = 65536 }; /* frames of a stack */

struct frame {
    uint64_t id;
    struct location_id location;
    struct function_id function;
    int64_t samples, total_samples; /* counts: in the function itself, and with all that it calls */
    struct slice edges, lines;      /* objects in the file; empty: none */
};

struct decoder {
    struct json_parts file;
    INDEXED_ARRAY_OF(struct frame) frames;
    double interval_ns; /* 0: samples are no times */
};

static bool has_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct decoder *)context)->frames.items[index].id == *(const uint64_t *)key;
}

static uint32_t find_frame(const struct decoder *decoder, uint64_t id)
{
    return index_table_find(&decoder->frames.index, hash_mix(0, id), has_id, decoder, &id);
}

/* Keys of JSON are texts; numbers of frames are addresses. */
static uint64_t parse_id(struct json_reader *reader, struct slice text)
{
    uint64_t id = 0;
    for (size_t i = 0; i < text.size; i++) {
        bool is_digit = text.data[i] >= '0' && text.data[i] <= '9';
        if (!is_digit || __builtin_mul_overflow(id, 10u, &id) ||
            __builtin_add_overflow(id, (uint64_t)(text.data[i] - '0'), &id))
            json_reader_reject(reader, STATUS_MALFORMED, "the number of a frame is no number of 64 bits");
    }
    return id;
}

/* Blocks of one line may have one name, and the program its own twice. */
static struct function_id add_function(struct profile *profile, struct function *function, struct string_id key)
{
    size_t count = profile->functions.count;
    struct function_id found = profile_add_function(profile, function);
    if (profile->functions.count > count) return found;
    function->system_name = key;
    return profile_add_function(profile, function);
}

static void read_frame(struct decoder *decoder, struct json_reader *reader, struct slice key)
{
    struct profile *profile = decoder->file.profile;
    struct frame frame = {.id = parse_id(reader, key)};
    struct string_id key_text = profile_string(profile, key);
    struct function function = {0};
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (json_null(reader)) continue;
        if (slice_equals_text(name, "name"))
            function.name = profile_string(profile, json_string(reader));
        else if (slice_equals_text(name, "file"))
            function.file_name = profile_string(profile, json_string(reader));
        else if (slice_equals_text(name, "line"))
            function.start_line = json_i64(reader);
        else if (slice_equals_text(name, "samples"))
            frame.samples = json_i64(reader);
        else if (slice_equals_text(name, "total_samples"))
            frame.total_samples = json_i64(reader);
        else if (slice_equals_text(name, "edges"))
            frame.edges = json_take_value(reader);
        else if (slice_equals_text(name, "lines"))
            frame.lines = json_take_value(reader);
        else
            json_skip(reader);
    }
    if (function.start_line < 0 || function.start_line > INT32_MAX) function.start_line = 0;
    frame.function = add_function(profile, &function, key_text);
    struct line line = {.function = frame.function, .line = function.start_line};
    frame.location = profile_add_location(profile, &(struct location){.kind = FRAME_INTERPRETED}, &line, 1);
    size_t count = decoder->frames.count;
    if (reader->failed) return;
    bool is_new = find_frame(decoder, frame.id) == INDEX_NONE;
    if (!ARRAY_PUSH(&decoder->frames, PROFILE_ENTITIES_MAX, frame) ||
        (is_new && !index_table_add(&decoder->frames.index, hash_mix(0, frame.id), (uint32_t)count)))
        json_reader_reject(reader, STATUS_NO_MEMORY, "no memory for the frames");
}

static void read_frames(struct decoder *decoder, struct slice frames)
{
    struct json_reader reader;
    struct slice key;
    json_reader_init(&reader, frames);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) read_frame(decoder, &reader, key);
    json_parts_finish(&decoder->file, &reader);
}

/* Sets VALUES to those of COUNT samples. */
static void give_values(const struct decoder *decoder, int64_t count, int64_t values[2])
{
    double time_ns = (double)count * decoder->interval_ns;
    values[0] = count;
    values[1] = time_ns < 0x1p62 ? (int64_t)time_ns : INT64_MAX / 2;
}

static void add_sample(struct decoder *decoder, struct stack_id stack, int64_t count)
{
    int64_t values[2];
    give_values(decoder, count, values);
    profile_add_sample(decoder->file.profile, &(struct sample){.stack = stack}, values);
}

static uint64_t next_number(struct json_reader *reader)
{
    if (json_array_next(reader)) return json_u64(reader);
    json_reader_reject(reader, STATUS_MALFORMED, "the last stack is cut short");
    return 0;
}

static void read_raw(struct decoder *decoder, struct slice raw)
{
    struct json_reader reader;
    json_reader_init(&reader, raw);
    json_array_begin(&reader);
    while (decoder->file.profile->failed == STATUS_OK && json_array_next(&reader)) {
        uint64_t depth = json_u64(&reader);
        struct stack_id stack = {0};
        if (depth > STACKPROF_DEPTH_MAX)
            json_reader_reject(&reader, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
        for (uint64_t i = 0; i < depth && !reader.failed; i++) {
            uint32_t frame = find_frame(decoder, next_number(&reader));
            if (frame == INDEX_NONE)
                json_reader_reject(&reader, STATUS_MALFORMED, "a stack with a frame that is not there");
            else
                stack = profile_add_stack(decoder->file.profile, stack, decoder->frames.items[frame].location);
        }
        uint64_t count = next_number(&reader);
        if (!reader.failed) add_sample(decoder, stack, count < INT64_MAX ? (int64_t)count : INT64_MAX);
    }
    json_parts_finish(&decoder->file, &reader);
}

/* --- Files without stacks ----------------------------------------------------------------------------------------- */

static uint32_t stated_function_of(struct decoder *decoder, const struct frame *frame)
{
    return stated_function_add(decoder->file.profile, &(struct stated_function){.function = frame->function});
}

static void state_cost(struct decoder *decoder, const struct frame *frame, uint64_t number, int64_t count)
{
    struct profile *profile = decoder->file.profile;
    struct line line = {.function = frame->function, .line = number <= INT32_MAX ? (int64_t)number : 0};
    int64_t values[2];
    give_values(decoder, count, values);
    if (count <= 0) return;
    stated_cost_add(profile, stated_function_of(decoder, frame),
                    profile_add_location(profile, &(struct location){.kind = FRAME_INTERPRETED}, &line, 1), values,
                    (uint32_t)profile->value_type_count);
}

/* Reads {"12": [samples with all that the line calls, samples], …}; those that have no line are at the function's. */
static void read_lines(struct decoder *decoder, const struct frame *frame, uint64_t start_line)
{
    struct json_reader reader;
    struct slice key;
    int64_t left = frame->samples;
    json_reader_init(&reader, frame->lines);
    if (frame->lines.size > 0) json_object_begin(&reader);
    while (frame->lines.size > 0 && json_object_next(&reader, &key)) {
        uint64_t number = parse_id(&reader, key);
        int64_t counts[2] = {0};
        json_array_begin(&reader);
        for (size_t i = 0; json_array_next(&reader); i++) counts[i < 1 ? 0 : 1] = json_i64(&reader);
        if (counts[1] > left) counts[1] = left;
        if (counts[1] > 0) left -= counts[1];
        state_cost(decoder, frame, number, counts[1]);
    }
    if (frame->lines.size > 0) json_parts_finish(&decoder->file, &reader);
    state_cost(decoder, frame, start_line, left);
}

static void read_edges(struct decoder *decoder, const struct frame *frame)
{
    struct profile *profile = decoder->file.profile;
    struct json_reader reader;
    struct slice key;
    if (frame->edges.size == 0) return;
    json_reader_init(&reader, frame->edges);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        uint32_t callee = find_frame(decoder, parse_id(&reader, key));
        int64_t count = json_i64(&reader), values[2];
        if (callee == INDEX_NONE) json_reader_reject(&reader, STATUS_MALFORMED, "a call of a frame that is not there");
        if (reader.failed || count <= 0) continue;
        struct stated_call call = {.caller = stated_function_of(decoder, frame), .location = frame->location};
        call.callee = stated_function_of(decoder, &decoder->frames.items[callee]);
        give_values(decoder, count, values);
        stated_call_add(profile, &call, values, (uint32_t)profile->value_type_count);
    }
    json_parts_finish(&decoder->file, &reader);
}

static void add_stated_costs(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    for (size_t i = 0; i < decoder->frames.count && decoder->file.status == STATUS_OK; i++) {
        const struct frame *frame = &decoder->frames.items[i];
        int64_t values[2];
        read_lines(decoder, frame, (uint64_t)profile_function(profile, frame->function)->start_line);
        give_values(decoder, frame->total_samples > frame->samples ? frame->total_samples : frame->samples, values);
        stated_inclusive_add(profile, stated_function_of(decoder, frame), values, (uint32_t)profile->value_type_count);
        if (decoder->file.status == STATUS_OK) read_edges(decoder, frame);
    }
    profile_add_comment(profile, slice_of_text("The file has no stacks; record with raw: true."));
    if (decoder->file.status == STATUS_OK)
        decoder->file.status = stack_estimate_add_samples(profile, decoder->file.bytes.size, decoder->file.error);
}

/* The interval of times is in microseconds. */
static void give_value_types(struct decoder *decoder, struct slice mode, struct slice interval)
{
    struct profile *profile = decoder->file.profile;
    bool is_cpu = slice_equals_text(mode, "\"cpu\""), is_wall = slice_equals_text(mode, "\"wall\"");
    profile_add_value_type(profile, slice_equals_text(mode, "\"object\"") ? "objects" : "samples", "count");
    profile->platform = profile_text(profile, "ruby");
    if (!is_cpu && !is_wall) return;
    double microseconds = interval.size && interval.data[0] != '"' ? json_parts_double(&decoder->file, interval) : 0;
    decoder->interval_ns = microseconds > 0 && microseconds < 1e9 ? microseconds * 1000 : 0;
    if (decoder->interval_ns <= 0) return;
    profile_add_value_type(profile, is_cpu ? "cpu" : "wall", "nanoseconds");
    profile->period_type = profile->value_types[1];
    profile->period = (int64_t)decoder->interval_ns;
}

static bool stackprof_detect(struct slice bytes)
{
    enum { BYTES_LOOKED_AT = 4096 };
    struct slice front = slice_of(bytes.data, bytes.size < BYTES_LOOKED_AT ? bytes.size : BYTES_LOOKED_AT);
    static const char *const members[] = {"\"version\"", "\"mode\"", "\"interval\"", "\"missed_samples\""};
    while (front.size > 0 && front.data[0] <= ' ') front = slice_of(front.data + 1, front.size - 1);
    if (front.size == 0 || front.data[0] != '{') return false;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (!memmem(front.data, front.size, members[i], strlen(members[i]))) return false;
    }
    return true;
}

static enum status stackprof_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    enum { MODE, INTERVAL, FRAMES, RAW, MISSED, MEMBERS };
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    struct json_member members[MEMBERS] = {
        {.name = "mode"}, {.name = "interval"}, {.name = "frames"}, {.name = "raw"}, {.name = "missed_samples"}};
    if (!stackprof_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of stackprof");
    json_parts_note(&decoder.file, bytes, members, MEMBERS);
    give_value_types(&decoder, members[MODE].value, members[INTERVAL].value);
    if (decoder.file.status == STATUS_OK && members[FRAMES].value.size == 0)
        json_parts_fail(&decoder.file, STATUS_MALFORMED, NULL, "there is no member \"frames\"");
    if (decoder.file.status == STATUS_OK) read_frames(&decoder, members[FRAMES].value);
    if (decoder.file.status == STATUS_OK && members[RAW].value.size > 0)
        read_raw(&decoder, members[RAW].value);
    else if (decoder.file.status == STATUS_OK)
        add_stated_costs(&decoder);
    if (decoder.file.status == STATUS_OK && members[MISSED].value.size > 0) {
        double missed = json_parts_double(&decoder.file, members[MISSED].value);
        if (missed > 0 && missed < 0x1p62) profile_add_metadata_number(profile, "missed_samples", (int64_t)missed);
    }
    free(decoder.frames.items);
    index_table_fini(&decoder.frames.index);
    return decoder.file.status == STATUS_OK ? profile_failed(profile, error) : decoder.file.status;
}

const struct format format_stackprof = {
    .name = "stackprof",
    .detect = stackprof_detect,
    .decode = stackprof_decode,
};
