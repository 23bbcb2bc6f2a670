/* Reads stacks of bpftrace and DTrace, a frame a line, the leaf first:
 *
 *     @[                              |               libc.so.6`read+0x10
 *         vfs_read+12                 |               prog`main+0x2a
 *         ksys_read+95                |                 7
 *     , cat]: 7                       |
 *
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/hex.h"
#include "format/common/format_ops.h"
#include "format/common/text_line.h"

#include <stdlib.h>

enum { BPFTRACE_DEPTH_MAX = 1 << 16 }; /* frames of a stack */

struct decoder {
    struct slice bytes, left, line;
    struct profile *profile;
    ARRAY_OF(struct location_id) path; /* leaf first */
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

/* A frame "module MARK name"; MARK 0: only the name. */
static void add_frame(struct decoder *decoder, struct slice text, uint8_t mark)
{
    struct profile *profile = decoder->profile;
    struct location location = {0};
    struct line line = {0};
    const uint8_t *end = mark ? memchr(text.data, mark, text.size) : NULL;
    if (end && end > text.data) {
        struct mapping mapping = {.file_name = profile_string(profile, slice_of(text.data, (size_t)(end - text.data)))};
        location.mapping = profile_add_mapping(profile, &mapping);
        text = slice_of(end + 1, text.size - (size_t)(end - text.data) - 1);
    }
    if (text_begins_with(text, "0x")) (void)hex_parse(text_from(text, 2), &location.address);
    struct function function = {.name = profile_string(profile, without_offset(text))};
    line.function = profile_add_function(profile, &function);
    if (decoder->path.count == BPFTRACE_DEPTH_MAX)
        reject(decoder, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
    else if (!ARRAY_PUSH(&decoder->path, BPFTRACE_DEPTH_MAX,
                         profile_add_location(profile, &location, &line, location.address ? 0 : 1)))
        reject(decoder, STATUS_NO_MEMORY, "no memory for the stacks");
}

/* Adds the frames so far, with VALUE, and forgets them. */
static void add_sample(struct decoder *decoder, int64_t value, struct slice key)
{
    struct profile *profile = decoder->profile;
    struct sample sample = {0};
    for (size_t i = decoder->path.count; i-- > 0;)
        sample.stack = profile_add_stack(profile, sample.stack, decoder->path.items[i]);
    if (key.size > 0) {
        struct label label = {.key = profile_text(profile, "key"), .text = profile_string(profile, key)};
        sample.labels = profile_add_labels(profile, &label, 1);
    }
    profile_add_sample(profile, &sample, &value);
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
    return decoder->status == STATUS_OK ? profile_failed(decoder->profile, decoder->error) : decoder->status;
}

/* --- bpftrace ----------------------------------------------------------------------------------------------------- */

/* A stack that is empty leaves its comma: "@[, ". */
static bool begins_map(struct slice line)
{
    while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == ',')) line.size--;
    return line.size >= 2 && line.data[0] == '@' && line.data[line.size - 1] == '[';
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

static void add_entry(struct decoder *decoder, struct slice value, struct slice key)
{
    int64_t number;
    if (text_integer(value, &number))
        add_sample(decoder, number, key);
    else
        reject(decoder, STATUS_UNSUPPORTED, "a map whose values are no numbers, as hist() and stats() have");
}

/* "@[, cat]: 7": a stack that bpftrace had no room for, in one line. A map without stacks has no comma there. */
static void read_lost_stack(struct decoder *decoder)
{
    struct slice line = decoder->line, key, value;
    const uint8_t *open = line.size > 0 && line.data[0] == '@' ? memchr(line.data, '[', line.size) : NULL;
    if (!open) return;
    line = slice_of(open + 1, line.size - (size_t)(open + 1 - line.data));
    if (line.size > 0 && line.data[0] == ',' && split_end(line, &key, &value)) add_entry(decoder, value, key);
}

/* A lone "," is between a stack of the kernel and one of the program that follows it. */
static void read_map(struct decoder *decoder)
{
    while (decoder->left.size > 0 && decoder->status == STATUS_OK) {
        struct slice line = next_line(decoder), key, value, text = text_trim(line);
        if (split_end(line, &key, &value)) {
            add_entry(decoder, value, key);
            return;
        }
        if (text.size > 0 && !slice_equals_text(text, ",")) add_frame(decoder, text, 0);
    }
    reject(decoder, STATUS_MALFORMED, "the key of a map does not end: \"]: 7\"");
}

/* True if a map whose key begins with a stack is at the front: "@[" at the end of a line. */
static bool bpftrace_detect(struct slice bytes)
{
    enum { LINES_LOOKED_AT = 64 };
    for (int i = 0; i < LINES_LOOKED_AT && bytes.size > 0; i++) {
        struct slice line = text_take_line(&bytes);
        if (begins_map(line)) return true;
        bool is_other = line.size == 0 || line.data[0] == '@' || text_begins_with(line, "Attaching ");
        if (!is_other) return false;
    }
    return false;
}

/* The value is samples/count, or what the map adds up. Other parts of the key ("comm", a number) become the label
 * "key". Maps without stacks are passed over. */
static enum status bpftrace_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .left = bytes, .profile = profile, .error = error};
    if (!bpftrace_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not stacks of bpftrace");
    profile_add_value_type(profile, "samples", "count");
    while (decoder.left.size > 0 && decoder.status == STATUS_OK && profile->failed == STATUS_OK) {
        if (begins_map(next_line(&decoder)))
            read_map(&decoder);
        else
            read_lost_stack(&decoder);
    }
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
        if (is_dtrace_frame(line) || is_dtrace_address(text))
            add_frame(&decoder, text, '`');
        else if (text_integer(text, &number) && decoder.path.count > 0)
            add_sample(&decoder, number, slice_of(NULL, 0));
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
