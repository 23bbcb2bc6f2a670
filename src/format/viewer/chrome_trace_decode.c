/* Reads trace events, and samples of stacks. They are in any order: all are collected, sorted by thread and time, and
 * replayed.
 * SPDX-License-Identifier: MIT */
#include "format/viewer/chrome_trace.h"

#include "base/array.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/common/json_kind.h"
#include "format/common/json_members.h"
#include "format/viewer/chrome_trace_frames.h"
#include "profile/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ITEMS_MAX = PROFILE_ENTITIES_MAX,
    THREAD_ID_BYTES_MAX = 256,
    OWN_BYTES_MAX = 64, /* at the front of a file that offbeat wrote, which may have no event */
};

enum kind { EVENT_BEGINS, EVENT_ENDS, EVENT_COMPLETE, EVENT_SAMPLED };

struct event {
    uint64_t start_ns, end_ns; /* END_NS: of EVENT_COMPLETE */
    uint32_t track, order;
    struct string_id name; /* 0: none, which ends of any event may have */
    struct location_id place;
    struct stack_id stack; /* stack of EVENT_SAMPLED, until the next one of its thread */
    enum kind kind;
};

/* A thread of a process. */
struct track {
    struct string_id pid, tid, name;
    struct thread_id thread;
    struct label_set_id labels;
};

struct process_name {
    struct string_id pid, name;
};

struct open_event {
    struct stack_id stack;
    struct string_id name;
    uint64_t end_ns; /* UINT64_MAX: until its end event */
    bool awaits_end; /* true if an event of its own ends it */
};

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct event) events;
    INDEXED_ARRAY_OF(struct track) tracks;
    INDEXED_ARRAY_OF(struct process_name) processes;
    ARRAY_OF(struct open_event) open;
    const struct track *track; /* track that is replayed */
    uint64_t clock_ns, first_ns, last_ns, start_ns;
    int64_t ends_without_begin, events_cut, totals;
    struct buffer name; /* full name of an event */
    struct trace_frames frames;
    bool has_samples; /* their stacks count, and no event */
    size_t events_left_out;
};

/* --- Values ------------------------------------------------------------------------------------------------------- */

/* Microseconds in nanoseconds, to the last digit; UINT64_MAX / 4 for more than that. */
static uint64_t nanoseconds_of(const struct json_number *number)
{
    const uint64_t most = UINT64_MAX / 4;
    uint64_t value = number->digits;
    if (number->is_negative) return 0;
    if (!number->is_exact) {
        double nanoseconds = json_number_to_double(number) * 1000;
        return nanoseconds < 0x1p62 ? (uint64_t)nanoseconds : most;
    }
    int64_t exponent = number->exponent + 3;
    for (; exponent > 0 && value > 0; exponent--) {
        if (__builtin_mul_overflow(value, 10u, &value) || value > most) return most;
    }
    for (; exponent < 0 && value > 0; exponent++) value /= 10;
    return value < most ? value : most;
}

static uint64_t read_time(struct decoder *decoder, struct slice value)
{
    struct json_reader reader;
    struct json_number number = {0};
    if (value.size == 0) return 0;
    json_reader_init(&reader, value);
    if (json_peek(&reader) != JSON_STRING)
        number = json_number(&reader);
    else if (!json_number_of_text(json_string(&reader), &number))
        json_reader_reject(&reader, STATUS_MALFORMED, "expected a number, or a text that holds one");
    json_parts_finish(&decoder->file, &reader);
    return nanoseconds_of(&number);
}

/* --- Threads and processes ---------------------------------------------------------------------------------------- */

static bool is_same_track(const void *context, uint32_t index, const void *key)
{
    const struct track *a = &((const struct decoder *)context)->tracks.items[index], *b = key;
    return a->pid.index == b->pid.index && a->tid.index == b->tid.index;
}

/* The place of the thread TID of process PID; INDEX_NONE on failure. */
static uint32_t find_track(struct decoder *decoder, struct string_id pid, struct string_id tid)
{
    struct track track = {.pid = pid, .tid = tid};
    uint64_t hash = hash_mix(pid.index, tid.index);
    uint32_t found = index_table_find(&decoder->tracks.index, hash, is_same_track, decoder, &track);
    if (found != INDEX_NONE) return found;
    if (INDEXED_ARRAY_PUSH(&decoder->tracks, ITEMS_MAX, hash, track)) return (uint32_t)decoder->tracks.count - 1;
    json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the events");
    return INDEX_NONE;
}

