/* The raw form of a profile, as Firefox itself writes it (Services.profiler.getProfileDataAsync,
 * MOZ_PROFILER_SHUTDOWN): a table is a "schema", which says what is where in a row, and "data", a list of rows. A frame
 * is a text: an address in hex, "name (file:line:column)" of a script, or a label. The tables become columns, as in the
 * processed form. SPDX-License-Identifier: MIT */
#include "format/viewer/firefox_private.h"

#include "base/array.h"
#include "base/hex.h"
#include "base/partition_point.h"
#include "format/common/text_line.h"

#include <stdlib.h>

enum { RAW_LOCATION, RAW_LINE, RAW_COLUMN, RAW_CATEGORY, RAW_FRAME_COLUMNS };

/* --- Rows --------------------------------------------------------------------------------------------------------- */

/* Adds NUMBER to COLUMN; false without memory. */
static bool push(struct column *column, int64_t number)
{
    return ARRAY_PUSH(column, PROFILE_SAMPLES_MAX, number);
}

/* The values of one row that are at PLACES; a row may end before them. */
static bool read_row(struct json_reader *reader, const int64_t *places, const int *powers, struct column *columns,
                     size_t count)
{
    int64_t values[RAW_FRAME_COLUMNS] = {NONE, NONE, NONE, NONE};
    json_array_begin(reader);
    for (int64_t place = 0; json_array_next(reader); place++) {
        size_t i = 0;
        while (i < count && places[i] != place) i++;
        enum json_kind kind = json_peek(reader);
        if (i < count && (kind == JSON_NUMBER || kind == JSON_NULL))
            values[i] = firefox_number(reader, powers[i]);
        else
            json_skip(reader);
    }
    bool has_memory = true;
    for (size_t i = 0; i < count; i++) has_memory &= push(&columns[i], values[i]);
    return has_memory;
}

void firefox_raw_places(const struct json_member *members, int64_t *ret_places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_number number = {0};
        ret_places[i] = json_number_of_text(members[i].value, &number) && number.is_exact && number.exponent == 0
                            ? (int64_t)(number.digits & INT32_MAX)
                            : NONE;
    }
}

