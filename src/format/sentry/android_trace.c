/* Reads the method traces of Android's ART and Dalvik: Debug.startMethodTracing, startMethodTracingSampling, the
 * profiler of Android Studio, and sampled_profile of Sentry's chunks. The layout is that of AOSP's runtime/trace.cc:
 * text with the threads and methods, then a header and a record for each method that a thread enters or leaves. The
 * form that is streamed has no text in front: threads and methods are among the records, and what the text says comes
 * last.
 *
 * Each stretch of time in which the same methods of a thread are open is a sample: samples/count, wall/nanoseconds and
 * cpu/nanoseconds, as far as the clocks of the trace say. What is open after the last record of its thread has no known
 * length.  SPDX-License-Identifier: MIT */
#include "format/sentry/android_trace.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/hex.h"
#include "format/common/text_line.h"
#include "profile/processes.h"

#include <stdio.h>
#include <stdlib.h>

#define SUMMARY "*version\n"
#define MAGIC "SLOW"

enum {
    ANDROID_METHODS_MAX = 1 << 24,
    ANDROID_DEPTH_MAX = 1 << 16, /* methods of one thread that are open at one time */
    ANDROID_THREADS = 1 << 16,   /* numbers of threads have 16 bits */
};

enum { HEADER_BYTES = 18, STREAMED = 0xf0, VERSION_MAX = 3, RECORD_BYTES_MAX = 64, ACTION_BITS = 3 };
enum { STREAM_METHOD = 1, STREAM_THREAD, STREAM_SUMMARY };
enum { METHOD_ENTERED, METHOD_LEFT, METHOD_UNWOUND, NO_ACTION };
enum clock { CLOCK_THREAD, CLOCK_WALL, CLOCK_DUAL };

struct method {
    uint32_t id;
    struct location_id location;
};

struct open_method {
    uint32_t id;
    struct stack_id stack;
};

struct track {
    ARRAY_OF(struct open_method) open;
    struct string_id name;
    struct thread_id thread;
    bool has_records;
    uint32_t cpu_us, wall_us; /* clocks of the last record, as they are in the file */
    uint64_t wall_ns;         /* time since the start of the trace; the file has 32 bits of microseconds */
};

struct decoder {
    struct slice bytes;
    struct profile *profile;
    struct error *error;
    enum status status;
    INDEXED_ARRAY_OF(struct method) methods;
    struct track *tracks;     /* ANDROID_THREADS */
    ARRAY_OF(size_t) records; /* offsets; the streamed form says at its end which clock they have */
    unsigned version, record_size;
    enum clock clock;
    uint64_t start_ns;
    int64_t ends_without_begin;
};

static void reject(struct decoder *decoder, enum status status, size_t offset, const char *message)
{
    if (decoder->status == STATUS_OK) decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

static void reject_memory(struct decoder *decoder)
{
    reject(decoder, STATUS_NO_MEMORY, 0, "no memory for the trace");
}

/* --- Text: clock, threads, methods -------------------------------------------------------------------------------- */

static void read_summary_line(struct decoder *decoder, struct slice line)
{
    struct slice key = text_take_until(&line, '=');
    uint64_t pid;
    if (slice_equals_text(key, "clock")) {
        bool is_wall = slice_equals_text(line, "wall") || slice_equals_text(line, "global");
        decoder->clock = slice_equals_text(line, "dual") ? CLOCK_DUAL : is_wall ? CLOCK_WALL : CLOCK_THREAD;
    } else if (slice_equals_text(key, "pid") && text_number(line, &pid) && pid <= INT32_MAX) {
        profile_add_metadata_number(decoder->profile, PROCESS_ID_LABEL, (int64_t)pid);
    } else if (slice_equals_text(key, "data-file-overflow") && slice_equals_text(line, "true")) {
        profile_add_omission(decoder->profile, "the buffer of the trace was full: what came after that is missing");
    }
}

static void name_thread(struct decoder *decoder, uint64_t number, struct slice name)
{
    if (number < ANDROID_THREADS) decoder->tracks[number].name = profile_string(decoder->profile, name);
}

static bool has_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct decoder *)context)->methods.items[index].id == *(const uint32_t *)key;
}

static uint32_t find_method(const struct decoder *decoder, uint32_t id)
{
    return index_table_find(&decoder->methods.index, hash_mix(0, id), has_id, decoder, &id);
}