static bool is_same_process(const void *context, uint32_t index, const void *key)
{
    return ((const struct decoder *)context)->processes.items[index].pid.index ==
           ((const struct string_id *)key)->index;
}

/* The process PID, made if there is none; NULL on failure. */
static struct process_name *find_process(struct decoder *decoder, struct string_id pid)
{
    uint64_t hash = hash_mix(0, pid.index);
    uint32_t found = index_table_find(&decoder->processes.index, hash, is_same_process, decoder, &pid);
    if (found != INDEX_NONE) return &decoder->processes.items[found];
    if (INDEXED_ARRAY_PUSH(&decoder->processes, ITEMS_MAX, hash, (struct process_name){.pid = pid}))
        return &decoder->processes.items[decoder->processes.count - 1];
    json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the events");
    return NULL;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

enum { PHASE, NAME, PID, TID, TIME, DURATION, ARGUMENTS, FRAME, MEMBERS };

static void read_metadata(struct decoder *decoder, const struct json_member *members)
{
    bool names_thread = slice_equals_text(members[NAME].value, "\"thread_name\"");
    bool names_process = slice_equals_text(members[NAME].value, "\"process_name\"");
    if (!names_thread && !names_process) return;
    struct slice text = json_parts_member(&decoder->file, members[ARGUMENTS].value, "name");
    struct string_id name = json_parts_string(&decoder->file, text);
    struct string_id pid = json_parts_string(&decoder->file, members[PID].value);
    if (names_process) {
        struct process_name *process = find_process(decoder, pid);
        if (process) process->name = name;
    } else {
        uint32_t track = find_track(decoder, pid, json_parts_string(&decoder->file, members[TID].value));
        if (track != INDEX_NONE) decoder->tracks.items[track].name = name;
    }
}

/* True if NAME and ARGUMENTS are those of a sum that clang's -ftime-trace writes beside the events it has summed. */
static bool is_total_of_clang(struct decoder *decoder, struct slice name, struct slice arguments)
{
    struct json_member members[] = {{.name = "count"}, {.name = "avg ms"}};
    if (!text_begins_with(name, "\"Total ") || arguments.size == 0 || arguments.data[0] != '{') return false;
    json_parts_note(&decoder->file, arguments, members, 2);
    return members[0].value.size > 0 && members[1].value.size > 0;
}

/* NAME and what the event is about, which clang writes as `detail` and TypeScript as `path`. */
static struct string_id full_name(struct decoder *decoder, struct string_id name, struct slice arguments)
{
    struct json_member members[] = {{.name = "detail"}, {.name = "path"}};
    if (arguments.size == 0 || arguments.data[0] != '{') return name;
    json_parts_note(&decoder->file, arguments, members, 2);
    struct slice about = members[0].value.size > 0 ? members[0].value : members[1].value;
    if (about.size <= 2 || about.data[0] != '"') return name;
    struct profile *profile = decoder->file.profile;
    struct string_id detail = json_parts_text(&decoder->file, about);
    struct slice first = profile_slice(profile, name), second = profile_slice(profile, detail);
    buffer_clear(&decoder->name);
    buffer_append(&decoder->name, first.data, first.size);
    buffer_append_text(&decoder->name, ": ");
    buffer_append(&decoder->name, second.data, second.size);
    return decoder->name.failed ? name : profile_string(profile, buffer_slice(&decoder->name));
}

static void add_event(struct decoder *decoder, const struct json_member *members, enum kind kind)
{
    struct profile *profile = decoder->file.profile;
    if (kind == EVENT_COMPLETE && is_total_of_clang(decoder, members[NAME].value, members[ARGUMENTS].value)) {
        decoder->totals++;
        return;
    }
    struct string_id pid = json_parts_string(&decoder->file, members[PID].value);
    struct event event = {
        .start_ns = read_time(decoder, members[TIME].value),
        .track = find_track(decoder, pid, json_parts_string(&decoder->file, members[TID].value)),
        .order = (uint32_t)decoder->events.count,
        .kind = kind,
    };
    event.end_ns = event.start_ns + read_time(decoder, members[DURATION].value);
    event.name = json_parts_string(&decoder->file, members[NAME].value);
    if (kind == EVENT_BEGINS || kind == EVENT_COMPLETE) {
        struct function function = {.name = full_name(decoder, event.name, members[ARGUMENTS].value)};
        struct line line = {.function = profile_add_function(profile, &function)};
        event.place = profile_add_location(profile, &(struct location){0}, &line, 1);
    }
    if (kind == EVENT_SAMPLED)
        event.stack = trace_frames_stack(&decoder->frames, json_parts_string(&decoder->file, members[FRAME].value));
    (void)find_process(decoder, pid);
    if (event.track != INDEX_NONE && !ARRAY_PUSH(&decoder->events, ITEMS_MAX, event))
        json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the events");
}

static void read_event(struct decoder *decoder, struct json_reader *reader)
{
    struct json_member members[MEMBERS] = {{.name = "ph"}, {.name = "name"}, {.name = "pid"},  {.name = "tid"},
                                           {.name = "ts"}, {.name = "dur"},  {.name = "args"}, {.name = "sf"}};
    json_members_note(reader, members, MEMBERS);
    if (reader->failed) return;
    struct slice phase = members[PHASE].value;
    if (phase.size == 0 && members[FRAME].value.size > 0)
        add_event(decoder, members, EVENT_SAMPLED);
    else if (decoder->has_samples && (slice_equals_text(phase, "\"B\"") || read_time(decoder, members[DURATION].value)))
        decoder->events_left_out++;
    else if (decoder->has_samples && !slice_equals_text(phase, "\"M\""))
        return;
    else if (slice_equals_text(phase, "\"B\""))
        add_event(decoder, members, EVENT_BEGINS);
    else if (slice_equals_text(phase, "\"E\""))
        add_event(decoder, members, EVENT_ENDS);
    else if (slice_equals_text(phase, "\"X\""))
        add_event(decoder, members, EVENT_COMPLETE);
    else if (slice_equals_text(phase, "\"M\""))
        read_metadata(decoder, members);
}

/* Names the last event if the list, which is cut short, does not end with a whole one. */
static void note_cut_event(struct decoder *decoder, struct slice events)
{
    while (events.size > 0 && events.data[events.size - 1] <= ' ') events.size--;
    uint8_t last = events.size > 0 ? events.data[events.size - 1] : '[';
    if (last != '}' && last != ',' && last != '[')
        profile_add_omission(decoder->file.profile, "the last event is cut short and left out");
}

/* The list need not end: a program that was killed has written no bracket. */
static void read_events(struct decoder *decoder, struct slice events, bool may_end_early)
{
    struct json_reader reader;
    json_reader_init(&reader, events);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        if (json_next_byte(&reader) == ']' && may_end_early) break; /* after a last comma */
        read_event(decoder, &reader);
    }
    bool is_cut = reader.failed && reader.failed_offset == events.size;
    bool is_at_end = is_cut || (!reader.failed && (json_next_byte(&reader) == 0 || json_next_byte(&reader) == ']'));
    if (may_end_early && is_at_end && decoder->events.count > 0) {
        if (is_cut) profile_add_metadata_number(decoder->file.profile, "list_not_ended", 1);
        if (is_cut) note_cut_event(decoder, events);
        json_reader_fini(&reader);
        return;
    }
    json_parts_finish(&decoder->file, &reader);
}

