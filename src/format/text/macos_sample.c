/* Reads the text of macOS's sample and of Activity Monitor's "Sample Process": a call graph, a tree by indentation.
 * Values are samples/count and wall/nanoseconds.
 *
 *     Call graph:
 *         2796 Thread_1234   DispatchQueue_1: com.apple.main-thread  (serial)
 *         + 2796 main  (in prog) + 32  [0x1000]  main.c:12
 *         +   ! 1000 work  (in prog) + 8  [0x1010]
 *
 * SPDX-License-Identifier: MIT */
#include "format/common/format_ops.h"
#include "format/common/text_line.h"

#include <stdlib.h>

enum { MACOS_SAMPLE_DEPTH_MAX = 4096 }; /* frames of a stack */

struct open_frame {
    size_t column; /* column of its number */
    struct stack_id stack;
    int64_t left; /* samples that no callee has accounted for */
};

struct decoder {
    struct slice bytes, left, line;
    struct profile *profile;
    struct open_frame *open; /* MACOS_SAMPLE_DEPTH_MAX */
    size_t depth;
    struct thread_id thread;
    int64_t interval_ns;
    enum status status;
    struct error *error;
};

static void reject(struct decoder *decoder, enum status status, const char *message)
{
    uint64_t offset = (uint64_t)(decoder->line.data - decoder->bytes.data);
    if (decoder->status == STATUS_OK) decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

static void close_frames(struct decoder *decoder, size_t column)
{
    while (decoder->depth > 0 && decoder->open[decoder->depth - 1].column >= column) {
        const struct open_frame *frame = &decoder->open[--decoder->depth];
        int64_t time_ns;
        if (__builtin_mul_overflow(frame->left, decoder->interval_ns, &time_ns)) time_ns = INT64_MAX;
        int64_t values[] = {frame->left, time_ns};
        struct sample sample = {.stack = frame->stack, .thread = decoder->thread};
        if (frame->left > 0) profile_add_sample(decoder->profile, &sample, values);
    }
}

static size_t find(struct slice text, const char *wanted)
{
    const uint8_t *found = text.data ? memmem(text.data, text.size, wanted, strlen(wanted)) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

/* "main.c:12" at the end of TEXT, after an address in brackets. */
static void read_file(struct decoder *decoder, struct slice text, struct function *function, struct line *line)
{
    size_t end = find(text, "]  ");
    if (end == text.size) return;
    struct slice file = slice_of(text.data + end + 3, text.size - end - 3);
    size_t colon = file.size;
    while (colon > 0 && file.data[colon - 1] != ':') colon--;
    if (colon == 0) return;
    for (size_t i = colon; i < file.size && file.data[i] >= '0' && file.data[i] <= '9'; i++) {
        if (line->line < INT32_MAX / 16) line->line = line->line * 10 + (file.data[i] - '0');
    }
    function->file_name = profile_string(decoder->profile, slice_of(file.data, colon - 1));
}

/* "work  (in prog) + 8  [0x1010]  work.c:3" */
static struct location_id add_frame(struct decoder *decoder, struct slice text)
{
    struct profile *profile = decoder->profile;
    struct location location = {0};
    struct function function = {0};
    struct line line = {0};
    size_t name_size = find(text, "  (in ");
    if (name_size < text.size) {
        struct slice rest = slice_of(text.data + name_size + 6, text.size - name_size - 6);
        struct mapping mapping = {.file_name = profile_string(profile, slice_of(rest.data, find(rest, ")")))};
        location.mapping = profile_add_mapping(profile, &mapping);
        read_file(decoder, rest, &function, &line);
    }
    function.name = profile_string(profile, slice_of(text.data, name_size));
    line.function = profile_add_function(profile, &function);
    return profile_add_location(profile, &location, &line, 1);
}

static void begin_thread(struct decoder *decoder, struct slice text)
{
    struct profile *profile = decoder->profile;
    size_t id_size = find(text, " ");
    struct thread thread = {.id = profile_string(profile, slice_of(text.data, id_size))};
    while (id_size < text.size && (text.data[id_size] == ' ' || text.data[id_size] == ':')) id_size++;
    if (id_size < text.size) thread.name = profile_string(profile, text_from(text, id_size));
    decoder->thread = profile_add_thread(profile, &thread);
}

/* Splits the line at hand into the column of its number, the number and the text; false if it has none. */
static bool split_line(struct decoder *decoder, size_t *ret_column, int64_t *ret_count, struct slice *ret_text)
{
    struct slice line = decoder->line;
    size_t i = 0, first;
    int64_t count = 0;
    while (i < line.size && memchr(" +!:|", line.data[i], 5)) i++;
    for (first = i; i < line.size && line.data[i] >= '0' && line.data[i] <= '9'; i++) {
        if (__builtin_mul_overflow(count, 10, &count) || __builtin_add_overflow(count, line.data[i] - '0', &count))
            return false;
    }
    if (i == first || i + 1 >= line.size || line.data[i] != ' ') return false;
    *ret_column = first;
    *ret_count = count;
    *ret_text = slice_of(line.data + i + 1, line.size - i - 1);
    return true;
}

static void open_frame(struct decoder *decoder, size_t column, int64_t count, struct slice text)
{
    bool is_thread = decoder->depth == 0 && text_begins_with(text, "Thread");
    struct open_frame frame = {.column = column, .left = count};
    if (decoder->depth == MACOS_SAMPLE_DEPTH_MAX) {
        reject(decoder, STATUS_TOO_LARGE, "a stack of more than 4096 frames");
        return;
    }
    if (decoder->depth > 0) {
        struct open_frame *caller = &decoder->open[decoder->depth - 1];
        caller->left -= count < caller->left ? count : caller->left;
        frame.stack = caller->stack;
    }
    if (is_thread)
        begin_thread(decoder, text);
    else
        frame.stack = profile_add_stack(decoder->profile, frame.stack, add_frame(decoder, text));
    decoder->open[decoder->depth++] = frame;
}

static void read_graph(struct decoder *decoder)
{
    while (decoder->left.size > 0 && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK) {
        size_t column;
        int64_t count;
        struct slice text;
        decoder->line = text_take_line(&decoder->left);
        if (!split_line(decoder, &column, &count, &text)) {
            if (decoder->line.size > 0)
                reject(decoder, STATUS_MALFORMED, "expected a number of samples and a function");
            break;
        }
        close_frames(decoder, column);
        open_frame(decoder, column, count, text);
    }
    close_frames(decoder, 0);
    if (decoder->status == STATUS_OK && decoder->left.size == 0)
        decoder->status = error_set(decoder->error, STATUS_MALFORMED, decoder->bytes.size,
                                    "the file is cut short: nothing follows the call graph");
}

/* "Analysis of sampling prog (pid 7) every 1 millisecond" */
static void read_heading(struct decoder *decoder)
{
    struct slice line = decoder->line;
    size_t place = find(line, " every ") + 7;
    int64_t number = 0;
    profile_add_comment(decoder->profile, line);
    for (; place < line.size && line.data[place] >= '0' && line.data[place] <= '9' && number < 1000000; place++)
        number = number * 10 + (line.data[place] - '0');
    bool is_micro = find(line, "microsecond") < line.size;
    decoder->interval_ns = (number > 0 ? number : 1) * (is_micro ? 1000 : 1000000);
}

static bool macos_sample_detect(struct slice bytes)
{
    return text_begins_with(bytes, "Analysis of sampling ");
}

static enum status macos_sample_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .left = bytes, .profile = profile, .error = error};
    if (!macos_sample_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not the text of sample");
    decoder.open = calloc(MACOS_SAMPLE_DEPTH_MAX, sizeof(*decoder.open));
    if (!decoder.open) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the call graph");
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    decoder.line = text_take_line(&decoder.left);
    read_heading(&decoder);
    profile->period_type = profile->value_types[1];
    profile->period = decoder.interval_ns;
    while (decoder.left.size > 0 && !slice_equals_text(decoder.line, "Call graph:"))
        decoder.line = text_take_line(&decoder.left);
    if (decoder.left.size == 0)
        decoder.status = error_set(error, STATUS_MALFORMED, bytes.size, "there is no call graph");
    else
        read_graph(&decoder);
    free(decoder.open);
    return decoder.status == STATUS_OK ? profile_failed(profile, error) : decoder.status;
}

const struct format format_macos_sample = {
    .name = "macos-sample",
    .detect = macos_sample_detect,
    .decode = macos_sample_decode,
};
