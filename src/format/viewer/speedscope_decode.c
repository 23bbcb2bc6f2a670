/* Reads speedscope's JSON.
 *
 * The members of its objects come in any order, and what is needed first may come last: the places of the members are
 * noted and each is read when its turn comes.  SPDX-License-Identifier: MIT */
#include "format/viewer/speedscope.h"

#include "base/array.h"
#include "base/json_reader.h"
#include "format/common/format_ops.h"
#include "format/common/json_kind.h"
#include "format/common/json_members.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREAD_ID_BYTES_MAX = 1 << 10 };

#define LIMIT 0x1p61 /* largest position in a profile, so that differences do not overflow */

/* Kinds of values of a profile. */
enum measure { MEASURE_NONE, MEASURE_TIME, MEASURE_BYTES };

static const struct unit {
    const char *name;
    enum measure measure;
    double factor; /* factor to nanoseconds or bytes */
} units[] = {
    {"none", MEASURE_NONE, 1},           {"nanoseconds", MEASURE_TIME, 1}, {"microseconds", MEASURE_TIME, 1e3},
    {"milliseconds", MEASURE_TIME, 1e6}, {"seconds", MEASURE_TIME, 1e9},   {"bytes", MEASURE_BYTES, 1},
};

struct open_frame {
    uint32_t frame;
    struct stack_id stack; /* ends with it */
};

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct location_id) frames;
    ARRAY_OF(struct open_frame) open; /* open frames of an evented profile, root first */
    bool has_measure[3];
    int column[3];
    uint64_t base_ns; /* start of all times */
    uint64_t first_ns, last_ns;
    size_t track_count; /* number of tracks that were read */
};

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static int64_t read_place(struct json_reader *reader)
{
    double number = json_number_or_text(reader);
    return number > 0 && number <= INT32_MAX ? (int64_t)number : 0;
}

static struct location_id read_frame(struct decoder *decoder, struct json_reader *reader)
{
    struct function function = {0};
    struct line line = {0};
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (json_null(reader)) continue;
        if (slice_equals_text(name, "name"))
            function.name = profile_string(decoder->file.profile, json_string(reader));
        else if (slice_equals_text(name, "file"))
            function.file_name = profile_string(decoder->file.profile, json_string(reader));
        else if (slice_equals_text(name, "line"))
            line.line = read_place(reader);
        else if (slice_equals_text(name, "col"))
            line.column = read_place(reader);
        else
            json_skip(reader);
    }
    line.function = profile_add_function(decoder->file.profile, &function);
    return profile_add_location(decoder->file.profile, &(struct location){0}, &line, 1);
}

static void read_frames(struct decoder *decoder, struct slice shared)
{
    struct slice frames = json_parts_member(&decoder->file, shared, "frames");
    struct json_reader reader;
    if (frames.size == 0)
        json_parts_fail(&decoder->file, STATUS_MALFORMED, shared.data, "there is no list shared.frames");
    json_reader_init(&reader, frames);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        struct location_id frame = read_frame(decoder, &reader);
        if (!ARRAY_PUSH(&decoder->frames, PROFILE_ENTITIES_MAX, frame))
            json_reader_reject(&reader, STATUS_NO_MEMORY, "no memory for the frames");
    }
    json_parts_finish(&decoder->file, &reader);
}

static uint32_t read_frame_number(struct decoder *decoder, struct json_reader *reader)
{
    double number = json_number_or_text(reader);
    bool is_place = number >= 0 && number < (double)decoder->frames.count;
    if (is_place && number == (double)(uint32_t)number) return (uint32_t)number;
    json_reader_reject(reader, STATUS_MALFORMED, "a frame that is not there");
    return 0;
}

/* --- One profile -------------------------------------------------------------------------------------------------- */

enum { TYPE, NAME, UNIT, START, END, SAMPLES, WEIGHTS, EVENTS, OFFBEAT, PROFILE_MEMBERS };

struct track {
    struct json_member members[PROFILE_MEMBERS];
    const struct unit *unit;
    struct thread_id thread;
    struct slice gaps; /* numbers of samples that only keep a place, in a file of offbeat's */
};

static void note_track(struct decoder *decoder, struct json_reader *reader, struct track *track)
{
    static const char *const names[PROFILE_MEMBERS] = {"type",    "name",    "unit",   "startValue", "endValue",
                                                       "samples", "weights", "events", "offbeat"};
    for (size_t i = 0; i < PROFILE_MEMBERS; i++) track->members[i].name = names[i];
    const uint8_t *place = reader->position;
    json_members_note(reader, track->members, PROFILE_MEMBERS);
    if (reader->failed) return;
    struct slice unit =
        profile_slice(decoder->file.profile, json_parts_text(&decoder->file, track->members[UNIT].value));
    track->unit = unit.size == 0 ? &units[0] : NULL;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equals_text(unit, units[i].name)) track->unit = &units[i];
    }
    if (!track->unit)
        json_parts_fail(&decoder->file, STATUS_MALFORMED, place, "a profile has a unit that speedscope does not know");
}