static struct location_id add_method(struct decoder *decoder, uint32_t id, const struct function *function)
{
    struct line line = {.function = profile_add_function(decoder->profile, function), .line = function->start_line};
    struct location place = {.kind = FRAME_INTERPRETED};
    struct method method = {.id = id, .location = profile_add_location(decoder->profile, &place, &line, 1)};
    if (find_method(decoder, id) != INDEX_NONE) return method.location;
    if (decoder->methods.count == ANDROID_METHODS_MAX)
        reject(decoder, STATUS_TOO_LARGE, 0, "more than 16777216 methods");
    else if (!INDEXED_ARRAY_PUSH(&decoder->methods, ANDROID_METHODS_MAX, hash_mix(0, id), method))
        reject_memory(decoder);
    return method.location;
}

/* "0x3f4 CLASS NAME SIGNATURE FILE LINE" with tabs between them; the line is Dalvik's, whose classes have slashes. */
static void read_method(struct decoder *decoder, struct slice line)
{
    struct slice id = text_take_until(&line, '\t'), class_name = text_take_until(&line, '\t');
    struct slice name = text_take_until(&line, '\t');
    (void)text_take_until(&line, '\t');
    struct slice file = text_take_until(&line, '\t');
    uint64_t number = 0, start_line = 0;
    if (!text_begins_with(id, "0x") || !hex_parse(text_from(id, 2), &number) || number > UINT32_MAX) return;
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 0; i < class_name.size; i++)
        buffer_append_byte(&text, class_name.data[i] == '/' ? '.' : class_name.data[i]);
    if (class_name.size > 0) buffer_append_byte(&text, '.');
    buffer_append(&text, name.data, name.size);
    if (text.is_full) reject(decoder, STATUS_TOO_LARGE, 0, "the name of a method has more than 1 MiB");
    if (text.failed) reject_memory(decoder);
    struct function function = {.name = profile_string(decoder->profile, buffer_slice(&text)),
                                .file_name = profile_string(decoder->profile, file)};
    if (text_number(line, &start_line) && start_line <= INT32_MAX) function.start_line = (int64_t)start_line;
    (void)add_method(decoder, (uint32_t)number & ~(uint32_t)ACTION_BITS, &function);
    buffer_fini(&text);
}

