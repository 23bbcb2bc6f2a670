/* Reads what V8 records: the .cpuprofile of Chrome's DevTools and of Node, today's and the old nested form, and the CPU
 * profiles in a trace of Chrome's.
 *
 * A profile is a tree of nodes (a function as called from the functions above it), the numbers of the nodes that were
 * sampled, and the microseconds between the samples. A node has the numbers of its children; in a trace, the number of
 * its parent; in legacy files, the children themselves. A trace has a profile in chunks, among other events.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/common/json_kind.h"
#include "format/common/json_members.h"
#include "format/common/text_line.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    CHROME_DEPTH_MAX = 1 << 16,   /* frames of a stack */
    CHROME_TRACKS_MAX = 1 << 12,  /* profiles of one trace */
    CHROME_THREADS_MAX = 1 << 16, /* names of threads in a trace */
};

enum { ITEMS_MAX = PROFILE_ENTITIES_MAX, THREAD_ID_BYTES_MAX = 64 };

#define MICROSECONDS_LIMIT 9e15 /* larger values do not fit in nanoseconds */

enum node_kind { NODE_FUNCTION, NODE_ROOT, NODE_IDLE, NODE_COLLECTOR };

struct node {
    uint64_t id, hits;
    uint32_t parent; /* INDEX_NONE: none */
    enum node_kind kind;
    struct location_id location;
    struct stack_id stack;
    bool is_resolved;
};

struct child {
    uint32_t parent;
    uint64_t id;
};

/* The profile of one thread. */
struct track {
    uint64_t pid, tid, key;
    INDEXED_ARRAY_OF(struct node) nodes; /* nodes by id */
    ARRAY_OF(struct child) children;
    ARRAY_OF(uint64_t) samples;
    ARRAY_OF(double) deltas; /* microseconds since the sample before */
    double start_us, end_us;
};

struct thread_name {
    uint64_t pid, tid;
    struct string_id name;
};

struct timed_sample {
    uint64_t time_ns;
    size_t place; /* place in the file */
    uint32_t node;
};

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct track) tracks;
    ARRAY_OF(struct thread_name) names;
    ARRAY_OF(uint32_t) path; /* nodes, leaf first */
    bool has_samples, is_node, is_trace;
};

/* Appends an item to LIST; false on failure. */
#define ADD(decoder, list, ...)                                                                                        \
    (ARRAY_PUSH(list, ITEMS_MAX, __VA_ARGS__) ||                                                                       \
     (json_parts_fail(&(decoder)->file, STATUS_NO_MEMORY, NULL, "no memory for the profile"), false))

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

static bool id_equal(const void *context, uint32_t index, const void *key)
{
    return ((const struct track *)context)->nodes.items[index].id == *(const uint64_t *)key;
}

static uint32_t find_node(const struct track *track, uint64_t id)
{
    return index_table_find(&track->nodes.index, hash_mix(0, id), id_equal, track, &id);
}

struct call_frame {
    struct string_id name, url;
    int64_t line, column; /* 0: not known */
};

/* Lines count from 0 today and counted from 1 in the old form; FIRST is that. What is not known is -1. */
static int64_t read_place(struct json_reader *reader, int64_t first)
{
    double number = json_double(reader);
    return number >= (double)first && number < INT32_MAX ? (int64_t)number + 1 - first : 0;
}

/* Takes the member NAME if it is part of a function's description. */
static bool read_frame_member(struct decoder *decoder, struct json_reader *reader, struct slice name, int64_t first,
                              struct call_frame *frame)
{
    if (slice_equals_text(name, "functionName"))
        frame->name = profile_string(decoder->file.profile, json_string(reader));
    else if (slice_equals_text(name, "url"))
        frame->url = profile_string(decoder->file.profile, json_string(reader));
    else if (slice_equals_text(name, "lineNumber"))
        frame->line = read_place(reader, first);
    else if (slice_equals_text(name, "columnNumber"))
        frame->column = read_place(reader, first);
    else
        return false;
    return true;
}

static struct call_frame read_call_frame(struct decoder *decoder, struct json_reader *reader)
{
    struct call_frame frame = {0};
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (!read_frame_member(decoder, reader, name, 0, &frame)) json_skip(reader);
    }
    return frame;
}