/* --- Replay ------------------------------------------------------------------------------------------------------- */

static int compare_events(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int compare_lengths(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* Sorts by track and time. Of complete events that begin together the longest is outside. */
static void sort_events(struct decoder *decoder)
{
    struct event *events = decoder->events.items;
    size_t count = decoder->events.count;
    if (count) qsort(events, count, sizeof(*events), compare_events);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && events[end].track == events[first].track &&
                          events[end].start_ns == events[first].start_ns && events[end].kind == EVENT_COMPLETE;)
            end++;
        if (end - first > 1) qsort(events + first, end - first, sizeof(*events), compare_lengths);
        if (end == first) end++;
    }
}

/* The open events last until TIME_NS. */
static void advance(struct decoder *decoder, uint64_t time_ns)
{
    if (time_ns <= decoder->clock_ns) return;
    if (decoder->open.count > 0) {
        struct sample sample = {.stack = decoder->open.items[decoder->open.count - 1].stack,
                                .thread = decoder->track->thread,
                                .labels = decoder->track->labels,
                                .time_ns = decoder->start_ns + decoder->clock_ns};
        int64_t values[] = {1, (int64_t)(time_ns - decoder->clock_ns)};
        profile_add_sample(decoder->file.profile, &sample, values);
        if (decoder->clock_ns < decoder->first_ns) decoder->first_ns = decoder->clock_ns;
        if (time_ns > decoder->last_ns) decoder->last_ns = time_ns;
    }
    decoder->clock_ns = time_ns;
}