/* Takes the text off *LEFT, up to its last line "*end", or all of it. */
static void read_text(struct decoder *decoder, struct slice *left)
{
    enum { IN_SUMMARY, IN_THREADS, IN_METHODS } part = IN_SUMMARY;
    while (left->size > 0 && decoder->status == STATUS_OK) {
        struct slice line = text_take_line(left);
        uint64_t number;
        if (slice_equals_text(line, "*end")) return;
        if (slice_equals_text(line, "*threads"))
            part = IN_THREADS;
        else if (slice_equals_text(line, "*methods"))
            part = IN_METHODS;
        else if (part == IN_SUMMARY)
            read_summary_line(decoder, line);
        else if (part == IN_METHODS)
            read_method(decoder, line);
        else if (text_number(text_take_until(&line, '\t'), &number))
            name_thread(decoder, number, line);
    }
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* True if the header at CURSOR, of the streamed form or the other, is one that is read. */
static bool read_header(struct decoder *decoder, struct cursor *cursor, bool is_streamed)
{
    static const unsigned sizes[] = {0, 9, 10};
    const uint64_t since_1970_us = 1000000000000000; /* the year 2001 */
    size_t start = cursor_offset(cursor);
    struct slice magic = cursor_take(cursor, sizeof(MAGIC) - 1);
    unsigned version = cursor_u16(cursor), data_offset = cursor_u16(cursor);
    uint64_t start_us = cursor_u64(cursor);
    decoder->version = is_streamed ? version ^ STREAMED : version;
    if (cursor->failed || !slice_equals_text(magic, MAGIC)) {
        reject(decoder, STATUS_MALFORMED, start, "the trace is cut short or damaged, before its first record");
    } else if (decoder->version < 1 || decoder->version > VERSION_MAX) {
        reject(decoder, STATUS_UNSUPPORTED, start, "an Android trace of another version than 1 to 3");
    } else {
        decoder->record_size = decoder->version < 3 ? sizes[decoder->version] : cursor_u16(cursor);
        bool is_dual = decoder->version == 3;
        if (decoder->record_size < (is_dual ? 14u : sizes[decoder->version]) ||
            decoder->record_size > RECORD_BYTES_MAX || data_offset < cursor_offset(cursor) - start)
            reject(decoder, STATUS_MALFORMED, start, "an Android trace with a damaged header");
        cursor_skip(cursor, data_offset - (cursor_offset(cursor) - start));
    }
    /* ART counts from the start of the machine, Dalvik from 1970. */
    if (start_us > since_1970_us && start_us <= INT64_MAX / 1000) decoder->start_ns = start_us * 1000;
    return decoder->status == STATUS_OK;
}

static void note_cut(struct decoder *decoder, size_t offset)
{
    profile_add_omission(decoder->profile, "the trace is cut short, at byte %zu: what came after it is missing",
                         offset);
}

static bool note_record(struct decoder *decoder, struct cursor *cursor)
{
    size_t offset = cursor_offset(cursor);
    cursor_skip(cursor, decoder->record_size);
    if (cursor->failed) return false;
    if (!ARRAY_PUSH(&decoder->records, PROFILE_SAMPLES_MAX, offset)) reject_memory(decoder);
    return true;
}

/* Reads what the streamed form has among its records. False at the end. */
static bool read_streamed(struct decoder *decoder, struct cursor *cursor)
{
    struct cursor peek = *cursor;
    if (cursor_u16(&peek) != 0) return note_record(decoder, cursor);
    unsigned code = cursor_u8(&peek), thread = code == STREAM_THREAD ? cursor_u16(&peek) : 0;
    size_t size = code == STREAM_SUMMARY ? cursor_u32(&peek) : cursor_u16(&peek);
    size_t offset = cursor_offset(cursor);
    struct slice text = cursor_take(&peek, size);
    if (peek.failed) {
        cursor->failed = true;
        return false;
    }
    *cursor = peek;
    if (code == STREAM_METHOD)
        read_method(decoder, text_take_line(&text));
    else if (code == STREAM_THREAD)
        name_thread(decoder, thread, text);
    else if (code == STREAM_SUMMARY)
        read_text(decoder, &text);
    else
        reject(decoder, STATUS_MALFORMED, offset, "an entry of the trace has an unknown code");
    return code != STREAM_SUMMARY;
}

/* --- Replay ------------------------------------------------------------------------------------------------------- */

/* Returns what passed between two readings of a clock of 32 bits; 0 if it went back. */
static uint64_t microseconds_between(uint32_t before, uint32_t after)
{
    uint32_t passed = after - before;
    return passed <= INT32_MAX ? passed : 0;
}

static void add_sample(struct decoder *decoder, const struct track *track, uint64_t cpu_us, uint64_t wall_us)
{
    int64_t values[PROFILE_VALUES_MAX] = {1};
    unsigned column = 1;
    if (decoder->clock != CLOCK_THREAD) values[column++] = (int64_t)wall_us * 1000;
    if (decoder->clock != CLOCK_WALL) values[column] = (int64_t)cpu_us * 1000;
    struct sample sample = {.stack = track->open.items[track->open.count - 1].stack,
                            .thread = track->thread,
                            .time_ns = decoder->start_ns + track->wall_ns};
    profile_add_sample(decoder->profile, &sample, values);
}

static struct location_id place_of(struct decoder *decoder, uint32_t id)
{
    uint32_t found = find_method(decoder, id);
    if (found != INDEX_NONE) return decoder->methods.items[found].location;
    char name[32];
    (void)snprintf(name, sizeof(name), "method 0x%x", id);
    return add_method(decoder, id, &(struct function){.name = profile_text(decoder->profile, name)});
}

static void enter(struct decoder *decoder, struct track *track, uint32_t id)
{
    size_t depth = track->open.count;
    struct stack_id caller = depth ? track->open.items[depth - 1].stack : (struct stack_id){0};
    struct open_method opened = {.id = id, .stack = profile_add_stack(decoder->profile, caller, place_of(decoder, id))};
    if (depth == ANDROID_DEPTH_MAX)
        reject(decoder, STATUS_TOO_LARGE, 0, "more than 65536 methods are open at one time");
    else if (!ARRAY_PUSH(&track->open, ANDROID_DEPTH_MAX, opened))
        reject_memory(decoder);
}

/* Leaves the innermost method ID, and those in it; what was entered before the trace began is ignored. */
static void leave(struct decoder *decoder, struct track *track, uint32_t id)
{
    enum { DEPTH_SEARCHED_MAX = 1024 };
    size_t count = track->open.count, least = count > DEPTH_SEARCHED_MAX ? count - DEPTH_SEARCHED_MAX : 0;
    while (count > least && track->open.items[count - 1].id != id) count--;
    if (count > least)
        track->open.count = count - 1;
    else
        decoder->ends_without_begin++;
}

static void begin_track(struct decoder *decoder, struct track *track, unsigned number, uint32_t wall_us)
{
    char id[16];
    (void)snprintf(id, sizeof(id), "%u", number);
    struct thread thread = {.id = profile_text(decoder->profile, id), .name = track->name};
    track->thread = profile_add_thread(decoder->profile, &thread);
    track->has_records = true;
    track->wall_ns = (uint64_t)wall_us * 1000;
}

static void replay(struct decoder *decoder, size_t offset)
{
    struct cursor cursor = cursor_of(decoder->bytes);
    cursor_skip(&cursor, offset);
    unsigned number = decoder->version == 1 ? cursor_u8(&cursor) : cursor_u16(&cursor);
    uint32_t method = cursor_u32(&cursor), first = cursor_u32(&cursor), id = method & ~(uint32_t)ACTION_BITS;
    uint32_t cpu_us = decoder->clock == CLOCK_WALL ? 0 : first, wall_us = decoder->clock == CLOCK_WALL ? first : 0;
    if (decoder->clock == CLOCK_DUAL) wall_us = cursor_u32(&cursor);
    struct track *track = &decoder->tracks[number];
    if (!track->has_records) {
        begin_track(decoder, track, number, wall_us);
    } else {
        uint64_t cpu = microseconds_between(track->cpu_us, cpu_us),
                 wall = microseconds_between(track->wall_us, wall_us);
        if (track->open.count > 0 && cpu + wall > 0) add_sample(decoder, track, cpu, wall);
        track->wall_ns += wall * 1000;
    }
    track->cpu_us = cpu_us;
    track->wall_us = wall_us;
    switch (method & ACTION_BITS) {
    case METHOD_ENTERED:
        enter(decoder, track, id);
        break;
    case METHOD_LEFT:
    case METHOD_UNWOUND:
        leave(decoder, track, id);
        break;
    default:
        reject(decoder, STATUS_MALFORMED, offset, "a record of the trace has an unknown action");
    }
}

static void add_samples(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    profile_add_value_type(profile, "samples", "count");
    if (decoder->version == VERSION_MAX) decoder->clock = CLOCK_DUAL;
    if (decoder->version < VERSION_MAX && decoder->clock == CLOCK_DUAL) decoder->clock = CLOCK_THREAD;
    if (decoder->clock != CLOCK_THREAD) profile_add_value_type(profile, "wall", "nanoseconds");
    if (decoder->clock != CLOCK_WALL) profile_add_value_type(profile, "cpu", "nanoseconds");
    if (decoder->clock == CLOCK_DUAL) profile->default_value_type = profile_text(profile, "wall");
    profile->has_times = decoder->clock != CLOCK_THREAD;
    profile->time_ns = profile_start_at(decoder->start_ns);
    for (size_t i = 0; i < decoder->records.count && decoder->status == STATUS_OK && profile->failed == STATUS_OK; i++)
        replay(decoder, decoder->records.items[i]);
    if (decoder->ends_without_begin)
        profile_add_metadata_number(profile, "ends_without_begin", decoder->ends_without_begin);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void read_file(struct decoder *decoder)
{
    struct slice left = decoder->bytes;
    bool is_streamed = text_begins_with(left, MAGIC);
    if (!is_streamed) read_text(decoder, &left);
    struct cursor cursor = cursor_of(decoder->bytes);
    cursor_skip(&cursor, decoder->bytes.size - left.size);
    if (decoder->status != STATUS_OK || !read_header(decoder, &cursor, is_streamed)) return;
    bool has_more = true;
    while (has_more && !cursor_at_end(&cursor) && decoder->status == STATUS_OK) {
        size_t offset = cursor_offset(&cursor);
        has_more = is_streamed ? read_streamed(decoder, &cursor) : note_record(decoder, &cursor);
        if (cursor.failed) note_cut(decoder, offset);
    }
    if (is_streamed && has_more && !cursor.failed) note_cut(decoder, decoder->bytes.size); /* it ends with the text */
}

static bool android_trace_detect(struct slice bytes)
{
    bool is_streamed = text_begins_with(bytes, MAGIC) && bytes.size >= HEADER_BYTES && bytes.data[5] == 0 &&
                       (bytes.data[4] & STREAMED) == STREAMED;
    return is_streamed || text_begins_with(bytes, SUMMARY);
}

enum status android_trace_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    return android_trace_decode_at(bytes, 0, profile, error);
}

enum status android_trace_decode_at(struct slice bytes, uint64_t start_ns, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error};
    decoder.tracks = calloc(ANDROID_THREADS, sizeof(*decoder.tracks));
    if (!decoder.tracks) reject_memory(&decoder);
    if (decoder.status == STATUS_OK) read_file(&decoder);
    if (start_ns) decoder.start_ns = start_ns;
    if (decoder.status == STATUS_OK) add_samples(&decoder);
    for (size_t i = 0; decoder.tracks && i < ANDROID_THREADS; i++) free(decoder.tracks[i].open.items);
    free(decoder.tracks);
    free(decoder.records.items);
    free(decoder.methods.items);
    index_table_fini(&decoder.methods.index);
    if (decoder.status == STATUS_OK) decoder.status = profile_failed(profile, error);
    return decoder.status == STATUS_OK && profile->has_times ? profile_sort_by_time(profile, error) : decoder.status;
}

const struct format format_android_trace = {
    .name = "android-trace",
    .detect = android_trace_detect,
    .decode = android_trace_decode,
};
