/* Reads what node --prof-process --preprocess makes of a log of node --prof: the code that was in memory, and ticks,
 * each with a stack of it. A tick counts 1 and lasts until the next one, as a sample of a .cpuprofile does; the last
 * one's length is not known.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "format/common/format_ops.h"
#include "format/common/json_members.h"
#include "format/common/text_line.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    V8_LOG_DEPTH_MAX = 1 << 12, /* frames of a stack; V8 records at most 255 */
    NAME_BYTES_MAX = 4096,
};

/* States of V8's machine that are not the code on the stack (V8's StateTag). */
enum vm_state { VM_COLLECTS = 1, VM_IDLE = 8 };

struct code {
    struct slice name, type, kind; /* values in the input */
    struct location_id location;   /* made when a stack has it first */
};

struct tick {
    uint64_t time_us;
    struct stack_id stack;
};

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct code) codes;
    ARRAY_OF(struct tick) ticks;
    ARRAY_OF(uint64_t) frames; /* pairs of a code and an offset, innermost first */
    bool is_node;
};

static void fail_for_memory(struct decoder *decoder)
{
    json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the profile");
}

static void read_codes(struct decoder *decoder, struct slice list)
{
    struct json_reader reader;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        struct json_member members[] = {{.name = "name"}, {.name = "type"}, {.name = "kind"}};
        json_members_note(&reader, members, 3);
        struct code code = {.name = members[0].value, .type = members[1].value, .kind = members[2].value};
        if (!ARRAY_PUSH(&decoder->codes, PROFILE_ENTITIES_MAX, code)) fail_for_memory(decoder);
    }
    json_parts_finish(&decoder->file, &reader);
}

/* "NAME FILE:LINE:COLUMN", where NAME may be empty or begin with "get " or "set ". */
static void describe_script(struct decoder *decoder, struct slice text, struct function *function, struct line *line)
{
    struct profile *profile = decoder->file.profile;
    uint64_t number = 0, column = 0;
    bool has_place = text_take_last_number(&text, &column) && text_take_last_number(&text, &number);
    if (has_place && column <= INT32_MAX) line->column = (int64_t)column;
    if (has_place && number <= INT32_MAX) line->line = (int64_t)number;
    size_t start = text_begins_with(text, "get ") || text_begins_with(text, "set ") ? 4 : 0;
    const uint8_t *blank = text.size > start ? memchr(text.data + start, ' ', text.size - start) : NULL;
    size_t name_bytes = blank ? (size_t)(blank - text.data) : text.size;
    struct slice file = blank ? text_from(text, name_bytes + 1) : slice_of(NULL, 0);
    function->name =
        name_bytes ? profile_string(profile, slice_of(text.data, name_bytes)) : profile_text(profile, "(anonymous)");
    function->file_name = profile_string(profile, file);
    decoder->is_node |= text_begins_with(file, "node:");
}

static struct location_id location_of(struct decoder *decoder, struct code *code)
{
    struct profile *profile = decoder->file.profile;
    if (code->location.index) return code->location;
    struct function function = {.name = json_parts_text(&decoder->file, code->name)};
    struct line line = {0};
    if (slice_equals_text(code->type, "\"JS\"")) {
        describe_script(decoder, profile_slice(profile, function.name), &function, &line);
    } else if (slice_equals_text(code->type, "\"CODE\"") && code->kind.size > 0) {
        char name[NAME_BYTES_MAX]; /* "Builtin: ArrayMap", as node --prof-process calls it */
        (void)snprintf(name, sizeof(name), "%s: %s",
                       profile_c_string(profile, json_parts_text(&decoder->file, code->kind)),
                       profile_c_string(profile, function.name));
        function.name = profile_text(profile, name);
    }
    line.function = profile_add_function(profile, &function);
    code->location = profile_add_location(profile, &(struct location){0}, &line, 1);
    return code->location;
}

static struct location_id place_of_text(struct profile *profile, const char *text)
{
    struct function function = {.name = profile_text(profile, text)};
    struct line line = {.function = profile_add_function(profile, &function)};
    return profile_add_location(profile, &(struct location){0}, &line, 1);
}

