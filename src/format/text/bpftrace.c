/* Reads stacks of bpftrace and DTrace, a frame a line, the leaf first:
 *
 *     @[                              |               libc.so.6`read+0x10
 *         vfs_read+12                 |               prog`main+0x2a
 *         ksys_read+95                |                 7
 *     , cat]: 7                       |
 *
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/buffer.h"
#include "base/hex.h"
#include "format/common/format_ops.h"
#include "format/common/json_members.h"
#include "format/common/text_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BPFTRACE_DEPTH_MAX = 1 << 16, /* frames of a stack */
    MAP_NAME_SIZE = 256,
    TEXT_PARTS_MAX = 8, /* size of text in that of its JSON: each key gets the name of its map */
};

/* A map whose key has a stack, "@ns[", with a value type of its own. */
struct map {
    struct slice name; /* the name without "@"; empty: the map without a name */
    int column;
    bool is_unreadable;     /* a value is no number */
    uint64_t unreadable_at; /* the place of the first such value, in bytes */
};

struct decoder {
    struct slice bytes, left, line;
    struct profile *profile;
    ARRAY_OF(struct location_id) path; /* leaf first */
    struct map maps[PROFILE_VALUES_MAX];
    int map_count;
    struct slice key;   /* the parts of the key at hand that come before its stack */
    struct buffer text; /* the text that JSON stands for */
    bool is_survey;     /* maps and their values are only looked at */
    enum status status;
    struct error *error;
};

