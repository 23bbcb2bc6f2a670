/* perf.data into the model: each sample gets the mappings and names that hold at its time.
 *
 * Records are read once, put in order by perf_queue.c, and then either change what is known (mappings, names) or
 * become a sample. Samples are added to the profile many at a time.
 *
 * The copied stack of a sample is most of its record. It is walked as soon as it is read, while it is in the
 * processor's cache, and only the addresses wait in the queue. Where the mappings of the process have changed until the
 * sample's turn comes, its record is read again.  SPDX-License-Identifier: MIT */
#include "format/perf/perf_data.h"

#include "base/array.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/common/frame_name.h"
#include "format/perf/perf_header.h"
#include "format/perf/perf_queue.h"
#include "format/perf/perf_stack.h"
#include "format/perf/perf_tasks.h"
#include "profile/incomplete.h"
#include "profile/processes.h"
#include "profile/profile_scale.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BATCH = PROFILE_ADDED_AT_ONCE,
    PLACES_KEPT = 1 << 14,
    PROGRAM_SEARCHES_MAX = 64,
    LABELS_MAX = 5,     /* labels of one sample */
    COMM_SIZE_MAX = 15, /* the kernel cuts names of threads */
    FRAMES_MAX = BATCH * (PERF_STACK_FRAMES_MAX + PERF_RECORD_BYTES_MAX / 8 + 2),
};

enum mode { MODE_KERNEL, MODE_USER, MODE_OTHER };

/* The location of an address, kept to be found again. */
struct kept_place {
    uint64_t address, version; /* VERSION of the space; 0: nothing is kept */
    struct location_id location;
};

/* The record of a sample. */
struct taken {
    const struct perf_record *record;
    const struct perf_event *event;
    const struct perf_walk *walk; /* NULL: none was made early. Otherwise RECORD ends where its stack began. */
};

struct pending {
    struct sample sample;
    int64_t values[PROFILE_VALUES_MAX];
    size_t first_frame;
    uint32_t frame_count;
};

struct decoder {
    struct profile *profile;
    const struct perf_code *code;
    struct perf_header header;
    struct perf_input *inputs;    /* input of each source */
    uint32_t input_count, source; /* SOURCE: of the record at hand */
    struct perf_queue queue;
    struct perf_spaces spaces;
    struct perf_tasks tasks;
    struct kept_place *places;
    struct perf_walk walk;                          /* the last one made early */
    uint8_t *read_again;                            /* PERF_RECORD_BYTES_MAX; NULL: not needed yet */
    struct location_id incomplete[UNWIND_OUTCOMES]; /* 0: not needed yet */
    uint64_t round_end_ns, newest_ns;               /* the end of the last round; of all records so far */
    struct pending batch[BATCH];
    size_t batch_count;
    ARRAY_OF(struct location_id) frames; /* frames of the batch, each stack leaf first */
    uint32_t first_pid;
    bool has_pid, has_several_pids, has_program, has_kernel, has_cgroups;
    unsigned program_searches;
    uint64_t lost, unknown_events;
    uint64_t offset; /* offset of the record at hand */
    enum status status;
    struct error *error;
};

static struct perf_input *input_at_hand(struct decoder *decoder)
{
    return &decoder->inputs[decoder->source];
}

static void fail(struct decoder *decoder, enum status status, const char *message)
{
    if (decoder->status != STATUS_OK) return;
    decoder->status = error_set(decoder->error, status, decoder->offset, "%s", message);
}

static void check_spaces(struct decoder *decoder)
{
    enum status status = decoder->spaces.status;
    if (status == STATUS_NO_MEMORY) fail(decoder, status, "not enough memory for the mappings");
    if (status != STATUS_OK) fail(decoder, status, "more mappings than one process, or all forks, may have");
}

/* --- Mappings and names ------------------------------------------------------------------------------------------- */

static void add_map(struct decoder *decoder, const struct perf_record *record, struct perf_mapped *mapped,
                    struct slice name, struct perf_file_id file)
{
    mapped->is_kernel = (record->misc & PERF_MISC_MODE_MASK) == PERF_MISC_KERNEL;
    mapped->file_name = profile_string(decoder->profile, perf_file_name(name));
    if (mapped->build_id.index == 0) mapped->build_id = perf_header_build_id(&decoder->header, mapped->file_name, file);
    if (mapped->build_id.index == 0 && decoder->code && decoder->code->identify) {
        const char *path = profile_c_string(decoder->profile, mapped->file_name);
        mapped->build_id = profile_text(
            decoder->profile, decoder->code->identify(decoder->code->context, path, file.inode, file.generation));
    }
    perf_spaces_map(&decoder->spaces, mapped);
    check_spaces(decoder);
}

/* Reads the fields with which both records of a mapping begin. */
static struct perf_mapped take_mapped(struct cursor *cursor)
{
    struct perf_mapped mapped = {.pid = cursor_u32(cursor)};
    cursor_skip(cursor, sizeof(uint32_t));
    mapped.start = cursor_u64(cursor);
    mapped.size = cursor_u64(cursor);
    mapped.file_offset = cursor_u64(cursor);
    return mapped;
}

