/* Writes the processed profile of the Firefox Profiler.
 *
 * Its tables consist of columns, and its stacks are a tree of (caller, frame), as in the model. An inlined function is
 * a separate frame with an inline depth. The encoder first numbers all entries, then writes each column.
 * SPDX-License-Identifier: MIT */
#include "format/viewer/firefox.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "base/uuid.h"
#include "binary/debug_id.h"
#include "format/common/format_ops.h"
#include "format/common/frame_name.h"
#include "profile/build_id.h"
#include "profile/frame_kind.h"
#include "format/common/json_kind.h"
#include "format/common/tracks.h"
#include "format/common/text_line.h"
#include "format/viewer/firefox_markers.h"
#include "profile/sample_times.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    GECKO_VERSION = 29, /* version of Firefox's own format; a processed profile has this number too */
    RESOURCE_LIBRARY = 1,
    ADDRESS_NONE = -1,
    BREAKPAD_ID_SIZE = 34, /* 32 digits, the age, NUL */
    NAME_BYTES_MAX = 64,
};

/* In the order in which they are written; the first grey one is the default. */
enum category {
    CATEGORY_OTHER,
    CATEGORY_PROGRAM,
    CATEGORY_LIBRARY,
    CATEGORY_JIT,
    CATEGORY_KERNEL,
    CATEGORY_INTERPRETER,
    CATEGORIES
};

static const struct {
    const char *name, *colour;
} categories[CATEGORIES] = {
    {"Other", "grey"}, {"Program", "yellow"}, {"Library", "blue"},
    {"JIT", "green"},  {"Kernel", "orange"},  {"Interpreter", "purple"},
};

struct written_function {
    struct string_id name; /* string of TEXTS */
    struct string_id file; /* string of the profile; "" = none */
    int64_t start_line;
    uint32_t library; /* plus one; 0: none */
};

struct written_frame {
    uint32_t location, line; /* indexes of the location and of one of its lines */
    uint32_t function;
    int64_t address; /* distance from the start of its library */
    uint32_t depth;  /* level of inlining */
    int64_t line_number, column;
    enum category category;
};

struct written_stack {
    uint32_t frame, parent; /* PARENT plus one; 0: none */
};

struct encoder {
    const struct profile *profile;
    struct json_writer writer;
    int column;
    struct profile texts; /* strings with the ids that the file has; nothing else is used */
    INDEXED_ARRAY_OF(struct mapping_id) libraries;
    INDEXED_ARRAY_OF(struct written_function) functions;
    ARRAY_OF(struct written_frame) frames;
    ARRAY_OF(struct written_stack) stacks;
    INDEXED_ARRAY_OF(struct string_id) sources;
    struct string_id *names; /* string of TEXTS for each string of the profile, many of which are the same name */
    uint32_t *first_frame;   /* number of the first frame of each location, plus one */
    uint32_t *stack_ends;    /* stack of the innermost frame of each stack of the model, plus one */
    struct tracks tracks;
    struct firefox_markers markers;
    bool *has_markers_written; /* flag of each thread */
    unsigned *program_numbers; /* number of earlier processes with the same pid, of each process */
    uint64_t start_ns;
    bool has_unnamed;
    enum status status;
};

static void fail(struct encoder *encoder)
{
    if (encoder->status == STATUS_OK) encoder->status = STATUS_NO_MEMORY;
}

/* --- Libraries and sources ---------------------------------------------------------------------------------------- */

static bool library_equal(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    const struct mapping *a = profile_mapping(encoder->profile, encoder->libraries.items[index]), *b = key;
    return a->file_name.index == b->file_name.index && mapping_build_text(a).index == mapping_build_text(b).index;
}

/* The segments of a file are one library. Its number plus one; 0: none. */
static uint32_t number_library(struct encoder *encoder, struct mapping_id id)
{
    const struct mapping *mapping = profile_mapping(encoder->profile, id);
    if (id.index == 0 || mapping->file_name.index == 0) return 0;
    uint64_t hash = hash_mix(mapping->file_name.index, mapping_build_text(mapping).index);
    uint32_t known = index_table_find(&encoder->libraries.index, hash, library_equal, encoder, mapping);
    if (known != INDEX_NONE) return known + 1;
    if (INDEXED_ARRAY_PUSH(&encoder->libraries, PROFILE_ENTITIES_MAX, hash, id))
        return (uint32_t)encoder->libraries.count;
    fail(encoder);
    return 0;
}

static bool source_equal(const void *context, uint32_t index, const void *key)
{
    return ((const struct encoder *)context)->sources.items[index].index == *(const uint32_t *)key;
}

