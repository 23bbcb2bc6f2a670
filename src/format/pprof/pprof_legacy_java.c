/* Java's heap and contention profiles, and the names that follow their stacks.
 *
 * Addresses are only numbers there: a line "0x12 com.example.Class.method (Class.java:34)" after the stacks names each
 * of them. A location with a name loses its number, so that profiles of two processes can be compared.
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_legacy_private.h"

/* --- Names -------------------------------------------------------------------------------------------------------- */

struct java_name {
    struct slice function, file;
    int64_t line;
};

/* The last "(" after a blank, in a string that ends with ")". NULL if there is none. */
static const uint8_t *last_bracket(struct slice text)
{
    if (text.size == 0 || text.data[text.size - 1] != ')') return NULL;
    for (size_t i = text.size - 1; i > 1; i--) {
        if (text.data[i] == '(' && (text.data[i - 1] == ' ' || text.data[i - 1] == '\t')) return text.data + i;
    }
    return NULL;
}

/* Splits "File.java:34"; false if no number is at the end. */
static bool split_line(struct slice text, struct java_name *name)
{
    const uint8_t *colon = text.size > 0 ? memrchr(text.data, ':', text.size) : NULL;
    if (!colon || colon == text.data) return false;
    struct cursor cursor = cursor_of(slice_of(colon + 1, text.size - (size_t)(colon + 1 - text.data)));
    int64_t line = legacy_decimal(&cursor);
    if (cursor.failed || !cursor_at_end(&cursor)) return false;
    name->file = slice_of(text.data, (size_t)(colon - text.data));
    name->line = line > 0 ? line : 0;
    return true;
}

/* The brackets contain a source line, or the path of a library, of which the last part is enough. A line without
 * brackets is a state of the virtual machine: "GC". */
static struct java_name split_name(struct slice text)
{
    struct java_name name = {.function = text};
    const uint8_t *bracket = last_bracket(text);
    if (!bracket) {
        if (legacy_search(text, "generated stub/JIT")) name.function = slice_of_text("STUB");
        return name;
    }
    name.function = legacy_trim(slice_of(text.data, (size_t)(bracket - text.data)));
    struct slice place = slice_of(bracket + 1, text.size - (size_t)(bracket + 2 - text.data));
    if (split_line(place, &name)) return name;
    const uint8_t *slash = place.size > 0 ? memrchr(place.data, '/', place.size) : NULL;
    size_t skipped = slash ? (size_t)(slash + 1 - place.data) : 0;
    name.file = slice_of(place.data + skipped, place.size - skipped);
    return name;
}

static void read_place(struct legacy *legacy, struct slice text)
{
    struct cursor cursor = cursor_of(text);
    legacy_expect(&cursor, "0x");
    uint64_t address = legacy_hex(&cursor);
    const uint8_t *end = cursor.position;
    legacy_skip_blanks(&cursor);
    if (cursor.failed || cursor.position == end) return; /* no line of this kind; there may be others */
    struct legacy_place *place = legacy_find_place(legacy, address);
    if (!place) return;
    struct java_name name = split_name(legacy_rest(&cursor));
    struct function function = {.name = profile_string(legacy->profile, name.function),
                                .file_name = profile_string(legacy->profile, name.file)};
    function.system_name = function.name;
    place->function = profile_add_function(legacy->profile, &function);
    place->line = name.line;
}

void legacy_read_java_places(struct legacy *legacy, struct cursor *cursor)
{
    struct slice line;
    while (legacy->status == STATUS_OK && legacy_next_line(cursor, &line)) read_place(legacy, legacy_trim(line));
}

/* --- Heap and contention ------------------------------------------------------------------------------------------ */

enum { HEAP_RATE = 512 * 1024 }; /* one sample in so many bytes, always */

struct java {
    bool is_heap;
    bool has_resolution;
};

/* "key = value". False, with nothing done, if LINE is not in that form. */
static bool read_attribute(struct legacy *legacy, struct slice line, struct java *java)
{
    struct slice key, text;
    if (!legacy_split_attribute(line, &key, &text)) return false;
    struct cursor cursor = cursor_of(text);
    if (slice_equals_text(key, "format")) {
        if (!slice_equals_text(text, "java")) LEGACY_FAIL(legacy, line.data, "a format that is not java");
    } else if (slice_equals_text(key, "resolution") && !java->has_resolution) {
        const char *unit = profile_c_string(legacy->profile, profile_string(legacy->profile, text));
        java->has_resolution = true;
        profile_add_value_type(legacy->profile, java->is_heap ? "inuse_objects" : "contentions", "count");
        profile_add_value_type(legacy->profile, java->is_heap ? "inuse_space" : "delay", unit);
    } else if (slice_equals_text(key, "sampling period") && !java->is_heap) {
        legacy_set_period(legacy, "contentions", "count", legacy_decimal(&cursor));
    } else if (slice_equals_text(key, "ms since reset") && !java->is_heap) {
        int64_t milliseconds = legacy_decimal(&cursor);
        legacy->profile->duration_ns = milliseconds < 0 ? 0 : (uint64_t)legacy_times(milliseconds, 1000000);
    } else {
        LEGACY_FAIL(legacy, line.data, "\"%.*s\" is not known of a java profile",
                    (int)(key.size < 100 ? key.size : 100), (const char *)key.data);
    }
    if (cursor.failed) LEGACY_FAIL(legacy, line.data, "a number is expected");
    return true;
}

/* "value count @ 0x…". False, with nothing done, if LINE is not in that form: the names follow. */
static bool read_sample(struct legacy *legacy, struct slice line, const struct java *java)
{
    struct cursor cursor = cursor_of(line);
    int64_t value, count;
    legacy_two_decimals(&cursor, &value, &count);
    if (cursor.failed) return false;
    if (!java->has_resolution) LEGACY_FAIL(legacy, line.data, "stacks without a resolution ahead of them");
    if (java->is_heap && count <= 0) LEGACY_FAIL(legacy, line.data, "a stack of no objects");
    struct legacy_sample *sample = legacy_add_sample(legacy);
    if (!sample) return true;
    if (java->is_heap) {
        sample->has_block_bytes = true;
        sample->block_bytes = value / count;
        legacy_unsample(&count, &value, HEAP_RATE);
    } else if (legacy->profile->period != 0) {
        count = legacy_times(count, legacy->profile->period);
        value = legacy_times(value, legacy->profile->period);
    }
    sample->values[0] = count;
    sample->values[1] = value;
    legacy_add_frames(legacy, legacy_rest(&cursor), UINT32_MAX);
    return true;
}

void legacy_read_java_text(struct legacy *legacy, struct cursor *cursor)
{
    struct java java = {0};
    struct slice line = {0};
    bool is_header = true, is_sample = true;
    (void)legacy_next_line(cursor, &line);
    java.is_heap = legacy_search(line, "heapz") != NULL;
    struct cursor names = *cursor;
    while (legacy->status == STATUS_OK && is_sample && legacy_next_line(cursor, &line)) {
        struct slice text = legacy_trim(line);
        if (text.size > 0) {
            is_header = is_header && read_attribute(legacy, text, &java);
            is_sample = is_header || read_sample(legacy, text, &java);
        }
        if (is_sample) names = *cursor;
    }
    if (!java.has_resolution) LEGACY_FAIL(legacy, legacy->bytes.data, "a java profile without a resolution");
    legacy_find_places(legacy);
    legacy_read_java_places(legacy, &names);
}
