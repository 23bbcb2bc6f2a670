/* Reads the processed profile of the Firefox Profiler: tables as columns, in each thread, or (from version 60 on) once
 * for all threads. First the places of all parts are noted, as their order is not to be relied on.
 * SPDX-License-Identifier: MIT */
#include "format/viewer/firefox_private.h"

#include "base/array.h"
#include "format/common/json_kind.h"
#include "profile/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LIBRARY_SHIFT = 32, /* library n is put at n × 4 GiB: the file does not say where it was */
    PAGE = 4096,
};

void firefox_fail(struct decoder *decoder, enum status status, struct slice place, const char *message)
{
    json_parts_fail(&decoder->file, status, place.data, message);
}

void firefox_note(struct decoder *decoder, struct slice object, const char *const *names, struct json_member *members,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) members[i] = (struct json_member){.name = names[i]};
    if (object.size > 0) json_parts_note(&decoder->file, object, members, count);
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

/* NUMBER × 10^POWER as a whole number, exactly where the digits let it be. */
static int64_t scaled(const struct json_number *number, int power)
{
    int64_t exponent = number->exponent + power;
    uint64_t value = number->digits;
    if (!number->is_exact) {
        double rounded = json_number_to_double(number);
        for (int i = 0; i < power; i++) rounded *= 10;
        if (!(rounded < 9e18 && rounded > -9e18)) return rounded > 0 ? INT64_MAX : -INT64_MAX;
        return (int64_t)rounded;
    }
    if (value == 0) return 0;
    for (; exponent < 0 && value > 0; exponent++) value /= 10;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(value, 10, &value)) value = INT64_MAX;
        if (value >= INT64_MAX) break;
    }
    if (value > INT64_MAX) value = INT64_MAX;
    return number->is_negative ? -(int64_t)value : (int64_t)value;
}

int64_t firefox_number(struct json_reader *reader, int power)
{
    if (json_null(reader)) return NONE;
    if (json_peek(reader) == JSON_BOOL) return json_bool(reader);
    struct json_number number = json_number(reader);
    return scaled(&number, power);
}

void firefox_read_column(struct decoder *decoder, struct slice value, int power, struct column *column)
{
    struct json_reader reader;
    if (value.size == 0 || decoder->file.status != STATUS_OK) return;
    json_reader_init(&reader, value);
    json_array_begin(&reader);
    while (json_array_next(&reader)) {
        int64_t number = firefox_number(&reader, power);
        if (reader.failed) break;
        if (!ARRAY_PUSH(column, PROFILE_SAMPLES_MAX, number))
            json_reader_reject(&reader, STATUS_NO_MEMORY, "no memory for a column");
    }
    json_parts_finish(&decoder->file, &reader);
}

static int64_t item_at(const struct column *column, int64_t place)
{
    return place >= 0 && (uint64_t)place < column->count ? column->items[place] : NONE;
}

static void read_columns(struct decoder *decoder, struct slice object, const char *const *names, struct column *columns,
                         size_t count)
{
    struct json_member members[FRAME_COLUMNS];
    firefox_note(decoder, object, names, members, count);
    for (size_t i = 0; i < count; i++) firefox_read_column(decoder, members[i].value, 0, &columns[i]);
}

void firefox_read_strings(struct decoder *decoder, struct slice list, struct tables *tables)
{
    struct json_reader reader;
    if (list.size == 0) return;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    while (json_array_next(&reader)) {
        struct string_id text = profile_string(decoder->file.profile, json_string(&reader));
        if (reader.failed) break;
        if (!ARRAY_PUSH(&tables->strings, PROFILE_STRINGS_MAX, text))
            json_reader_reject(&reader, STATUS_NO_MEMORY, "no memory for the strings");
    }
    json_parts_finish(&decoder->file, &reader);
}

static struct string_id string_at(const struct tables *tables, int64_t place)
{
    return place >= 0 && (uint64_t)place < tables->strings.count ? tables->strings.items[place] : (struct string_id){0};
}

static const struct column *stack_frames_of(const struct tables *tables)
{
    return &tables->stacks[STACK_FRAME];
}