/* The number of a file's name in the table of sources. */
static uint32_t number_source(struct encoder *encoder, struct string_id file)
{
    uint64_t hash = hash_mix(0, file.index);
    uint32_t known = index_table_find(&encoder->sources.index, hash, source_equal, encoder, &file.index);
    if (known != INDEX_NONE) return known;
    if (INDEXED_ARRAY_PUSH(&encoder->sources, PROFILE_ENTITIES_MAX, hash, file))
        return (uint32_t)encoder->sources.count - 1;
    fail(encoder);
    return 0;
}

/* Inlined functions have the category of the function that contains them, unless it is the program's or a library's. */
static enum category category_of(const struct encoder *encoder, const struct location *location,
                                 const struct function *function)
{
    const struct profile *profile = encoder->profile;
    enum frame_kind kind = frame_kind_of(profile, location, location->line_count > 0 ? location->line_count - 1 : 0);
    struct slice file = profile_slice(profile, profile_mapping(profile, location->mapping)->file_name);
    if (kind == FRAME_JIT) return CATEGORY_JIT;
    if (kind == FRAME_KERNEL) return CATEGORY_KERNEL;
    if (kind == FRAME_INTERPRETED) return CATEGORY_INTERPRETER;
    if (text_begins_with(file, "/lib") || text_begins_with(file, "/usr/lib") || text_begins_with(file, "["))
        return CATEGORY_LIBRARY;
    if (function->in_app == IN_APP_NO) return CATEGORY_LIBRARY;
    return file.size > 0 || function->in_app == IN_APP_YES ? CATEGORY_PROGRAM : CATEGORY_OTHER;
}

/* --- Frames and stacks -------------------------------------------------------------------------------------------- */

static bool function_equal(const void *context, uint32_t index, const void *key)
{
    const struct written_function *a = &((const struct encoder *)context)->functions.items[index], *b = key;
    return a->name.index == b->name.index && a->file.index == b->file.index && a->start_line == b->start_line &&
           a->library == b->library;
}

static uint32_t number_function(struct encoder *encoder, struct written_function function)
{
    uint64_t hash = hash_mix((uint64_t)function.name.index << 32 | function.file.index, function.library);
    hash = hash_mix(hash, (uint64_t)function.start_line);
    uint32_t known = index_table_find(&encoder->functions.index, hash, function_equal, encoder, &function);
    if (known != INDEX_NONE) return known;
    if (INDEXED_ARRAY_PUSH(&encoder->functions, PROFILE_ENTITIES_MAX, hash, function))
        return (uint32_t)encoder->functions.count - 1;
    fail(encoder);
    return 0;
}

/* The offset from the start of the library; none if it is larger than a library can be. */
static int64_t relative_address(const struct profile *profile, const struct location *location)
{
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    uint64_t start = mapping->image_start ? mapping->image_start : mapping->start - mapping->file_offset;
    bool is_inside = location->address != 0 && location->address >= start;
    return is_inside && location->address - start <= INT32_MAX ? (int64_t)(location->address - start) : ADDRESS_NONE;
}

bool firefox_has_address(const struct profile *profile, const struct location *location)
{
    return profile_mapping(profile, location->mapping)->file_name.index != 0 &&
           relative_address(profile, location) != ADDRESS_NONE;
}

static struct string_id unnamed(struct encoder *encoder, const struct location *location, int64_t address)
{
    char name[NAME_BYTES_MAX];
    if (location->address == 0) return profile_text(&encoder->texts, "[unknown]");
    (void)snprintf(name, sizeof(name), "0x%" PRIx64, address == ADDRESS_NONE ? location->address : (uint64_t)address);
    return profile_text(&encoder->texts, name);
}

static struct string_id text_of(struct encoder *encoder, struct string_id name)
{
    struct string_id *text = &encoder->names[name.index];
    if (text->index == 0) *text = profile_string(&encoder->texts, profile_slice(encoder->profile, name));
    return *text;
}

/* Adds the frame of line LINE of LOCATION, or of LOCATION itself where it has no lines. */
static void add_frame(struct encoder *encoder, uint32_t index, uint32_t line_index)
{
    const struct profile *profile = encoder->profile;
    const struct location *location = &profile->locations.items[index];
    struct line line = {0};
    if (location->line_count > 0) line = profile_lines(profile, location)[line_index];
    const struct function *function = profile_function(profile, line.function);
    int64_t address = relative_address(profile, location);
    struct written_frame frame = {
        .location = index,
        .line = line_index,
        .address = address,
        .depth = location->line_count > 0 ? location->line_count - 1 - line_index : 0,
        .line_number = line.line,
        .column = line.column,
        .category = category_of(encoder, location, function),
    };
    struct written_function written = {.file = function->file_name,
                                       .start_line = function->start_line,
                                       .library = number_library(encoder, location->mapping)};
    struct string_id name = frame_name_of_function(function);
    written.name = name.index ? text_of(encoder, name) : unnamed(encoder, location, address);
    encoder->has_unnamed |= name.index == 0 && location->address != 0;
    if (written.file.index) (void)number_source(encoder, written.file);
    frame.function = number_function(encoder, written);
    if (!ARRAY_PUSH(&encoder->frames, PROFILE_ENTITIES_MAX, frame)) fail(encoder);
}