/* Closes the complete events that end at TIME_NS or earlier, and moves the clock to TIME_NS. */
static void advance_to(struct decoder *decoder, uint64_t time_ns)
{
    for (; decoder->open.count > 0; decoder->open.count--) {
        uint64_t end_ns = decoder->open.items[decoder->open.count - 1].end_ns;
        if (end_ns > time_ns || end_ns == UINT64_MAX) break;
        advance(decoder, end_ns);
    }
    if (time_ns != UINT64_MAX) advance(decoder, time_ns);
}

static void open_event(struct decoder *decoder, const struct event *event)
{
    size_t count = decoder->open.count;
    struct open_event outer = count ? decoder->open.items[count - 1] : (struct open_event){.end_ns = UINT64_MAX};
    uint64_t end_ns = event->kind == EVENT_COMPLETE ? event->end_ns : UINT64_MAX;
    if (count == CHROME_TRACE_DEPTH_MAX) {
        json_parts_fail(&decoder->file, STATUS_TOO_LARGE, NULL, "more than 65536 events are open at one time");
        return;
    }
    decoder->events_cut += event->kind == EVENT_COMPLETE && outer.end_ns < end_ns;
    struct open_event opened = {.stack = profile_add_stack(decoder->file.profile, outer.stack, event->place),
                                .name = event->name,
                                .end_ns = outer.end_ns < end_ns ? outer.end_ns : end_ns,
                                .awaits_end = event->kind == EVENT_BEGINS};
    if (!ARRAY_PUSH(&decoder->open, ITEMS_MAX, opened))
        json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the events");
}

static bool is_end_of(struct string_id name, const struct open_event *open)
{
    return open->awaits_end && (name.index == 0 || open->name.index == 0 || name.index == open->name.index);
}

/* Ends the innermost event of this NAME that has begun; those in it end with it. An end without a begin is ignored, as
 * Perfetto and speedscope do, or with one that is far outside. */
static void close_event(struct decoder *decoder, struct string_id name)
{
    enum { DEPTH_SEARCHED_MAX = 1024 };
    size_t count = decoder->open.count, least = count > DEPTH_SEARCHED_MAX ? count - DEPTH_SEARCHED_MAX : 0;
    while (count > least && !is_end_of(name, &decoder->open.items[count - 1])) count--;
    if (count > least)
        decoder->open.count = count - 1;
    else
        decoder->ends_without_begin++;
}

static void open_sample(struct decoder *decoder, const struct event *event)
{
    struct open_event sampled = {.stack = event->stack, .end_ns = UINT64_MAX};
    decoder->open.count = 0;
    if (event->stack.index && !ARRAY_PUSH(&decoder->open, ITEMS_MAX, sampled))
        json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the events");
}

static void replay_event(struct decoder *decoder, const struct event *event)
{
    const struct track *track = &decoder->tracks.items[event->track];
    if (track != decoder->track) {
        advance_to(decoder, UINT64_MAX);
        decoder->open.count = 0; /* events without an end have no known length */
        decoder->track = track;
        decoder->clock_ns = event->start_ns;
    }
    advance_to(decoder, event->start_ns);
    if (event->kind == EVENT_SAMPLED)
        open_sample(decoder, event);
    else if (event->kind == EVENT_ENDS)
        close_event(decoder, event->name);
    else
        open_event(decoder, event);
}

/* --- Into the model ----------------------------------------------------------------------------------------------- */

static void give_labels(struct decoder *decoder, struct track *track)
{
    struct profile *profile = decoder->file.profile;
    const struct process_name *process = find_process(decoder, track->pid);
    struct label labels[2] = {{.key = profile_text(profile, PROCESS_ID_LABEL), .text = track->pid},
                              {.key = profile_text(profile, PROCESS_NAME_LABEL)}};
    const char *pid = profile_c_string(profile, track->pid);
    char *end;
    int64_t number = strtoll(pid, &end, 10);
    if (*pid && *end == '\0') {
        labels[0].is_number = true;
        labels[0].number = number;
        labels[0].text.index = 0;
    }
    if (process) labels[1].text = process->name;
    track->labels = profile_add_labels(profile, labels, labels[1].text.index ? 2 : 1);
}