static void take_mmap(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    struct perf_mapped mapped = take_mapped(&cursor);
    struct slice name = cursor_text(&cursor);
    if (cursor.failed) fail(decoder, STATUS_MALFORMED, "the record of a mapping is broken");
    if (!cursor.failed && !(record->misc & PERF_MISC_MMAP_DATA))
        add_map(decoder, record, &mapped, name, (struct perf_file_id){0});
}

static void take_mmap2(struct decoder *decoder, const struct perf_record *record)
{
    enum { FILE_IDENTITY = 24, BUILD_ID_PLACE = 4, EXECUTABLE = 4 };
    struct cursor cursor = perf_record_body(record);
    struct perf_mapped mapped = take_mapped(&cursor);
    struct slice identity = cursor_take(&cursor, FILE_IDENTITY);
    uint32_t protection = cursor_u32(&cursor);
    cursor_skip(&cursor, sizeof(uint32_t));
    struct slice name = cursor_text(&cursor);
    if (cursor.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of a mapping is broken");
        return;
    }
    if (!(protection & EXECUTABLE) || (record->misc & PERF_MISC_MMAP_DATA)) return;
    struct perf_file_id file = {0};
    if (!(record->misc & PERF_MISC_MMAP_BUILD_ID))
        memcpy(&file, identity.data, sizeof(file));
    else if (identity.data[0] <= PERF_BUILD_ID_BYTES)
        mapped.build_id = perf_hex(decoder->profile, slice_of(identity.data + BUILD_ID_PLACE, identity.data[0]));
    add_map(decoder, record, &mapped, name, file);
}

/* Code that the kernel made at run time, most often a BPF program, is one function. It keeps its name after its end:
 * samples of other code there come after the record of that code. */
static void take_ksymbol(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    struct perf_mapped mapped = {.is_kernel = true, .start = cursor_u64(&cursor)};
    mapped.size = cursor_u32(&cursor);
    uint16_t kind = cursor_u16(&cursor);
    uint16_t flags = cursor_u16(&cursor);
    struct slice name = cursor_text(&cursor);
    if (cursor.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of a symbol of the kernel is broken");
        return;
    }
    if (flags & PERF_KSYMBOL_UNREGISTER) return;
    mapped.file_name = profile_text(decoder->profile, kind == PERF_KSYMBOL_BPF ? "[bpf]" : "[kernel]");
    mapped.function = profile_string(decoder->profile, name);
    perf_spaces_map(&decoder->spaces, &mapped);
    check_spaces(decoder);
}

static struct perf_thread *get_thread(struct decoder *decoder, uint32_t tid)
{
    struct perf_thread *thread = perf_tasks_thread(&decoder->tasks, tid);
    if (!thread) fail(decoder, STATUS_NO_MEMORY, "more than 4194304 threads, or not enough memory for them");
    return thread;
}

static void take_comm(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    uint32_t pid = cursor_u32(&cursor), tid = cursor_u32(&cursor);
    struct slice name = cursor_text(&cursor);
    if (cursor.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of a thread's name is broken");
        return;
    }
    if (record->misc & PERF_MISC_COMM_EXEC) perf_spaces_empty(&decoder->spaces, pid);
    struct perf_thread *thread = get_thread(decoder, tid);
    if (thread) thread->name = profile_string(decoder->profile, name);
}

static void take_fork(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    uint32_t pid = cursor_u32(&cursor), parent_pid = cursor_u32(&cursor);
    uint32_t tid = cursor_u32(&cursor), parent_tid = cursor_u32(&cursor);
    if (cursor.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of a fork is broken");
        return;
    }
    struct perf_thread *parent = get_thread(decoder, parent_tid);
    struct string_id name = parent ? parent->name : (struct string_id){0};
    struct string_id namespaces = parent ? parent->namespaces : (struct string_id){0};
    struct perf_thread *thread = get_thread(decoder, tid);
    if (thread && name.index) thread->name = name;
    if (thread) thread->namespaces = namespaces;
    perf_spaces_fork(&decoder->spaces, parent_pid, pid);
    check_spaces(decoder);
}

static void take_cgroup(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    uint64_t id = cursor_u64(&cursor);
    struct slice path = cursor_text(&cursor);
    if (cursor.failed)
        fail(decoder, STATUS_MALFORMED, "the record of a cgroup is broken");
    else if (!perf_tasks_add_cgroup(&decoder->tasks, id, profile_string(decoder->profile, path)))
        fail(decoder, STATUS_TOO_LARGE, "more than 1048576 cgroups, or not enough memory for them");
}

static void take_namespaces(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    cursor_skip(&cursor, sizeof(uint32_t));
    uint32_t tid = cursor_u32(&cursor);
    struct string_id namespaces = perf_tasks_take_namespaces(&decoder->tasks, &cursor, decoder->profile);
    if (cursor.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of a process's namespaces is broken");
        return;
    }
    struct perf_thread *thread = get_thread(decoder, tid);
    if (thread) thread->namespaces = namespaces;
}

