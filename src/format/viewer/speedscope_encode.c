/* Writes speedscope's JSON: a sampled profile for each thread.
 *
 * speedscope shows the samples of a profile in sequence, each as long as its weight. To keep each sample at its time,
 * the gap between the end of one and the next becomes a sample with an empty stack.
 * SPDX-License-Identifier: MIT */
#include "format/viewer/speedscope.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "format/common/frame_name.h"
#include "format/common/tracks.h"
#include "profile/sample_times.h"

#include <inttypes.h>
#include <stdlib.h>

struct written_frame {
    struct string_id name, file;
    int64_t line, column;
    uint32_t unnamed; /* the location, where there is no function */
};

struct encoder {
    const struct profile *profile;
    int column; /* the value that is written */
    const char *unit;
    bool is_timed;    /* samples are shown at their times */
    uint64_t base_ns; /* start of all times: the first sample, so that a double holds them; 0: unchanged */
    uint64_t gap_ns;  /* less than this between two samples is no gap */
    struct tracks tracks;
    INDEXED_ARRAY_OF(struct written_frame) frames;
    uint32_t *frame_of_line, *frame_of_location; /* plus one; 0: not numbered yet */
    struct location_id *path;                    /* locations of the stack at hand, leaf first */
    size_t path_capacity;
    struct buffer list; /* list of tracks, which are profiles to speedscope */
    enum status status;
};