/* Frames whose code is not known (-1) are passed over, as V8 does not know either what they are. */
static struct stack_id read_stack(struct decoder *decoder, struct slice list, uint64_t state)
{
    struct profile *profile = decoder->file.profile;
    struct json_reader reader;
    struct stack_id stack = {0};
    decoder->frames.count = 0;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        double number = json_double(&reader);
        uint64_t frame = number >= 0 && number < 0x1p53 ? (uint64_t)number : UINT64_MAX;
        if (decoder->frames.count == 2 * V8_LOG_DEPTH_MAX)
            json_reader_reject(&reader, STATUS_TOO_LARGE, "a stack of more than 4096 frames");
        else if (!ARRAY_PUSH(&decoder->frames, 2 * V8_LOG_DEPTH_MAX, frame))
            fail_for_memory(decoder);
    }
    json_parts_finish(&decoder->file, &reader);
    for (size_t i = decoder->frames.count / 2; i-- > 0;) {
        uint64_t code = decoder->frames.items[2 * i];
        if (code >= decoder->codes.count) continue;
        stack = profile_add_stack(profile, stack, location_of(decoder, &decoder->codes.items[code]));
    }
    if (state == VM_COLLECTS)
        stack = profile_add_stack(profile, stack, place_of_text(profile, "(garbage collector)"));
    else if (stack.index == 0 && state != VM_IDLE)
        stack = profile_add_stack(profile, stack, place_of_text(profile, "(program)"));
    return stack;
}

static uint64_t read_number(struct decoder *decoder, struct slice value)
{
    double number = json_parts_double(&decoder->file, value);
    return number > 0 && number < 9e15 ? (uint64_t)number : 0;
}

static void read_ticks(struct decoder *decoder, struct slice list)
{
    struct json_reader reader;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        struct json_member members[] = {{.name = "tm"}, {.name = "vm"}, {.name = "s"}};
        json_members_note(&reader, members, 3);
        if (reader.failed) break;
        struct tick tick = {.time_us = read_number(decoder, members[0].value)};
        tick.stack = read_stack(decoder, members[2].value, read_number(decoder, members[1].value));
        if (!ARRAY_PUSH(&decoder->ticks, PROFILE_ENTITIES_MAX, tick)) fail_for_memory(decoder);
    }
    json_parts_finish(&decoder->file, &reader);
}

static void add_samples(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    const struct tick *ticks = decoder->ticks.items;
    size_t count = decoder->ticks.count;
    for (size_t i = 0; i < count; i++) {
        uint64_t next_us = i + 1 < count ? ticks[i + 1].time_us : ticks[i].time_us;
        uint64_t length_us = next_us > ticks[i].time_us ? next_us - ticks[i].time_us : 0;
        int64_t values[] = {1, (int64_t)length_us * 1000};
        struct sample sample = {.stack = ticks[i].stack, .time_ns = ticks[i].time_us * 1000};
        profile_add_sample(profile, &sample, values);
    }
    if (count > 0) profile->duration_ns = (ticks[count - 1].time_us - ticks[0].time_us) * 1000;
    profile->platform = profile_text(profile, decoder->is_node ? "node" : "javascript");
}

/* V8 writes the code first, and in each the name and the type. */
static bool v8_log_detect(struct slice bytes)
{
    enum { BYTES_LOOKED_AT = 4096 };
    struct json_reader reader;
    struct slice name;
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    bool is_code =
        json_object_next(&reader, &name) && slice_equals_text(name, "code") && json_peek(&reader) == JSON_ARRAY;
    json_reader_fini(&reader);
    size_t size = bytes.size < BYTES_LOOKED_AT ? bytes.size : BYTES_LOOKED_AT;
    return is_code && memmem(bytes.data, size, "\"type\"", 6) && memmem(bytes.data, size, "\"name\"", 6);
}

static enum status v8_log_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    struct json_member members[] = {{.name = "code"}, {.name = "ticks"}};
    if (!v8_log_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a log of V8 as JSON");
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->has_times = true;
    json_parts_note(&decoder.file, bytes, members, 2);
    if (decoder.file.status == STATUS_OK) read_codes(&decoder, members[0].value);
    if (decoder.file.status == STATUS_OK && members[1].value.size == 0)
        json_parts_fail(&decoder.file, STATUS_MALFORMED, NULL, "there is no list \"ticks\"");
    if (decoder.file.status == STATUS_OK) read_ticks(&decoder, members[1].value);
    enum status status = decoder.file.status;
    if (status == STATUS_OK) add_samples(&decoder);
    free(decoder.codes.items);
    free(decoder.ticks.items);
    free(decoder.frames.items);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    return status == STATUS_OK ? profile_sort_by_time(profile, error) : status;
}

const struct format format_v8_log = {
    .name = "v8-log",
    .suffixes = {".v8log.json"},
    .detect = v8_log_detect,
    .decode = v8_log_decode,
};
