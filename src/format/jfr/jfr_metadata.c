/* Reads the metadata of a chunk: a table of strings, and a tree of elements with attributes, of which the elements
 * "class" and "field" describe how values are written.  SPDX-License-Identifier: MIT */
#include "format/jfr/jfr_metadata.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>

uint64_t jfr_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return cursor->failed ? 0 : value;
    }
    return value | (uint64_t)cursor_u8(cursor) << 56;
}

struct jfr_text jfr_text(struct cursor *cursor)
{
    struct jfr_text text = {JFR_TEXT_NONE};
    enum { NONE, EMPTY, CONSTANT, UTF_8, UTF_16, LATIN_1 };
    switch (cursor_u8(cursor)) {
    case NONE:
    case EMPTY:
        break;
    case CONSTANT:
        text.kind = JFR_TEXT_CONSTANT;
        text.constant = jfr_varint(cursor);
        break;
    case UTF_8:
        text.kind = JFR_TEXT_BYTES;
        text.bytes = cursor_take(cursor, jfr_varint(cursor));
        break;
    case UTF_16: {
        uint64_t count = jfr_varint(cursor);
        const uint8_t *start = cursor->position;
        text.kind = JFR_TEXT_UTF16;
        if (count > cursor_left(cursor)) cursor->failed = true;
        for (uint64_t i = 0; i < count && !cursor->failed; i++) (void)jfr_varint(cursor);
        text.bytes = slice_of(start, cursor->failed ? 0 : (size_t)(cursor->position - start));
        break;
    }
    case LATIN_1:
        text.kind = JFR_TEXT_LATIN1;
        text.bytes = cursor_take(cursor, jfr_varint(cursor));
        break;
    default:
        cursor->failed = true;
    }
    return text;
}

static bool reject(struct jfr_types *types, enum status status, const char *message)
{
    if (!types->message) {
        types->message = message;
        types->status = status;
    }
    return false;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static enum jfr_role role_of(struct slice name)
{
    static const struct {
        const char *name;
        enum jfr_role role;
    } roles[] = {{"startTime", JFR_START_TIME},
                 {"duration", JFR_DURATION},
                 {"eventThread", JFR_THREAD},
                 {"sampledThread", JFR_THREAD},
                 {"stackTrace", JFR_STACK_TRACE},
                 {"weight", JFR_WEIGHT},
                 {"tlabSize", JFR_WEIGHT},
                 {"samples", JFR_SAMPLES},
                 {"allocationSize", JFR_SIZE},
                 {"size", JFR_SIZE},
                 {"frames", JFR_FRAMES},
                 {"method", JFR_METHOD},
                 {"lineNumber", JFR_LINE},
                 {"type", JFR_TYPE},
                 {"name", JFR_NAME},
                 {"string", JFR_STRING},
                 {"description", JFR_STRING}, /* text of a FrameType */
                 {"osName", JFR_OS_NAME},
                 {"osThreadId", JFR_OS_ID},
                 {"javaName", JFR_JAVA_NAME},
                 {"javaThreadId", JFR_JAVA_ID},
                 {"id", JFR_ID},
                 {"value", JFR_VALUE}};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (slice_equals_text(name, roles[i].name)) return roles[i].role;
    }
    return JFR_OTHER;
}

static void name_class(struct jfr_class *class, struct slice name)
{
    static const struct {
        const char *name;
        enum jfr_primitive primitive;
        enum jfr_event event;
    } known[] = {
        {"boolean", JFR_BYTE, JFR_NO_EVENT},
        {"byte", JFR_BYTE, JFR_NO_EVENT},
        {"char", JFR_VARINT, JFR_NO_EVENT},
        {"short", JFR_VARINT, JFR_NO_EVENT},
        {"int", JFR_VARINT, JFR_NO_EVENT},
        {"long", JFR_VARINT, JFR_NO_EVENT},
        {"float", JFR_FLOAT, JFR_NO_EVENT},
        {"double", JFR_DOUBLE, JFR_NO_EVENT},
        {"java.lang.String", JFR_TEXT, JFR_NO_EVENT},
        {"jdk.ActiveSetting", JFR_STRUCT, JFR_SETTING},
        {"jdk.ExecutionSample", JFR_STRUCT, JFR_EXECUTION},
        {"jdk.NativeMethodSample", JFR_STRUCT, JFR_NATIVE},
        {"profiler.WallClockSample", JFR_STRUCT, JFR_WALL},
        {"jdk.ObjectAllocationSample", JFR_STRUCT, JFR_ALLOCATION},
        {"jdk.ObjectAllocationInNewTLAB", JFR_STRUCT, JFR_TLAB},
        {"jdk.ObjectAllocationOutsideTLAB", JFR_STRUCT, JFR_TLAB},
        {"profiler.LiveObject", JFR_STRUCT, JFR_LIVE},
        {"profiler.Malloc", JFR_STRUCT, JFR_MALLOC},
        {"jdk.JavaMonitorEnter", JFR_STRUCT, JFR_LOCK},
        {"profiler.NativeLock", JFR_STRUCT, JFR_LOCK},
        {"jdk.ThreadPark", JFR_STRUCT, JFR_LOCK},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!slice_equals_text(name, known[i].name)) continue;
        class->primitive = known[i].primitive;
        class->event = known[i].event;
    }
}

