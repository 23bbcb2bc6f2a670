/* Writes trace events: the frames that begin and end from one sample of a thread to the next.  SPDX-License-Identifier:
 * MIT
 */
#include "format/viewer/chrome_trace.h"

#include "base/array.h"
#include "base/json_writer.h"
#include "format/common/frame_name.h"
#include "format/common/tracks.h"
#include "profile/sample_times.h"

#include <stdlib.h>

enum {
    THREAD_NUMBERS_FIRST = 1 << 24, /* first number of threads whose id is no number */
    BRIDGED_PART = 16,              /* part of a period that may be between two samples of one stretch */
};

struct path {
    struct location_id *items; /* root first */
    size_t count, capacity;
};

struct encoder {
    const struct profile *profile;
    struct json_writer writer;
    struct tracks tracks;
    int column; /* the column with the time of a sample; -1: the count of periods says it */
    uint64_t period_ns, bridged_ns, base_ns;
    struct path open, next;
    struct buffer name;
    struct buffer first; /* name of the frame that begins after others ended */
    int64_t pid, tid;    /* ids of the current track */
    enum status status;
};

static void write_text(struct encoder *encoder, const char *key, const char *text)
{
    json_member_text(&encoder->writer, key, text);
}

static void begin_event(struct encoder *encoder, const char *phase)
{
    json_begin_object(&encoder->writer);
    write_text(encoder, "ph", phase);
    json_member_i64(&encoder->writer, "pid", encoder->pid);
    json_member_i64(&encoder->writer, "tid", encoder->tid);
}