void firefox_raw_columns(struct decoder *decoder, struct slice table, const char *const *names, const int *powers,
                         struct column *columns, size_t count)
{
    enum { TABLE_SCHEMA, TABLE_ROWS, TABLE_MEMBERS };
    static const char *const parts_names[TABLE_MEMBERS] = {"schema", "data"};
    struct json_member parts[TABLE_MEMBERS], members[RAW_FRAME_COLUMNS];
    int64_t places[RAW_FRAME_COLUMNS];
    struct json_reader reader;
    firefox_note(decoder, table, parts_names, parts, TABLE_MEMBERS);
    firefox_note(decoder, parts[TABLE_SCHEMA].value, names, members, count);
    firefox_raw_places(members, places, count);
    if (parts[TABLE_ROWS].value.size == 0 || decoder->file.status != STATUS_OK) return;
    json_reader_init(&reader, parts[TABLE_ROWS].value);
    json_array_begin(&reader);
    while (json_array_next(&reader)) {
        if (!read_row(&reader, places, powers, columns, count))
            json_reader_reject(&reader, STATUS_NO_MEMORY, "no memory for a column");
    }
    json_parts_finish(&decoder->file, &reader);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

struct memory_range {
    uint64_t start, end;
    int64_t library;
};

/* State while the tables of one thread are made. */
struct raw_thread {
    struct decoder *decoder;
    struct tables *tables;
    struct memory_range *ranges; /* ranges of the libraries of its process, by address */
    size_t range_count;
    struct column frames[RAW_FRAME_COLUMNS];
};

static int compare_ranges(const void *left, const void *right)
{
    const struct memory_range *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static bool find_ranges(struct raw_thread *raw, const struct process_parts *process)
{
    raw->range_count = process->library_end - process->library_first;
    raw->ranges = calloc(raw->range_count + 1, sizeof(*raw->ranges));
    for (size_t i = 0; raw->ranges && i < raw->range_count; i++) {
        const struct library *library = &raw->decoder->libraries.items[process->library_first + i];
        raw->ranges[i] = (struct memory_range){library->start, library->end, (int64_t)(process->library_first + i)};
    }
    if (raw->ranges) qsort(raw->ranges, raw->range_count, sizeof(*raw->ranges), compare_ranges);
    return raw->ranges != NULL;
}

/* The library that was at ADDRESS, or NULL. */
static const struct memory_range *range_at(const struct raw_thread *raw, uint64_t address)
{
    size_t after = PARTITION_POINT(raw->range_count, i, raw->ranges[i].start <= address);
    return after > 0 && address < raw->ranges[after - 1].end ? &raw->ranges[after - 1] : NULL;
}

/* Takes ":NUMBER" from the end of TEXT; false if there is none. */
static bool take_number(struct slice *text, int64_t *ret_number)
{
    size_t end = text->size;
    int64_t number = 0;
    while (end > 0 && text->data[end - 1] >= '0' && text->data[end - 1] <= '9') end--;
    if (end == text->size || end == 0 || text->data[end - 1] != ':' || text->size - end > 9) return false;
    for (size_t i = end; i < text->size; i++) number = number * 10 + (text->data[i] - '0');
    *ret_number = number;
    text->size = end - 1;
    return true;
}

static int64_t add_string(struct raw_thread *raw, struct slice text)
{
    struct tables *tables = raw->tables;
    if (!ARRAY_PUSH(&tables->strings, PROFILE_STRINGS_MAX, profile_string(raw->decoder->file.profile, text))) {
        json_parts_fail(&raw->decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the strings");
        return NONE;
    }
    return (int64_t)tables->strings.count - 1;
}

/* Removes the number of the source, which files have since version 32: "name (file:1:2)[7]". */
static void drop_source(struct slice *text)
{
    size_t end = text->size;
    if (end == 0 || text->data[--end] != ']') return;
    while (end > 0 && text->data[end - 1] >= '0' && text->data[end - 1] <= '9') end--;
    if (end > 0 && text->data[end - 1] == '[') text->size = end - 1;
}

/* A function of a script: "name (file:line:column)" or "file:line:column". Others are labels, and have a name alone. */
static void name_function(struct raw_thread *raw, int64_t string, int64_t *function)
{
    const struct profile *profile = raw->decoder->file.profile;
    struct slice text = profile_slice(profile, raw->tables->strings.items[string]), place = text;
    int64_t column = 0, line = 0;
    drop_source(&text);
    place = text;
    const uint8_t *open =
        text.size > 0 && text.data[text.size - 1] == ')' ? memmem(text.data, text.size, " (", 2) : NULL;
    if (open) place = slice_of(open + 2, (size_t)(text.data + text.size - open) - 3);
    function[FUNCTION_NAME] = string;
    if (!take_number(&place, &column)) return;
    if (!take_number(&place, &line)) line = column; /* there was one number */
    function[FUNCTION_LINE] = line;
    function[FUNCTION_FILE] = add_string(raw, place);
    function[FUNCTION_NAME] = add_string(raw, open ? slice_of(text.data, (size_t)(open - text.data)) : text);
}

/* Adds frame INDEX and its function; NUDGE: how far before its address the call is. */
static void add_frame(struct raw_thread *raw, size_t index, uint64_t nudge)
{
    struct decoder *decoder = raw->decoder;
    struct tables *tables = raw->tables;
    int64_t string = raw->frames[RAW_LOCATION].items[index];
    int64_t function[FUNCTION_COLUMNS] = {NONE, NONE, NONE, NONE, NONE};
    int64_t frame[FRAME_COLUMNS] = {NONE, NONE, NONE, NONE, NONE, NONE};
    uint64_t address = 0;
    if (string < 0 || (uint64_t)string >= tables->strings.count) {
        json_parts_fail(&decoder->file, STATUS_MALFORMED, NULL, "a frame has a string that is not there");
        return;
    }
    struct slice name = profile_slice(decoder->file.profile, tables->strings.items[string]);
    bool is_native = text_begins_with(name, "0x") && hex_parse(text_from(name, 2), &address);
    const struct memory_range *range = is_native && address >= nudge ? range_at(raw, address - nudge) : NULL;
    if (range) {
        function[FUNCTION_RESOURCE] = range->library;
        frame[FRAME_ADDRESS] = (int64_t)(address - nudge - range->start);
    } else {
        name_function(raw, string, function);
    }
    frame[FRAME_FUNCTION] = (int64_t)tables->functions[FUNCTION_NAME].count;
    frame[FRAME_LINE] = raw->frames[RAW_LINE].items[index];
    frame[FRAME_COLUMN] = raw->frames[RAW_COLUMN].items[index];
    frame[FRAME_CATEGORY] = raw->frames[RAW_CATEGORY].items[index];
    bool has_memory = true;
    for (size_t i = 0; i < FUNCTION_COLUMNS; i++) has_memory &= push(&tables->functions[i], function[i]);
    for (size_t i = 0; i < FRAME_COLUMNS; i++) has_memory &= push(&tables->frames[i], frame[i]);
    if (!has_memory) json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for a column");
}

static void add_frames(struct raw_thread *raw)
{
    size_t count = raw->frames[RAW_LOCATION].count;
    bool has_memory = true;
    for (size_t i = 0; i < raw->decoder->libraries.count; i++)
        has_memory &= push(&raw->tables->resource_libraries, (int64_t)i); /* each library is a resource */
    if (!has_memory) json_parts_fail(&raw->decoder->file, STATUS_NO_MEMORY, NULL, "no memory for a column");
    for (size_t i = 0; i < count && raw->decoder->file.status == STATUS_OK; i++) add_frame(raw, i, 1);
    for (size_t i = 0; i < count && raw->decoder->file.status == STATUS_OK; i++) add_frame(raw, i, 0);
}

/* Row n + COUNT has the callers of row n, and the place where n itself was executing. */
static void add_leaves(struct raw_thread *raw, size_t count)
{
    struct column *stacks = raw->tables->stacks;
    int64_t frame_count = (int64_t)raw->frames[RAW_LOCATION].count; /* in the file */
    bool has_memory = true;
    for (size_t i = 0; i < count; i++) {
        int64_t frame = stacks[STACK_FRAME].items[i];
        if (frame >= frame_count) {
            json_parts_fail(&raw->decoder->file, STATUS_MALFORMED, NULL, "a stack has a frame that is not there");
            return;
        }
        has_memory &= push(&stacks[STACK_FRAME], frame < 0 ? NONE : frame + frame_count);
        has_memory &= push(&stacks[STACK_PREFIX], stacks[STACK_PREFIX].items[i]);
    }
    if (!has_memory) json_parts_fail(&raw->decoder->file, STATUS_NO_MEMORY, NULL, "no memory for a column");
}

void firefox_raw_tables(struct decoder *decoder, const struct thread_parts *thread, struct tables *tables,
                        size_t *ret_leaves)
{
    enum { RAW_STACKS, RAW_FRAMES, RAW_STRINGS, RAW_TABLES };
    static const char *const names[RAW_TABLES] = {"stackTable", "frameTable", "stringTable"};
    static const char *const stack_names[STACK_COLUMNS] = {"frame", "prefix"};
    static const char *const frame_names[RAW_FRAME_COLUMNS] = {"location", "line", "column", "category"};
    static const int powers[RAW_FRAME_COLUMNS] = {0};
    struct json_member parts[RAW_TABLES];
    struct raw_thread raw = {.decoder = decoder, .tables = tables};
    firefox_note(decoder, thread->tables, names, parts, RAW_TABLES);
    firefox_read_strings(decoder, parts[RAW_STRINGS].value, tables);
    firefox_raw_columns(decoder, parts[RAW_STACKS].value, stack_names, powers, tables->stacks, STACK_COLUMNS);
    firefox_raw_columns(decoder, parts[RAW_FRAMES].value, frame_names, powers, raw.frames, RAW_FRAME_COLUMNS);
    *ret_leaves = tables->stacks[STACK_FRAME].count;
    if (!find_ranges(&raw, &decoder->processes.items[thread->process]))
        json_parts_fail(&decoder->file, STATUS_NO_MEMORY, NULL, "no memory for the libraries");
    else if (decoder->file.status == STATUS_OK)
        add_frames(&raw);
    if (decoder->file.status == STATUS_OK) add_leaves(&raw, *ret_leaves);
    firefox_check_tables(decoder, parts[RAW_STACKS].value.size ? parts[RAW_STACKS].value : thread->tables, tables);
    for (size_t i = 0; i < RAW_FRAME_COLUMNS; i++) free(raw.frames[i].items);
    free(raw.ranges);
}
