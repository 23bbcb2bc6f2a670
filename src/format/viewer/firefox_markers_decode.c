/* Markers of the Firefox Profiler: what happened in a thread. Both forms have the same columns, in rows or one after
 * the other. A marker's data are an object; its schema says which of its numbers stand for strings of the file. Those
 * become texts of the marker, all else remains as it is. What refers to stacks is left out. SPDX-License-Identifier:
 * MIT */
#include "format/viewer/firefox_private.h"

#include "base/array.h"
#include "base/json_writer.h"

#include <stdlib.h>

enum { NUMBER_NAME, NUMBER_START, NUMBER_END, NUMBER_PHASE, NUMBER_CATEGORY, NUMBERS };

/* Times are in milliseconds. */
static const int powers[NUMBERS] = {0, 6, 6, 0, 0};
static const char *const number_names[NUMBERS] = {"name", "startTime", "endTime", "phase", "category"};

struct thread_markers {
    const struct tables *tables;
    const struct process_parts *process;
    struct thread_id thread;
};

/* The value that comes next, as it is in the input. */
static struct slice take_raw(struct json_reader *reader)
{
    (void)json_peek(reader);
    const uint8_t *start = reader->position;
    json_skip(reader);
    return reader->failed ? slice_of(NULL, 0) : slice_of(start, (size_t)(reader->position - start));
}

static struct string_id json_kept(struct decoder *decoder, struct buffer *json, struct slice place)
{
    struct string_id id = profile_string(decoder->file.profile, buffer_slice(json));
    if (json->failed) firefox_fail(decoder, STATUS_TOO_LARGE, place, "a marker of more than 1 MiB");
    buffer_fini(json);
    return id;
}

/* --- Schemas ------------------------------------------------------------------------------------------------------ */

static bool refers_to_string(struct slice format)
{
    return slice_equals_text(format, "\"unique-string\"") || slice_equals_text(format, "\"flow-id\"") ||
           slice_equals_text(format, "\"terminating-flow-id\"");
}

/* Copies FIELD to WRITER. Older files describe markers here, too, in objects without a key. */
static void take_field(struct decoder *decoder, struct string_id type, struct slice field, struct json_writer *writer)
{
    enum { FIELD_KEY, FIELD_FORMAT, FIELD_PARTS };
    static const char *const names[FIELD_PARTS] = {"key", "format"};
    struct json_member parts[FIELD_PARTS];
    firefox_note(decoder, field, names, parts, FIELD_PARTS);
    if (parts[FIELD_KEY].value.size == 0) return;
    json_write_raw(writer, field);
    if (!refers_to_string(parts[FIELD_FORMAT].value)) return;
    struct marker_text reference = {type, json_parts_string(&decoder->file, parts[FIELD_KEY].value)};
    if (!ARRAY_PUSH(&decoder->references, FIREFOX_MARKER_FIELDS_MAX, reference))
        firefox_fail(decoder, STATUS_TOO_LARGE, slice_of(NULL, 0), "more than 4096 members of markers are strings");
}

static void take_fields(struct decoder *decoder, struct string_id type, struct slice list, struct json_writer *writer)
{
    struct json_reader reader;
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    json_begin_array(writer);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) {
        struct slice field = take_raw(&reader);
        if (!reader.failed && field.data[0] == '{') take_field(decoder, type, field, writer);
    }
    json_end_array(writer);
    json_parts_finish(&decoder->file, &reader);
}

/* Fields were called "data" before version 56 of the processed form, and still are in the raw form. */
void firefox_take_marker_schema(struct decoder *decoder, struct slice schema)
{
    struct json_reader reader;
    struct buffer json;
    struct string_id type = json_parts_string(&decoder->file, json_parts_member(&decoder->file, schema, "name"));
    if (decoder->file.status != STATUS_OK || type.index == 0) return;
    buffer_init(&json, PROFILE_STRING_BYTES_MAX);
    struct json_writer writer = json_writer_of(&json);
    json_reader_init(&reader, schema);
    json_object_begin(&reader);
    json_begin_object(&writer);
    for (struct slice key; json_object_next(&reader, &key);) {
        bool is_fields = slice_equals_text(key, "fields") || slice_equals_text(key, "data");
        json_write_key_slice(&writer, is_fields ? slice_of_text("fields") : key);
        struct slice value = take_raw(&reader);
        if (is_fields && value.size > 0 && value.data[0] == '[')
            take_fields(decoder, type, value, &writer);
        else
            json_write_raw(&writer, value);
    }
    json_end_object(&writer);
    json_parts_finish(&decoder->file, &reader);
    profile_add_marker_schema(decoder->file.profile, json_kept(decoder, &json, schema));
}