static void reject(struct decoder *decoder, enum status status, const char *message)
{
    uint64_t offset = (uint64_t)(decoder->line.data - decoder->bytes.data);
    if (decoder->status == STATUS_OK) decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

/* Returns NAME without "+12", the offset in the function. */
static struct slice without_offset(struct slice name)
{
    size_t size = name.size;
    for (; size > 0 && name.data[size - 1] != '+'; size--) {
        uint8_t byte = name.data[size - 1];
        bool is_digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || byte == 'x';
        if (!is_digit) return name;
    }
    if (size < 2 || size == name.size || name.data[size - 2] == ' ') return name;
    return slice_of(name.data, size - 1);
}

struct frame {
    struct slice name, module; /* MODULE is empty if it is not known */
    uint64_t address;          /* address of code without a name */
};

/* A frame of bpftrace, "name+12"; of ustack(perf), "7f0c5a3b2e0d name+12 (/lib/libc.so.6)". */
static struct frame parse_bpftrace_frame(struct slice text)
{
    struct slice left = text, word = text_take_word(&left);
    struct frame frame = {.name = text};
    uint64_t address;
    const uint8_t *open = left.size > 0 ? memrchr(left.data, '(', left.size) : NULL;
    bool has_module = open && open > left.data && open[-1] == ' ' && text_ends_with(left, ")");
    if (has_module && word.size > 0 && hex_parse(word, &address)) {
        size_t name_size = (size_t)(open - left.data);
        frame.name = text_trim(slice_of(left.data, name_size));
        frame.module = slice_of(open + 1, left.size - name_size - 2);
        if (slice_equals_text(frame.name, "[unknown]")) frame.address = address;
        if (slice_equals_text(frame.module, "[unknown]")) frame.module = slice_of(NULL, 0);
    }
    if (text_begins_with(frame.name, "0x")) (void)hex_parse(text_from(frame.name, 2), &frame.address);
    return frame;
}

/* A frame of DTrace, "module`name+0x1f". */
static struct frame parse_dtrace_frame(struct slice text)
{
    const uint8_t *end = memchr(text.data, '`', text.size);
    struct frame frame = {.name = text};
    if (end && end > text.data) {
        frame.module = slice_of(text.data, (size_t)(end - text.data));
        frame.name = text_from(text, frame.module.size + 1);
    }
    if (text_begins_with(frame.name, "0x")) (void)hex_parse(text_from(frame.name, 2), &frame.address);
    return frame;
}

static void add_frame(struct decoder *decoder, const struct frame *frame)
{
    struct profile *profile = decoder->profile;
    struct location location = {.address = frame->address};
    struct line line = {0};
    if (frame->module.size > 0)
        location.mapping =
            profile_add_mapping(profile, &(struct mapping){.file_name = profile_string(profile, frame->module)});
    struct function function = {.name = profile_string(profile, without_offset(frame->name))};
    line.function = profile_add_function(profile, &function);
    if (decoder->path.count == BPFTRACE_DEPTH_MAX)
        reject(decoder, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
    else if (!ARRAY_PUSH(&decoder->path, BPFTRACE_DEPTH_MAX,
                         profile_add_location(profile, &location, &line, location.address ? 0 : 1)))
        reject(decoder, STATUS_NO_MEMORY, "no memory for the stacks");
}

/* Adds the parts of a key that come BEFORE and AFTER its stack as a label. */
static struct label_set_id add_key(struct profile *profile, struct slice before, struct slice after)
{
    struct buffer text;
    if (before.size + after.size == 0) return (struct label_set_id){0};
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    buffer_append(&text, before.data, before.size);
    if (before.size > 0 && after.size > 0) buffer_append_text(&text, ", ");
    buffer_append(&text, after.data, after.size);
    struct label label = {.key = profile_text(profile, "key"), .text = profile_string(profile, buffer_slice(&text))};
    buffer_fini(&text);
    return profile_add_labels(profile, &label, 1);
}

/* Adds the frames so far, with VALUE in COLUMN, and forgets them. */
static void add_sample(struct decoder *decoder, int column, int64_t value, struct slice key)
{
    struct profile *profile = decoder->profile;
    struct sample sample = {0};
    int64_t values[PROFILE_VALUES_MAX] = {0};
    values[column] = value;
    for (size_t i = decoder->path.count; i-- > 0;)
        sample.stack = profile_add_stack(profile, sample.stack, decoder->path.items[i]);
    sample.labels = add_key(profile, decoder->key, key);
    profile_add_sample(profile, &sample, values);
    decoder->path.count = 0;
}

static struct slice next_line(struct decoder *decoder)
{
    decoder->line = text_take_line(&decoder->left);
    return decoder->line;
}

static enum status finish(struct decoder *decoder)
{
    free(decoder->path.items);
    buffer_fini(&decoder->text);
    return decoder->status == STATUS_OK ? profile_failed(decoder->profile, decoder->error) : decoder->status;
}

/* --- bpftrace ----------------------------------------------------------------------------------------------------- */

/* "@[", or "@ns[cat, 12, " with the parts of the key that come before the stack: RET_KEY. A stack that is empty leaves
 * its comma: "@[, ". */
static bool begins_map(struct slice line, struct slice *ret_key)
{
    size_t size = line.size;
    while (size > 0 && (line.data[size - 1] == ' ' || line.data[size - 1] == ',')) size--;
    const uint8_t *open = size >= 2 && line.data[0] == '@' ? memchr(line.data, '[', size) : NULL;
    if (!open) return false;
    *ret_key = text_trim(slice_of(open + 1, size - (size_t)(open + 1 - line.data)));
    return ret_key->size == 0 || memchr(line.data + size, ',', line.size - size) != NULL;
}

/* ", cat, 12]: 7": the rest of a key and its value. False if the line is a frame. */
static bool split_end(struct slice line, struct slice *ret_key, struct slice *ret_value)
{
    const uint8_t *end = NULL;
    if (line.size == 0 || (line.data[0] != ',' && line.data[0] != ']')) return false;
    for (size_t i = 0; i + 2 < line.size; i++) {
        if (memcmp(line.data + i, "]: ", 3) == 0) end = line.data + i;
    }
    if (!end) return false;
    *ret_value = text_trim(slice_of(end + 3, line.size - (size_t)(end - line.data) - 3));
    struct slice key = slice_of(line.data, (size_t)(end - line.data));
    while (key.size > 0 && (key.data[0] == ',' || key.data[0] == ' ')) key = text_from(key, 1);
    *ret_key = key;
    return true;
}

/* Returns the map of LINE, "@ns[…", or NULL if there are too many. */
static struct map *find_map(struct decoder *decoder, struct slice line)
{
    const uint8_t *open = memchr(line.data, '[', line.size);
    struct slice name = slice_of(line.data + 1, (size_t)(open - line.data) - 1);
    for (int i = 0; i < decoder->map_count; i++) {
        if (slice_equal(decoder->maps[i].name, name)) return &decoder->maps[i];
    }
    if (decoder->map_count == PROFILE_VALUES_MAX) {
        reject(decoder, STATUS_TOO_LARGE, "more than 64 maps with stacks");
        return NULL;
    }
    decoder->maps[decoder->map_count] = (struct map){.name = name};
    return &decoder->maps[decoder->map_count++];
}

static void end_entry(struct decoder *decoder, struct map *map, struct slice value, struct slice key)
{
    int64_t number;
    bool is_number = text_integer(value, &number);
    if (!decoder->is_survey && !map->is_unreadable && is_number) add_sample(decoder, map->column, number, key);
    if (is_number || map->is_unreadable) return;
    map->is_unreadable = true;
    map->unreadable_at = (uint64_t)(decoder->line.data - decoder->bytes.data);
}

/* "@[, cat]: 7": a stack that bpftrace had no room for, in one line. A map without stacks has no comma there. */
static void read_lost_stack(struct decoder *decoder)
{
    struct slice line = decoder->line, key, value;
    decoder->key = slice_of(NULL, 0);
    const uint8_t *open = line.size > 0 && line.data[0] == '@' ? memchr(line.data, '[', line.size) : NULL;
    if (!open) return;
    struct slice end = text_from(line, (size_t)(open + 1 - line.data));
    if (end.size == 0 || end.data[0] != ',' || !split_end(end, &key, &value)) return;
    struct map *map = find_map(decoder, line);
    if (map) end_entry(decoder, map, value, key);
}

/* A lone "," is between a stack of the kernel and one of the program that follows it. */
static void read_map(struct decoder *decoder)
{
    struct slice first = decoder->line;
    struct map *map = find_map(decoder, first);
    while (map && decoder->left.size > 0 && decoder->status == STATUS_OK) {
        struct slice line = next_line(decoder), key, value, text = text_trim(line);
        if (split_end(line, &key, &value)) {
            end_entry(decoder, map, value, key);
            return;
        }
        if (decoder->is_survey || map->is_unreadable || text.size == 0 || slice_equals_text(text, ",")) continue;
        struct frame frame = parse_bpftrace_frame(text);
        add_frame(decoder, &frame);
    }
    if (decoder->is_survey || decoder->status != STATUS_OK) return;
    if (decoder->profile->samples.count == 0)
        reject(decoder, STATUS_MALFORMED, "the key of a map does not end: \"]: 7\"");
    else
        profile_add_omission(decoder->profile, "the last stack, at byte %zu, is cut short and left out",
                             (size_t)(first.data - decoder->bytes.data));
}

static void read_maps(struct decoder *decoder)
{
    decoder->left = decoder->bytes;
    while (decoder->left.size > 0 && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK) {
        if (begins_map(next_line(decoder), &decoder->key))
            read_map(decoder);
        else
            read_lost_stack(decoder);
    }
}

/* Adds a value type for each map. A map that cannot be read is named, or, if there is no other, the reason to reject
 * the file. */
static void add_value_types(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    for (int i = 0; i < decoder->map_count; i++) {
        struct map *map = &decoder->maps[i];
        if (map->is_unreadable) {
            profile_add_omission(profile,
                                 "the map @%.*s is left out: its values are no numbers, as those of hist() and stats() "
                                 "(byte %" PRIu64 ")",
                                 SLICE_ARGUMENTS(map->name), map->unreadable_at);
            continue;
        }
        map->column = (int)profile->value_type_count;
        struct string_id type =
            map->name.size > 0 ? profile_string(profile, map->name) : profile_text(profile, "samples");
        profile_add_value_type(profile, profile_c_string(profile, type), "count");
    }
    if (profile->value_type_count > 0) profile->default_value_type = profile->value_types[0].type;
    if (profile->value_type_count > 0 || decoder->map_count == 0) return;
    decoder->line.data = decoder->bytes.data + decoder->maps[0].unreadable_at;
    reject(decoder, STATUS_UNSUPPORTED, "a map whose values are no numbers, as hist() and stats() have");
}

/* "Attaching 2 probes..." and nothing else: a program that counted nothing. */
static bool is_empty_output(struct slice bytes)
{
    struct slice line = text_take_line(&bytes);
    bool has_begun = text_begins_with(line, "Attaching ") || text_begins_with(line, "Attached ");
    if (!has_begun || !memmem(line.data, line.size, " probe", strlen(" probe"))) return false;
    while (bytes.size > 0) {
        if (text_trim(text_take_line(&bytes)).size > 0) return false;
    }
    return true;
}

/* Whether a map whose key has a stack is in BYTES: "@[" or "@[cat, " is a line, and a frame follows it. */
static bool has_map(struct slice bytes)
{
    while (bytes.size > 0) {
        struct slice line = text_take_line(&bytes), key;
        if (begins_map(line, &key) && bytes.size > 0 && bytes.data[0] == ' ') return true;
        const uint8_t *next = memmem(bytes.data, bytes.size, "\n@", 2);
        if (bytes.size > 0 && bytes.data[0] == '@') continue;
        if (!next) return false;
        bytes = text_from(bytes, (size_t)(next + 1 - bytes.data));
    }
    return false;
}

static struct slice front_of(struct slice bytes)
{
    enum { FRONT_BYTES = 1 << 20 };
    return slice_of(bytes.data, bytes.size < FRONT_BYTES ? bytes.size : FRONT_BYTES);
}

/* True for what bpftrace -f json prints: an object a line. */
static bool is_json(struct slice bytes)
{
    static const char map[] = "{\"type\": \"map\", \"data\": {\"@";
    struct slice front = front_of(bytes);
    return text_begins_with(bytes, "{\"type\": \"") && memmem(front.data, front.size, map, sizeof(map) - 1);
}

/* True if a map whose key has a stack is at the front, also after lines that the program itself printed. */
static bool bpftrace_detect(struct slice bytes)
{
    enum { LINES_LOOKED_AT = 64 };
    if (is_empty_output(bytes) || is_json(bytes)) return true;
    static const char *const notes[] = {"Attaching ", "Attached ", "Lost ", "^C"}; /* lines of a terminal */
    struct slice left = bytes;
    for (int i = 0; i < LINES_LOOKED_AT && left.size > 0; i++) {
        struct slice line = text_take_line(&left), key;
        if (begins_map(line, &key)) return true;
        bool is_other = line.size == 0 || line.data[0] == '@';
        for (size_t k = 0; k < sizeof(notes) / sizeof(notes[0]); k++) is_other |= text_begins_with(line, notes[k]);
        if (!is_other) break;
    }
    return has_map(front_of(bytes));
}

/* Appends the map NAME as text: "@ns[KEY]: 7", where KEY has a line for each frame. A value that is no number becomes a
 * word, and a map without keys is passed over. */
static void write_map(struct json_reader *reader, struct slice name, struct buffer *text)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        buffer_append(text, name.data, name.size);
        buffer_append_byte(text, '[');
        buffer_append(text, key.data, key.size);
        buffer_append_text(text, "]: ");
        bool is_number = json_peek(reader) == JSON_NUMBER;
        struct slice value = json_take_value(reader);
        buffer_append(text, value.data, is_number || value.size == 0 ? value.size : 1);
        buffer_append_byte(text, '\n');
    }
}