static void fail(struct encoder *encoder, enum status status)
{
    if (encoder->status == STATUS_OK) encoder->status = status;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static bool frame_equal(const void *context, uint32_t index, const void *key)
{
    const struct written_frame *a = &((const struct encoder *)context)->frames.items[index], *b = key;
    return a->name.index == b->name.index && a->file.index == b->file.index && a->line == b->line &&
           a->column == b->column && a->unnamed == b->unnamed;
}

/* The number of FRAME in the file plus one, or 0 when memory is short. */
static uint32_t number_frame(struct encoder *encoder, struct written_frame frame)
{
    uint64_t hash = hash_mix((uint64_t)frame.name.index << 32 | frame.file.index, (uint64_t)frame.line);
    hash = hash_mix(hash_mix(hash, (uint64_t)frame.column), frame.unnamed);
    uint32_t known = index_table_find(&encoder->frames.index, hash, frame_equal, encoder, &frame);
    if (known != INDEX_NONE) return known + 1;
    uint32_t added = (uint32_t)encoder->frames.count;
    if (!INDEXED_ARRAY_PUSH(&encoder->frames, PROFILE_ENTITIES_MAX, hash, frame)) {
        fail(encoder, STATUS_NO_MEMORY);
        return 0;
    }
    return added + 1;
}

/* A frame is a function, where it is known where that begins; else a line of it, as interpreters have it. */
static uint32_t frame_of_line(struct encoder *encoder, struct location_id id, uint32_t line_index)
{
    const struct line *line = &encoder->profile->lines.items[line_index];
    const struct function *function = profile_function(encoder->profile, line->function);
    bool is_whole = function->start_line > 0;
    if (encoder->frame_of_line[line_index]) return encoder->frame_of_line[line_index];
    struct written_frame frame = {.name = frame_name_of_function(function),
                                  .file = function->file_name,
                                  .line = is_whole ? function->start_line : line->line,
                                  .column = is_whole ? 0 : line->column};
    if (frame.name.index == 0) frame.unnamed = id.index; /* a row without a name cannot be read */
    return encoder->frame_of_line[line_index] = number_frame(encoder, frame);
}

static uint32_t frame_of_location(struct encoder *encoder, struct location_id id)
{
    uint32_t *frame = &encoder->frame_of_location[id.index];
    if (!*frame) *frame = number_frame(encoder, (struct written_frame){.unnamed = id.index});
    return *frame;
}

static void write_place(struct json_writer *writer, const char *key, int64_t number)
{
    if (number <= 0) return;
    json_member_i64(writer, key, number);
}

static void write_frame(struct encoder *encoder, struct json_writer *writer, const struct written_frame *frame)
{
    const struct profile *profile = encoder->profile;
    struct buffer name = {.maximum = PROFILE_STRING_BYTES_MAX};
    if (frame->unnamed)
        frame_name_unnamed(profile, profile_location(profile, (struct location_id){frame->unnamed}), &name);
    json_begin_object(writer);
    json_member_string(writer, "name", frame->unnamed ? buffer_slice(&name) : profile_slice(profile, frame->name));
    if (frame->file.index) {
        json_member_string(writer, "file", profile_slice(profile, frame->file));
    }
    write_place(writer, "line", frame->line);
    write_place(writer, "col", frame->column);
    json_end_object(writer);
    if (name.failed) fail(encoder, STATUS_NO_MEMORY);
    buffer_fini(&name);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static void write_frames_of(struct encoder *encoder, struct json_writer *writer, struct location_id id)
{
    const struct location *location = profile_location(encoder->profile, id);
    if (location->line_count == 0) json_write_u64(writer, frame_of_location(encoder, id) - 1u);
    for (uint32_t i = location->line_count; i-- > 0;)
        json_write_u64(writer, frame_of_line(encoder, id, location->line_first + i) - 1u);
}

static void write_stack(struct encoder *encoder, struct json_writer *writer, struct stack_id stack)
{
    size_t depth = 0;
    for (; stack.index != 0; stack = profile_stack(encoder->profile, stack).parent) {
        if (!array_reserve(&encoder->path, &encoder->path_capacity, depth + 1, sizeof(*encoder->path),
                           SPEEDSCOPE_DEPTH_MAX)) {
            fail(encoder, depth == SPEEDSCOPE_DEPTH_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY);
            return;
        }
        encoder->path[depth++] = profile_stack(encoder->profile, stack).location;
    }
    json_begin_array(writer);
    while (depth > 0) write_frames_of(encoder, writer, encoder->path[--depth]);
    json_end_array(writer);
}

static int64_t value_of(const struct encoder *encoder, const struct track_sample *sample)
{
    return profile_sample_values(encoder->profile, sample->sample)[encoder->column];
}

/* Returns the idle time between CLOCK_NS, the end of the previous sample, and SAMPLE. */
static uint64_t gap_before(const struct encoder *encoder, const struct track_sample *sample, uint64_t clock_ns)
{
    if (!encoder->is_timed || sample->time_ns <= clock_ns) return 0;
    uint64_t gap_ns = sample->time_ns - clock_ns;
    return gap_ns >= encoder->gap_ns ? gap_ns : 0;
}

static void write_samples(struct encoder *encoder, struct json_writer *writer, const struct track_sample *samples,
                          size_t count)
{
    uint64_t clock_ns = samples[0].time_ns;
    json_begin_array_member(writer, "samples");
    for (size_t i = 0; i < count && encoder->status == STATUS_OK; i++) {
        uint64_t gap_ns = gap_before(encoder, &samples[i], clock_ns);
        if (gap_ns) write_stack(encoder, writer, (struct stack_id){0});
        write_stack(encoder, writer, encoder->profile->samples.stack[samples[i].sample]);
        clock_ns += gap_ns + (uint64_t)value_of(encoder, &samples[i]);
    }
    json_end_array(writer);
}

/* Returns where the last sample ends. */
static uint64_t write_weights(struct encoder *encoder, struct json_writer *writer, const struct track_sample *samples,
                              size_t count)
{
    uint64_t clock_ns = samples[0].time_ns;
    json_begin_array_member(writer, "weights");
    for (size_t i = 0; i < count; i++) {
        uint64_t gap_ns = gap_before(encoder, &samples[i], clock_ns);
        if (gap_ns) json_write_u64(writer, gap_ns);
        json_write_i64(writer, value_of(encoder, &samples[i]));
        clock_ns += gap_ns + (uint64_t)value_of(encoder, &samples[i]);
    }
    json_end_array(writer);
    return clock_ns;
}

/* The samples of the file that fill gaps and are not in the profile. */
static void write_gaps(struct encoder *encoder, struct json_writer *writer, const struct track_sample *samples,
                       size_t count)
{
    uint64_t clock_ns = samples[0].time_ns;
    json_begin_array_member(writer, "gaps");
    for (size_t i = 0, gaps = 0; i < count; i++) {
        uint64_t gap_ns = gap_before(encoder, &samples[i], clock_ns);
        if (gap_ns) json_write_u64(writer, i + gaps++);
        clock_ns += gap_ns + (uint64_t)value_of(encoder, &samples[i]);
    }
    json_end_array(writer);
}

static void write_own(struct encoder *encoder, struct json_writer *writer, const struct track_sample *samples,
                      size_t count)
{
    const struct thread *thread = profile_thread(encoder->profile, (struct thread_id){samples[0].thread});
    json_begin_object_member(writer, "offbeat");
    json_member_string(writer, "thread_id", profile_slice(encoder->profile, thread->id));
    json_member_string(writer, "thread_name", profile_slice(encoder->profile, thread->name));
    write_gaps(encoder, writer, samples, count);
    json_end_object(writer);
}

/* The thread's name; in a profile of several processes, after the name of its process: "cc1 259", "server 259: worker".
 */
static void write_name(struct encoder *encoder, struct json_writer *writer, const struct track_sample *sample)
{
    const struct profile *profile = encoder->profile;
    const struct process_key *process = &encoder->tracks.processes.items[sample->process];
    const struct thread *thread = profile_thread(profile, (struct thread_id){sample->thread});
    struct string_id thread_name = profile_thread_name_at(profile, sample->sample);
    struct slice name = profile_slice(profile, thread_name.index ? thread_name : thread->id);
    struct slice process_name = profile_slice(profile, process->name);
    struct buffer text = {.maximum = 4 * PROFILE_STRING_BYTES_MAX};
    if (processes_are_several(&encoder->tracks.processes) && process->pid) {
        buffer_append_format(&text, "%.*s%s%" PRId64, SLICE_ARGUMENTS(process_name), process_name.size ? " " : "",
                             process->pid);
        if (name.size && !slice_equal(name, process_name)) buffer_append_format(&text, ": %.*s", SLICE_ARGUMENTS(name));
        name = buffer_slice(&text);
    }
    json_write_string(writer, name.size ? name : slice_of_text("all"));
    if (text.failed) fail(encoder, STATUS_NO_MEMORY);
    buffer_fini(&text);
}

static void write_track(struct encoder *encoder, struct json_writer *writer, const struct track_sample *samples,
                        size_t count)
{
    uint64_t start = samples[0].time_ns - encoder->base_ns;
    json_begin_object(writer);
    json_member_text(writer, "type", "sampled");
    json_write_key(writer, "name");
    write_name(encoder, writer, &samples[count - 1]);
    json_member_text(writer, "unit", encoder->unit);
    write_own(encoder, writer, samples, count);
    write_samples(encoder, writer, samples, count);
    uint64_t end = write_weights(encoder, writer, samples, count) - encoder->base_ns;
    json_member_u64(writer, "startValue", start);
    json_member_u64(writer, "endValue", end);
    json_end_object(writer);
}

/* Writes a track without samples: speedscope opens no file without tracks. */
static void write_empty_track(const struct encoder *encoder, struct json_writer *writer)
{
    json_begin_object(writer);
    json_member_text(writer, "type", "sampled");
    json_member_text(writer, "name", "all");
    json_member_text(writer, "unit", encoder->unit);
    json_begin_array_member(writer, "samples");
    json_end_array(writer);
    json_begin_array_member(writer, "weights");
    json_end_array(writer);
    json_member_u64(writer, "startValue", 0);
    json_member_u64(writer, "endValue", 0);
    json_end_object(writer);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static uint64_t first_time_ns(const struct profile *profile)
{
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile->samples.time_ns[i] < first_ns) first_ns = profile->samples.time_ns[i];
    }
    return first_ns;
}

static void write_tracks(struct encoder *encoder)
{
    struct json_writer writer = json_writer_of(&encoder->list);
    size_t count = encoder->profile->samples.count;
    json_begin_array(&writer);
    if (count == 0) write_empty_track(encoder, &writer);
    for (size_t first = 0; first < count && encoder->status == STATUS_OK && !encoder->list.failed;) {
        size_t size = tracks_size_at(&encoder->tracks, first);
        write_track(encoder, &writer, encoder->tracks.samples + first, size);
        first += size;
    }
    json_end_array(&writer);
}

static void write_file(struct encoder *encoder, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    json_member_text(&writer, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_member_text(&writer, "exporter", "offbeat@" OFFBEAT_VERSION);
    json_member_u64(&writer, "activeProfileIndex", tracks_place_to_show(&encoder->tracks, encoder->profile));
    if (encoder->base_ns) {
        json_begin_object_member(&writer, "offbeat");
        json_member_u64(&writer, "start_ns", encoder->base_ns);
        json_end_object(&writer);
    }
    json_begin_object_member(&writer, "shared");
    json_begin_array_member(&writer, "frames");
    for (size_t i = 0; i < encoder->frames.count; i++) write_frame(encoder, &writer, &encoder->frames.items[i]);
    json_end_array(&writer);
    json_end_object(&writer);
    json_write_key(&writer, "profiles");
    json_write_raw(&writer, buffer_slice(&encoder->list));
    json_end_object(&writer);
}

/* speedscope's name for the unit of COLUMN. */
static const char *unit_of_column(const struct profile *profile, int column)
{
    static const char *const units[] = {"nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"};
    if (column < 0) return "none";
    struct slice unit = profile_slice(profile, profile->value_types[column].unit);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equals_text(unit, units[i])) return units[i];
    }
    return "none";
}