void firefox_take_category(struct decoder *decoder, struct slice category)
{
    static const struct {
        const char *name;
        enum frame_kind kind;
    } known[] = {{"Kernel", FRAME_KERNEL}, {"JIT", FRAME_JIT}, {"Interpreter", FRAME_INTERPRETED}};
    struct slice text = json_parts_member(&decoder->file, category, "name");
    struct category added = {.name = json_parts_string(&decoder->file, text), .kind = FRAME_UNKNOWN};
    struct slice name = profile_slice(decoder->file.profile, added.name);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_equals_text(name, known[i].name)) added.kind = known[i].kind;
    }
    if (!ARRAY_PUSH(&decoder->categories, PROFILE_STRINGS_MAX, added))
        firefox_fail(decoder, STATUS_NO_MEMORY, category, "no memory for the categories");
}

/* --- Data --------------------------------------------------------------------------------------------------------- */

static bool is_reference(struct decoder *decoder, struct string_id type, struct string_id key)
{
    for (size_t i = 0; i < decoder->references.count; i++) {
        if (decoder->references.items[i].key.index == type.index &&
            decoder->references.items[i].text.index == key.index)
            return true;
    }
    return false;
}

struct details {
    const struct tables *tables;
    struct string_id type;
    struct json_writer writer;
    struct marker_text texts[PROFILE_MARKER_TEXTS_MAX];
    uint32_t text_count, member_count;
};

/* Takes a number that stands for a string. */
static bool take_text(struct decoder *decoder, struct json_reader *reader, struct slice key, struct details *details)
{
    if (json_peek(reader) != JSON_NUMBER || details->type.index == 0) return false;
    struct string_id id = profile_string(decoder->file.profile, key);
    if (details->text_count == PROFILE_MARKER_TEXTS_MAX || !is_reference(decoder, details->type, id)) return false;
    int64_t string = firefox_number(reader, 0);
    if (string >= 0 && (uint64_t)string < details->tables->strings.count)
        details->texts[details->text_count++] = (struct marker_text){id, details->tables->strings.items[string]};
    return true;
}

static void take_member(struct decoder *decoder, struct json_reader *reader, struct slice key, struct details *details)
{
    bool is_stack = slice_equals_text(key, "stack") || slice_equals_text(key, "cause");
    if (take_text(decoder, reader, key, details)) return;
    if (is_stack && json_peek(reader) == JSON_OBJECT) {
        json_skip(reader);
        return;
    }
    json_write_key_slice(&details->writer, key);
    json_write_raw(&details->writer, take_raw(reader));
    details->member_count++;
}

static struct string_id take_details(struct decoder *decoder, struct slice data, struct details *details)
{
    struct json_reader reader;
    struct buffer json;
    if (data.size == 0 || data.data[0] != '{') return (struct string_id){0};
    details->type = json_parts_string(&decoder->file, json_parts_member(&decoder->file, data, "type"));
    buffer_init(&json, PROFILE_STRING_BYTES_MAX);
    details->writer = json_writer_of(&json);
    json_reader_init(&reader, data);
    json_object_begin(&reader);
    json_begin_object(&details->writer);
    for (struct slice key; json_object_next(&reader, &key);) take_member(decoder, &reader, key, details);
    json_end_object(&details->writer);
    json_parts_finish(&decoder->file, &reader);
    struct string_id kept = json_kept(decoder, &json, data);
    return details->member_count > 0 ? kept : (struct string_id){0};
}

/* --- Markers ------------------------------------------------------------------------------------------------------ */

static enum marker_kind kind_of(const int64_t numbers[NUMBERS])
{
    switch (numbers[NUMBER_PHASE]) {
    case 0:
        return MARKER_INSTANT;
    case 1:
        return MARKER_INTERVAL;
    case 2:
        return MARKER_BEGIN;
    case 3:
        return MARKER_END;
    default:
        return numbers[NUMBER_END] == NONE ? MARKER_INSTANT : MARKER_INTERVAL;
    }
}