/* Makes the decoder's bytes the text that the JSON in them stands for. */
static void write_text(struct decoder *decoder)
{
    for (struct slice left = decoder->bytes; left.size > 0 && decoder->status == STATUS_OK;) {
        struct json_reader reader;
        struct slice key, name;
        decoder->line = text_take_line(&left);
        if (!text_begins_with(decoder->line, "{\"type\": \"map\"")) continue;
        json_reader_init(&reader, decoder->line);
        json_object_begin(&reader);
        while (json_object_next(&reader, &key)) {
            bool is_data = slice_equals_text(key, "data") && json_peek(&reader) == JSON_OBJECT;
            if (is_data) json_object_begin(&reader);
            while (is_data && json_object_next(&reader, &name)) {
                char map[MAP_NAME_SIZE];
                int size = snprintf(map, sizeof(map), "%.*s", SLICE_ARGUMENTS(name));
                if (json_peek(&reader) == JSON_OBJECT && size < (int)sizeof(map))
                    write_map(&reader, slice_of_text(map), &decoder->text);
                else
                    json_skip(&reader);
            }
            if (!is_data) json_skip(&reader);
        }
        if (reader.failed) reject(decoder, STATUS_MALFORMED, "a line that is no JSON");
        json_reader_fini(&reader);
    }
    if (decoder->text.is_full) reject(decoder, STATUS_TOO_LARGE, "the names of maps are much longer than their keys");
    if (decoder->text.failed) reject(decoder, STATUS_NO_MEMORY, "no memory for the maps");
    if (decoder->status == STATUS_OK) decoder->bytes = buffer_slice(&decoder->text);
}

