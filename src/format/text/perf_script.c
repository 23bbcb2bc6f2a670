/* Reads what `perf script` prints, by default or with fields added:
 *
 *     comm pid/tid [cpu] seconds: period event:
 *             address symbol+offset (file)          leaf first; "symbol (inlined)" before what it is inlined into
 *               source:line
 *     (empty line)
 *
 * Without call graphs the only frame follows the event. The text is read twice: the columns depend on the events, and
 * must be known before the first sample.
 *
 * Values are samples/count and, for each event, its period. Times are of perf's clock, whose start is arbitrary
 * (profile.time_ns stays 0). perf prints return addresses for all frames but the leaf: they are stored less one. If
 * there are several processes, samples have the label `pid`; if the file names processors, samples have the label
 * `cpu`.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/hex.h"
#include "format/common/format_ops.h"
#include "format/common/text_line.h"
#include "format/common/frame_name.h"
#include "format/text/perf_maps.h"
#include "profile/profile_scale.h"

#include <stdlib.h>

enum {
    PERF_SCRIPT_DEPTH_MAX = 1 << 16,        /* frames of a stack */
    PERF_SCRIPT_HEADER_BYTES_MAX = 1 << 20, /* the first line: perf's own records have up to 64 KiB */
    PERF_SCRIPT_EVENTS_MAX = PROFILE_VALUES_MAX - 1,
};

enum {
    HEADER_WORDS_MAX = 64,
    NANOSECOND_DIGITS = 9,
    COMM_SIZE_MAX = 15, /* the kernel cuts names of threads */
};

struct header {
    struct slice comm, pid, tid; /* PID is empty where there is only one number */
    struct slice event, rest;
    uint64_t time_ns, cpu;
    int64_t period;
    bool has_time, has_cpu, has_period;
};

struct frame {
    struct slice symbol, file; /* empty: not known */
    struct slice source;
    uint64_t address;
    int64_t line;
    bool is_inlined;
    bool is_in_header; /* frame with an address in memory; elsewhere perf prints the place in the file */
};

struct decoder {
    struct slice bytes;
    struct profile *profile;
    struct slice events[PERF_SCRIPT_EVENTS_MAX];
    bool has_periods[PERF_SCRIPT_EVENTS_MAX]; /* true if a sample of the event has a period */
    size_t event_count;
    struct slice first_pid;
    bool has_several_pids, has_program;
    ARRAY_OF(struct frame) frames; /* frames of the sample at hand, leaf first */
    ARRAY_OF(struct line) lines;   /* lines of the location at hand */
    struct perf_maps maps;
    struct header header;
    bool in_record; /* the lines at hand are of a record that is no sample */
    bool is_open;   /* HEADER's sample is not yet added */
    enum status status;
    struct error *error;
};

static void fail(struct decoder *decoder, enum status status, struct slice place, const char *message)
{
    if (decoder->status != STATUS_OK) return;
    decoder->status = error_set(decoder->error, status, (uint64_t)(place.data - decoder->bytes.data), "%s", message);
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static bool parse_lower_hex(struct slice digits, uint64_t *ret_number)
{
    return hex_is_lower(digits) && hex_parse(digits, ret_number);
}

/* "3224.527771:" */
static bool parse_time(struct slice word, uint64_t *ret_ns)
{
    uint64_t seconds, fraction;
    const uint8_t *point = word.size ? memchr(word.data, '.', word.size) : NULL;
    if (!point || !text_ends_with(word, ":")) return false;
    size_t whole = (size_t)(point - word.data), digits = word.size - whole - 2;
    if (digits == 0 || digits > NANOSECOND_DIGITS || !text_number(slice_of(word.data, whole), &seconds) ||
        !text_number(slice_of(point + 1, digits), &fraction))
        return false;
    for (; digits < NANOSECOND_DIGITS; digits++) fraction *= 10;
    return !__builtin_mul_overflow(seconds, 1000000000, &seconds) && !__builtin_add_overflow(seconds, fraction, ret_ns);
}

/* "27113" or "27113/27114"; "-1" for a thread that has ended. */
static bool parse_ids(struct slice word, struct slice *ret_pid, struct slice *ret_tid)
{
    int64_t number;
    const uint8_t *slash = word.size ? memchr(word.data, '/', word.size) : NULL;
    size_t pid_size = slash ? (size_t)(slash - word.data) : 0;
    struct slice pid = slice_of(word.data, pid_size), tid = slash ? text_from(word, pid_size + 1) : word;
    if (!text_integer(tid, &number) || (slash && !text_integer(pid, &number))) return false;
    *ret_pid = pid;
    *ret_tid = tid;
    return true;
}

static bool parse_cpu(struct slice word, uint64_t *ret_cpu)
{
    return word.size > 2 && word.data[0] == '[' && text_ends_with(word, "]") &&
           text_number(slice_of(word.data + 1, word.size - 2), ret_cpu);
}

/* --- The line that heads a sample --------------------------------------------------------------------------------- */

static bool is_record(struct slice event)
{
    return text_begins_with(event, "PERF_RECORD_");
}

/* Returns TEXT without " ilen: 3 insn: 48 89 e5", which the fields insn and insnlen add at the end. */
static struct slice without_instruction(struct slice text)
{
    static const char *const fields[] = {" insn: ", " ilen: "};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        size_t size = strlen(fields[i]);
        const uint8_t *found = text.size >= size ? memmem(text.data, text.size, fields[i], size) : NULL;
        if (found) text = text_trim(slice_of(text.data, (size_t)(found - text.data)));
    }
    return text;
}