static void write_time(struct encoder *encoder, uint64_t time_ns)
{
    json_write_key(&encoder->writer, "ts");
    json_write_fixed(&encoder->writer, time_ns, 3);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static void write_event(struct encoder *encoder, const char *phase, struct slice name, uint64_t time_ns)
{
    begin_event(encoder, phase);
    write_time(encoder, time_ns);
    json_member_string(&encoder->writer, "name", name);
    json_end_object(&encoder->writer);
}

/* Returns the name of LOCATION's function LINE, 0 the innermost; an empty one where it has none. */
static struct string_id known_name(const struct encoder *encoder, const struct location *location, uint32_t line)
{
    if (line >= location->line_count) return (struct string_id){0};
    struct function_id function = profile_lines(encoder->profile, location)[line].function;
    return frame_name_of_function(profile_function(encoder->profile, function));
}

/* Returns NAME, or the text for a function of LOCATION without one; valid until the next call. */
static struct slice name_text(struct encoder *encoder, const struct location *location, struct string_id name)
{
    if (name.index) return profile_slice(encoder->profile, name);
    buffer_clear(&encoder->name);
    frame_name_unnamed(encoder->profile, location, &encoder->name);
    if (encoder->name.failed) encoder->status = STATUS_NO_MEMORY;
    return buffer_slice(&encoder->name);
}

/* A place without functions is one frame, too. */
static uint32_t frame_count(const struct location *location)
{
    return location->line_count > 0 ? location->line_count : 1;
}

static void begin_location(struct encoder *encoder, struct location_id id, uint64_t time_ns)
{
    const struct location *location = profile_location(encoder->profile, id);
    for (uint32_t i = frame_count(location); i-- > 0;)
        write_event(encoder, "B", name_text(encoder, location, known_name(encoder, location, i)), time_ns);
}

/* An event that ends a frame needs no name by the format; speedscope ends only the frame of that name. Returns true if
 * a frame that ends is called NAME. */
static bool end_location(struct encoder *encoder, struct location_id id, uint64_t time_ns, struct slice name)
{
    const struct location *location = profile_location(encoder->profile, id);
    bool is_met = false;
    for (uint32_t i = 0; i < frame_count(location); i++) {
        struct slice ended = name_text(encoder, location, known_name(encoder, location, i));
        is_met |= slice_equal(ended, name);
        write_event(encoder, "E", ended, time_ns);
    }
    return is_met;
}

static void find_path(struct encoder *encoder, struct stack_id stack, struct path *path)
{
    path->count = profile_stack_depth(encoder->profile, stack);
    if (path->count > CHROME_TRACE_DEPTH_MAX ||
        !array_reserve(&path->items, &path->capacity, path->count, sizeof(*path->items), CHROME_TRACE_DEPTH_MAX)) {
        encoder->status = path->count > CHROME_TRACE_DEPTH_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY;
        path->count = 0;
        return;
    }
    for (size_t i = path->count; i-- > 0; stack = profile_stack(encoder->profile, stack).parent)
        path->items[i] = profile_stack(encoder->profile, stack).location;
}

/* Closes all frames but the outermost KEPT. Returns true if one of them is called NAME. */
static bool close_frames(struct encoder *encoder, size_t kept, uint64_t time_ns, struct slice name)
{
    bool is_met = false;
    while (encoder->open.count > kept)
        is_met |= end_location(encoder, encoder->open.items[--encoder->open.count], time_ns, name);
    return is_met;
}

/* Returns the name of the outermost frame of location ID, which encoder->first keeps. */
static struct slice outermost_name(struct encoder *encoder, struct location_id id)
{
    const struct location *location = profile_location(encoder->profile, id);
    struct slice name = name_text(encoder, location, known_name(encoder, location, frame_count(location) - 1));
    buffer_clear(&encoder->first);
    buffer_append(&encoder->first, name.data, name.size);
    if (encoder->first.failed) encoder->status = STATUS_NO_MEMORY;
    return buffer_slice(&encoder->first);
}

/* Closes and opens frames at TIME_NS, until those of STACK are open, until END_NS at least. Of an end and a begin at
 * one time, speedscope takes the begin first if both have one name: such frames begin a nanosecond later. */
static void change_to(struct encoder *encoder, struct stack_id stack, uint64_t time_ns, uint64_t end_ns)
{
    struct path *open = &encoder->open, *next = &encoder->next;
    find_path(encoder, stack, next);
    size_t kept = 0;
    while (kept < open->count && kept < next->count && open->items[kept].index == next->items[kept].index) kept++;
    bool is_met = false;
    if (kept < open->count && kept < next->count)
        is_met = close_frames(encoder, kept, time_ns, outermost_name(encoder, next->items[kept]));
    else
        (void)close_frames(encoder, kept, time_ns, slice_of(NULL, 0));
    bool is_later = is_met && time_ns + 1 < end_ns;
    for (size_t i = kept; i < next->count; i++) begin_location(encoder, next->items[i], time_ns + is_later);
    struct path swapped = *open;
    *open = *next;
    *next = swapped;
}

/* --- Tracks ------------------------------------------------------------------------------------------------------- */

static uint64_t length_of(const struct encoder *encoder, const struct track_sample *sample)
{
    const int64_t *values = profile_sample_values(encoder->profile, sample->sample);
    if (encoder->column >= 0) return values[encoder->column] > 0 ? (uint64_t)values[encoder->column] : 0;
    uint64_t length = 0, count = values[0] > 0 ? (uint64_t)values[0] : 0;
    return __builtin_mul_overflow(count, encoder->period_ns, &length) ? UINT64_MAX / 4 : length;
}

static void write_name(struct encoder *encoder, const char *kind, struct slice name)
{
    begin_event(encoder, "M");
    write_text(encoder, "name", kind);
    json_begin_object_member(&encoder->writer, "args");
    json_member_string(&encoder->writer, "name", name);
    json_end_object(&encoder->writer);
    json_end_object(&encoder->writer);
}

/* The reader calls thread 8 of process 7 "7/8" if there are several processes. */
static const char *number_in_id(const char *id, int64_t pid)
{
    char *end;
    long long number = strtoll(id, &end, 10);
    return *end == '/' && number == pid && end != id ? end + 1 : id;
}

static void begin_track(struct encoder *encoder, const struct track_sample *sample)
{
    const struct profile *profile = encoder->profile;
    const struct process_key *process = &encoder->tracks.processes.items[sample->process];
    const struct thread *thread = profile_thread(profile, (struct thread_id){sample->thread});
    const char *id = number_in_id(profile_c_string(profile, thread->id), process->pid);
    char *end;
    long long number = strtoll(id, &end, 10);
    bool is_number = *id != '\0' && *end == '\0' && number > 0 && number <= INT32_MAX;
    encoder->pid = process->pid > 0 && process->pid <= INT32_MAX ? process->pid : 1;
    encoder->tid = is_number ? (int64_t)number : THREAD_NUMBERS_FIRST + (int64_t)sample->thread;
    struct string_id name = profile_thread_name_at(profile, sample->sample);
    if (process->name.index) write_name(encoder, "process_name", profile_slice(profile, process->name));
    if (name.index || !is_number)
        write_name(encoder, "thread_name", profile_slice(profile, name.index ? name : thread->id));
}

/* Returns the place of the first of SAMPLES, from FIRST on, that lasts; COUNT: there is none. The others, such as those
 * of other events, would end what lasts: viewers end an event before one that begins at the same time. */
static size_t next_that_lasts(const struct encoder *encoder, const struct track_sample *samples, size_t count,
                              size_t first)
{
    while (first < count && length_of(encoder, &samples[first]) == 0) first++;
    return first;
}

/* A sample lasts until the next one if only a little time is between them: the clock of a sampler is not exact. */
static void write_track(struct encoder *encoder, const struct track_sample *samples, size_t count)
{
    const struct profile *profile = encoder->profile;
    uint64_t end_ns = samples[0].time_ns;
    begin_track(encoder, &samples[count - 1]);
    size_t next = next_that_lasts(encoder, samples, count, 0);
    for (size_t i = next; i < count && encoder->status == STATUS_OK && !encoder->writer.out->failed; i = next) {
        next = next_that_lasts(encoder, samples, count, i + 1);
        uint64_t start_ns = profile->has_times ? samples[i].time_ns - encoder->base_ns : end_ns;
        if (start_ns > end_ns && start_ns - end_ns > encoder->bridged_ns)
            (void)close_frames(encoder, 0, end_ns, slice_of(NULL, 0));
        if (__builtin_add_overflow(start_ns, length_of(encoder, &samples[i]), &end_ns)) end_ns = UINT64_MAX / 2;
        uint64_t next_ns = profile->has_times && next < count ? samples[next].time_ns - encoder->base_ns : UINT64_MAX;
        if (end_ns > next_ns) end_ns = next_ns;
        change_to(encoder, profile->samples.stack[samples[i].sample], start_ns, end_ns);
    }
    (void)close_frames(encoder, 0, end_ns, slice_of(NULL, 0));
}

static void init_times(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->column = profile_time_column(profile);
    encoder->period_ns = sample_times_period_ns(profile);
    if (profile->period > 0 || profile->has_ticks) encoder->bridged_ns = encoder->period_ns / BRIDGED_PART;
}

static void sort_samples(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->base_ns = UINT64_MAX;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (!profile->has_times) encoder->tracks.samples[i].time_ns = 0;
        if (encoder->tracks.samples[i].time_ns < encoder->base_ns)
            encoder->base_ns = encoder->tracks.samples[i].time_ns;
    }
    if (profile->samples.count == 0) encoder->base_ns = 0;
    tracks_sort(&encoder->tracks);
}