void firefox_check_tables(struct decoder *decoder, struct slice place, struct tables *tables)
{
    size_t count = stack_frames_of(tables)->count;
    if (tables->stacks[STACK_PREFIX].count < count)
        firefox_fail(decoder, STATUS_MALFORMED, place, "the columns of stackTable differ in length");
    for (size_t i = 0; i < count && decoder->file.status == STATUS_OK; i++) {
        int64_t frame = tables->stacks[STACK_FRAME].items[i], prefix = tables->stacks[STACK_PREFIX].items[i];
        if (frame < 0 || (uint64_t)frame >= tables->frames[FRAME_FUNCTION].count)
            firefox_fail(decoder, STATUS_MALFORMED, place, "a stack has a frame that is not there");
        if (prefix < NONE || prefix >= (int64_t)i)
            firefox_fail(decoder, STATUS_MALFORMED, place, "a stack comes before the one that it extends");
    }
    tables->made = calloc(count + 1, sizeof(*tables->made));
    tables->is_made = calloc(count + 1, sizeof(*tables->is_made));
    if (!tables->made || !tables->is_made) firefox_fail(decoder, STATUS_NO_MEMORY, place, "no memory for the stacks");
}

static void read_tables(struct decoder *decoder, struct slice object, struct tables *tables)
{
    static const char *const names[TABLE_PARTS] = {"stackTable", "frameTable",  "funcTable",  "resourceTable",
                                                   "sources",    "stringArray", "stringTable"};
    static const char *const stack_names[] = {"frame", "prefix"};
    static const char *const frame_names[] = {"address", "inlineDepth", "func", "line", "column", "category"};
    static const char *const function_names[] = {"name", "fileName", "source", "lineNumber", "resource"};
    static const char *const library[] = {"lib"}, *const file_name[] = {"filename"};
    struct json_member parts[TABLE_PARTS];
    firefox_note(decoder, object, names, parts, TABLE_PARTS);
    read_columns(decoder, parts[STACK_TABLE].value, stack_names, tables->stacks, STACK_COLUMNS);
    read_columns(decoder, parts[FRAME_TABLE].value, frame_names, tables->frames, FRAME_COLUMNS);
    read_columns(decoder, parts[FUNCTION_TABLE].value, function_names, tables->functions, FUNCTION_COLUMNS);
    read_columns(decoder, parts[RESOURCE_TABLE].value, library, &tables->resource_libraries, 1);
    read_columns(decoder, parts[SOURCES].value, file_name, &tables->source_names, 1);
    struct slice strings = parts[STRINGS].value.size ? parts[STRINGS].value : parts[STRING_TABLE].value;
    firefox_read_strings(decoder, strings, tables);
    firefox_check_tables(decoder, parts[STACK_TABLE].value.size ? parts[STACK_TABLE].value : object, tables);
}

static void tables_fini(struct tables *tables)
{
    for (size_t i = 0; i < STACK_COLUMNS; i++) free(tables->stacks[i].items);
    for (size_t i = 0; i < FRAME_COLUMNS; i++) free(tables->frames[i].items);
    for (size_t i = 0; i < FUNCTION_COLUMNS; i++) free(tables->functions[i].items);
    free(tables->resource_libraries.items);
    free(tables->source_names.items);
    free(tables->strings.items);
    free(tables->made);
    free(tables->is_made);
    *tables = (struct tables){0};
}

/* --- Frames and stacks -------------------------------------------------------------------------------------------- */

/* The library of a function, or NONE. */
static int64_t library_of(const struct decoder *decoder, const struct tables *tables, int64_t function)
{
    int64_t library = item_at(&tables->resource_libraries, item_at(&tables->functions[FUNCTION_RESOURCE], function));
    return library >= 0 && (uint64_t)library < decoder->libraries.count ? library : NONE;
}

static struct line line_of(struct decoder *decoder, const struct tables *tables, int64_t frame)
{
    struct profile *profile = decoder->file.profile;
    int64_t number = item_at(&tables->frames[FRAME_FUNCTION], frame);
    int64_t file = item_at(&tables->functions[FUNCTION_FILE], number);
    if (file == NONE) file = item_at(&tables->source_names, item_at(&tables->functions[FUNCTION_SOURCE], number));
    int64_t start = item_at(&tables->functions[FUNCTION_LINE], number);
    int64_t line = item_at(&tables->frames[FRAME_LINE], frame), column = item_at(&tables->frames[FRAME_COLUMN], frame);
    struct function function = {.name = string_at(tables, item_at(&tables->functions[FUNCTION_NAME], number)),
                                .file_name = string_at(tables, file),
                                .start_line = start > 0 ? start : 0};
    return (struct line){.function = profile_add_function(profile, &function),
                         .line = line > 0 ? line : 0,
                         .column = column > 0 ? column : 0};
}