/* Reads the text after the time: "5025125 cpu-clock:". */
static bool parse_event(struct slice left, struct header *header)
{
    uint64_t period;
    struct slice word = text_take_word(&left);
    if (text_number(word, &period)) {
        header->has_period = true;
        header->period = period < INT64_MAX ? (int64_t)period : INT64_MAX;
        word = text_take_word(&left);
    }
    if (!is_record(word)) {
        if (word.size < 2 || !text_ends_with(word, ":")) return false;
        word.size--;
    }
    header->event = word;
    header->rest = without_instruction(text_trim(left));
    return true;
}

static void take_ids(struct header *header, const struct header *ids)
{
    header->comm = ids->comm;
    header->pid = ids->pid;
    header->tid = ids->tid;
}

/* "cycles:" and the rest of the line, where no times are printed: the first number is then the thread, and a second
 * number is the period. */
static bool finish_without_time(struct slice event, const struct header *first_ids, struct header *header)
{
    uint64_t period = 0;
    bool has_period = header->tid.data != first_ids->tid.data && text_number(header->tid, &period);
    take_ids(header, first_ids);
    if (!parse_event(event, header)) return false;
    header->has_period |= has_period;
    if (has_period) header->period = period < INT64_MAX ? (int64_t)period : INT64_MAX;
    return true;
}

/* Records of the kernel have a time only where samples have, and some not even then. */
static bool take_record(struct slice word, struct slice left, struct header *header)
{
    header->event = word;
    header->rest = text_trim(left);
    return true;
}

/* Returns whether LINE is one that the field insn adds to a sample with a call graph. */
static bool is_instruction(struct slice line)
{
    return text_begins_with(text_trim(line), "insn:") || text_begins_with(text_trim(line), "ilen:");
}

/* A thread's name may hold blanks and numbers: the ids are the last ones before the time. */
static bool parse_header(struct slice line, struct header *ret_header)
{
    struct header header = {0}, first_ids = {0};
    struct slice left = line;
    const uint8_t *start = text_trim(line).data;
    if (is_instruction(line)) return false;
    for (unsigned words = 0; words < HEADER_WORDS_MAX; words++) {
        struct slice before = left, word = text_take_word(&left);
        struct header ids = {0};
        bool is_done = false, has_ids = header.tid.size > 0;
        if (word.size == 0) return false;
        header.has_time = has_ids && parse_time(word, &header.time_ns);
        if (header.has_time)
            is_done = parse_event(left, &header);
        else if (has_ids && is_record(word))
            is_done = take_record(word, left, &header);
        else if (has_ids && text_ends_with(word, ":"))
            is_done = finish_without_time(before, &first_ids, &header);
        if (is_done) *ret_header = header;
        if (is_done || header.has_time) return is_done;
        if (parse_cpu(word, &header.cpu)) {
            header.has_cpu = true;
        } else if (word.data > start && parse_ids(word, &ids.pid, &ids.tid)) {
            ids.comm = text_trim(slice_of(start, (size_t)(word.data - start)));
            take_ids(&header, &ids);
            if (!has_ids) first_ids = ids;
        }
    }
    return false;
}