/* --- Elements ----------------------------------------------------------------------------------------------------- */

struct element {
    struct slice name, type_name, dimension, constant, id, class_id;
};

static struct slice string_at(struct jfr_types *types, uint64_t index)
{
    if (index < types->strings.count) return types->strings.items[index];
    (void)reject(types, STATUS_MALFORMED, "the metadata uses a string that it does not have");
    return slice_of(NULL, 0);
}

static uint64_t number_of(struct slice text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    return number;
}

static void read_attributes(struct jfr_types *types, struct cursor *cursor, struct element *element)
{
    uint64_t count = jfr_varint(cursor);
    for (uint64_t i = 0; i < count && !cursor->failed && !types->message; i++) {
        struct slice key = string_at(types, jfr_varint(cursor));
        struct slice value = string_at(types, jfr_varint(cursor));
        if (slice_equals_text(key, "name")) element->type_name = value;
        if (slice_equals_text(key, "id")) element->id = value;
        if (slice_equals_text(key, "class")) element->class_id = value;
        if (slice_equals_text(key, "dimension")) element->dimension = value;
        if (slice_equals_text(key, "constantPool")) element->constant = value;
    }
}

static bool class_equal(const void *context, uint32_t index, const void *key)
{
    return ((const struct jfr_types *)context)->classes.items[index].id == *(const uint64_t *)key;
}

uint32_t jfr_types_find(const struct jfr_types *types, uint64_t class_id)
{
    return index_table_find(&types->classes.index, hash_mix(0, class_id), class_equal, types, &class_id);
}

static bool add_class(struct jfr_types *types, const struct element *element)
{
    struct jfr_class class = {.id = number_of(element->id), .field_first = (uint32_t)types->fields.count};
    name_class(&class, element->type_name);
    if (jfr_types_find(types, class.id) != INDEX_NONE)
        return reject(types, STATUS_MALFORMED, "two classes of the metadata have one number");
    if (types->classes.count == JFR_CLASSES_MAX)
        return reject(types, STATUS_TOO_LARGE, "more than 65536 classes in the metadata of a chunk");
    if (!INDEXED_ARRAY_PUSH(&types->classes, JFR_CLASSES_MAX, hash_mix(0, class.id), class))
        return reject(types, STATUS_NO_MEMORY, "no memory for the metadata");
    return true;
}

/* FIELD of the class that was added last: no class has fields of another one in between. */
static bool add_field(struct jfr_types *types, const struct element *element)
{
    if (types->classes.count == 0) return true;
    struct jfr_field field = {
        .class_id = number_of(element->class_id),
        .role = role_of(element->type_name),
        .is_constant = slice_equals_text(element->constant, "true"),
        .is_array = number_of(element->dimension) > 0,
    };
    if (!ARRAY_PUSH(&types->fields, PROFILE_ENTITIES_MAX, field))
        return reject(types, STATUS_NO_MEMORY, "no memory for the metadata");
    types->classes.items[types->classes.count - 1].field_count++;
    return true;
}

static bool read_element(struct jfr_types *types, struct cursor *cursor, unsigned depth)
{
    struct element element = {.name = string_at(types, jfr_varint(cursor))};
    if (depth == JFR_DEPTH_MAX) return reject(types, STATUS_TOO_LARGE, "the metadata is nested deeper than 32");
    read_attributes(types, cursor, &element);
    if (cursor->failed || types->message) return false;
    if (slice_equals_text(element.name, "class") && !add_class(types, &element)) return false;
    if (slice_equals_text(element.name, "field") && !add_field(types, &element)) return false;
    uint64_t children = jfr_varint(cursor);
    for (uint64_t i = 0; i < children; i++) {
        if (cursor->failed || !read_element(types, cursor, depth + 1)) return false;
    }
    return !cursor->failed;
}

static bool read_strings(struct jfr_types *types, struct cursor *cursor)
{
    uint64_t count = jfr_varint(cursor);
    if (count > JFR_STRINGS_MAX || count > cursor_left(cursor))
        return reject(types, STATUS_MALFORMED, "the metadata has more strings than it can hold");
    if (!array_reserve(&types->strings.items, &types->strings.capacity, (size_t)count, sizeof(*types->strings.items),
                       JFR_STRINGS_MAX))
        return reject(types, STATUS_NO_MEMORY, "no memory for the metadata");
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        /* Names are ASCII, which is the same bytes in every encoding: UTF-16 has a varint for each unit. */
        types->strings.items[types->strings.count++] = jfr_text(cursor).bytes;
    }
    return !cursor->failed;
}

bool jfr_types_read(struct jfr_types *types, struct cursor *cursor)
{
    for (int i = 0; i < 5; i++) (void)jfr_varint(cursor); /* size, type, start, duration, number */
    bool is_read = read_strings(types, cursor) && read_element(types, cursor, 0);
    if (!is_read) return reject(types, STATUS_MALFORMED, "the metadata ends in the middle");
    for (size_t i = 0; i < types->fields.count; i++)
        types->fields.items[i].class_index = jfr_types_find(types, types->fields.items[i].class_id);
    return true;
}

void jfr_types_fini(struct jfr_types *types)
{
    free(types->strings.items);
    free(types->classes.items);
    free(types->fields.items);
    index_table_fini(&types->classes.index);
    *types = (struct jfr_types){0};
}