static enum node_kind kind_of(struct slice name)
{
    if (slice_equals_text(name, "(root)")) return NODE_ROOT;
    if (slice_equals_text(name, "(idle)")) return NODE_IDLE;
    return slice_equals_text(name, "(garbage collector)") ? NODE_COLLECTOR : NODE_FUNCTION;
}

static void describe_node(struct decoder *decoder, struct track *track, uint32_t index, const struct call_frame *frame)
{
    struct profile *profile = decoder->file.profile;
    struct node *node = &track->nodes.items[index];
    struct function function = {
        .name = frame->name.index ? frame->name : profile_text(profile, "(anonymous)"),
        .file_name = frame->url,
    };
    struct line line = {
        .function = profile_add_function(profile, &function), .line = frame->line, .column = frame->column};
    node->kind = kind_of(profile_slice(profile, frame->name));
    node->location = profile_add_location(profile, &(struct location){0}, &line, 1);
    decoder->is_node |= text_begins_with(profile_slice(profile, frame->url), "node:");
    if (find_node(track, node->id) != INDEX_NONE)
        json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "two nodes have one id");
    else if (!index_table_add(&track->nodes.index, hash_mix(0, node->id), index))
        json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the profile");
}

static void read_node(struct decoder *decoder, struct json_reader *reader, struct track *track, uint32_t parent,
                      int64_t first);

/* Numbers of nodes, or, in legacy files, the nodes themselves. */
static void read_children(struct decoder *decoder, struct json_reader *reader, struct track *track, uint32_t parent)
{
    json_array_begin(reader);
    while (decoder->file.status == STATUS_OK && json_array_next(reader)) {
        if (json_peek(reader) == JSON_OBJECT)
            read_node(decoder, reader, track, parent, 1);
        else
            (void)ADD(decoder, &track->children, (struct child){.parent = parent, .id = json_u64(reader)});
    }
}

static void read_parent(struct decoder *decoder, struct json_reader *reader, struct track *track, uint32_t node)
{
    uint32_t parent = find_node(track, json_u64(reader));
    if (parent == INDEX_NONE)
        json_reader_reject(reader, STATUS_MALFORMED, "a node names a parent that does not come before it");
    track->nodes.items[node].parent = parent;
}

/* FIRST is the number of a file's first line. Where a node holds its children, the depth of JSON bounds the
 * recursion. */
static void read_node(struct decoder *decoder, struct json_reader *reader, struct track *track, uint32_t parent,
                      int64_t first)
{
    struct call_frame frame = {0};
    struct slice name;
    uint32_t index = (uint32_t)track->nodes.count;
    if (!ADD(decoder, &track->nodes, (struct node){.parent = parent})) return;
    json_object_begin(reader);
    while (decoder->file.status == STATUS_OK && json_object_next(reader, &name)) {
        if (json_null(reader)) continue;
        if (slice_equals_text(name, "id"))
            track->nodes.items[index].id = json_u64(reader);
        else if (slice_equals_text(name, "callFrame"))
            frame = read_call_frame(decoder, reader);
        else if (slice_equals_text(name, "hitCount"))
            track->nodes.items[index].hits = json_u64(reader);
        else if (slice_equals_text(name, "children"))
            read_children(decoder, reader, track, index);
        else if (slice_equals_text(name, "parent"))
            read_parent(decoder, reader, track, index);
        else if (!read_frame_member(decoder, reader, name, first, &frame))
            json_skip(reader);
    }
    if (decoder->file.status == STATUS_OK && !reader->failed) describe_node(decoder, track, index, &frame);
}

/* --- A profile ---------------------------------------------------------------------------------------------------- */

static void read_nodes(struct decoder *decoder, struct track *track, struct slice value)
{
    struct json_reader reader;
    json_reader_init(&reader, value);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        read_node(decoder, &reader, track, INDEX_NONE, 0);
    }
    json_parts_finish(&decoder->file, &reader);
}

static void read_head(struct decoder *decoder, struct track *track, struct slice value)
{
    struct json_reader reader;
    json_reader_init(&reader, value);
    read_node(decoder, &reader, track, INDEX_NONE, 1);
    json_parts_finish(&decoder->file, &reader);
}