/* Each map has a value type of its own, "samples" if it has no name. Other parts of the key ("comm", a number) become
 * the label "key". Maps without stacks are passed over. */
static enum status bpftrace_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error, .is_survey = true};
    if (!bpftrace_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not stacks of bpftrace");
    buffer_init(&decoder.text, bytes.size * TEXT_PARTS_MAX);
    if (is_json(bytes)) write_text(&decoder);
    if (decoder.status == STATUS_OK) read_maps(&decoder);
    if (decoder.status == STATUS_OK) add_value_types(&decoder);
    if (decoder.map_count == 0) profile_add_value_type(profile, "samples", "count");
    decoder.is_survey = false;
    if (decoder.status == STATUS_OK) read_maps(&decoder);
    return finish(&decoder);
}

const struct format format_bpftrace = {
    .name = "bpftrace",
    .detect = bpftrace_detect,
    .decode = bpftrace_decode,
};

/* --- DTrace ------------------------------------------------------------------------------------------------------- */

static bool is_dtrace_frame(struct slice line)
{
    struct slice text = text_trim(line);
    if (line.size == 0 || (line.data[0] != ' ' && line.data[0] != '\t') || text.size == 0) return false;
    const uint8_t *mark = memchr(text.data, '`', text.size);
    return mark && mark > text.data && !memchr(text.data, ';', text.size);
}