static bool is_passed_over(struct slice line)
{
    return text_trim(line).size == 0 || line.data[0] == '#';
}

/* The next line that is neither empty nor a comment; empty at the end. */
static struct slice next_line(struct slice *left)
{
    enum { LINES_LOOKED_AT = 1000 };
    for (unsigned i = 0; i < LINES_LOOKED_AT && left->size > 0; i++) {
        struct slice line = text_take_line(left);
        if (!is_passed_over(line)) return line;
    }
    return slice_of(NULL, 0);
}

static bool ends_with_number(struct slice line)
{
    const uint8_t *blank = line.size ? memrchr(line.data, ' ', line.size) : NULL;
    uint64_t number;
    return blank && text_number(text_from(line, (size_t)(blank + 1 - line.data)), &number);
}

/* Whether LEFT continues like perf's output: with a frame, or with samples to the end. Names of collapsed stacks are
 * arbitrary: one line may look like a sample by chance, but hardly every line. */
static bool continues_as_perf(struct slice left)
{
    struct header header;
    struct slice line = next_line(&left);
    if (line.size == 0) return false;
    for (; line.size > 0; line = next_line(&left)) {
        if (line.data[0] == '\t') return true;
        if (!parse_header(line, &header)) return false;
        if (!ends_with_number(line)) return true;
    }
    return true;
}

/* True if the first line that is neither empty nor a comment is the header of a sample or one of perf's records. The
 * output of a tracepoint may end with a number, as a collapsed stack does. */