static void read_samples(struct decoder *decoder, struct track *track, struct slice value)
{
    struct json_reader reader;
    json_reader_init(&reader, value);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        (void)ADD(decoder, &track->samples, json_u64(&reader));
    }
    json_parts_finish(&decoder->file, &reader);
}

static void read_deltas(struct decoder *decoder, struct track *track, struct slice value)
{
    struct json_reader reader;
    json_reader_init(&reader, value);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        (void)ADD(decoder, &track->deltas, json_double(&reader));
    }
    json_parts_finish(&decoder->file, &reader);
}

/* Legacy files have times, not differences. */
static void read_timestamps(struct decoder *decoder, struct track *track, struct slice value)
{
    size_t first = track->deltas.count;
    read_deltas(decoder, track, value);
    for (size_t i = track->deltas.count; i-- > first;)
        track->deltas.items[i] -= i > first ? track->deltas.items[i - 1] : track->start_us;
}

/* Adds what OBJECT, a profile or a part of one, has to TRACK. */
static void read_profile(struct decoder *decoder, struct track *track, struct slice object)
{
    enum { NODES, HEAD, SAMPLES, DELTAS, TIMESTAMPS, START, END, PART, MEMBERS };
    struct json_member members[MEMBERS] = {{.name = "nodes"},      {.name = "head"},       {.name = "samples"},
                                           {.name = "timeDeltas"}, {.name = "timestamps"}, {.name = "startTime"},
                                           {.name = "endTime"},    {.name = "cpuProfile"}};
    json_parts_note(&decoder->file, object, members, MEMBERS);
    if (decoder->file.status != STATUS_OK) return;
    double to_us = members[HEAD].value.size > 0 ? 1e6 : 1; /* old files have seconds */
    if (members[START].value.size > 0)
        track->start_us = json_parts_double(&decoder->file, members[START].value) * to_us;
    if (members[END].value.size > 0) track->end_us = json_parts_double(&decoder->file, members[END].value) * to_us;
    if (members[NODES].value.size > 0) read_nodes(decoder, track, members[NODES].value);
    if (members[HEAD].value.size > 0) read_head(decoder, track, members[HEAD].value);
    if (members[SAMPLES].value.size > 0) read_samples(decoder, track, members[SAMPLES].value);
    if (members[DELTAS].value.size > 0) read_deltas(decoder, track, members[DELTAS].value);
    if (members[TIMESTAMPS].value.size > 0) read_timestamps(decoder, track, members[TIMESTAMPS].value);
    /* Only an event of a trace wraps a profile, and only once. */
    if (members[PART].value.size > 0 && members[NODES].value.size == 0 && decoder->is_trace) {
        decoder->is_trace = false;
        read_profile(decoder, track, members[PART].value);
        decoder->is_trace = true;
    }
}

/* --- A trace ------------------------------------------------------------------------------------------------------ */

static struct track *track_of(struct decoder *decoder, uint64_t pid, uint64_t key)
{
    for (size_t i = 0; i < decoder->tracks.count; i++) {
        struct track *track = &decoder->tracks.items[i];
        if (track->pid == pid && track->key == key) return track;
    }
    return NULL;
}

static struct track *add_track(struct decoder *decoder, uint64_t pid, uint64_t tid, uint64_t key)
{
    if (decoder->tracks.count == CHROME_TRACKS_MAX) {
        json_parts_fail(&decoder->file, STATUS_TOO_LARGE, NULL, "more than 4096 profiles in one trace");
        return NULL;
    }
    bool is_added = ADD(decoder, &decoder->tracks, (struct track){.pid = pid, .tid = tid, .key = key});
    return is_added ? &decoder->tracks.items[decoder->tracks.count - 1] : NULL;
}

static void read_thread_name(struct decoder *decoder, uint64_t pid, uint64_t tid, struct slice arguments)
{
    struct slice name = json_parts_member(&decoder->file, arguments, "name");
    if (name.size == 0 || decoder->names.count == CHROME_THREADS_MAX) return;
    struct thread_name added = {.pid = pid, .tid = tid, .name = json_parts_text(&decoder->file, name)};
    (void)ADD(decoder, &decoder->names, added);
}