/* Whether all that is known of the place is its address: then its name is that in hex, or empty. */
static bool is_unnamed(const struct profile *profile, const struct line *line, int64_t address)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "0x%" PRIx64, (uint64_t)address);
    const struct function *function = profile_function(profile, line->function);
    return function->file_name.index == 0 &&
           (function->name.index == 0 || slice_equals_text(profile_slice(profile, function->name), text));
}

/* The kind that the category of FRAME stands for. */
static enum frame_kind kind_of(const struct decoder *decoder, const struct tables *tables, int64_t frame)
{
    int64_t category = item_at(&tables->frames[FRAME_CATEGORY], frame);
    bool is_known =
        category >= 0 && (uint64_t)category < decoder->processes.items[0].category_end; /* all have the same */
    return is_known ? decoder->categories.items[category].kind : FRAME_UNKNOWN;
}

/* The location whose LINES, innermost first, end with that of FRAME. */
static struct location_id add_location(struct decoder *decoder, const struct tables *tables, int64_t frame,
                                       const struct line *lines, uint32_t count)
{
    int64_t address = item_at(&tables->frames[FRAME_ADDRESS], frame);
    int64_t number = library_of(decoder, tables, item_at(&tables->frames[FRAME_FUNCTION], frame));
    struct location location = {.kind = kind_of(decoder, tables, frame)};
    if (address < NONE || address > INT32_MAX) address = NONE;
    if (number != NONE) {
        struct library *library = &decoder->libraries.items[number];
        if (library->id.index == 0) library->id = profile_add_mapping(decoder->file.profile, &library->mapping);
        location.mapping = library->id;
        if (address != NONE) location.address = library->mapping.start + (uint64_t)address;
        if (address != NONE && (uint64_t)address >= library->size) library->size = (uint64_t)address + 1;
    }
    if (count == 1 && number != NONE && address != NONE && is_unnamed(decoder->file.profile, lines, address)) count = 0;
    return profile_add_location(decoder->file.profile, &location, lines, count);
}

/* Whether FRAME is inlined into OUTER, the frame of its caller. */
static bool is_inlined(const struct tables *tables, int64_t frame, int64_t outer)
{
    int64_t depth = item_at(&tables->frames[FRAME_DEPTH], frame);
    return depth > 0 && item_at(&tables->frames[FRAME_DEPTH], outer) == depth - 1 &&
           item_at(&tables->frames[FRAME_ADDRESS], frame) == item_at(&tables->frames[FRAME_ADDRESS], outer) &&
           item_at(&tables->frames[FRAME_ADDRESS], frame) != NONE;
}

/* The outermost of the stacks that are one place in the code with STACK. RET_COUNT: how many these are. */
static int64_t end_of_place(const struct tables *tables, int64_t stack, uint32_t *ret_count)
{
    *ret_count = 1;
    for (; *ret_count < FIREFOX_INLINED_MAX; ++*ret_count) {
        int64_t outer = tables->stacks[STACK_PREFIX].items[stack];
        if (outer == NONE ||
            !is_inlined(tables, tables->stacks[STACK_FRAME].items[stack], tables->stacks[STACK_FRAME].items[outer]))
            break;
        stack = outer;
    }
    return stack;
}

static void make_place(struct decoder *decoder, struct tables *tables, int64_t stack)
{
    struct line lines[FIREFOX_INLINED_MAX];
    uint32_t count;
    int64_t end = end_of_place(tables, stack, &count), at = stack;
    for (uint32_t i = 0; i < count; i++, at = tables->stacks[STACK_PREFIX].items[at])
        lines[i] = line_of(decoder, tables, tables->stacks[STACK_FRAME].items[at]);
    int64_t parent = tables->stacks[STACK_PREFIX].items[end];
    struct location_id location = add_location(decoder, tables, tables->stacks[STACK_FRAME].items[end], lines, count);
    struct stack_id caller = parent == NONE ? (struct stack_id){0} : tables->made[parent];
    tables->made[stack] = profile_add_stack(decoder->file.profile, caller, location);
    tables->is_made[stack] = true;
}

