/* Reads files of valgrind's DHAT (dhat.out.PID) and of Rust's dhat crate: places that allocate ("pps"), whose frames
 * are numbers in a table of texts ("ftbl"). Values are what each place allocated (alloc_objects, alloc_space), how much
 * of it was there when the heap was largest (peak_…) and at the end (end_…), and bytes read and written, as far as the
 * file has them.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "format/common/format_ops.h"
#include "format/common/json_members.h"
#include "format/common/valgrind_frame.h"

enum { DHAT_DEPTH_MAX = 65536 }; /* frames of a stack */

static const struct {
    const char *member, *type, *unit;
} columns[] = {{"tbk", "alloc_objects", "count"}, {"tb", "alloc_space", "bytes"},  {"gbk", "peak_objects", "count"},
               {"gb", "peak_space", "bytes"},     {"ebk", "end_objects", "count"}, {"eb", "end_space", "bytes"},
               {"rb", "read", "bytes"},           {"wb", "written", "bytes"}};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct location_id) frames;
    ARRAY_OF(uint32_t) path; /* leaf first */
};

static void read_frames(struct decoder *decoder, struct slice table)
{
    struct json_reader reader;
    json_reader_init(&reader, table);
    json_array_begin(&reader);
    while (json_array_next(&reader)) {
        struct slice text = json_string(&reader);
        if (!ARRAY_PUSH(&decoder->frames, PROFILE_ENTITIES_MAX, valgrind_frame_add(decoder->file.profile, text)))
            json_reader_reject(&reader, STATUS_NO_MEMORY, "no memory for the frames");
    }
    json_parts_finish(&decoder->file, &reader);
}

static struct stack_id read_stack(struct decoder *decoder, struct json_reader *reader)
{
    struct stack_id stack = {0};
    decoder->path.count = 0;
    json_array_begin(reader);
    while (json_array_next(reader)) {
        uint64_t frame = json_u64(reader);
        if (frame >= decoder->frames.count)
            json_reader_reject(reader, STATUS_MALFORMED, "a frame that is not in the table");
        else if (decoder->path.count == DHAT_DEPTH_MAX)
            json_reader_reject(reader, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
        else if (!ARRAY_PUSH(&decoder->path, DHAT_DEPTH_MAX, (uint32_t)frame))
            json_reader_reject(reader, STATUS_NO_MEMORY, "no memory for the stacks");
    }
    for (size_t i = decoder->path.count; i-- > 0 && !reader->failed;)
        stack = profile_add_stack(decoder->file.profile, stack, decoder->frames.items[decoder->path.items[i]]);
    return stack;
}

static void read_place(struct decoder *decoder, struct json_reader *reader)
{
    int64_t values[COLUMNS] = {0};
    struct sample sample = {0};
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        size_t column = 0;
        while (column < COLUMNS && !slice_equals_text(name, columns[column].member)) column++;
        if (column < COLUMNS)
            values[column] = json_i64(reader);
        else if (slice_equals_text(name, "fs"))
            sample.stack = read_stack(decoder, reader);
        else
            json_skip(reader);
    }
    if (!reader->failed) profile_add_sample(decoder->file.profile, &sample, values);
}

static void read_places(struct decoder *decoder, struct slice places)
{
    struct json_reader reader;
    json_reader_init(&reader, places);
    json_array_begin(&reader);
    while (decoder->file.profile->failed == STATUS_OK && json_array_next(&reader)) read_place(decoder, &reader);
    json_parts_finish(&decoder->file, &reader);
}

static bool dhat_detect(struct slice bytes)
{
    enum { BYTES_LOOKED_AT = 256 };
    struct slice front = slice_of(bytes.data, bytes.size < BYTES_LOOKED_AT ? bytes.size : BYTES_LOOKED_AT);
    return front.size > 0 && front.data[0] == '{' && memmem(front.data, front.size, "\"dhatFileVersion\"", 17);
}

static enum status dhat_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    enum { PLACES, FRAMES, COMMAND, MEMBERS };
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    struct json_member members[MEMBERS] = {{.name = "pps"}, {.name = "ftbl"}, {.name = "cmd"}};
    if (!dhat_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a file of DHAT");
    for (size_t i = 0; i < COLUMNS; i++) profile_add_value_type(profile, columns[i].type, columns[i].unit);
    profile->default_value_type = profile_text(profile, "alloc_space");
    json_parts_note(&decoder.file, bytes, members, MEMBERS);
    if (decoder.file.status == STATUS_OK && (!members[PLACES].value.size || !members[FRAMES].value.size))
        json_parts_fail(&decoder.file, STATUS_MALFORMED, NULL, "there is no member \"pps\" or \"ftbl\"");
    if (decoder.file.status == STATUS_OK) {
        struct slice command = profile_slice(profile, json_parts_text(&decoder.file, members[COMMAND].value));
        if (command.size > 0) profile_add_comment(profile, command);
    }
    if (decoder.file.status == STATUS_OK) read_frames(&decoder, members[FRAMES].value);
    if (decoder.file.status == STATUS_OK) read_places(&decoder, members[PLACES].value);
    free(decoder.frames.items);
    free(decoder.path.items);
    return decoder.file.status == STATUS_OK ? profile_failed(profile, error) : decoder.file.status;
}

const struct format format_dhat = {
    .name = "dhat",
    .detect = dhat_detect,
    .decode = dhat_decode,
};