enum { EVENT_NAME, EVENT_PID, EVENT_TID, EVENT_ID, EVENT_ARGUMENTS, EVENT_MEMBERS };

static uint64_t number_of_event(struct decoder *decoder, const struct json_member *member)
{
    double number = member->value.size > 0 ? json_parts_double(&decoder->file, member->value) : 0;
    return number > 0 && number < 0x1p63 ? (uint64_t)number : 0;
}

static void read_profile_event(struct decoder *decoder, const struct json_member *members, bool begins)
{
    uint64_t pid = number_of_event(decoder, &members[EVENT_PID]);
    uint64_t tid = number_of_event(decoder, &members[EVENT_TID]);
    struct slice id = members[EVENT_ID].value;
    uint64_t key = id.size > 0 ? hash_bytes(id.data, id.size) : tid; /* the key of a profile in its process */
    struct track *track = track_of(decoder, pid, key);
    if (!track && begins) track = add_track(decoder, pid, tid, key);
    if (!track || members[EVENT_ARGUMENTS].value.size == 0) return;
    struct slice data = json_parts_member(&decoder->file, members[EVENT_ARGUMENTS].value, "data");
    if (data.size > 0) read_profile(decoder, track, data);
}

static void read_event(struct decoder *decoder, struct json_reader *reader)
{
    struct json_member members[EVENT_MEMBERS] = {
        {.name = "name"}, {.name = "pid"}, {.name = "tid"}, {.name = "id"}, {.name = "args"}};
    json_members_note(reader, members, EVENT_MEMBERS);
    struct slice name = members[EVENT_NAME].value; /* in its quotes */
    if (slice_equals_text(name, "\"Profile\"") || slice_equals_text(name, "\"CpuProfile\"")) {
        read_profile_event(decoder, members, true);
    } else if (slice_equals_text(name, "\"ProfileChunk\"")) {
        read_profile_event(decoder, members, false);
    } else if (slice_equals_text(name, "\"thread_name\"") && members[EVENT_ARGUMENTS].value.size > 0) {
        read_thread_name(decoder, number_of_event(decoder, &members[EVENT_PID]),
                         number_of_event(decoder, &members[EVENT_TID]), members[EVENT_ARGUMENTS].value);
    }
}

static void read_events(struct decoder *decoder, struct slice events)
{
    struct json_reader reader;
    json_reader_init(&reader, events);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) read_event(decoder, &reader);
    json_parts_finish(&decoder->file, &reader);
    if (decoder->file.status == STATUS_OK && decoder->tracks.count == 0)
        json_parts_fail(&decoder->file, STATUS_UNSUPPORTED, NULL, "the trace holds no CPU profile");
}

/* --- Into the model ----------------------------------------------------------------------------------------------- */

static void link_children(struct decoder *decoder, struct track *track)
{
    for (size_t i = 0; i < track->children.count; i++) {
        uint32_t child = find_node(track, track->children.items[i].id);
        if (child == INDEX_NONE) {
            json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "a node names a child that is not there");
            return;
        }
        track->nodes.items[child].parent = track->children.items[i].parent;
    }
}

/* The stack that ends with node INDEX. A node that is its own ancestor makes a path without end. */
static struct stack_id resolve_node(struct decoder *decoder, struct track *track, uint32_t index)
{
    struct node *nodes = track->nodes.items;
    decoder->path.count = 0;
    for (uint32_t at = index; at != INDEX_NONE && !nodes[at].is_resolved; at = nodes[at].parent) {
        if (decoder->path.count == CHROME_DEPTH_MAX) {
            json_parts_fail(&decoder->file, STATUS_TOO_LARGE, NULL, "a stack of more than 65536 frames");
            return (struct stack_id){0};
        }
        if (!ADD(decoder, &decoder->path, at)) return (struct stack_id){0};
    }
    for (size_t i = decoder->path.count; i-- > 0;) {
        struct node *node = &nodes[decoder->path.items[i]];
        struct stack_id parent = node->parent == INDEX_NONE ? (struct stack_id){0} : nodes[node->parent].stack;
        bool is_frame = node->kind == NODE_FUNCTION || node->kind == NODE_COLLECTOR;
        node->stack = is_frame ? profile_add_stack(decoder->file.profile, parent, node->location) : parent;
        node->is_resolved = true;
    }
    return nodes[index].stack;
}