/* The callers that are not there yet are made first, the outermost one at the beginning. */
static struct stack_id make_stack(struct decoder *decoder, struct tables *tables, int64_t stack, struct column *todo)
{
    uint32_t count;
    todo->count = 0;
    for (int64_t at = stack; at != NONE && !tables->is_made[at] && decoder->file.status == STATUS_OK;) {
        if (!ARRAY_PUSH(todo, PROFILE_STACK_WORDS_MAX, at)) {
            json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for a stack");
            return (struct stack_id){0};
        }
        at = tables->stacks[STACK_PREFIX].items[end_of_place(tables, at, &count)];
    }
    while (todo->count > 0 && decoder->file.profile->failed == STATUS_OK)
        make_place(decoder, tables, todo->items[--todo->count]);
    return tables->made[stack];
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static enum measure measure_of(struct decoder *decoder, const struct thread_parts *thread)
{
    struct slice type =
        profile_slice(decoder->file.profile, json_parts_string(&decoder->file, thread->samples[WEIGHT_TYPE].value));
    if (slice_equals_text(type, "tracing-ms")) return MEASURE_TIME;
    return slice_equals_text(type, "bytes") ? MEASURE_BYTES : MEASURE_SAMPLES;
}

static void give_columns(struct decoder *decoder)
{
    static const char *const types[MEASURES][2] = {
        {"samples", "count"},   {"wall", "nanoseconds"},         {"space", "bytes"},
        {"cpu", "nanoseconds"}, {"native_allocations", "bytes"}, {"js_allocations", "bytes"}};
    struct profile *profile = decoder->file.profile;
    bool is_used[MEASURES] = {[MEASURE_SAMPLES] = true};
    for (size_t i = 0; i < decoder->threads.count; i++) {
        is_used[measure_of(decoder, &decoder->threads.items[i])] = true;
        is_used[MEASURE_CPU] |= decoder->cpu_unit_ns && (decoder->threads.items[i].samples[CPU_DELTAS].value.size > 0 ||
                                                         firefox_is_raw(&decoder->threads.items[i]));
        is_used[MEASURE_NATIVE_ALLOCATIONS] |= decoder->threads.items[i].own[NATIVE_ALLOCATIONS].value.size > 0;
        is_used[MEASURE_JS_ALLOCATIONS] |= decoder->threads.items[i].own[JS_ALLOCATIONS].value.size > 0;
    }
    for (unsigned i = 0; i < MEASURES; i++) {
        decoder->columns[i] = (unsigned)profile->value_type_count;
        if (is_used[i]) profile_add_value_type(profile, types[i][0], types[i][1]);
        if (is_used[i] && (i == MEASURE_TIME || i == MEASURE_BYTES)) /* a weight says what the profile is about */
            profile->default_value_type = profile_text(profile, types[i][0]);
    }
    if (profile->default_value_type.index == 0)
        profile->default_value_type = profile_text(profile, types[is_used[MEASURE_CPU] ? MEASURE_CPU : 0][0]);
}

static struct process_id process_of(struct decoder *decoder, const struct thread_parts *thread)
{
    struct profile *profile = decoder->file.profile;
    const char *pid = profile_c_string(profile, json_parts_string(&decoder->file, thread->own[PID].value));
    return profile_add_pid(profile, strtoll(pid, NULL, 10),
                           json_parts_string(&decoder->file, thread->own[PROCESS_NAME].value));
}

static struct label_set_id labels_of(struct decoder *decoder, const struct thread_parts *thread)
{
    struct profile *profile = decoder->file.profile;
    struct label labels[2];
    uint32_t count = 0;
    struct string_id pid = json_parts_string(&decoder->file, thread->own[PID].value),
                     name = json_parts_string(&decoder->file, thread->own[PROCESS_NAME].value);
    const char *text = profile_c_string(profile, pid);
    char *end;
    int64_t number = strtoll(text, &end, 10);
    if (!decoder->has_several_processes) return (struct label_set_id){0};
    if (end != text)
        labels[count++] =
            (struct label){.key = profile_text(profile, PROCESS_ID_LABEL), .is_number = true, .number = number};
    if (name.index) labels[count++] = (struct label){.key = profile_text(profile, PROCESS_NAME_LABEL), .text = name};
    return count ? profile_add_labels(profile, labels, count) : (struct label_set_id){0};
}

struct samples {
    struct column stacks, times, weights, cpu;
    bool has_deltas;
    enum measure measure;
    size_t leaves; /* rows before the first one that a sample may refer to, see firefox_raw_tables() */
};

static void read_raw_samples(struct decoder *decoder, const struct thread_parts *thread, struct samples *samples)
{
    enum { RAW_STACK, RAW_TIME, RAW_CPU, RAW_COLUMNS };
    static const char *const names[RAW_COLUMNS] = {"stack", "time", "threadCPUDelta"};
    static const int powers[RAW_COLUMNS] = {0, 6, 0};
    struct column columns[RAW_COLUMNS] = {{0}};
    firefox_raw_columns(decoder, thread->own[SAMPLES].value, names, powers, columns, RAW_COLUMNS);
    samples->stacks = columns[RAW_STACK];
    samples->times = columns[RAW_TIME];
    samples->cpu = columns[RAW_CPU];
}

static void read_samples(struct decoder *decoder, const struct thread_parts *thread, struct samples *samples)
{
    const struct json_member *parts = thread->samples;
    enum { MILLISECONDS_TO_NANOSECONDS = 6 };
    samples->has_deltas = parts[TIMES].value.size == 0;
    firefox_read_column(decoder, parts[STACKS].value, 0, &samples->stacks);
    firefox_read_column(decoder, parts[samples->has_deltas ? TIME_DELTAS : TIMES].value, MILLISECONDS_TO_NANOSECONDS,
                        &samples->times);
    firefox_read_column(decoder, parts[WEIGHTS].value,
                        samples->measure == MEASURE_TIME ? MILLISECONDS_TO_NANOSECONDS : 0, &samples->weights);
    if (decoder->cpu_unit_ns) firefox_read_column(decoder, parts[CPU_DELTAS].value, 0, &samples->cpu);
    bool is_broken = samples->times.count < samples->stacks.count ||
                     (samples->weights.count > 0 && samples->weights.count < samples->stacks.count);
    if (is_broken)
        firefox_fail(decoder, STATUS_MALFORMED, thread->own[SAMPLES].value, "the columns of samples differ in length");
}

uint64_t firefox_time_at(uint64_t start_ns, int64_t offset_ns)
{
    uint64_t time;
    if (offset_ns < 0) return start_ns > 0 - (uint64_t)offset_ns ? start_ns + (uint64_t)offset_ns : 0;
    return __builtin_add_overflow(start_ns, (uint64_t)offset_ns, &time) ? UINT64_MAX : time;
}

static struct thread_id thread_of(struct decoder *decoder, const struct thread_parts *parts)
{
    struct thread thread = {.process = process_of(decoder, parts),
                            .id = json_parts_string(&decoder->file, parts->own[TID].value),
                            .name = json_parts_string(&decoder->file, parts->own[NAME].value)};
    if (thread.name.index == thread.id.index) thread.name = (struct string_id){0}; /* it has none */
    return profile_add_thread(decoder->file.profile, &thread);
}

static void add_samples(struct decoder *decoder, struct tables *tables, const struct thread_parts *parts,
                        const struct samples *samples, struct column *todo)
{
    struct profile *profile = decoder->file.profile;
    struct sample sample = {.thread = thread_of(decoder, parts), .labels = labels_of(decoder, parts)};
    int64_t clock = 0;
    for (size_t i = 0; i < samples->stacks.count && decoder->file.status == STATUS_OK; i++) {
        int64_t values[PROFILE_VALUES_MAX] = {samples->measure < MEASURE_NATIVE_ALLOCATIONS};
        int64_t stack = samples->stacks.items[i];
        int64_t weight = samples->weights.count > 0 ? samples->weights.items[i] : 1;
        int64_t cpu = item_at(&samples->cpu, (int64_t)i);
        if (stack < NONE || (stack != NONE && (uint64_t)stack >= stack_frames_of(tables)->count - samples->leaves)) {
            firefox_fail(decoder, STATUS_MALFORMED, parts->samples[firefox_is_raw(parts) ? DATA : STACKS].value,
                         "a sample has a stack that is not there");
            return;
        }
        clock = samples->has_deltas ? profile_add_values(clock, samples->times.items[i]) : samples->times.items[i];
        if (stack != NONE) stack += (int64_t)samples->leaves;
        sample.stack = stack == NONE ? (struct stack_id){0} : make_stack(decoder, tables, stack, todo);
        sample.time_ns = firefox_time_at(decoder->processes.items[parts->process].start_ns, clock);
        values[decoder->columns[samples->measure]] = weight;
        if (cpu > 0 && __builtin_mul_overflow(cpu, decoder->cpu_unit_ns, &values[decoder->columns[MEASURE_CPU]]))
            values[decoder->columns[MEASURE_CPU]] = INT64_MAX;
        profile_add_sample(profile, &sample, values);
        if (profile->failed != STATUS_OK) json_parts_fail(&decoder->file, profile->failed, NULL, "");
    }
}

static void samples_fini(struct samples *samples)
{
    free(samples->stacks.items);
    free(samples->times.items);
    free(samples->weights.items);
    free(samples->cpu.items);
}

static void note_samples(struct decoder *decoder, struct thread_parts *thread)
{
    static const char *const names[SAMPLE_PARTS] = {"stack",      "time",           "timeDeltas", "weight",
                                                    "weightType", "threadCPUDelta", "schema",     "data"};
    firefox_note(decoder, thread->own[SAMPLES].value, names, thread->samples, SAMPLE_PARTS);
}

/* Tables beside the samples, each with a value of its own, negative where memory is freed. */
static void read_allocations(struct decoder *decoder, struct tables *tables, const struct thread_parts *thread,
                             struct column *todo)
{
    for (unsigned i = 0; i < 2 && decoder->file.status == STATUS_OK; i++) {
        struct samples samples = {.measure = i == 0 ? MEASURE_NATIVE_ALLOCATIONS : MEASURE_JS_ALLOCATIONS};
        struct thread_parts parts = *thread;
        parts.own[SAMPLES] = thread->own[i == 0 ? NATIVE_ALLOCATIONS : JS_ALLOCATIONS];
        if (parts.own[SAMPLES].value.size == 0) continue;
        note_samples(decoder, &parts);
        read_samples(decoder, &parts, &samples);
        if (decoder->file.status == STATUS_OK) add_samples(decoder, tables, &parts, &samples, todo);
        samples_fini(&samples);
    }
}

static void read_thread(struct decoder *decoder, const struct thread_parts *thread)
{
    struct tables own = {0}, *tables = &decoder->shared;
    struct samples samples = {.measure = measure_of(decoder, thread)};
    struct column todo = {0};
    bool borrows_strings = false;
    if (firefox_is_raw(thread)) {
        tables = &own;
        firefox_raw_tables(decoder, thread, tables, &samples.leaves);
    } else if (!decoder->has_shared_stacks) {
        tables = &own;
        read_tables(decoder, thread->tables, tables);
        /* Strings were shared before all other tables were. */
        borrows_strings = own.strings.count == 0;
        if (borrows_strings) {
            free(own.strings.items);
            own.strings = decoder->shared.strings;
        }
    }
    if (decoder->file.status == STATUS_OK && firefox_is_raw(thread))
        read_raw_samples(decoder, thread, &samples);
    else if (decoder->file.status == STATUS_OK)
        read_samples(decoder, thread, &samples);
    if (decoder->file.status == STATUS_OK) add_samples(decoder, tables, thread, &samples, &todo);
    read_allocations(decoder, tables, thread, &todo);
    if (decoder->file.status == STATUS_OK) firefox_read_markers(decoder, thread, tables, thread_of(decoder, thread));
    free(todo.items);
    samples_fini(&samples);
    if (borrows_strings) own.strings.items = NULL;
    tables_fini(&own);
}

/* --- The parts of the file ---------------------------------------------------------------------------------------- */

static void note_thread(struct decoder *decoder, struct slice object)
{
    static const char *const names[THREAD_PARTS] = {
        "name", "pid", "tid", "processName", "samples", "markers", "nativeAllocations", "jsAllocations"};
    struct thread_parts noted = {.tables = object, .process = (uint32_t)decoder->processes.count - 1};
    if (!ARRAY_PUSH(&decoder->threads, FIREFOX_THREADS_MAX, noted)) {
        firefox_fail(decoder, STATUS_TOO_LARGE, object, "more than 65536 threads");
        return;
    }
    struct thread_parts *thread = &decoder->threads.items[decoder->threads.count - 1];
    firefox_note(decoder, object, names, thread->own, THREAD_PARTS);
    note_samples(decoder, thread);
    struct slice pid = thread->own[PID].value;
    if (decoder->threads.count == 1) decoder->first_pid = pid;
    decoder->has_several_processes |= !slice_equal(pid, decoder->first_pid);
}

/* Calls DO for each object of the list LIST. */
static void for_each(struct decoder *decoder, struct slice list, void (*take)(struct decoder *, struct slice))
{
    struct json_reader reader;
    if (list.size == 0) return;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        (void)json_peek(&reader);
        const uint8_t *start = reader.position;
        json_skip(&reader);
        if (!reader.failed) take(decoder, slice_of(start, (size_t)(reader.position - start)));
    }
    json_parts_finish(&decoder->file, &reader);
}