static void give_threads(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    for (size_t i = 0; i < decoder->tracks.count && profile->failed == STATUS_OK; i++) {
        struct track *track = &decoder->tracks.items[i];
        struct thread thread = {.id = track->tid, .name = track->name};
        char id[THREAD_ID_BYTES_MAX];
        (void)snprintf(id, sizeof(id), "%.100s/%.100s", profile_c_string(profile, track->pid),
                       profile_c_string(profile, track->tid));
        /* Sandboxed processes of a browser have threads of equal numbers. */
        if (decoder->processes.count > 1) thread.id = profile_text(profile, id);
        if (thread.id.index) track->thread = profile_add_thread(profile, &thread);
        if (decoder->processes.count > 1) give_labels(decoder, track);
    }
    if (decoder->processes.count != 1) return;
    const struct process_name *process = &decoder->processes.items[0];
    if (process->pid.index)
        profile_add_metadata_text(profile, PROCESS_ID_LABEL, profile_c_string(profile, process->pid));
    if (process->name.index)
        profile_add_metadata_text(profile, PROCESS_NAME_LABEL, profile_c_string(profile, process->name));
}

static void add_samples(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->has_times = true;
    profile->time_ns = profile_start_at(decoder->start_ns);
    give_threads(decoder);
    sort_events(decoder);
    decoder->first_ns = UINT64_MAX;
    for (size_t i = 0; i < decoder->events.count && decoder->file.status == STATUS_OK; i++)
        replay_event(decoder, &decoder->events.items[i]);
    if (decoder->track) advance_to(decoder, UINT64_MAX);
    if (decoder->last_ns > decoder->first_ns) profile->duration_ns = decoder->last_ns - decoder->first_ns;
    if (decoder->ends_without_begin)
        profile_add_metadata_number(profile, "ends_without_begin", decoder->ends_without_begin);
    if (decoder->events_cut) profile_add_metadata_number(profile, "events_cut", decoder->events_cut);
    if (decoder->totals)
        profile_add_omission(profile, "%" PRId64 " totals of clang are left out: they are sums of the events",
                             decoder->totals);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* OTHER is offbeat's; CLANG is the microsecond in which a compiler began. */
static void read_start(struct decoder *decoder, struct slice other, struct slice clang)
{
    decoder->start_ns = read_time(decoder, clang);
    struct json_reader reader;
    if (other.size == 0 || other.data[0] != '{') return;
    struct slice start = json_parts_member(&decoder->file, other, CHROME_TRACE_START);
    if (start.size == 0) return;
    json_reader_init(&reader, start);
    decoder->start_ns = json_u64(&reader);
    if (decoder->start_ns > INT64_MAX) decoder->start_ns = INT64_MAX;
    json_parts_finish(&decoder->file, &reader);
}

/* The list of an object that does not end: Chrome and others write the object as they go. Empty if the bytes are no cut
 * object that begins with its list, or with other members before it. */
static struct slice list_of_cut_object(struct slice bytes)
{
    struct json_reader reader;
    struct slice name, list = slice_of(NULL, 0);
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    while (json_object_next(&reader, &name)) {
        bool is_list = slice_equals_text(name, "traceEvents") && json_peek(&reader) == JSON_ARRAY;
        const uint8_t *start = reader.position;
        json_skip(&reader);
        if (!is_list) continue;
        list = slice_of(start, (size_t)((reader.failed ? bytes.data + bytes.size : reader.position) - start));
    }
    if (!reader.failed || reader.failed_offset != bytes.size) list = slice_of(NULL, 0);
    json_reader_fini(&reader);
    return list;
}

/* Samples of stacks, each of which its thread has until the next one. */
static void read_samples(struct decoder *decoder, struct slice frames, struct slice samples)
{
    trace_frames_read(&decoder->frames, frames);
    read_events(decoder, samples, false);
    decoder->has_samples = decoder->events.count > 0;
}

static void read_file(struct decoder *decoder)
{
    enum { EVENTS, OTHER, SAMPLES, FRAMES, CLANG_START, PARTS };
    struct json_member members[PARTS] = {{.name = "traceEvents"},
                                         {.name = "otherData"},
                                         {.name = "samples"},
                                         {.name = "stackFrames"},
                                         {.name = "beginningOfTime"}};
    struct json_reader reader;
    json_reader_init(&reader, decoder->file.bytes);
    bool is_list = json_peek(&reader) == JSON_ARRAY;
    json_reader_fini(&reader);
    if (is_list) {
        read_events(decoder, decoder->file.bytes, true);
        return;
    }
    json_parts_note(&decoder->file, decoder->file.bytes, members, PARTS);
    struct slice cut_list = slice_of(NULL, 0);
    if (decoder->file.status == STATUS_MALFORMED) cut_list = list_of_cut_object(decoder->file.bytes);
    if (cut_list.size > 0) {
        decoder->file.status = STATUS_OK;
        read_events(decoder, cut_list, true);
        profile_add_omission(decoder->file.profile, "the file is cut short, at byte %zu: what came after it is missing",
                             decoder->file.bytes.size);
        return;
    }
    if (decoder->file.status != STATUS_OK) return;
    read_start(decoder, members[OTHER].value, members[CLANG_START].value);
    if (members[FRAMES].value.size > 0 && members[SAMPLES].value.size > 0)
        read_samples(decoder, members[FRAMES].value, members[SAMPLES].value);
    if (members[EVENTS].value.size == 0)
        json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "there is no list \"traceEvents\"");
    else
        read_events(decoder, members[EVENTS].value, false);
    if (decoder->events_left_out > 0) {
        profile_add_omission(decoder->file.profile, "%zu events are left out: the samples of stacks count",
                             decoder->events_left_out);
    }
}

