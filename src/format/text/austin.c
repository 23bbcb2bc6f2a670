/* Collapsed stacks with a header of lines "# key: value", which says what the numbers are. Older versions have none:
 * the numbers are then taken for the default, microseconds of wall time.
 *
 * https://github.com/P403n1x87/austin, README, "Usage": "P<pid>;T<iid>:<tid>;[frame]*;[frame] [metric]", where a frame
 * is "module:function:line". Frames of the profiler's own, such as ":GC:", have no module and no line.
 * SPDX-License-Identifier: MIT */
#include "format/text/austin.h"

#include "format/common/text_line.h"
#include "format/text/stack_fields.h"

enum mode { MODE_WALL, MODE_CPU, MODE_MEMORY, MODE_FULL, MODES };

enum { METRICS_MAX = 3 };

static const struct {
    const char *name;
    struct {
        const char *type, *unit;
    } metrics[METRICS_MAX];
} modes[MODES] = {
    [MODE_WALL] = {"wall", {{"wall", "microseconds"}}},
    [MODE_CPU] = {"cpu", {{"cpu", "microseconds"}}},
    [MODE_MEMORY] = {"memory", {{"memory", "bytes"}}},
    [MODE_FULL] = {"full", {{"time", "microseconds"}, {"idle", "microseconds"}, {"memory", "bytes"}}},
};

/* --- Recognizing ---------------------------------------------------------------------------------------------------
 */

static bool begins_comment(struct slice line)
{
    return text_begins_with(line, "# ");
}

static struct slice take_part(struct slice *left)
{
    const uint8_t *end = memchr(left->data, ';', left->size);
    struct slice part = slice_of(left->data, end ? (size_t)(end - left->data) : left->size);
    *left = text_from(*left, part.size + (end != NULL));
    return part;
}

/* Takes what follows the last colon off *LEFT. */
static struct slice take_last_field(struct slice *left)
{
    const uint8_t *colon = left->size > 0 ? memrchr(left->data, ':', left->size) : NULL;
    if (!colon) return slice_of(NULL, 0);
    struct slice field = text_from(*left, (size_t)(colon + 1 - left->data));
    left->size = (size_t)(colon - left->data);
    return field;
}

/* Takes "P4317;T0:7ffff" off the front of *STACK. Older versions have "T7ffff". */
static bool take_ids(struct slice *stack, uint64_t *ret_pid, struct slice *ret_thread)
{
    struct slice left = *stack, process = take_part(&left), thread = take_part(&left);
    if (process.size < 2 || process.data[0] != 'P' || !text_number(text_from(process, 1), ret_pid) ||
        *ret_pid > INT32_MAX || thread.size < 2 || thread.data[0] != 'T')
        return false;
    *stack = left;
    *ret_thread = text_from(thread, 1);
    return true;
}