/* The id that breakpad makes: 32 digits, and the age. */
static struct string_id debug_id_of(struct decoder *decoder, struct string_id breakpad)
{
    enum { DIGITS = 32 };
    char text[40];
    struct slice id = profile_slice(decoder->file.profile, breakpad);
    if (id.size <= DIGITS) return (struct string_id){0};
    int size =
        snprintf(text, sizeof(text), "%.8s-%.4s-%.4s-%.4s-%.12s", (const char *)id.data, (const char *)id.data + 8,
                 (const char *)id.data + 12, (const char *)id.data + 16, (const char *)id.data + 20);
    for (int i = 0; i < size; i++) {
        if (text[i] >= 'A' && text[i] <= 'F') text[i] = (char)(text[i] - 'A' + 'a');
    }
    return profile_text(decoder->file.profile, text);
}

static void take_library(struct decoder *decoder, struct slice object)
{
    enum { LIBRARY_NAME, LIBRARY_PATH, BREAKPAD_ID, CODE_ID, LIBRARY_START, LIBRARY_END, LIBRARY_PARTS };
    static const char *const names[LIBRARY_PARTS] = {"name", "path", "breakpadId", "codeId", "start", "end"};
    struct json_number start = {0}, end = {0};
    struct json_member parts[LIBRARY_PARTS];
    struct library library = {0};
    firefox_note(decoder, object, names, parts, LIBRARY_PARTS);
    if (json_number_of_text(parts[LIBRARY_START].value, &start)) library.start = (uint64_t)scaled(&start, 0);
    if (json_number_of_text(parts[LIBRARY_END].value, &end)) library.end = (uint64_t)scaled(&end, 0);
    struct mapping *mapping = &library.mapping;
    mapping->file_name = json_parts_string(&decoder->file, parts[LIBRARY_PATH].value);
    if (mapping->file_name.index == 0)
        mapping->file_name = json_parts_string(&decoder->file, parts[LIBRARY_NAME].value);
    mapping->build_id = json_parts_string(&decoder->file, parts[CODE_ID].value);
    if (mapping->build_id.index == 0)
        mapping->debug_id = debug_id_of(decoder, json_parts_string(&decoder->file, parts[BREAKPAD_ID].value));
    mapping->start = mapping->image_start = (uint64_t)(decoder->libraries.count + 1) << LIBRARY_SHIFT;
    if (!ARRAY_PUSH(&decoder->libraries, FIREFOX_LIBRARIES_MAX, library))
        firefox_fail(decoder, STATUS_TOO_LARGE, object, "more than 65536 libraries");
}