/* Frames without a symbol are numbers, with or without their module. */
static bool is_dtrace_address(struct slice text)
{
    return text_begins_with(text, "0x");
}

/* True for an indented line "module`function+0x1f". */
static bool dtrace_detect(struct slice bytes)
{
    enum { LINES_LOOKED_AT = 64 };
    for (int i = 0; i < LINES_LOOKED_AT && bytes.size > 0; i++) {
        struct slice line = text_take_line(&bytes), text = text_trim(line);
        if (is_dtrace_frame(line)) return true;
        bool is_heading = text.size == 0 || text_begins_with(text, "dtrace: ") || text_begins_with(text, "CPU ") ||
                          (is_dtrace_address(text) && line.data[0] == ' ');
        if (!is_heading) return false;
    }
    return false;
}

/* Reads stacks with a number on the line after them, of DTrace's @[stack()] = count(). */
static enum status dtrace_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .left = bytes, .profile = profile, .error = error};
    if (!dtrace_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not stacks of DTrace");
    profile_add_value_type(profile, "samples", "count");
    while (decoder.left.size > 0 && decoder.status == STATUS_OK && profile->failed == STATUS_OK) {
        struct slice line = next_line(&decoder), text = text_trim(line);
        int64_t number;
        if (is_dtrace_frame(line) || is_dtrace_address(text)) {
            struct frame frame = parse_dtrace_frame(text);
            add_frame(&decoder, &frame);
        } else if (text_integer(text, &number) && decoder.path.count > 0)
            add_sample(&decoder, 0, number, slice_of(NULL, 0));
        else if (text.size > 0 && decoder.path.count > 0)
            reject(&decoder, STATUS_MALFORMED, "expected another frame, or a number after the last one");
    }
    if (decoder.path.count > 0) reject(&decoder, STATUS_MALFORMED, "the last stack has no number");
    return finish(&decoder);
}

const struct format format_dtrace = {
    .name = "dtrace",
    .detect = dtrace_detect,
    .decode = dtrace_decode,
};