/* The frames of a location are consecutive, the innermost first. */
static uint32_t frames_of(struct encoder *encoder, uint32_t location)
{
    uint32_t *first = &encoder->first_frame[location];
    if (*first) return *first - 1;
    uint32_t count = encoder->profile->locations.items[location].line_count;
    *first = (uint32_t)encoder->frames.count + 1;
    for (uint32_t i = 0; i < (count ? count : 1); i++) add_frame(encoder, location, i);
    return *first - 1;
}

static void add_stack(struct encoder *encoder, uint32_t index)
{
    struct stack stack = profile_stack_at(encoder->profile, index);
    uint32_t count = encoder->profile->locations.items[stack.location.index].line_count;
    uint32_t frame = frames_of(encoder, stack.location.index), parent = encoder->stack_ends[stack.parent.index];
    for (uint32_t i = count ? count : 1; i-- > 0;) {
        struct written_stack added = {.frame = frame + i, .parent = parent};
        if (!ARRAY_PUSH(&encoder->stacks, PROFILE_ENTITIES_MAX, added)) fail(encoder);
        parent = (uint32_t)encoder->stacks.count;
    }
    encoder->stack_ends[index] = parent;
}

/* Adds only the stacks that samples use. */
static void add_stacks(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    bool *is_used = calloc(profile_stack_limit(profile), sizeof(*is_used));
    if (!is_used) fail(encoder);
    for (size_t i = 0; is_used && i < profile->samples.count; i++) is_used[profile->samples.stack[i].index] = true;
    for (uint32_t i = profile_stack_limit(profile); is_used && i-- > 1;)
        if (is_used[i]) is_used[profile_parent_at(profile, i)] = true;
    for (uint32_t i = 1; is_used && i < profile_stack_limit(profile) && encoder->status == STATUS_OK; i++) {
        if (is_used[i]) add_stack(encoder, i);
    }
    free(is_used);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

/* Gives times to a profile without times: each sample begins where the previous sample of its thread ends. */
static void lay_out(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    uint64_t *clocks = calloc(profile->threads.count, sizeof(*clocks)), period_ns = sample_times_period_ns(profile);
    int time = profile_time_column(profile);
    if (!clocks) fail(encoder);
    for (size_t i = 0; clocks && i < profile->samples.count; i++) {
        uint64_t *clock = &clocks[profile->samples.thread[i].index], length_ns;
        uint64_t spacing_ns = sample_times_spacing_ns(profile, i, period_ns);
        if (__builtin_mul_overflow(sample_ticks(profile, i), spacing_ns, &length_ns)) length_ns = period_ns;
        if (time >= 0 && profile_sample_values(profile, i)[time] > 0)
            length_ns = (uint64_t)profile_sample_values(profile, i)[time];
        encoder->tracks.samples[i].time_ns = *clock;
        if (*clock + length_ns <= INT64_MAX) *clock += length_ns;
    }
    free(clocks);
}

static void sort_samples(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (profile->samples.time_ns[i] < first_ns) first_ns = profile->samples.time_ns[i];
    }
    if (firefox_markers_start(&encoder->markers) < first_ns) first_ns = firefox_markers_start(&encoder->markers);
    if (first_ns == UINT64_MAX) first_ns = 0;
    encoder->start_ns = profile->has_times ? first_ns : profile_start_ns(profile);
    for (size_t i = 0; profile->has_times && i < profile->samples.count; i++)
        encoder->tracks.samples[i].time_ns -= first_ns;
    if (!profile->has_times) lay_out(encoder);
    tracks_sort(&encoder->tracks);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void write_text(struct encoder *encoder, const char *key, const char *text)
{
    json_member_text(&encoder->writer, key, text);
}

static void write_slice(struct encoder *encoder, const char *key, struct slice text)
{
    json_member_string(&encoder->writer, key, text);
}

static void write_number(struct encoder *encoder, const char *key, int64_t number)
{
    json_member_i64(&encoder->writer, key, number);
}

static void write_null(struct encoder *encoder, const char *key)
{
    json_write_key(&encoder->writer, key);
    json_write_null(&encoder->writer);
}

static void write_switch(struct encoder *encoder, const char *key, bool value)
{
    json_member_bool(&encoder->writer, key, value);
}

static void write_milliseconds(struct encoder *encoder, const char *key, uint64_t nanoseconds)
{
    json_write_key(&encoder->writer, key);
    json_write_fixed(&encoder->writer, nanoseconds, 6);
}

static void begin_object(struct encoder *encoder, const char *key)
{
    json_begin_object_member(&encoder->writer, key);
}

static void begin_array(struct encoder *encoder, const char *key)
{
    json_begin_array_member(&encoder->writer, key);
}

/* A column of COUNT entries; VALUE is an expression of the entry's index i. */
#define WRITE_COLUMN(encoder, key, count_of_entries, write_value, value)                                               \
    do {                                                                                                               \
        begin_array((encoder), (key));                                                                                 \
        for (size_t i = 0; i < (count_of_entries); i++) write_value(&(encoder)->writer, value);                        \
        json_end_array(&(encoder)->writer);                                                                            \
    } while (0)

#define WRITE_NULLS(encoder, key, count_of_entries)                                                                    \
    do {                                                                                                               \
        begin_array((encoder), (key));                                                                                 \
        for (size_t i = 0; i < (count_of_entries); i++) json_write_null(&(encoder)->writer);                           \
        json_end_array(&(encoder)->writer);                                                                            \
    } while (0)

/* Zero means "not known". */
static void write_place(struct json_writer *writer, int64_t number)
{
    if (number > 0)
        json_write_i64(writer, number);
    else
        json_write_null(writer);
}

/* NUMBER less one, or null for 0. */
static void write_reference(struct json_writer *writer, uint32_t number)
{
    if (number > 0)
        json_write_u64(writer, number - 1);
    else
        json_write_null(writer);
}

static void write_category(struct encoder *encoder, struct slice name, const char *colour)
{
    json_begin_object(&encoder->writer);
    write_slice(encoder, "name", name);
    write_text(encoder, "color", colour);
    begin_array(encoder, "subcategories");
    json_write_text(&encoder->writer, "Other");
    json_end_array(&encoder->writer);
    json_end_object(&encoder->writer);
}

/* The categories of stacks, and then the categories of markers. */
static void write_categories(struct encoder *encoder)
{
    begin_array(encoder, "categories");
    for (size_t i = 0; i < CATEGORIES; i++)
        write_category(encoder, slice_of_text(categories[i].name), categories[i].colour);
    for (size_t i = 0; i < encoder->markers.category_count; i++)
        write_category(encoder, profile_slice(encoder->profile, encoder->markers.category_names[i]), "grey");
    json_end_array(&encoder->writer);
}

/* Writes the system that the profile is of, where its recorder says it: perf with a machine, or offbeat. */
static void write_system(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    const char *machine = profile_metadata_text(profile, "arch");
    if (profile_metadata_number(profile, "samples_taken") > 0) machine = "x86_64";
    char system[80];
    (void)snprintf(system, sizeof(system), "Linux %.64s", machine);
    if (machine[0]) write_text(encoder, "oscpu", system);
}

static void write_meta(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct mapping_id program = {profile->mappings.count > 1 ? 1 : 0};
    struct slice product = path_base_name(profile_slice(profile, profile_mapping(profile, program)->file_name));
    begin_object(encoder, "meta");
    write_number(encoder, "preprocessedProfileVersion", FIREFOX_VERSION);
    write_number(encoder, "version", GECKO_VERSION);
    write_slice(encoder, "product", product.size ? product : slice_of_text("offbeat"));
    write_system(encoder);
    write_text(encoder, "importedFrom", "offbeat " OFFBEAT_VERSION);
    write_milliseconds(encoder, "interval", sample_times_period_ns(profile));
    write_milliseconds(encoder, "startTime", encoder->start_ns);
    write_number(encoder, "processType", 0);
    write_number(encoder, "stackwalk", 1);
    write_switch(encoder, "debug", false);
    write_switch(encoder, "symbolicated", !encoder->has_unnamed);
    write_switch(encoder, "usesOnlyOneStackType", true);
    write_switch(encoder, "sourceCodeIsNotOnSearchfox", true);
    write_switch(encoder, "keepProfileThreadOrder", true);
    begin_array(encoder, "initialSelectedThreads");
    json_write_u64(&encoder->writer, tracks_place_to_show(&encoder->tracks, encoder->profile));
    json_end_array(&encoder->writer);
    begin_object(encoder, "sampleUnits");
    write_text(encoder, "time", "ms");
    write_text(encoder, "eventDelay", "ms");
    write_text(encoder, "threadCPUDelta", "ns");
    json_end_object(&encoder->writer);
    write_categories(encoder);
    begin_array(encoder, "markerSchema");
    firefox_markers_write_schemas(&encoder->markers, &encoder->writer);
    json_end_array(&encoder->writer);
    json_end_object(&encoder->writer);
}

/* The debug id without hyphens, in capitals, and the age; "" if there is none. */
static void make_breakpad_id(const struct profile *profile, const struct mapping *mapping,
                             char ret_id[BREAKPAD_ID_SIZE])
{
    char text[DEBUG_ID_TEXT_SIZE], plain[UUID_TEXT_SIZE];
    struct slice debug_id = profile_slice(profile, mapping->debug_id);
    if (debug_id.size == 0 && debug_id_from_build_id(profile_slice(profile, mapping->build_id), text))
        debug_id = slice_of_text(text);
    ret_id[0] = '\0';
    if (!uuid_parse(debug_id, plain)) return;
    for (size_t i = 0; plain[i]; i++) plain[i] = (char)toupper((unsigned char)plain[i]);
    (void)snprintf(ret_id, BREAKPAD_ID_SIZE, "%s0", plain);
}

static void write_libraries(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    begin_array(encoder, "libs");
    for (size_t i = 0; i < encoder->libraries.count; i++) {
        const struct mapping *mapping = profile_mapping(profile, encoder->libraries.items[i]);
        struct slice path = profile_slice(profile, mapping->file_name), name = path_base_name(path);
        char id[BREAKPAD_ID_SIZE];
        make_breakpad_id(profile, mapping, id);
        json_begin_object(&encoder->writer);
        write_text(encoder, "arch", "");
        write_slice(encoder, "name", name);
        write_slice(encoder, "path", path);
        write_slice(encoder, "debugName", name);
        write_slice(encoder, "debugPath", path);
        write_text(encoder, "breakpadId", id);
        struct string_id code_id = mapping_build_text(mapping);
        if (code_id.index)
            write_slice(encoder, "codeId", profile_slice(profile, code_id));
        else
            write_null(encoder, "codeId");
        json_end_object(&encoder->writer);
    }
    json_end_array(&encoder->writer);
}

static void write_stack_table(struct encoder *encoder)
{
    size_t count = encoder->stacks.count;
    const struct written_stack *stacks = encoder->stacks.items;
    begin_object(encoder, "stackTable");
    WRITE_COLUMN(encoder, "frame", count, json_write_u64, stacks[i].frame);
    WRITE_COLUMN(encoder, "prefix", count, write_reference, stacks[i].parent);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

static void write_frame_table(struct encoder *encoder)
{
    size_t count = encoder->frames.count;
    const struct written_frame *frames = encoder->frames.items;
    begin_object(encoder, "frameTable");
    WRITE_COLUMN(encoder, "address", count, json_write_i64, frames[i].address);
    WRITE_COLUMN(encoder, "inlineDepth", count, json_write_u64, frames[i].depth);
    WRITE_COLUMN(encoder, "category", count, json_write_u64, (uint64_t)frames[i].category);
    WRITE_COLUMN(encoder, "subcategory", count, json_write_u64, 0);
    WRITE_COLUMN(encoder, "func", count, json_write_u64, frames[i].function);
    WRITE_NULLS(encoder, "nativeSymbol", count);
    WRITE_NULLS(encoder, "innerWindowID", count);
    WRITE_COLUMN(encoder, "line", count, write_place, frames[i].line_number);
    WRITE_COLUMN(encoder, "column", count, write_place, frames[i].column);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

static void write_function_table(struct encoder *encoder)
{
    size_t count = encoder->functions.count;
    const struct written_function *functions = encoder->functions.items;
    begin_object(encoder, "funcTable");
    WRITE_COLUMN(encoder, "name", count, json_write_u64, functions[i].name.index);
    WRITE_COLUMN(encoder, "isJS", count, json_write_bool, false);
    WRITE_COLUMN(encoder, "relevantForJS", count, json_write_bool, false);
    WRITE_COLUMN(encoder, "resource", count, json_write_i64, (int64_t)functions[i].library - 1);
    WRITE_COLUMN(encoder, "source", count, write_reference,
                 functions[i].file.index ? number_source(encoder, functions[i].file) + 1 : 0);
    WRITE_COLUMN(encoder, "lineNumber", count, write_place, functions[i].start_line);
    WRITE_NULLS(encoder, "columnNumber", count);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

/* The number of the library's name in the file. */
static uint64_t library_name(struct encoder *encoder, size_t library)
{
    const struct mapping *mapping = profile_mapping(encoder->profile, encoder->libraries.items[library]);
    struct slice path = profile_slice(encoder->profile, mapping->file_name);
    return profile_string(&encoder->texts, path_base_name(path)).index;
}

/* Each library is a resource, with the same number. */
static void write_resource_table(struct encoder *encoder)
{
    size_t count = encoder->libraries.count;
    begin_object(encoder, "resourceTable");
    WRITE_COLUMN(encoder, "lib", count, json_write_u64, i);
    WRITE_COLUMN(encoder, "name", count, json_write_u64, library_name(encoder, i));
    WRITE_NULLS(encoder, "host", count);
    WRITE_COLUMN(encoder, "type", count, json_write_u64, RESOURCE_LIBRARY);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

static void write_empty_table(struct encoder *encoder, const char *key, const char *const *columns, size_t count)
{
    begin_object(encoder, key);
    for (size_t i = 0; i < count; i++) {
        begin_array(encoder, columns[i]);
        json_end_array(&encoder->writer);
    }
    write_number(encoder, "length", 0);
    json_end_object(&encoder->writer);
}

static void write_sources(struct encoder *encoder)
{
    size_t count = encoder->sources.count;
    const struct string_id *sources = encoder->sources.items;
    begin_object(encoder, "sources");
    WRITE_NULLS(encoder, "id", count);
    WRITE_COLUMN(encoder, "filename", count, json_write_u64,
                 profile_string(&encoder->texts, profile_slice(encoder->profile, sources[i])).index);
    WRITE_COLUMN(encoder, "startLine", count, json_write_u64, 1);
    WRITE_COLUMN(encoder, "startColumn", count, json_write_u64, 1);
    WRITE_NULLS(encoder, "sourceMapURL", count);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

static void write_shared(struct encoder *encoder)
{
    static const char *const symbol_columns[] = {"libIndex", "address", "name", "functionSize"};
    begin_object(encoder, "shared");
    write_stack_table(encoder);
    write_frame_table(encoder);
    write_function_table(encoder);
    write_resource_table(encoder);
    write_empty_table(encoder, "nativeSymbols", symbol_columns, 4);
    write_sources(encoder);
    WRITE_COLUMN(encoder, "stringArray", encoder->texts.strings.count, json_write_string,
                 encoder->texts.strings.items[i]);
    json_end_object(&encoder->writer);
}

static int64_t value_of(const struct encoder *encoder, const struct track_sample *sample)
{
    return profile_sample_values(encoder->profile, sample->sample)[encoder->column];
}

static void write_weights(struct encoder *encoder, const struct track_sample *samples, size_t count)
{
    const struct profile *profile = encoder->profile;
    struct slice unit = slice_of_text("");
    if (encoder->column >= 0) unit = profile_slice(profile, profile->value_types[encoder->column].unit);
    bool is_time = slice_equals_text(unit, "nanoseconds"), is_size = slice_equals_text(unit, "bytes");
    write_text(encoder, "weightType", is_time ? "tracing-ms" : is_size ? "bytes" : "samples");
    if (is_time)
        WRITE_COLUMN(encoder, "weight", count, json_write_double, (double)value_of(encoder, &samples[i]) / 1e6);
    else
        WRITE_COLUMN(encoder, "weight", count, json_write_i64, value_of(encoder, &samples[i]));
}

int firefox_cpu_column(const struct profile *profile)
{
    int column = profile_counts_cpu_time(profile) ? 1 : profile_value_index(profile, "cpu");
    bool is_written = profile->has_times && column >= 0 &&
                      slice_equals_text(profile_slice(profile, profile->value_types[column].unit), "nanoseconds");
    return is_written ? column : -1;
}

/* Writes the CPU time of each sample, from which the viewer draws how busy a thread is. */
static void write_cpu_times(struct encoder *encoder, const struct track_sample *samples, size_t count)
{
    const struct profile *profile = encoder->profile;
    int column = firefox_cpu_column(profile);
    if (column < 0) return;
    WRITE_COLUMN(encoder, "threadCPUDelta", count, json_write_i64,
                 profile_sample_values(profile, samples[i].sample)[column]);
}

static void write_fixed_milliseconds(struct json_writer *writer, uint64_t nanoseconds)
{
    json_write_fixed(writer, nanoseconds, 6);
}

static void write_samples(struct encoder *encoder, const struct track_sample *samples, size_t count)
{
    const struct stack_id *stacks = encoder->profile->samples.stack;
    begin_object(encoder, "samples");
    WRITE_COLUMN(encoder, "stack", count, write_reference, encoder->stack_ends[stacks[samples[i].sample].index]);
    WRITE_COLUMN(encoder, "time", count, write_fixed_milliseconds, samples[i].time_ns);
    write_weights(encoder, samples, count);
    write_cpu_times(encoder, samples, count);
    write_number(encoder, "length", (int64_t)count);
    json_end_object(&encoder->writer);
}

/* A process keeps its pid when it runs another program; the viewer needs distinct pids: "7", "7.1", "7.2". */
static void write_process_id(struct encoder *encoder, uint32_t process)
{
    const struct process_key *items = encoder->tracks.processes.items;
    char id[48];
    unsigned earlier = encoder->program_numbers[process];
    (void)snprintf(id, sizeof(id), earlier ? "%" PRId64 ".%u" : "%" PRId64, items[process].pid, earlier);
    write_text(encoder, "pid", id);
}

static void write_markers(struct encoder *encoder, uint32_t thread)
{
    begin_object(encoder, "markers");
    firefox_markers_write(&encoder->markers, thread, encoder->start_ns, CATEGORIES, &encoder->writer);
    json_end_object(&encoder->writer);
    encoder->has_markers_written[thread] = true;
}

/* Writes the members of a thread that come before its samples. */
static void begin_thread(struct encoder *encoder, struct string_id process_name, uint64_t start_ns)
{
    json_begin_object(&encoder->writer);
    write_text(encoder, "processType", "default");
    if (process_name.index) write_slice(encoder, "processName", profile_slice(encoder->profile, process_name));
    write_number(encoder, "processStartupTime", 0);
    write_null(encoder, "processShutdownTime");
    write_milliseconds(encoder, "registerTime", start_ns);
    write_null(encoder, "unregisterTime");
    begin_array(encoder, "pausedRanges");
    json_end_array(&encoder->writer);
}

static const char *const marker_columns[] = {"data", "name", "startTime", "endTime", "phase", "category"};

static void write_thread(struct encoder *encoder, const struct track_sample *samples, size_t count, bool is_first)
{
    const struct profile *profile = encoder->profile;
    const struct process_key *process = &encoder->tracks.processes.items[samples[0].process];
    struct slice id = profile_slice(profile, profile_thread(profile, (struct thread_id){samples[0].thread})->id);
    struct slice name = profile_slice(profile, profile_thread_name_at(profile, samples[count - 1].sample));
    begin_thread(encoder, process->name, samples[0].time_ns);
    write_slice(encoder, "name", name.size ? name : id.size ? id : slice_of_text("all"));
    write_switch(encoder, "isMainThread", is_first);
    write_process_id(encoder, samples[0].process);
    write_slice(encoder, "tid", id.size ? id : slice_of_text("0"));
    write_samples(encoder, samples, count);
    if (encoder->has_markers_written[samples[0].thread])
        write_empty_table(encoder, "markers", marker_columns, sizeof(marker_columns) / sizeof(marker_columns[0]));
    else
        write_markers(encoder, samples[0].thread);
    json_end_object(&encoder->writer);
}

/* Writes a thread that was never sampled. */
static void write_thread_without_samples(struct encoder *encoder, uint32_t index)
{
    const struct profile *profile = encoder->profile;
    const struct thread *thread = profile_thread(profile, (struct thread_id){index});
    const struct process *process = profile_process(profile, thread->process);
    struct slice id = profile_slice(profile, thread->id), name = profile_slice(profile, thread->name);
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "%" PRId64, (int64_t)process->pid);
    begin_thread(encoder, process->name, 0);
    write_slice(encoder, "name", name.size ? name : id.size ? id : slice_of_text("all"));
    write_switch(encoder, "isMainThread", profile->samples.count == 0);
    write_text(encoder, "pid", pid);
    write_slice(encoder, "tid", id.size ? id : slice_of_text("0"));
    write_samples(encoder, NULL, 0);
    write_markers(encoder, index);
    json_end_object(&encoder->writer);
}

static void write_threads(struct encoder *encoder)
{
    const struct track_sample *samples = encoder->tracks.samples;
    begin_array(encoder, "threads");
    for (size_t first = 0; first < encoder->profile->samples.count && !encoder->writer.out->failed;) {
        size_t size = tracks_size_at(&encoder->tracks, first);
        write_thread(encoder, samples + first, size,
                     first == 0 || samples[first].process != samples[first - 1].process);
        first += size;
    }
    for (uint32_t i = 0; i < encoder->profile->threads.count && !encoder->writer.out->failed; i++) {
        bool has_markers = !encoder->has_markers_written[i] && firefox_markers_of(&encoder->markers, i) > 0;
        bool is_only_one = encoder->profile->samples.count == 0 && i + 1 == encoder->profile->threads.count;
        if (has_markers || is_only_one) write_thread_without_samples(encoder, i);
    }
    json_end_array(&encoder->writer);
}

static int compare_pids(const void *left, const void *right, void *context)
{
    const struct process_key *items = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (items[a].pid != items[b].pid) return items[a].pid < items[b].pid ? -1 : 1;
    return (a > b) - (a < b);
}

/* Counts, for each process, the earlier ones with the same pid. */
static bool number_programs(struct encoder *encoder)
{
    size_t count = encoder->tracks.processes.count;
    uint32_t *order = calloc(count, sizeof(*order));
    encoder->program_numbers = calloc(count, sizeof(*encoder->program_numbers));
    bool is_done = order && encoder->program_numbers;
    for (uint32_t i = 0; is_done && i < count; i++) order[i] = i;
    if (is_done) qsort_r(order, count, sizeof(*order), compare_pids, encoder->tracks.processes.items);
    for (size_t i = 1; is_done && i < count; i++) {
        bool is_same =
            encoder->tracks.processes.items[order[i]].pid == encoder->tracks.processes.items[order[i - 1]].pid;
        if (is_same) encoder->program_numbers[order[i]] = encoder->program_numbers[order[i - 1]] + 1;
    }
    free(order);
    return is_done;
}

static void encode(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->names = calloc(profile->strings.count, sizeof(*encoder->names));
    encoder->first_frame = calloc(profile->locations.count, sizeof(*encoder->first_frame));
    encoder->stack_ends = calloc(profile_stack_limit(profile), sizeof(*encoder->stack_ends));
    encoder->has_markers_written = calloc(profile->threads.count, sizeof(*encoder->has_markers_written));
    bool has_tracks = tracks_init(&encoder->tracks, profile) && number_programs(encoder);
    struct thread_id shown = profile_thread_with_samples(profile, profile_default_thread(profile));
    bool has_markers = firefox_markers_init(&encoder->markers, profile, shown, &encoder->texts);
    if (!encoder->names || !encoder->first_frame || !encoder->stack_ends || !encoder->has_markers_written ||
        !has_tracks || !has_markers) {
        fail(encoder);
        return;
    }
    add_stacks(encoder);
    sort_samples(encoder);
    if (encoder->status != STATUS_OK) return;
    json_begin_object(&encoder->writer);
    write_meta(encoder);
    write_libraries(encoder);
    write_shared(encoder);
    write_threads(encoder);
    json_end_object(&encoder->writer);
}

static void encoder_fini(struct encoder *encoder)
{
    profile_fini(&encoder->texts);
    free(encoder->libraries.items);
    index_table_fini(&encoder->libraries.index);
    free(encoder->functions.items);
    index_table_fini(&encoder->functions.index);
    free(encoder->frames.items);
    free(encoder->stacks.items);
    free(encoder->sources.items);
    index_table_fini(&encoder->sources.index);
    free(encoder->names);
    free(encoder->first_frame);
    free(encoder->stack_ends);
    tracks_fini(&encoder->tracks);
    firefox_markers_fini(&encoder->markers);
    free(encoder->has_markers_written);
    free(encoder->program_numbers);
}

enum status firefox_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    int column = profile_value_index(profile, "");
    if (profile->samples.count > 0 && column < 0)
        return error_set(error, STATUS_UNSUPPORTED, 0, "there is no sample to be written");
    struct encoder encoder = {.profile = profile, .writer = json_writer_of(out), .column = column};
    profile_init(&encoder.texts);
    encode(&encoder);
    if (encoder.status == STATUS_OK) encoder.status = encoder.texts.failed;
    status = encoder.status;
    encoder_fini(&encoder);
    if (status == STATUS_OK && !out->failed) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "larger than %zu bytes, or than memory", out->maximum);
}

bool firefox_detect(struct slice bytes)
{
    return json_kind_of_profile(bytes) == JSON_PROFILE_FIREFOX;
}

const struct format format_firefox = {
    .name = "firefox",
    .suffixes = {".firefox.json"},
    .detect = firefox_detect,
    .decode = firefox_decode,
    .encode = firefox_encode,
    .keeps = KEEPS_ALL_NUMBERS | KEEPS_TIMES | KEEPS_THREADS | KEEPS_INLINED | KEEPS_LINES | KEEPS_ADDRESSES |
             KEEPS_IMAGES | KEEPS_DEBUG_IDS | KEEPS_MARKERS,
    .needs_timestamps = true,
    .needs_full_names = true,
};