static bool perf_script_detect(struct slice bytes)
{
    struct header header;
    struct slice line = next_line(&bytes);
    if (line.size > PERF_SCRIPT_HEADER_BYTES_MAX) return false; /* JSON on one line */
    for (bool in_record = false; line.size > 0; line = next_line(&bytes)) {
        bool is_more = in_record && text_is_blank(line.data[0]) && !parse_header(line, &header);
        in_record = is_more || (parse_header(line, &header) && is_record(header.event));
        if (!in_record) break;
    }
    if (line.size == 0 || !parse_header(line, &header)) return false;
    if (ends_with_number(line)) return continues_as_perf(bytes);
    return header.has_time || header.rest.size == 0 || text_ends_with(header.rest, ")");
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* "symbol+0x1a" without what follows the name. */
static struct slice without_offset(struct slice symbol)
{
    const uint8_t *plus = symbol.size ? memrchr(symbol.data, '+', symbol.size) : NULL;
    uint64_t offset;
    if (!plus) return symbol;
    size_t size = (size_t)(plus - symbol.data);
    struct slice after = text_from(symbol, size + 1);
    if (!text_begins_with(after, "0x") || !parse_lower_hex(text_from(after, 2), &offset)) return symbol;
    return slice_of(symbol.data, size);
}

/* Returns where " (file)" begins at the end of TEXT; TEXT's size if there is none. The name of a file that is gone ends
 * with " (deleted)". */
static size_t find_file(struct slice text)
{
    static const char deleted[] = " (deleted))";
    if (!text_ends_with(text, ")")) return text.size;
    size_t end = text_ends_with(text, deleted) ? text.size - strlen(deleted) : text.size;
    for (size_t i = end; i-- > 0;) {
        if (text.data[i] == '(' && (i == 0 || text_is_blank(text.data[i - 1]))) return i;
    }
    return text.size;
}

static bool parse_frame(struct slice line, struct frame *ret_frame)
{
    struct frame frame = {0};
    struct slice left = line;
    if (!parse_lower_hex(text_take_word(&left), &frame.address)) return false;
    left = text_trim(left);
    if (text_ends_with(left, "(inlined)")) {
        frame.is_inlined = true;
        left.size -= strlen("(inlined)");
    } else {
        size_t place = find_file(left);
        if (place < left.size) frame.file = slice_of(left.data + place + 1, left.size - place - 2);
        left.size = place;
    }
    frame.symbol = without_offset(text_trim(left));
    if (slice_equals_text(frame.symbol, "[unknown]")) frame.symbol.size = 0;
    if (slice_equals_text(frame.file, "[unknown]")) frame.file.size = 0;
    *ret_frame = frame;
    return true;
}

static struct slice without_end(struct slice text, const char *start)
{
    size_t size = strlen(start);
    const uint8_t *found = text.size >= size ? memmem(text.data, text.size, start, size) : NULL;
    return found ? slice_of(text.data, (size_t)(found - text.data)) : text;
}

/* "work.c:12", the place of the frame before it; also "work.c:12 (discriminator 3)". What perf writes where it knows no
 * place, such as "work+12" or "libc.so.6[29d90]", is passed over. */
static void parse_source(struct slice line, struct frame *frame)
{
    struct slice text = text_trim(without_end(text_trim(line), " ("));
    const uint8_t *colon = text.size ? memrchr(text.data, ':', text.size) : NULL;
    uint64_t number;
    if (!colon) return;
    struct slice source = slice_of(text.data, (size_t)(colon - text.data));
    if (source.size == 0 || !text_number(text_from(text, source.size + 1), &number)) return;
    if (slice_equals_text(source, "??") || number > INT32_MAX) return;
    frame->source = source;
    frame->line = (int64_t)number;
}

/* --- Into the model ----------------------------------------------------------------------------------------------- */

/* Has the address range too, if a mmap record named the file. Addresses of the kernel are printed unchanged. */
static struct mapping_id mapping_of(struct decoder *decoder, const struct frame *frame, uint64_t address)
{
    if (frame->file.size == 0) return (struct mapping_id){0};
    struct mapping mapping = {.file_name = profile_string(decoder->profile, frame->file), .has_functions = true};
    struct slice pid = decoder->header.pid.size > 0 ? decoder->header.pid : decoder->header.tid;
    const struct perf_map *map = perf_maps_find(&decoder->maps, pid, frame->file, address, !frame->is_in_header);
    if (map) {
        mapping.file_offset = map->file_offset;
        mapping.start = frame->is_in_header ? map->start : map->file_offset;
        mapping.limit = mapping.start + map->size;
        mapping.build_id = profile_string(decoder->profile, map->build_id);
    }
    return profile_add_mapping(decoder->profile, &mapping);
}

/* The program is the first mapping: the file that bears the thread's name. */
static void add_program(struct decoder *decoder)
{
    struct slice comm = decoder->header.comm;
    for (size_t i = decoder->frames.count; i-- > 0 && !decoder->has_program;) {
        const struct frame *frame = &decoder->frames.items[i];
        struct slice name = path_base_name(frame->file);
        if (name.size > COMM_SIZE_MAX) name.size = COMM_SIZE_MAX;
        if (name.size == 0 || !slice_equal(name, comm)) continue;
        (void)mapping_of(decoder, frame, frame->address);
        decoder->has_program = true;
    }
}

static void add_line(struct decoder *decoder, const struct frame *frame)
{
    struct profile *profile = decoder->profile;
    struct function function = {.name = profile_string(profile, frame->symbol),
                                .file_name = profile_string(profile, frame->source)};
    struct line line = {.function = profile_add_function(profile, &function), .line = frame->line};
    if (!ARRAY_PUSH(&decoder->lines, PERF_SCRIPT_DEPTH_MAX, line))
        fail(decoder, STATUS_NO_MEMORY, frame->symbol, "no memory for a stack");
}

/* The trampoline of a signal handler: the kernel makes the handler return to its first instruction. */
static bool is_trampoline(const struct frame *frame)
{
    return slice_equals_text(frame->symbol, "__restore_rt");
}

/* The frames from FIRST to LAST are one place in the code: inlined functions and the one that they are in. */
static struct location_id add_location(struct decoder *decoder, size_t first, size_t last)
{
    const struct frame *outermost = &decoder->frames.items[last];
    /* No call precedes the addresses of the innermost frame, of a trampoline, and of the frame that a signal
     * interrupted. */
    bool is_exact = first == 0 || is_trampoline(outermost) || is_trampoline(&decoder->frames.items[first - 1]);
    uint64_t address = outermost->address - (!is_exact && outermost->address); /* a return address is after the call */
    struct location location = {.mapping = mapping_of(decoder, outermost, address), .address = address};
    decoder->lines.count = 0;
    for (size_t i = first; i <= last && decoder->status == STATUS_OK; i++) {
        if (decoder->frames.items[i].symbol.size > 0) add_line(decoder, &decoder->frames.items[i]);
    }
    if (decoder->status != STATUS_OK) return (struct location_id){0};
    return profile_add_location(decoder->profile, &location, decoder->lines.items, (uint32_t)decoder->lines.count);
}

static struct stack_id add_stack(struct decoder *decoder)
{
    struct stack_id stack = {0};
    for (size_t end = decoder->frames.count; end > 0 && decoder->status == STATUS_OK;) {
        size_t first = end - 1;
        while (first > 0 && decoder->frames.items[first - 1].is_inlined) first--;
        stack = profile_add_stack(decoder->profile, stack, add_location(decoder, first, end - 1));
        end = first;
    }
    return stack;
}

/* 0 = not known */
static int64_t pid_of(const struct header *header)
{
    uint64_t pid;
    return text_number(header->pid, &pid) && pid <= INT64_MAX ? (int64_t)pid : 0;
}

static struct label_set_id add_labels(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    const struct header *header = &decoder->header;
    struct label labels[2];
    uint64_t pid;
    uint32_t count = 0;
    if (decoder->has_several_pids && text_number(header->pid, &pid) && pid <= INT64_MAX) {
        labels[count++] =
            (struct label){.key = profile_text(profile, "pid"), .is_number = true, .number = (int64_t)pid};
    }
    if (header->has_cpu && header->cpu <= INT64_MAX) {
        labels[count++] =
            (struct label){.key = profile_text(profile, "cpu"), .is_number = true, .number = (int64_t)header->cpu};
    }
    return count ? profile_add_labels(profile, labels, count) : (struct label_set_id){0};
}

static size_t find_event(const struct decoder *decoder, struct slice event)
{
    size_t i = 0;
    while (i < decoder->event_count && !slice_equal(decoder->events[i], event)) i++;
    return i;
}

static void finish_sample(struct decoder *decoder)
{
    if (!decoder->is_open) return;
    const struct header *header = &decoder->header;
    int64_t values[PROFILE_VALUES_MAX] = {1};
    struct thread thread = {.process = profile_add_pid(decoder->profile, pid_of(header), (struct string_id){0}),
                            .id = profile_string(decoder->profile, header->tid),
                            .name = profile_string(decoder->profile, header->comm)};
    if (!decoder->has_program) add_program(decoder);
    struct sample sample = {
        .stack = add_stack(decoder),
        .thread = profile_add_thread(decoder->profile, &thread),
        .labels = add_labels(decoder),
        .time_ns = header->time_ns,
    };
    values[1 + find_event(decoder, header->event)] = header->has_period ? header->period : 1;
    if (decoder->status == STATUS_OK) profile_add_sample(decoder->profile, &sample, values);
    decoder->is_open = false;
    decoder->frames.count = 0;
}

/* --- The text ----------------------------------------------------------------------------------------------------- */

static void add_frame(struct decoder *decoder, struct frame frame, struct slice line)
{
    if (decoder->frames.count == PERF_SCRIPT_DEPTH_MAX)
        fail(decoder, STATUS_TOO_LARGE, line, "a stack of more than 65536 frames");
    else if (!ARRAY_PUSH(&decoder->frames, PERF_SCRIPT_DEPTH_MAX, frame))
        fail(decoder, STATUS_NO_MEMORY, line, "no memory for a stack");
}

static void begin_sample(struct decoder *decoder, const struct header *header)
{
    struct frame frame;
    finish_sample(decoder);
    decoder->in_record = is_record(header->event);
    if (decoder->in_record && text_begins_with(header->event, "PERF_RECORD_MMAP") &&
        !perf_maps_add(&decoder->maps, header->rest))
        fail(decoder, STATUS_NO_MEMORY, header->rest, "no memory for the places of files");
    if (decoder->in_record) return;
    decoder->header = *header;
    decoder->is_open = true;
    decoder->profile->has_times |= header->has_time;
    if (text_ends_with(header->rest, ")") && parse_frame(header->rest, &frame)) {
        frame.is_in_header = true;
        add_frame(decoder, frame, header->rest);
    }
}

static void read_line(struct decoder *decoder, struct slice line)
{
    struct header header;
    struct frame frame;
    bool can_be_frame = text_is_blank(line.data[0]) && decoder->is_open;
    if (line.data[0] != '\t' && parse_header(line, &header))
        begin_sample(decoder, &header);
    else if (can_be_frame && parse_frame(line, &frame))
        add_frame(decoder, frame, line);
    else if (can_be_frame && decoder->frames.count > 0)
        parse_source(line, &decoder->frames.items[decoder->frames.count - 1]);
    else if (!text_is_blank(line.data[0]) || !(decoder->in_record || is_instruction(line)))
        fail(decoder, STATUS_MALFORMED, line, "a line is neither a sample's nor a frame");
}

static void note_header(struct decoder *decoder, const struct header *header)
{
    if (is_record(header->event)) return;
    if (header->pid.size > 0) {
        if (decoder->first_pid.size == 0) decoder->first_pid = header->pid;
        decoder->has_several_pids |= !slice_equal(decoder->first_pid, header->pid);
    }
    size_t event = find_event(decoder, header->event);
    if (event == PERF_SCRIPT_EVENTS_MAX) {
        fail(decoder, STATUS_TOO_LARGE, header->event, "more than 63 events");
        return;
    }
    if (event == decoder->event_count) decoder->events[decoder->event_count++] = header->event;
    decoder->has_periods[event] |= header->has_period;
}

/* perf's own clocks count time; everything else counts what it is called. */
static bool is_clock(struct slice event)
{
    return text_begins_with(event, "cpu-clock") || text_begins_with(event, "task-clock");
}

static void give_columns(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    profile_add_value_type(profile, "samples", "count");
    for (size_t i = 0; i < decoder->event_count; i++) {
        const char *type = profile_c_string(profile, profile_string(profile, decoder->events[i]));
        bool is_time = is_clock(decoder->events[i]) && decoder->has_periods[i];
        profile_add_value_type(profile, type, is_time ? "nanoseconds" : "count");
    }
    if (decoder->event_count > 0) profile->default_value_type = profile->value_types[1].type;
}

/* Whether LINE is the last one, has no end, and is neither a header nor a frame with its file. */
static bool is_cut(const struct decoder *decoder, struct slice line)
{
    struct header header;
    return text_line_is_open(line, decoder->bytes) && decoder->profile->samples.count > 0 &&
           !text_ends_with(line, ")") && (text_is_blank(line.data[0]) || !parse_header(line, &header));
}

static void leave_out_cut_sample(struct decoder *decoder, struct slice line)
{
    profile_add_omission(decoder->profile, "the last sample, cut short at byte %zu, is left out",
                         (size_t)(line.data + line.size - decoder->bytes.data));
    decoder->is_open = false;
}

static void read_text(struct decoder *decoder)
{
    struct header header;
    for (struct slice left = decoder->bytes; left.size > 0 && decoder->status == STATUS_OK;) {
        struct slice line = text_take_line(&left);
        if (is_passed_over(line) || line.data[0] == '\t') continue;
        if (parse_header(line, &header)) note_header(decoder, &header);
    }
    if (decoder->status == STATUS_OK) give_columns(decoder);
    for (struct slice left = decoder->bytes; left.size > 0 && decoder->status == STATUS_OK;) {
        struct slice line = text_take_line(&left);
        if (text_trim(line).size == 0)
            finish_sample(decoder);
        else if (is_cut(decoder, line))
            leave_out_cut_sample(decoder, line);
        else if (!is_passed_over(line))
            read_line(decoder, line);
        if (decoder->profile->failed != STATUS_OK) return;
    }
    if (decoder->status == STATUS_OK) finish_sample(decoder);
}

static enum status perf_script_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!perf_script_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not the text of perf script");
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error};
    read_text(&decoder);
    free(decoder.frames.items);
    free(decoder.lines.items);
    perf_maps_fini(&decoder.maps);
    if (decoder.status != STATUS_OK) return decoder.status;
    profile_give_period(profile);
    enum status status = profile_failed(profile, error);
    return status == STATUS_OK && profile->has_times ? profile_sort_by_time(profile, error) : status;
}

const struct format format_perf_script = {
    .name = "perf-script",
    .detect = perf_script_detect,
    .decode = perf_script_decode,
};