static enum status check(const struct encoder *encoder, struct error *error)
{
    const struct profile *profile = encoder->profile;
    uint64_t sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t value = profile_sample_values(profile, i)[encoder->column];
        if (value < 0) return error_set(error, STATUS_UNSUPPORTED, 0, "speedscope takes no negative values");
        if (__builtin_add_overflow(sum, value, &sum) || sum > INT64_MAX)
            return error_set(error, STATUS_UNSUPPORTED, 0, "the sum of the values is too large for speedscope");
    }
    return STATUS_OK;
}

static enum status encode(struct encoder *encoder, struct buffer *out, struct error *error)
{
    const struct profile *profile = encoder->profile;
    encoder->frame_of_line = calloc(profile->lines.count + 1, sizeof(*encoder->frame_of_line));
    encoder->frame_of_location = calloc(profile->locations.count, sizeof(*encoder->frame_of_location));
    bool has_tracks = tracks_init(&encoder->tracks, profile);
    if (!encoder->frame_of_line || !encoder->frame_of_location || !has_tracks) {
        fail(encoder, STATUS_NO_MEMORY);
    } else {
        struct tracks *tracks = &encoder->tracks;
        for (size_t i = 0; !encoder->is_timed && i < tracks->count; i++) tracks->samples[i].time_ns = 0;
        tracks_sort(tracks);
        write_tracks(encoder);
        if (encoder->status == STATUS_OK) write_file(encoder, out);
    }
    if (encoder->status == STATUS_TOO_LARGE)
        return error_set(error, STATUS_TOO_LARGE, 0, "a stack of more than %d frames", SPEEDSCOPE_DEPTH_MAX);
    if (encoder->status != STATUS_OK || encoder->list.failed || out->failed)
        return error_set(error, STATUS_NO_MEMORY, 0, "larger than %d bytes, or than memory", SPEEDSCOPE_BYTES_MAX);
    return STATUS_OK;
}

enum status speedscope_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    int column = profile_value_index(profile, "");
    if (profile->samples.count > 0 && column < 0)
        return error_set(error, STATUS_UNSUPPORTED, 0, "there is no sample to be written");
    struct encoder encoder = {.profile = profile, .column = column, .unit = unit_of_column(profile, column)};
    encoder.is_timed = profile->has_times && profile->samples.count > 0 && strcmp(encoder.unit, "nanoseconds") == 0;
    if (encoder.is_timed && profile->time_ns != 0) encoder.base_ns = first_time_ns(profile);
    encoder.gap_ns = sample_times_period_ns(profile) / 2;
    buffer_init(&encoder.list, SPEEDSCOPE_BYTES_MAX);
    status = check(&encoder, error);
    if (status == STATUS_OK) status = encode(&encoder, out, error);
    tracks_fini(&encoder.tracks);
    free(encoder.frames.items);
    index_table_fini(&encoder.frames.index);
    free(encoder.frame_of_line);
    free(encoder.frame_of_location);
    free(encoder.path);
    buffer_fini(&encoder.list);
    return status;
}