static void take_lost(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor cursor = perf_record_body(record);
    if (record->type == PERF_RECORD_LOST) cursor_skip(&cursor, sizeof(uint64_t));
    uint64_t lost = cursor_u64(&cursor);
    if (!cursor.failed && __builtin_add_overflow(decoder->lost, lost, &decoder->lost)) decoder->lost = INT64_MAX;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* The caller may need much time to find the names of the kernel. */
static void note_kernel(struct decoder *decoder, struct mapping_id id)
{
    const struct mapping *mapping = profile_mapping(decoder->profile, id);
    if (decoder->has_kernel || !decoder->code || !decoder->code->note_kernel) return;
    if (strcmp(profile_c_string(decoder->profile, mapping->file_name), "[kernel.kallsyms]") != 0) return;
    decoder->has_kernel = true;
    decoder->code->note_kernel(decoder->code->context, profile_c_string(decoder->profile, mapping->build_id));
}

static struct location_id find_location(struct decoder *decoder, struct perf_space *space, enum mode mode,
                                        uint64_t address)
{
    struct location location = {.address = address, .kind = mode == MODE_KERNEL ? FRAME_KERNEL : FRAME_UNKNOWN};
    const struct perf_map *map = mode == MODE_OTHER ? NULL : perf_space_map_at(space, address);
    if (map) {
        location.mapping = perf_spaces_place(&decoder->spaces, map, address, &location.address);
        if (mode == MODE_KERNEL) note_kernel(decoder, location.mapping);
    } else if (mode == MODE_KERNEL) {
        struct mapping kernel = {.file_name = profile_text(decoder->profile, "[kernel.kallsyms]")};
        location.mapping = profile_add_mapping(decoder->profile, &kernel);
    }
    struct line line = {0};
    struct function function = {0};
    if (map) function.name = decoder->spaces.segments.items[map->segment].function;
    if (function.name.index) line.function = profile_add_function(decoder->profile, &function);
    return profile_add_location(decoder->profile, &location, &line, function.name.index ? 1 : 0);
}

static struct location_id place_of(struct decoder *decoder, struct perf_space *space, enum mode mode, uint64_t address)
{
    uint64_t version = space && mode != MODE_OTHER ? space->version : 0;
    if (version == 0) return find_location(decoder, space, mode, address);
    struct kept_place *kept = &decoder->places[hash_mix(address, version) & (PLACES_KEPT - 1)];
    if (kept->version == version && kept->address == address) return kept->location;
    *kept = (struct kept_place){
        .address = address, .version = version, .location = find_location(decoder, space, mode, address)};
    return kept->location;
}

static void add_frame(struct decoder *decoder, struct location_id location)
{
    if (!ARRAY_PUSH(&decoder->frames, FRAMES_MAX, location))
        fail(decoder, STATUS_NO_MEMORY, "not enough memory for the stacks");
}

struct spaces_of_sample {
    struct perf_space *kernel, *user;
};

static void add_address(struct decoder *decoder, const struct spaces_of_sample *spaces, enum mode mode,
                        uint64_t address)
{
    add_frame(decoder, place_of(decoder, mode == MODE_KERNEL ? spaces->kernel : spaces->user, mode, address));
}

static enum mode mode_of_record(const struct perf_record *record)
{
    switch (record->misc & PERF_MISC_MODE_MASK) {
    case PERF_MISC_KERNEL:
        return MODE_KERNEL;
    case PERF_MISC_USER:
        return MODE_USER;
    default:
        return MODE_OTHER;
    }
}

static enum mode mode_of_mark(uint64_t mark)
{
    if (mark == PERF_CONTEXT_KERNEL) return MODE_KERNEL;
    return mark == PERF_CONTEXT_USER ? MODE_USER : MODE_OTHER;
}

/* A branch is at the call, not after it. */
static void add_calls(struct decoder *decoder, const struct spaces_of_sample *spaces, struct slice calls)
{
    for (size_t i = 0; i < calls.size; i += PERF_BRANCH_SIZE) {
        uint64_t address;
        memcpy(&address, calls.data + i, sizeof(address));
        if (address != 0) add_address(decoder, spaces, MODE_USER, address);
    }
}

/* The first address of each mode is where that was, the others are return addresses. CALLS, if there are any, replace
 * the callers in user mode: the kernel finds those only where programs have frame pointers. */
static void add_chain(struct decoder *decoder, const struct spaces_of_sample *spaces, enum mode mode,
                      struct slice chain, struct slice calls)
{
    bool is_first = true;
    for (size_t i = 0; i < chain.size; i += sizeof(uint64_t)) {
        uint64_t address;
        memcpy(&address, chain.data + i, sizeof(address));
        if (address >= PERF_CONTEXT_FIRST) {
            mode = mode_of_mark(address);
            is_first = true;
            continue;
        }
        add_address(decoder, spaces, mode, address - (!is_first && address > 0));
        is_first = false;
        if (mode != MODE_USER || calls.size == 0) continue;
        add_calls(decoder, spaces, calls);
        break;
    }
}

static void mark_incomplete(struct decoder *decoder, enum unwind_outcome outcome)
{
    static const char *const names[UNWIND_OUTCOMES] = {
        [UNWIND_TOO_DEEP] = INCOMPLETE_TOO_DEEP,
        [UNWIND_NO_TABLE] = INCOMPLETE_NO_TABLE,
        [UNWIND_BAD_MEMORY] = INCOMPLETE_BAD_MEMORY,
        [UNWIND_BAD_FRAME] = INCOMPLETE_BAD_FRAME,
        [UNWIND_UNKNOWN_REGISTER] = INCOMPLETE_UNKNOWN_REGISTER,
    };
    struct location_id *mark = &decoder->incomplete[outcome];
    if (outcome == UNWIND_ROOT) return;
    if (mark->index == 0) {
        struct function function = {.name = profile_text(decoder->profile, names[outcome])};
        struct line line = {.function = profile_add_function(decoder->profile, &function)};
        *mark = profile_add_location(decoder->profile, &(struct location){0}, &line, 1);
    }
    add_frame(decoder, *mark);
}

static void walk_stack(struct decoder *decoder, struct perf_space *space, const struct perf_sample *sample,
                       struct perf_walk *walk)
{
    size_t count = 0;
    decoder->spaces.unwinder = decoder->header.unwinder; /* a pipe names the machine late */
    walk->version = space ? space->version : 0;
    walk->outcome = perf_stack_walk(&decoder->spaces, space, decoder->code, sample, walk->addresses, &count);
    walk->count = (uint32_t)count;
}

/* The sample with its stack, from the file. */
static bool parse_again(struct decoder *decoder, const struct taken *taken, struct perf_sample *sample)
{
    size_t size = perf_record_size(taken->record);
    if (!decoder->read_again) decoder->read_again = malloc(PERF_RECORD_BYTES_MAX);
    if (!decoder->read_again) {
        fail(decoder, STATUS_NO_MEMORY, "not enough memory to read a record again");
        return false;
    }
    struct perf_record record = {.bytes = slice_of(decoder->read_again, size)};
    decoder->status =
        perf_input_read_again(input_at_hand(decoder), decoder->offset, size, decoder->read_again, decoder->error);
    if (decoder->status != STATUS_OK) return false;
    bool is_parsed = perf_sample_parse(taken->event, &record, sample);
    if (!is_parsed) fail(decoder, STATUS_MALFORMED, "a sample is broken");
    return is_parsed;
}

/* Adds the frames of a copied stack. Without call frame information only the innermost frame is known. */
static void add_copied_stack(struct decoder *decoder, const struct spaces_of_sample *spaces, const struct taken *taken,
                             struct perf_sample *sample)
{
    const struct perf_walk *walk = taken->walk;
    struct perf_walk later;
    if (!walk || !spaces->user || walk->version != spaces->user->version) {
        if (walk && !parse_again(decoder, taken, sample)) return;
        walk_stack(decoder, spaces->user, sample, &later);
        walk = &later;
    }
    for (size_t i = 0; i < walk->count; i++) {
        uint64_t address = walk->addresses[i];
        add_address(decoder, spaces, MODE_USER, address - (i > 0 && address > 0));
    }
    mark_incomplete(decoder, walk->outcome);
}

static void add_frames(struct decoder *decoder, const struct taken *taken, struct perf_sample *sample)
{
    const struct perf_record *record = taken->record;
    struct spaces_of_sample spaces = {.kernel = perf_spaces_find(&decoder->spaces, PERF_KERNEL_PID),
                                      .user = perf_spaces_find(&decoder->spaces, sample->pid)};
    size_t before = decoder->frames.count;
    add_chain(decoder, &spaces, mode_of_record(record), sample->chain, sample->calls);
    if (sample->registers.size > 0) add_copied_stack(decoder, &spaces, taken, sample);
    if (decoder->frames.count == before && sample->ip != 0)
        add_address(decoder, &spaces, mode_of_record(record), sample->ip);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static void flush_batch(struct decoder *decoder)
{
    struct stack_frames stacks[BATCH];
    struct stack_id ids[BATCH];
    for (size_t i = 0; i < decoder->batch_count; i++) {
        const struct pending *pending = &decoder->batch[i];
        stacks[i] = (struct stack_frames){.frames = decoder->frames.items + pending->first_frame,
                                          .count = pending->frame_count};
    }
    profile_add_stacks(decoder->profile, stacks, decoder->batch_count, ids);
    for (size_t i = 0; i < decoder->batch_count; i++) {
        struct pending *pending = &decoder->batch[i];
        pending->sample.stack = ids[i];
        profile_add_sample(decoder->profile, &pending->sample, pending->values);
    }
    decoder->batch_count = 0;
    decoder->frames.count = 0;
}

static struct thread_id thread_of(struct decoder *decoder, struct perf_thread *thread, uint32_t pid)
{
    char id[16];
    if (thread->id.index && thread->pid == pid) return thread->id;
    (void)snprintf(id, sizeof(id), "%" PRId32, (int32_t)thread->tid); /* -1: a thread that has ended */
    bool is_idle = thread->tid == 0 && thread->name.index == 0;       /* perf calls the idle threads "swapper" */
    if (is_idle) thread->name = profile_text(decoder->profile, "swapper");
    struct thread added = {.process = profile_add_pid(decoder->profile, (int32_t)pid, (struct string_id){0}),
                           .id = profile_text(decoder->profile, id),
                           .name = thread->name};
    thread->pid = pid;
    thread->id = profile_add_thread(decoder->profile, &added);
    thread->shown = profile_thread(decoder->profile, thread->id)->name;
    return thread->id;
}

static struct label number_label(struct profile *profile, const char *key, int64_t number)
{
    return (struct label){.key = profile_text(profile, key), .is_number = true, .number = number};
}

static struct label text_label(struct profile *profile, const char *key, struct string_id text)
{
    return (struct label){.key = profile_text(profile, key), .text = text};
}

/* The cgroup is a number until the end of the file. */
static struct label_set_id labels_of(struct decoder *decoder, const struct perf_sample *sample,
                                     const struct perf_thread *thread)
{
    struct profile *profile = decoder->profile;
    struct label labels[LABELS_MAX];
    uint32_t count = 0;
    labels[count++] = number_label(profile, PROCESS_ID_LABEL, (int32_t)sample->pid);
    if (sample->has_cpu) labels[count++] = number_label(profile, "cpu", sample->cpu);
    if (thread->name.index != thread->shown.index)
        labels[count++] = text_label(profile, PROFILE_THREAD_NAME_LABEL, thread->name);
    if (sample->cgroup) labels[count++] = number_label(profile, CGROUP_LABEL, (int64_t)sample->cgroup);
    if (thread->namespaces.index) labels[count++] = text_label(profile, NAMESPACES_LABEL, thread->namespaces);
    return profile_add_labels(profile, labels, count);
}

static void note_process(struct decoder *decoder, uint32_t pid)
{
    decoder->has_several_pids |= decoder->has_pid && pid != decoder->first_pid;
    decoder->first_pid = decoder->has_pid ? decoder->first_pid : pid;
    decoder->has_pid = true;
}

/* The program is the first mapping of the profile: the file that bears the name of the thread. */
static void add_program(struct decoder *decoder, const struct perf_space *space, struct string_id thread_name)
{
    struct slice comm = profile_slice(decoder->profile, thread_name);
    uint64_t address;
    if (decoder->has_program || !space || comm.size == 0 || decoder->program_searches++ > PROGRAM_SEARCHES_MAX) return;
    for (size_t i = 0; i < space->count && !decoder->has_program; i++) {
        const struct perf_map *map = &space->maps[i];
        const struct perf_segment *segment = &decoder->spaces.segments.items[map->segment];
        struct slice name = path_base_name(profile_slice(decoder->profile, segment->file_name));
        if (name.size > COMM_SIZE_MAX) name.size = COMM_SIZE_MAX;
        if (!slice_equal(name, comm)) continue;
        (void)perf_spaces_place(&decoder->spaces, map, map->start, &address);
        decoder->has_program = true;
    }
}

static void add_value(const struct perf_event *event, uint64_t value, int64_t *values)
{
    int64_t *place = &values[event->column];
    int64_t more = value < INT64_MAX ? (int64_t)value : INT64_MAX;
    if (event->column == 0) return;
    if (__builtin_add_overflow(*place, more, place)) *place = INT64_MAX;
}

/* The sample of a group's leader has what the counters of all its events had then. As in perf, what they have grown by
 * since the sample before is this sample's. */
static void give_values(struct decoder *decoder, const struct perf_event *event, const struct perf_sample *sample,
                        int64_t *values)
{
    if (sample->read_count == 0) add_value(event, sample->period, values);
    for (uint64_t i = 0; i < sample->read_count && decoder->status == STATUS_OK; i++) {
        struct perf_event *counted;
        uint64_t growth;
        struct perf_read read = perf_sample_read(event, sample, i);
        enum status status =
            perf_events_count(&decoder->header.events, read.id, sample->tid, read.value, &counted, &growth);
        if (status != STATUS_OK) fail(decoder, status, "more than 4194304 counters, or not enough memory for them");
        if (status == STATUS_OK && counted) add_value(counted, growth, values);
    }
}

static bool parse_taken(const struct taken *taken, struct perf_sample *ret_sample)
{
    if (!taken->walk) return perf_sample_parse(taken->event, taken->record, ret_sample);
    if (!perf_sample_parse_start(taken->event, taken->record, ret_sample)) return false;
    ret_sample->cgroup = taken->walk->cgroup;
    return true;
}

static void take_sample(struct decoder *decoder, const struct perf_record *record, const struct perf_walk *walk)
{
    struct perf_sample sample;
    const struct perf_event *event = perf_record_event(&decoder->header.events, record);
    const struct taken taken = {.record = record, .event = event, .walk = walk};
    if (!event) {
        decoder->unknown_events++;
        return;
    }
    if (!decoder->header.events.has_columns && !perf_events_give_columns(&decoder->header.events, decoder->profile))
        fail(decoder, STATUS_TOO_LARGE, "more than 63 events");
    if (!parse_taken(&taken, &sample)) fail(decoder, STATUS_MALFORMED, "a sample is broken");
    struct perf_thread *thread = decoder->status == STATUS_OK ? get_thread(decoder, sample.tid) : NULL;
    if (!thread) return;
    struct pending *pending = &decoder->batch[decoder->batch_count++];
    *pending = (struct pending){.values = {1}, .first_frame = decoder->frames.count};
    give_values(decoder, event, &sample, pending->values);
    note_process(decoder, sample.pid);
    decoder->has_cgroups |= sample.cgroup != 0;
    add_program(decoder, perf_spaces_find(&decoder->spaces, sample.pid), thread->name);
    add_frames(decoder, &taken, &sample);
    pending->frame_count = (uint32_t)(decoder->frames.count - pending->first_frame);
    pending->sample.thread = thread_of(decoder, thread, sample.pid);
    pending->sample.labels = labels_of(decoder, &sample, thread);
    pending->sample.time_ns = sample.time_ns + (uint64_t)decoder->header.clock_offset_ns;
    decoder->profile->has_times |= sample.has_time;
    if (decoder->batch_count == BATCH) flush_batch(decoder);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* WALK: of a sample; may be NULL. */
static void take_record(struct decoder *decoder, const struct perf_record *record, const struct perf_walk *walk)
{
    decoder->spaces.records++;
    switch (record->type) {
    case PERF_RECORD_MMAP:
        take_mmap(decoder, record);
        break;
    case PERF_RECORD_MMAP2:
        take_mmap2(decoder, record);
        break;
    case PERF_RECORD_KSYMBOL:
        take_ksymbol(decoder, record);
        break;
    case PERF_RECORD_COMM:
        take_comm(decoder, record);
        break;
    case PERF_RECORD_FORK:
        take_fork(decoder, record);
        break;
    case PERF_RECORD_CGROUP:
        take_cgroup(decoder, record);
        break;
    case PERF_RECORD_NAMESPACES:
        take_namespaces(decoder, record);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        take_lost(decoder, record);
        break;
    case PERF_RECORD_SAMPLE:
        take_sample(decoder, record, walk);
        break;
    default:
        break; /* says nothing that a profile holds */
    }
    if (decoder->status == STATUS_OK && decoder->profile->failed != STATUS_OK)
        decoder->status = profile_failed(decoder->profile, decoder->error);
}

static void take_oldest(struct decoder *decoder)
{
    uint64_t offset = decoder->offset;
    uint32_t source = decoder->source;
    struct perf_queued queued = perf_queue_pop(&decoder->queue);
    struct cursor header = cursor_of(slice_of(queued.bytes, queued.size));
    struct perf_record record = {.type = cursor_u32(&header), .misc = cursor_u16(&header)};
    record.bytes = slice_of(queued.bytes, queued.size);
    decoder->offset = queued.offset;
    decoder->source = queued.source;
    struct slice walk = perf_queued_more(&queued);
    take_record(decoder, &record, walk.size > 0 ? (const struct perf_walk *)(const void *)walk.data : NULL);
    perf_queue_give_back(&decoder->queue, queued);
    decoder->offset = offset;
    decoder->source = source;
}

static void flush_queue(struct decoder *decoder, uint64_t until_ns)
{
    while (decoder->queue.count > 0 && decoder->queue.items[0].time_ns <= until_ns && decoder->status == STATUS_OK)
        take_oldest(decoder);
}

/* Walks the stack of a sample with the mappings of now, and cuts RET_KEPT before it. False if there is none, or if the
 * record could not be read again. */
static bool walk_early(struct decoder *decoder, const struct perf_event *event, const struct perf_record *record,
                       struct slice *ret_kept)
{
    struct perf_sample sample;
    bool may_have_stack = record->type == PERF_RECORD_SAMPLE && (event->sample_type & PERF_SAMPLE_STACK_USER);
    if (!may_have_stack || input_at_hand(decoder)->is_unpacked || !decoder->header.unwinder) return false;
    if (!perf_sample_parse(event, record, &sample) || sample.stack.size == 0) return false;
    struct perf_space *space = perf_spaces_find(&decoder->spaces, sample.pid);
    if (!space) return false;
    walk_stack(decoder, space, &sample, &decoder->walk);
    decoder->walk.cgroup = sample.cgroup;
    *ret_kept = slice_of(record->bytes.data, sample.stack_place);
    return true;
}

/* A record without a time is as old as the record before it: perf so writes what existed before it began. */
static void order_record(struct decoder *decoder, const struct perf_record *record)
{
    const struct perf_event *event = perf_record_event(&decoder->header.events, record);
    uint64_t time_ns = perf_record_time(&decoder->header.events, event, record);
    if (time_ns == 0 || time_ns == UINT64_MAX) {
        take_record(decoder, record, NULL);
        return;
    }
    struct perf_record kept = *record;
    struct slice walk = slice_of(NULL, 0);
    if (walk_early(decoder, event, record, &kept.bytes))
        walk = slice_of((const uint8_t *)&decoder->walk, perf_walk_size(&decoder->walk));
    const struct perf_place place = {.time_ns = time_ns, .offset = decoder->offset, .source = decoder->source};
    if (!perf_queue_push(&decoder->queue, &place, &kept, walk))
        fail(decoder, STATUS_NO_MEMORY, "not enough memory for the records");
    if (time_ns > decoder->newest_ns) decoder->newest_ns = time_ns;
    while (decoder->queue.bytes > PERF_QUEUE_BYTES_MAX && decoder->status == STATUS_OK) take_oldest(decoder);
}

/* Data of other tools and of processors' trace units follow their records. */
static void skip_data_after(struct decoder *decoder, const struct perf_record *record)
{
    struct cursor body = perf_record_body(record);
    uint64_t size =
        record->type == PERF_RECORD_AUXTRACE ? cursor_u64(&body) : (cursor_u32(&body) + UINT64_C(7)) & ~UINT64_C(7);
    if (body.failed) {
        fail(decoder, STATUS_MALFORMED, "the record of trace data is broken");
        return;
    }
    if (decoder->status == STATUS_OK) decoder->status = perf_input_skip(input_at_hand(decoder), size, decoder->error);
}

static void read_record(struct decoder *decoder, const struct perf_record *record)
{
    if (record->type < PERF_RECORD_KERNEL_TYPES) {
        if (decoder->header.events.count == 0)
            fail(decoder, STATUS_MALFORMED, "a record comes before the first event is declared");
        else
            order_record(decoder, record);
    } else if (record->type == PERF_RECORD_FINISHED_ROUND) {
        flush_queue(decoder, decoder->round_end_ns);
        decoder->round_end_ns = decoder->newest_ns;
    } else if (record->type == PERF_RECORD_HEADER_TRACING_DATA || record->type == PERF_RECORD_AUXTRACE) {
        skip_data_after(decoder, record);
    } else {
        decoder->status = perf_header_take(&decoder->header, record, decoder->offset, decoder->error);
    }
}

/* Reads records of the source at hand until one waits in the queue. False at the end. */
static bool read_until_one_waits(struct decoder *decoder)
{
    struct perf_record record;
    uint64_t pushed = decoder->queue.pushed;
    while (decoder->status == STATUS_OK && decoder->queue.pushed == pushed) {
        decoder->status = perf_input_next(input_at_hand(decoder), &record, decoder->error);
        decoder->offset = input_at_hand(decoder)->record_offset;
        if (decoder->status != STATUS_OK || record.bytes.size == 0) return false;
        if (record.type != PERF_RECORD_FINISHED_ROUND) read_record(decoder, &record);
    }
    return decoder->status == STATUS_OK;
}

/* The other sources: one record of each waits in the queue, so that the oldest of all leaves it first. */
static void merge_sources(struct decoder *decoder)
{
    for (decoder->source = 1; decoder->source < decoder->input_count; decoder->source++)
        (void)read_until_one_waits(decoder);
    decoder->source = 0;
    while (decoder->queue.count > 0 && decoder->status == STATUS_OK) {
        uint32_t source = decoder->queue.items[0].source;
        take_oldest(decoder);
        if (source == 0) continue;
        decoder->source = source;
        (void)read_until_one_waits(decoder);
        decoder->source = 0;
    }
}

static void read_records(struct decoder *decoder)
{
    struct perf_record record = {0};
    do {
        decoder->status = perf_input_next(input_at_hand(decoder), &record, decoder->error);
        decoder->offset = input_at_hand(decoder)->record_offset;
        if (decoder->status == STATUS_OK && record.bytes.size > 0) read_record(decoder, &record);
    } while (decoder->status == STATUS_OK && record.bytes.size > 0);
    if (decoder->status == STATUS_OK && decoder->input_count > 1) merge_sources(decoder);
    flush_queue(decoder, UINT64_MAX);
    if (decoder->status == STATUS_OK) flush_batch(decoder);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* Set INDEX without the process, if all samples are of one (the metadata says which), and with the path of the cgroup,
 * whose record may come after the sample. */
static struct label_set_id finish_set(struct decoder *decoder, size_t index)
{
    struct profile *profile = decoder->profile;
    const struct label_set *set = &profile->label_sets.items[index];
    struct string_id cgroup_key = decoder->has_cgroups ? profile_text(profile, CGROUP_LABEL) : (struct string_id){0};
    struct label labels[LABELS_MAX];
    uint32_t count = 0;
    for (uint32_t i = decoder->has_several_pids ? 0 : 1; i < set->count && count < LABELS_MAX; i++) {
        struct label label = profile->labels.items[set->first + i];
        if (label.key.index == cgroup_key.index)
            label = text_label(profile, CGROUP_LABEL,
                               perf_tasks_cgroup_path(&decoder->tasks, (uint64_t)label.number, profile));
        labels[count++] = label;
    }
    return count > 0 ? profile_add_labels(profile, labels, count) : (struct label_set_id){0};
}

static enum status finish_labels(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    size_t count = profile->label_sets.count;
    struct label_set_id *finished = calloc(count, sizeof(*finished));
    bool *is_known = calloc(count, sizeof(*is_known));
    for (size_t i = 0; finished && is_known && i < profile->samples.count; i++) {
        uint32_t index = profile->samples.labels[i].index;
        if (index < count && !is_known[index]) {
            finished[index] = finish_set(decoder, index);
            is_known[index] = true;
        }
        if (index < count) profile->samples.labels[i] = finished[index];
    }
    bool has_memory = finished && is_known;
    free(finished);
    free(is_known);
    return has_memory ? STATUS_OK : error_set(decoder->error, STATUS_NO_MEMORY, 0, "not enough memory for the labels");
}

/* Build ids that a pipe contained only after their files were used. */
static void give_build_ids(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    for (size_t i = 1; i < profile->mappings.count; i++) {
        struct mapping *mapping = &profile->mappings.items[i];
        if (mapping->build_id.index == 0)
            mapping->build_id = perf_header_build_id(&decoder->header, mapping->file_name, (struct perf_file_id){0});
    }
}

static void finish(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    if (!decoder->header.events.has_columns && !perf_events_give_columns(&decoder->header.events, profile)) {
        fail(decoder, STATUS_TOO_LARGE, "more than 63 events");
        return;
    }
    give_build_ids(decoder);
    profile_give_period(profile);
    if (decoder->lost > 0)
        profile_add_metadata_number(profile, "lost_samples",
                                    decoder->lost < INT64_MAX ? (int64_t)decoder->lost : INT64_MAX);
    if (decoder->unknown_events > 0)
        profile_add_metadata_number(profile, "samples_of_unknown_events", (int64_t)decoder->unknown_events);
    bool has_one_process = decoder->has_pid && !decoder->has_several_pids;
    if (has_one_process) profile_add_metadata_number(profile, PROCESS_ID_LABEL, (int32_t)decoder->first_pid);
    if (has_one_process || decoder->has_cgroups) decoder->status = finish_labels(decoder);
    if (decoder->status == STATUS_OK) decoder->status = profile_failed(profile, decoder->error);
    if (decoder->status == STATUS_OK && profile->has_times)
        decoder->status = profile_sort_by_time(profile, decoder->error);
    if (decoder->status == STATUS_OK && decoder->header.has_clock && profile->samples.count > 0)
        profile->time_ns = profile_start_at(profile->samples.time_ns[0]);
}

/* False without memory. */
static bool open_inputs(struct decoder *decoder, const struct perf_source *sources, size_t count)
{
    const struct perf_header *header = &decoder->header;
    decoder->inputs = calloc(count, sizeof(*decoder->inputs));
    for (size_t i = 0; decoder->inputs && i < count; i++) {
        uint64_t start = i == 0 ? header->data_start : 0, end = i == 0 ? header->data_end : sources[i].size;
        decoder->input_count++;
        if (perf_input_init(&decoder->inputs[i], &sources[i], start, end) != STATUS_OK) return false;
        decoder->inputs[i].may_be_cut = header->may_be_cut;
    }
    return decoder->inputs != NULL;
}

static enum status decode(struct decoder *decoder, const struct perf_source *sources, size_t count)
{
    enum status status = perf_header_read(&decoder->header, sources, decoder->profile, decoder->error);
    if (status != STATUS_OK) return status;
    if (decoder->header.is_in_folder && count == 1)
        return error_set(decoder->error, STATUS_UNSUPPORTED, sources[0].size,
                         "one file of perf record --threads, whose samples are in other files; name the folder");
    decoder->places = calloc(PLACES_KEPT, sizeof(*decoder->places));
    if (!decoder->places || !open_inputs(decoder, sources, count))
        return error_set(decoder->error, STATUS_NO_MEMORY, 0, "not enough memory to read the file");
    read_records(decoder);
    if (decoder->status == STATUS_OK) finish(decoder);
    return decoder->status;
}

enum status perf_data_decode_sources(const struct perf_source *sources, size_t count, const struct perf_code *code,
                                     struct profile *profile, struct error *error)
{
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to read the file");
    decoder->profile = profile;
    decoder->code = code;
    decoder->error = error;
    perf_spaces_init(&decoder->spaces, profile);
    enum status status = decode(decoder, sources, count);
    perf_spaces_fini(&decoder->spaces);
    perf_tasks_fini(&decoder->tasks);
    perf_queue_fini(&decoder->queue);
    for (uint32_t i = 0; i < decoder->input_count; i++) perf_input_fini(&decoder->inputs[i]);
    free(decoder->inputs);
    perf_header_fini(&decoder->header);
    free(decoder->frames.items);
    free(decoder->places);
    free(decoder->read_again);
    free(decoder);
    return status;
}

static bool read_slice(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct slice *slice = context;
    if (offset > slice->size || size > slice->size - offset) return false;
    if (size > 0) memcpy(bytes, slice->data + offset, size);
    return true;
}

enum status perf_data_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct perf_source source = {.read = read_slice, .context = &bytes, .size = bytes.size};
    return perf_data_decode_sources(&source, 1, NULL, profile, error);
}

bool perf_data_detect(struct slice bytes)
{
    return bytes.size >= PERF_MAGIC_SIZE && (memcmp(bytes.data, PERF_MAGIC, PERF_MAGIC_SIZE) == 0 ||
                                             memcmp(bytes.data, PERF_MAGIC_SWAPPED, PERF_MAGIC_SIZE) == 0);
}

const struct format format_perf_data = {
    .name = "perf-data",
    .detect = perf_data_detect,
    .decode = perf_data_decode,
};