static uint64_t nanoseconds(double microseconds)
{
    if (!(microseconds > 0)) return 0;
    return microseconds < MICROSECONDS_LIMIT ? (uint64_t)(microseconds * 1000 + 0.5)
                                             : (uint64_t)(MICROSECONDS_LIMIT)*1000;
}

static int compare_samples(const void *left, const void *right)
{
    const struct timed_sample *a = left, *b = right;
    if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Returns the samples in the order of time: V8 takes some samples late and writes them with a negative difference. */
static struct timed_sample *time_samples(struct decoder *decoder, const struct track *track)
{
    struct timed_sample *samples = calloc(track->samples.count + 1, sizeof(*samples));
    double time_us = track->start_us;
    if (!samples) json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the samples");
    for (size_t i = 0; samples && i < track->samples.count; i++) {
        if (i < track->deltas.count) time_us += track->deltas.items[i];
        samples[i] = (struct timed_sample){
            .time_ns = nanoseconds(time_us), .place = i, .node = find_node(track, track->samples.items[i])};
        if (samples[i].node == INDEX_NONE)
            json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "a sample of a node that is not there");
    }
    if (samples) qsort(samples, track->samples.count, sizeof(*samples), compare_samples);
    return samples;
}

static void add_samples(struct decoder *decoder, struct track *track, struct thread_id thread)
{
    struct timed_sample *samples = time_samples(decoder, track);
    struct stack_id interrupted = {0};
    size_t count = track->samples.count;
    for (size_t i = 0; i < count && decoder->file.status == STATUS_OK; i++) {
        const struct node *node = &track->nodes.items[samples[i].node];
        uint64_t end_ns = i + 1 < count ? samples[i + 1].time_ns : nanoseconds(track->end_us);
        struct sample sample = {
            .stack = resolve_node(decoder, track, samples[i].node), .thread = thread, .time_ns = samples[i].time_ns};
        if (node->kind == NODE_COLLECTOR)
            sample.stack = profile_add_stack(decoder->file.profile, interrupted, node->location);
        else
            interrupted = sample.stack;
        int64_t values[] = {1, end_ns > sample.time_ns ? (int64_t)(end_ns - sample.time_ns) : 0};
        profile_add_sample(decoder->file.profile, &sample, values);
    }
    free(samples);
}

/* Adds the hits of nodes, which share out the time, where there are no samples. */
static void add_hits(struct decoder *decoder, struct track *track, struct thread_id thread)
{
    double hits = 0, span_ns = (track->end_us - track->start_us) * 1000;
    for (size_t i = 0; i < track->nodes.count; i++) hits += (double)track->nodes.items[i].hits;
    double tick_ns = hits > 0 && span_ns > 0 && span_ns < MICROSECONDS_LIMIT * 1000 ? span_ns / hits : 0;
    for (uint32_t i = 0; i < track->nodes.count && decoder->file.status == STATUS_OK; i++) {
        uint64_t count = track->nodes.items[i].hits;
        if (count == 0 || count > INT64_MAX) continue;
        struct sample sample = {.stack = resolve_node(decoder, track, i), .thread = thread};
        int64_t values[] = {(int64_t)count, (int64_t)((double)count * tick_ns)};
        profile_add_sample(decoder->file.profile, &sample, values);
    }
}