/* Returns the nanoseconds of one unit of threadCPUDelta; 0 if it is not a time. */
static int64_t cpu_unit(struct decoder *decoder, struct slice units)
{
    struct slice name = json_parts_member(&decoder->file, units, "threadCPUDelta");
    struct slice unit = profile_slice(decoder->file.profile, json_parts_string(&decoder->file, name));
    if (slice_equals_text(unit, "ns")) return 1;
    return slice_equals_text(unit, "\xc2\xb5s") || slice_equals_text(unit, "\xce\xbcs") ? 1000 : 0;
}

static void read_meta(struct decoder *decoder, struct slice meta, struct process_parts *process)
{
    enum { START, INTERVAL, UNITS, CATEGORIES, MARKER_SCHEMAS, META_PARTS };
    static const char *const names[META_PARTS] = {"startTime", "interval", "sampleUnits", "categories", "markerSchema"};
    struct json_member parts[META_PARTS];
    struct profile *profile = decoder->file.profile;
    struct json_number start = {0}, interval = {0};
    firefox_note(decoder, meta, names, parts, META_PARTS);
    if (json_number_of_text(parts[START].value, &start)) {
        int64_t start_ns = scaled(&start, 6);
        process->start_ns = start_ns > 0 ? (uint64_t)start_ns : 0;
    }
    process->category_first = decoder->categories.count;
    for_each(decoder, parts[CATEGORIES].value, firefox_take_category);
    process->category_end = decoder->categories.count;
    for_each(decoder, parts[MARKER_SCHEMAS].value, firefox_take_marker_schema);
    if (decoder->depth > 0) return;
    if (json_number_of_text(parts[INTERVAL].value, &interval)) {
        profile->period = scaled(&interval, 6);
        profile->period_type =
            (struct value_type){.type = profile_text(profile, "wall"), .unit = profile_text(profile, "nanoseconds")};
        if (profile->period <= 0) profile->period = 0;
    }
    decoder->cpu_unit_ns = cpu_unit(decoder, parts[UNITS].value);
}