/* POSITION, a value of the file, in integer nanoseconds, bytes or counts. */
static int64_t whole(const struct unit *unit, double position)
{
    double value = position * unit->factor;
    if (value >= LIMIT) return (int64_t)LIMIT;
    if (value <= -LIMIT) return -(int64_t)LIMIT;
    return (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
}

/* The distance from FROM to TO. */
static void add_sample(struct decoder *decoder, const struct track *track, struct stack_id stack, double from,
                       double to)
{
    int64_t values[PROFILE_VALUES_MAX] = {1};
    int64_t start = whole(track->unit, from), end = whole(track->unit, to);
    struct sample sample = {.stack = stack, .thread = track->thread};
    values[decoder->column[track->unit->measure]] = end - start;
    if (decoder->file.profile->has_times) {
        sample.time_ns = decoder->base_ns + (start > 0 ? (uint64_t)start : 0);
        uint64_t end_ns = sample.time_ns + (end > start ? (uint64_t)(end - start) : 0);
        if (sample.time_ns < decoder->first_ns) decoder->first_ns = sample.time_ns;
        if (end_ns > decoder->last_ns) decoder->last_ns = end_ns;
    }
    profile_add_sample(decoder->file.profile, &sample, values);
}

static struct stack_id read_stack(struct decoder *decoder, struct json_reader *reader)
{
    struct stack_id stack = {0};
    size_t depth = 0;
    json_array_begin(reader);
    while (json_array_next(reader)) {
        uint32_t frame = read_frame_number(decoder, reader);
        if (depth++ == SPEEDSCOPE_DEPTH_MAX)
            json_reader_reject(reader, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
        if (reader->failed) break;
        stack = profile_add_stack(decoder->file.profile, stack, decoder->frames.items[frame]);
    }
    return stack;
}

/* The next number of an ascending list; SIZE_MAX after the last one. */
static size_t next_gap(struct json_reader *gaps)
{
    if (!gaps->start || !json_array_next(gaps)) return SIZE_MAX;
    return json_u64(gaps);
}

static void read_sampled(struct decoder *decoder, const struct track *track)
{
    struct json_reader samples, weights, gaps;
    double position = json_parts_double(&decoder->file, track->members[START].value);
    json_reader_init(&samples, track->members[SAMPLES].value);
    json_reader_init(&weights, track->members[WEIGHTS].value);
    json_reader_init(&gaps, track->gaps);
    json_array_begin(&samples);
    json_array_begin(&weights);
    if (gaps.start) json_array_begin(&gaps);
    size_t gap = next_gap(&gaps);
    for (size_t i = 0; decoder->file.profile->failed == STATUS_OK && json_array_next(&samples); i++) {
        struct stack_id stack = read_stack(decoder, &samples);
        if (!json_array_next(&weights)) json_reader_reject(&weights, STATUS_MALFORMED, "fewer weights than samples");
        double weight = json_number_or_text(&weights);
        if (samples.failed || weights.failed) break;
        if (i == gap)
            gap = next_gap(&gaps);
        else
            add_sample(decoder, track, stack, position, position + weight);
        position += weight;
    }
    bool is_whole = !samples.failed && !weights.failed && decoder->file.profile->failed == STATUS_OK;
    if (is_whole && json_array_next(&weights))
        json_reader_reject(&weights, STATUS_MALFORMED, "more weights than samples");
    json_parts_finish(&decoder->file, &samples);
    json_parts_finish(&decoder->file, &weights);
    json_parts_finish(&decoder->file, &gaps);
}

struct event {
    bool opens, closes, has_frame;
    uint32_t frame;
    double at;
};

static struct event read_event(struct decoder *decoder, struct json_reader *reader)
{
    struct event event = {0};
    struct slice name;
    bool has_time = false;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (slice_equals_text(name, "type")) {
            struct slice type = json_string(reader);
            event.opens = slice_equals_text(type, "O");
            event.closes = slice_equals_text(type, "C");
        } else if (slice_equals_text(name, "frame")) {
            event.frame = read_frame_number(decoder, reader);
            event.has_frame = true;
        } else if (slice_equals_text(name, "at")) {
            event.at = json_number_or_text(reader);
            has_time = true;
        } else {
            json_skip(reader);
        }
    }
    if (!has_time || !event.has_frame || event.opens == event.closes)
        json_reader_reject(reader, STATUS_MALFORMED, "an event without type, frame or at");
    return event;
}

static struct stack_id open_stack(const struct decoder *decoder)
{
    size_t count = decoder->open.count;
    return count ? decoder->open.items[count - 1].stack : (struct stack_id){0};
}

static void open_frame(struct decoder *decoder, struct json_reader *reader, uint32_t frame)
{
    struct open_frame opened = {.frame = frame};
    if (decoder->open.count == SPEEDSCOPE_DEPTH_MAX) {
        json_reader_reject(reader, STATUS_TOO_LARGE, "a stack of more than 65536 frames");
        return;
    }
    opened.stack = profile_add_stack(decoder->file.profile, open_stack(decoder), decoder->frames.items[frame]);
    if (!ARRAY_PUSH(&decoder->open, SPEEDSCOPE_DEPTH_MAX, opened))
        json_reader_reject(reader, STATUS_NO_MEMORY, "no memory for the stack");
}

static void close_frame(struct decoder *decoder, struct json_reader *reader, uint32_t frame)
{
    if (decoder->open.count == 0 || decoder->open.items[decoder->open.count - 1].frame != frame) {
        json_reader_reject(reader, STATUS_MALFORMED, "an event closes a frame that is not the innermost open one");
    } else {
        decoder->open.count--;
    }
}

/* Says that EVENTS of a track were earlier than the event before them, the first one at PLACE. */
static void note_early_events(struct decoder *decoder, size_t events, const uint8_t *place)
{
    if (events == 0) return;
    profile_add_omission(
        decoder->file.profile,
        "%zu events, the first one at byte %zu, are earlier than the one before: they count as if at its time", events,
        (size_t)(place - decoder->file.bytes.data));
}

/* A frame that nothing closes lasts to the end. Programs round times, so that an event may be earlier than the one
 * before it. */
static void read_evented(struct decoder *decoder, const struct track *track)
{
    struct json_reader reader;
    double position = json_parts_double(&decoder->file, track->members[START].value);
    double end = json_parts_double(&decoder->file, track->members[END].value);
    const uint8_t *first_early = NULL;
    size_t early_events = 0;
    decoder->open.count = 0;
    json_reader_init(&reader, track->members[EVENTS].value);
    json_array_begin(&reader);
    while (decoder->file.profile->failed == STATUS_OK && json_array_next(&reader)) {
        (void)json_peek(&reader);
        const uint8_t *place = reader.position;
        struct event event = read_event(decoder, &reader);
        if (reader.failed) break;
        if (event.at < position) {
            if (early_events++ == 0) first_early = place;
            event.at = position;
        }
        if (event.at > position) add_sample(decoder, track, open_stack(decoder), position, event.at);
        position = event.at;
        if (event.opens)
            open_frame(decoder, &reader, event.frame);
        else
            close_frame(decoder, &reader, event.frame);
    }
    if (!reader.failed && decoder->open.count > 0 && end > position)
        add_sample(decoder, track, open_stack(decoder), position, end);
    note_early_events(decoder, early_events, first_early);
    json_parts_finish(&decoder->file, &reader);
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

/* A profile of offbeat's says which thread it is; of another the name is all there is, and a second one of that name
 * is another thread. */
static void give_thread(struct decoder *decoder, struct track *track)
{
    struct profile *profile = decoder->file.profile;
    struct thread thread = {.id = json_parts_text(&decoder->file, track->members[NAME].value)};
    if (track->members[OFFBEAT].value.size > 0) {
        struct json_member own[] = {{.name = "thread_id"}, {.name = "thread_name"}, {.name = "gaps"}};
        json_parts_note(&decoder->file, track->members[OFFBEAT].value, own, 3);
        thread.id = json_parts_text(&decoder->file, own[0].value);
        thread.name = json_parts_text(&decoder->file, own[1].value);
        track->gaps = own[2].value;
    } else {
        thread.name = thread.id;
    }
    if (thread.id.index == 0) return;
    size_t count = profile->threads.count;
    track->thread = profile_add_thread(profile, &thread);
    if (profile->threads.count > count || profile->failed != STATUS_OK) return;
    char id[THREAD_ID_BYTES_MAX];
    (void)snprintf(id, sizeof(id), "%.*s #%zu", THREAD_ID_BYTES_MAX - 32, profile_c_string(profile, thread.id),
                   decoder->track_count);
    thread.id = profile_text(profile, id);
    track->thread = profile_add_thread(profile, &thread);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* Gives a column to each measure that the file has, before there is a sample. */
static void give_columns(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    profile_add_value_type(profile, "samples", "count");
    if (decoder->has_measure[MEASURE_BYTES]) {
        decoder->column[MEASURE_BYTES] = (int)profile->value_type_count;
        profile_add_value_type(profile, "space", "bytes");
    }
    if (decoder->has_measure[MEASURE_TIME]) {
        decoder->column[MEASURE_TIME] = (int)profile->value_type_count;
        profile_add_value_type(profile, "wall", "nanoseconds");
    }
    profile->has_times =
        decoder->has_measure[MEASURE_TIME] && profile->value_type_count == 2 && !decoder->has_measure[MEASURE_NONE];
}

static void read_track(struct decoder *decoder, struct track *track)
{
    bool is_sampled = track->members[SAMPLES].value.size > 0 && track->members[WEIGHTS].value.size > 0;
    bool is_evented = track->members[EVENTS].value.size > 0;
    struct slice type =
        profile_slice(decoder->file.profile, json_parts_text(&decoder->file, track->members[TYPE].value));
    give_thread(decoder, track);
    if (decoder->file.status != STATUS_OK) return;
    if (slice_equals_text(type, "sampled") && is_sampled)
        read_sampled(decoder, track);
    else if (slice_equals_text(type, "evented") && is_evented)
        read_evented(decoder, track);
    else
        json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL,
                        "a profile is neither sampled nor evented, or lacks what that needs");
}

/* Goes through the profiles; the first time only to learn what they measure. */
static void read_tracks(struct decoder *decoder, struct slice profiles, bool is_first_time)
{
    struct json_reader reader;
    decoder->track_count = 0;
    json_reader_init(&reader, profiles);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        struct track track = {0};
        if (decoder->track_count++ == SPEEDSCOPE_PROFILES_MAX)
            json_reader_reject(&reader, STATUS_TOO_LARGE, "too many profiles");
        note_track(decoder, &reader, &track);
        if (reader.failed || decoder->file.status != STATUS_OK) break;
        if (is_first_time)
            decoder->has_measure[track.unit->measure] = true;
        else
            read_track(decoder, &track);
    }
    json_parts_finish(&decoder->file, &reader);
}

static void read_own(struct decoder *decoder, struct slice own)
{
    struct slice start = json_parts_member(&decoder->file, own, "start_ns");
    struct json_reader reader;
    if (start.size == 0) return;
    json_reader_init(&reader, start);
    decoder->base_ns = json_u64(&reader);
    if (decoder->base_ns > INT64_MAX) decoder->base_ns = 0;
    json_parts_finish(&decoder->file, &reader);
}

static void read_file(struct decoder *decoder)
{
    struct json_member members[] = {{.name = "shared"}, {.name = "profiles"}, {.name = "offbeat"}};
    json_parts_note(&decoder->file, decoder->file.bytes, members, 3);
    if (decoder->file.status != STATUS_OK) return;
    if (members[0].value.size == 0 || members[1].value.size == 0) {
        json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "there is no \"shared\" or no \"profiles\"");
        return;
    }
    if (members[2].value.size > 0) read_own(decoder, members[2].value);
    read_frames(decoder, members[0].value);
    if (decoder->file.status == STATUS_OK) read_tracks(decoder, members[1].value, true);
    if (decoder->file.status != STATUS_OK) return;
    give_columns(decoder);
    read_tracks(decoder, members[1].value, false);
}

bool speedscope_detect(struct slice bytes)
{
    return json_kind_of_profile(bytes) == JSON_PROFILE_SPEEDSCOPE;
}

enum status speedscope_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}, .first_ns = UINT64_MAX};
    read_file(&decoder);
    enum status status = decoder.file.status;
    if (status == STATUS_OK) status = profile_failed(profile, error);
    if (status == STATUS_OK && profile->has_times) {
        profile->time_ns = decoder.base_ns ? profile_start_at(decoder.first_ns) : 0;
        if (decoder.last_ns > decoder.first_ns) profile->duration_ns = decoder.last_ns - decoder.first_ns;
        status = profile_sort_by_time(profile, error);
    }
    free(decoder.frames.items);
    free(decoder.open.items);
    return status;
}

const struct format format_speedscope = {
    .name = "speedscope",
    .suffixes = {".speedscope.json"},
    .detect = speedscope_detect,
    .decode = speedscope_decode,
    .encode = speedscope_encode,
    .keeps = KEEPS_ANY_UNIT | KEEPS_ZEROS | KEEPS_TIMES | KEEPS_THREADS | KEEPS_LINES,
    .needs_timestamps = true,
    .needs_full_names = true,
};