/* Sandboxed processes of a browser have threads of equal numbers. */
static struct thread_id thread_of(struct decoder *decoder, const struct track *track)
{
    struct thread thread = {0};
    char id[THREAD_ID_BYTES_MAX];
    bool has_several = false;
    if (!decoder->is_trace) return (struct thread_id){0};
    for (size_t i = 0; i < decoder->tracks.count; i++) has_several |= decoder->tracks.items[i].pid != track->pid;
    (void)snprintf(id, sizeof(id), "%llu/", (unsigned long long)track->pid);
    size_t prefix = has_several ? strlen(id) : 0;
    (void)snprintf(id + prefix, sizeof(id) - prefix, "%llu", (unsigned long long)track->tid);
    thread.id = profile_text(decoder->file.profile, id);
    if (track->pid <= INT64_MAX)
        thread.process = profile_add_pid(decoder->file.profile, (int64_t)track->pid, (struct string_id){0});
    for (size_t i = 0; i < decoder->names.count; i++) {
        const struct thread_name *name = &decoder->names.items[i];
        if (name->pid == track->pid && name->tid == track->tid) thread.name = name->name;
    }
    return profile_add_thread(decoder->file.profile, &thread);
}

static void add_tracks(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    for (size_t i = 0; i < decoder->tracks.count; i++) {
        decoder->has_samples |= decoder->tracks.items[i].samples.count > 0;
    }
    profile->has_times = decoder->has_samples;
    profile->platform = profile_text(profile, decoder->is_node ? "node" : "javascript");
    for (size_t i = 0; i < decoder->tracks.count && decoder->file.status == STATUS_OK; i++) {
        struct track *track = &decoder->tracks.items[i];
        struct thread_id thread = thread_of(decoder, track);
        link_children(decoder, track);
        if (decoder->file.status != STATUS_OK) return;
        if (decoder->has_samples)
            add_samples(decoder, track, thread);
        else
            add_hits(decoder, track, thread);
        double span_us = track->end_us - track->start_us;
        if (nanoseconds(span_us) > profile->duration_ns) profile->duration_ns = nanoseconds(span_us);
    }
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void read_file(struct decoder *decoder, enum json_kind_of_profile kind)
{
    struct json_reader reader;
    json_reader_init(&reader, decoder->file.bytes);
    struct json_member events = {.name = "traceEvents"};
    if (kind == JSON_PROFILE_CHROME_TRACE && json_peek(&reader) == JSON_OBJECT)
        json_members_note(&reader, &events, 1);
    else
        json_skip(&reader);
    (void)json_reader_finish(&reader, NULL);
    json_parts_finish(&decoder->file, &reader);
    if (decoder->file.status != STATUS_OK) return;
    if (kind == JSON_PROFILE_CHROME_TRACE) {
        decoder->is_trace = true;
        read_events(decoder, events.value.size > 0 ? events.value : decoder->file.bytes);
    } else {
        struct track *track = add_track(decoder, 0, 0, 0);
        if (track) read_profile(decoder, track, decoder->file.bytes);
    }
}

static void decoder_fini(struct decoder *decoder)
{
    for (size_t i = 0; i < decoder->tracks.count; i++) {
        struct track *track = &decoder->tracks.items[i];
        free(track->nodes.items);
        index_table_fini(&track->nodes.index);
        free(track->children.items);
        free(track->samples.items);
        free(track->deltas.items);
    }
    free(decoder->tracks.items);
    free(decoder->names.items);
    free(decoder->path.items);
}

static bool chrome_cpuprofile_detect(struct slice bytes)
{
    enum json_kind_of_profile kind = json_kind_of_profile(bytes);
    return kind == JSON_PROFILE_CHROME || kind == JSON_PROFILE_CHROME_TRACE;
}

/* Values are samples/count and wall/nanoseconds, the time to the next sample. Times are of the browser's clock,
 * whose start is arbitrary (profile.time_ns stays 0); a file without samples has hits instead and no times. "(root)" is
 * left out, "(idle)" is an empty stack, "(garbage collector)" is added to the stack that it interrupted, and
 * "(program)", native code, is a stack with this frame only. */
static enum status chrome_cpuprofile_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    read_file(&decoder, json_kind_of_profile(bytes));
    if (decoder.file.status == STATUS_OK) add_tracks(&decoder);
    enum status status = decoder.file.status;
    decoder_fini(&decoder);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    return status == STATUS_OK && profile->has_times ? profile_sort_by_time(profile, error) : status;
}

const struct format format_chrome = {
    .name = "chrome",
    .suffixes = {".cpuprofile"},
    .detect = chrome_cpuprofile_detect,
    .decode = chrome_cpuprofile_decode,
};