/* True if an event of PHASES is in BYTES. */
static bool has_phase(struct slice bytes, const char *phases)
{
    static const char key[] = "\"ph\"";
    while (bytes.size > 0) {
        const uint8_t *found = memmem(bytes.data, bytes.size, key, sizeof(key) - 1);
        if (!found) return false;
        const uint8_t *end = bytes.data + bytes.size, *at = found + sizeof(key) - 1;
        while (at < end && (*at == ' ' || *at == ':')) at++;
        if (end - at >= 3 && at[0] == '"' && at[2] == '"' && at[1] != '\0' && strchr(phases, at[1])) return true;
        bytes = slice_of(found + 1, (size_t)(end - found) - 1);
    }
    return false;
}

bool chrome_trace_detect(struct slice bytes)
{
    static const char *const profiles[] = {"\"ProfileChunk\"", "\"CpuProfile\""};
    struct slice front = slice_of(bytes.data, bytes.size < OWN_BYTES_MAX ? bytes.size : OWN_BYTES_MAX);
    if (json_kind_of_profile(bytes) != JSON_PROFILE_CHROME_TRACE) return false;
    if (memmem(front.data, front.size, CHROME_TRACE_START, strlen(CHROME_TRACE_START))) return true;
    if (!has_phase(bytes, "BX") && !memmem(bytes.data, bytes.size, "\"stackFrames\"", 13)) return false;
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        if (memmem(bytes.data, bytes.size, profiles[i], strlen(profiles[i]))) return false;
    }
    return true;
}

enum status chrome_trace_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    decoder.frames.file = &decoder.file;
    buffer_init(&decoder.name, PROFILE_STRING_BYTES_MAX);
    read_file(&decoder);
    if (decoder.file.status == STATUS_OK) add_samples(&decoder);
    enum status status = decoder.file.status;
    free(decoder.events.items);
    free(decoder.tracks.items);
    index_table_fini(&decoder.tracks.index);
    free(decoder.processes.items);
    index_table_fini(&decoder.processes.index);
    free(decoder.open.items);
    trace_frames_fini(&decoder.frames);
    buffer_fini(&decoder.name);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    return status == STATUS_OK ? profile_sort_by_time(profile, error) : status;
}

const struct format format_chrome_trace = {
    .name = "chrome-trace",
    .suffixes = {".trace.json"},
    .detect = chrome_trace_detect,
    .decode = chrome_trace_decode,
    .encode = chrome_trace_encode,
    .keeps = KEEPS_TIMES | KEEPS_THREADS,
    .needs_timestamps = true,
    .needs_full_names = true,
};