static void add_marker(struct decoder *decoder, const struct thread_markers *thread, const int64_t numbers[NUMBERS],
                       struct slice data)
{
    const struct process_parts *process = thread->process;
    const struct tables *tables = thread->tables;
    struct details details = {.tables = tables};
    int64_t name = numbers[NUMBER_NAME], category = numbers[NUMBER_CATEGORY];
    struct marker marker = {.thread = thread->thread, .kind = kind_of(numbers)};
    if (name < 0 || (uint64_t)name >= tables->strings.count) {
        firefox_fail(decoder, STATUS_MALFORMED, data, "a marker has a name that is not there");
        return;
    }
    marker.name = tables->strings.items[name];
    if (category >= 0 && (uint64_t)category < process->category_end - process->category_first)
        marker.category = decoder->categories.items[process->category_first + (size_t)category].name;
    if (marker.kind != MARKER_END) marker.start_ns = firefox_time_at(process->start_ns, numbers[NUMBER_START]);
    if (marker.kind == MARKER_INTERVAL || marker.kind == MARKER_END)
        marker.end_ns = firefox_time_at(process->start_ns, numbers[NUMBER_END]);
    marker.details = take_details(decoder, data, &details);
    profile_add_marker(decoder->file.profile, &marker, details.texts, details.text_count);
    if (decoder->file.profile->failed != STATUS_OK)
        firefox_fail(decoder, decoder->file.profile->failed, data, "more than 16777216 markers, or no memory for them");
}

static int64_t number_or_none(struct json_reader *reader, int power)
{
    enum json_kind kind = json_peek(reader);
    if (kind == JSON_NUMBER || kind == JSON_NULL) return firefox_number(reader, power);
    json_skip(reader);
    return NONE;
}

/* One row of the raw form; PLACES has that of the data last. */
static void take_row(struct decoder *decoder, const struct thread_markers *thread, struct json_reader *reader,
                     const int64_t places[NUMBERS + 1])
{
    int64_t numbers[NUMBERS] = {NONE, NONE, NONE, NONE, NONE};
    struct slice data = {0};
    json_array_begin(reader);
    for (int64_t place = 0; json_array_next(reader); place++) {
        size_t i = 0;
        while (i < NUMBERS && places[i] != place) i++;
        if (i < NUMBERS)
            numbers[i] = number_or_none(reader, powers[i]);
        else if (places[NUMBERS] == place)
            data = take_raw(reader);
        else
            json_skip(reader);
    }
    if (!reader->failed) add_marker(decoder, thread, numbers, data);
}

static void read_rows(struct decoder *decoder, const struct thread_markers *thread, struct slice schema,
                      struct slice rows)
{
    static const char *const names[NUMBERS + 1] = {"name", "startTime", "endTime", "phase", "category", "data"};
    struct json_member members[NUMBERS + 1];
    int64_t places[NUMBERS + 1];
    struct json_reader reader;
    firefox_note(decoder, schema, names, members, NUMBERS + 1);
    firefox_raw_places(members, places, NUMBERS + 1);
    json_reader_init(&reader, rows);
    json_array_begin(&reader);
    while (decoder->file.status == STATUS_OK && json_array_next(&reader)) take_row(decoder, thread, &reader, places);
    json_parts_finish(&decoder->file, &reader);
}

static void read_columns(struct decoder *decoder, const struct thread_markers *thread, struct slice table,
                         struct slice list)
{
    struct json_member members[NUMBERS];
    struct column columns[NUMBERS] = {{0}};
    struct json_reader reader;
    firefox_note(decoder, table, number_names, members, NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++) firefox_read_column(decoder, members[i].value, powers[i], &columns[i]);
    json_reader_init(&reader, list);
    json_array_begin(&reader);
    for (size_t row = 0; decoder->file.status == STATUS_OK && json_array_next(&reader); row++) {
        int64_t numbers[NUMBERS];
        struct slice data = take_raw(&reader);
        for (size_t i = 0; i < NUMBERS; i++) numbers[i] = row < columns[i].count ? columns[i].items[row] : NONE;
        if (!reader.failed) add_marker(decoder, thread, numbers, data);
    }
    json_parts_finish(&decoder->file, &reader);
    for (size_t i = 0; i < NUMBERS; i++) free(columns[i].items);
}

void firefox_read_markers(struct decoder *decoder, const struct thread_parts *parts, const struct tables *tables,
                          struct thread_id thread_id)
{
    enum { TABLE_SCHEMA, TABLE_DATA, TABLE_PARTS_OF_MARKERS };
    static const char *const names[TABLE_PARTS_OF_MARKERS] = {"schema", "data"};
    struct thread_markers thread = {
        .tables = tables, .process = &decoder->processes.items[parts->process], .thread = thread_id};
    struct json_member members[TABLE_PARTS_OF_MARKERS];
    struct slice table = parts->own[MARKERS].value;
    firefox_note(decoder, table, names, members, TABLE_PARTS_OF_MARKERS);
    if (members[TABLE_DATA].value.size == 0 || decoder->file.status != STATUS_OK) return;
    if (members[TABLE_SCHEMA].value.size > 0)
        read_rows(decoder, &thread, members[TABLE_SCHEMA].value, members[TABLE_DATA].value);
    else
        read_columns(decoder, &thread, table, members[TABLE_DATA].value);
}