/* --- Overlaps ----------------------------------------------------------------------------------------------------- */

/* Adds how long SAMPLES of one thread last, and how much longer that is than what write_track shows of them. */
static void add_overlaps(const struct encoder *encoder, const struct track_sample *samples, size_t count,
                         uint64_t *whole_ns, int64_t *cut_ns)
{
    size_t next = next_that_lasts(encoder, samples, count, 0);
    for (size_t i = next; i < count; i = next) {
        next = next_that_lasts(encoder, samples, count, i + 1);
        uint64_t length = length_of(encoder, &samples[i]);
        uint64_t distance = next < count ? samples[next].time_ns - samples[i].time_ns : UINT64_MAX;
        *whole_ns += length;
        if (length > distance || distance - length <= encoder->bridged_ns)
            *cut_ns = profile_add_values(*cut_ns, (int64_t)(length - distance));
    }
}

uint64_t chrome_trace_cut_ns(const struct profile *profile, uint64_t *ret_whole_ns)
{
    struct encoder encoder = {.profile = profile};
    int64_t cut_ns = 0;
    *ret_whole_ns = 0;
    init_times(&encoder);
    if (profile->has_times && tracks_init(&encoder.tracks, profile)) {
        tracks_sort(&encoder.tracks);
        for (size_t first = 0, size; first < encoder.tracks.count; first += size) {
            size = tracks_size_at(&encoder.tracks, first);
            add_overlaps(&encoder, encoder.tracks.samples + first, size, ret_whole_ns, &cut_ns);
        }
    }
    tracks_fini(&encoder.tracks);
    return cut_ns > 0 ? (uint64_t)cut_ns : 0;
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void encode(struct encoder *encoder)
{
    sort_samples(encoder);
    json_begin_object(&encoder->writer);
    json_begin_object_member(&encoder->writer, "otherData");
    json_member_u64(&encoder->writer, CHROME_TRACE_START, encoder->base_ns);
    json_end_object(&encoder->writer);
    json_begin_array_member(&encoder->writer, "traceEvents");
    for (size_t first = 0; first < encoder->tracks.count && encoder->status == STATUS_OK;) {
        size_t size = tracks_size_at(&encoder->tracks, first);
        write_track(encoder, encoder->tracks.samples + first, size);
        first += size;
    }
    json_end_array(&encoder->writer);
    json_end_object(&encoder->writer);
}

enum status chrome_trace_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    bool counts = slice_equals_text(profile_slice(profile, profile->value_types[0].unit), "count");
    if (profile->samples.count > 0 && profile_time_column(profile) < 0 && !counts)
        return error_set(error, STATUS_UNSUPPORTED, 0, "trace events hold time, and the profile has none");
    struct encoder encoder = {.profile = profile, .writer = json_writer_of(out)};
    init_times(&encoder);
    buffer_init(&encoder.name, PROFILE_STRING_BYTES_MAX);
    buffer_init(&encoder.first, PROFILE_STRING_BYTES_MAX);
    if (tracks_init(&encoder.tracks, profile))
        encode(&encoder);
    else
        encoder.status = STATUS_NO_MEMORY;
    status = encoder.status;
    tracks_fini(&encoder.tracks);
    free(encoder.open.items);
    free(encoder.next.items);
    buffer_fini(&encoder.name);
    buffer_fini(&encoder.first);
    if (status == STATUS_TOO_LARGE)
        return error_set(error, status, 0, "a stack of more than %d frames", CHROME_TRACE_DEPTH_MAX);
    if (status == STATUS_OK && !out->failed) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "larger than %zu bytes, or than memory", out->maximum);
}