/* Libraries are as large as what is used of them. */
static void size_libraries(struct decoder *decoder)
{
    for (size_t i = 0; i < decoder->libraries.count; i++) {
        const struct library *library = &decoder->libraries.items[i];
        if (library->id.index == 0) continue;
        struct mapping *mapping = &decoder->file.profile->mappings.items[library->id.index];
        uint64_t size = (library->size + PAGE - 1) / PAGE * PAGE;
        mapping->image_size = size ? size : PAGE;
        mapping->limit = mapping->start + mapping->image_size;
    }
}

static void add_process(struct decoder *decoder)
{
    if (decoder->threads.count == 0 || decoder->has_several_processes) return;
    struct profile *profile = decoder->file.profile;
    struct string_id pid = json_parts_string(&decoder->file, decoder->threads.items[0].own[PID].value),
                     name = json_parts_string(&decoder->file, decoder->threads.items[0].own[PROCESS_NAME].value);
    if (pid.index) profile_add_metadata_text(profile, PROCESS_ID_LABEL, profile_c_string(profile, pid));
    if (name.index) profile_add_metadata_text(profile, PROCESS_NAME_LABEL, profile_c_string(profile, name));
}

/* Notes what is in one process: a raw profile has those that Firefox started in it, as nested profiles. */
static void note_process(struct decoder *decoder, struct slice object)
{
    static const char *const names[PROFILE_PARTS] = {"meta", "libs", "shared", "threads", "processes"};
    struct json_member parts[PROFILE_PARTS];
    struct process_parts process = {.library_first = decoder->libraries.count};
    firefox_note(decoder, object, names, parts, PROFILE_PARTS);
    if (decoder->file.status == STATUS_OK && parts[THREADS].value.size == 0)
        firefox_fail(decoder, STATUS_MALFORMED, object, "there is no list of threads");
    if (decoder->depth > FIREFOX_PROCESS_DEPTH_MAX)
        firefox_fail(decoder, STATUS_TOO_LARGE, object, "processes in more than 8 others");
    read_meta(decoder, parts[META].value, &process);
    for_each(decoder, parts[LIBS].value, take_library);
    process.library_end = decoder->libraries.count;
    if (!ARRAY_PUSH(&decoder->processes, FIREFOX_THREADS_MAX, process)) {
        firefox_fail(decoder, STATUS_TOO_LARGE, object, "more than 65536 processes");
        return;
    }
    for_each(decoder, parts[THREADS].value, note_thread);
    if (decoder->depth == 0 && parts[SHARED].value.size > 0)
        read_tables(decoder, parts[SHARED].value, &decoder->shared);
    decoder->depth++;
    for_each(decoder, parts[PROCESSES].value, note_process);
    decoder->depth--;
}