/* "P4317;T7ffff;app.py:f:3 100": ids, and a frame with a line. */
static bool is_stack(struct slice line)
{
    struct slice left = line, thread, frame;
    uint64_t number;
    if (!take_ids(&left, &number, &thread)) return false;
    for (size_t i = 0; i < thread.size; i++) {
        uint8_t byte = thread.data[i] | 0x20;
        if (!((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || thread.data[i] == ':')) return false;
    }
    const uint8_t *blank = left.size > 0 ? memrchr(left.data, ' ', left.size) : NULL;
    left.size = blank ? (size_t)(blank - left.data) : 0;
    frame = take_part(&left);
    return text_number(take_last_field(&frame), &number) && take_last_field(&frame).size > 0 && frame.size > 0;
}

bool austin_detect(struct slice bytes)
{
    struct slice line;
    do {
        line = text_take_line(&bytes);
        if (text_begins_with(line, "# austin: ")) return true;
    } while (bytes.size > 0 && (line.size == 0 || begins_comment(line)));
    return is_stack(line);
}

/* --- The header --------------------------------------------------------------------------------------------------- */

static void read_mode(struct slice value, enum mode *mode)
{
    for (int i = 0; i < MODES; i++) {
        if (slice_equals_text(value, modes[i].name)) *mode = (enum mode)i;
    }
}

/* Reads all lines of the header, and those at the end of the file. */
static enum mode read_header(struct slice bytes, struct profile *profile)
{
    enum mode mode = MODE_WALL;
    uint64_t interval_us = 0, duration_us = 0;
    bool has_header = false;
    while (bytes.size > 0) {
        struct slice line = text_take_line(&bytes);
        if (!begins_comment(line)) continue;
        line = text_from(line, 2);
        has_header = true;
        if (profile->comments.count < AUSTIN_COMMENTS_MAX) profile_add_comment(profile, line);
        struct slice key = text_take_word(&line), value = text_trim(line);
        if (slice_equals_text(key, "mode:")) read_mode(value, &mode);
        if (slice_equals_text(key, "interval:")) (void)text_number(value, &interval_us);
        if (slice_equals_text(key, "duration:")) (void)text_number(value, &duration_us);
    }
    if (!has_header)
        profile_add_comment(profile, slice_of_text("The file has no header: its values are taken for wall time."));
    for (int i = 0; i < METRICS_MAX && modes[mode].metrics[i].type; i++)
        profile_add_value_type(profile, modes[mode].metrics[i].type, modes[mode].metrics[i].unit);
    profile->default_value_type = profile->value_types[0].type;
    if (mode != MODE_MEMORY && interval_us > 0 && interval_us <= INT64_MAX) {
        profile->period_type = profile->value_types[0];
        profile->period = (int64_t)interval_us;
    }
    if (duration_us <= UINT64_MAX / 1000) profile->duration_ns = 1000 * duration_us;
    return mode;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* A part that is no "module:function:line" is a name. */
static struct location_id add_frame(struct profile *profile, struct slice frame)
{
    struct slice module = frame, line_text = take_last_field(&module), name = take_last_field(&module);
    struct function function = {.name = profile_string(profile, frame)};
    uint64_t number = 0;
    bool has_line = text_number(line_text, &number) && number <= INT64_MAX;
    if (name.size > 0 && (has_line || line_text.size == 0)) {
        function.name = profile_string(profile, name);
        function.file_name = profile_string(profile, module);
    }
    struct line line = {.function = profile_add_function(profile, &function), .line = has_line ? (int64_t)number : 0};
    return profile_add_location(profile, &(struct location){0}, &line, 1);
}

static struct thread_id take_thread(struct profile *profile, struct slice *stack)
{
    uint64_t pid;
    struct slice thread;
    if (!take_ids(stack, &pid, &thread)) return (struct thread_id){0};
    struct thread found = {.process = profile_add_pid(profile, (int64_t)pid, (struct string_id){0}),
                           .id = profile_string(profile, thread)};
    return profile_add_thread(profile, &found);
}

/* Reads TEXT, exactly the numbers of MODE with commas between them. */
static bool read_metrics(struct slice text, enum mode mode, int64_t values[METRICS_MAX])
{
    int count = 0;
    for (;; count++) {
        const uint8_t *comma = text.size > 0 ? memchr(text.data, ',', text.size) : NULL;
        size_t size = comma ? (size_t)(comma - text.data) : text.size;
        if (count == METRICS_MAX || !text_integer(slice_of(text.data, size), &values[count])) return false;
        if (!comma) break;
        text = text_from(text, size + 1);
    }
    bool is_full = count + 1 == METRICS_MAX;
    if (is_full != (mode == MODE_FULL) || (!is_full && count > 0)) return false;
    if (is_full) values[1] = values[1] != 0 ? values[0] : 0;
    return true;
}

static enum status decode_line(struct slice line, enum mode mode, struct profile *profile, uint64_t offset,
                               struct error *error)
{
    int64_t values[METRICS_MAX] = {0};
    const uint8_t *blank = memrchr(line.data, ' ', line.size);
    size_t size = blank ? (size_t)(blank - line.data) : 0;
    if (!blank || !read_metrics(text_from(line, size + 1), mode, values))
        return error_set(error, STATUS_MALFORMED, offset, "a line does not end with a blank and %s",
                         mode == MODE_FULL ? "three numbers, as austin's full mode has them" : "a number");
    struct slice stack = slice_of(line.data, size);
    struct sample sample = {.thread = take_thread(profile, &stack)};
    for (size_t depth = 0; stack.size > 0; depth++) {
        if (depth == AUSTIN_DEPTH_MAX)
            return error_set(error, STATUS_TOO_LARGE, offset, "a stack of more than %d frames", AUSTIN_DEPTH_MAX);
        struct slice frame = take_part(&stack);
        if (frame.size > 0) sample.stack = profile_add_stack(profile, sample.stack, add_frame(profile, frame));
    }
    profile_add_sample(profile, &sample, values);
    return STATUS_OK;
}

enum status austin_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    enum mode mode = read_header(bytes, profile);
    struct slice left = bytes;
    while (left.size > 0 && profile->failed == STATUS_OK) {
        struct slice line = text_take_line(&left);
        if (line.size == 0 || line.data[0] == '#') continue;
        enum status status = decode_line(line, mode, profile, (uint64_t)(line.data - bytes.data), error);
        if (stack_fields_leave_out_cut_line(profile, line, bytes, status)) break;
        if (status != STATUS_OK) return status;
    }
    return profile_failed(profile, error);
}