static void read_file(struct decoder *decoder)
{
    struct profile *profile = decoder->file.profile;
    note_process(decoder, decoder->file.bytes);
    if (decoder->file.status != STATUS_OK) return;
    decoder->has_shared_stacks = stack_frames_of(&decoder->shared)->count > 0;
    give_columns(decoder);
    profile->has_times = true;
    profile->time_ns = profile_start_at(decoder->processes.items[0].start_ns);
    for (size_t i = 0; i < decoder->threads.count && decoder->file.status == STATUS_OK; i++)
        read_thread(decoder, &decoder->threads.items[i]);
    size_libraries(decoder);
    add_process(decoder);
}

enum status firefox_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (json_kind_of_profile(bytes) != JSON_PROFILE_FIREFOX)
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of the Firefox Profiler");
    struct decoder decoder = {.file = {.bytes = bytes, .profile = profile, .error = error}};
    read_file(&decoder);
    tables_fini(&decoder.shared);
    free(decoder.threads.items);
    free(decoder.libraries.items);
    free(decoder.processes.items);
    free(decoder.categories.items);
    free(decoder.references.items);
    if (decoder.file.status == STATUS_OK) decoder.file.status = profile_failed(profile, error);
    return decoder.file.status == STATUS_OK ? profile_sort_by_time(profile, error) : decoder.file.status;
}
