/* Reads what Python's cProfile and profile write, and the module pstats reads: functions with their times and callers,
 * in Python's marshal. marshal writes an object once and refers to it by its number afterwards, so that all of them are
 * kept until the end. Values are time/nanoseconds, in a function itself, and calls/count. Cumulative times and the
 * times of callers are stated costs.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/cursor.h"
#include "format/common/format_ops.h"
#include "format/common/stack_estimate.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

enum {
    PSTATS_DEPTH_MAX = 32,        /* levels of tuples, dictionaries and functions' code */
    PSTATS_OBJECTS_MAX = 1 << 26, /* values in one file */
};

enum kind { KIND_OTHER, KIND_TEXT, KIND_NUMBER, KIND_TUPLE, KIND_DICTIONARY };

enum {
    NO_OBJECT = 0,
    FLAG_REFERENCE = 0x80,
    FUNCTION_PARTS = 3,
    STATISTICS_PARTS = 4,
    CODE_NUMBERS = 5,
    CODE_PARTS = 8,
    CODE_FREE_VARIABLES = 4,
};

struct object {
    enum kind kind;
    uint32_t count; /* number of a tuple's items, or of a dictionary's keys and values */
    union {
        struct string_id text;
        double number;
        size_t first; /* index in decoder.items */
    };
};

struct decoder {
    struct slice bytes;
    struct cursor cursor;
    struct profile *profile;
    ARRAY_OF(struct object) objects; /* 0: something else */
    ARRAY_OF(uint32_t) items, references, pending;
    ARRAY_OF(uint32_t) interned; /* strings that Python 2 refers to */
    enum status status;
    struct error *error;
};

static uint32_t reject(struct decoder *decoder, enum status status, const char *message)
{
    uint64_t offset = (uint64_t)(decoder->cursor.position - decoder->bytes.data);
    if (decoder->status == STATUS_OK) decoder->status = error_set(decoder->error, status, offset, "%s", message);
    return NO_OBJECT;
}

/* --- marshal ------------------------------------------------------------------------------------------------------ */

#define ADD(decoder, list, item)                                                                                       \
    (ARRAY_PUSH(list, PSTATS_OBJECTS_MAX, item) ||                                                                     \
     (reject((decoder), STATUS_NO_MEMORY, "no memory for the objects, or too many"), false))

static uint32_t add_object(struct decoder *decoder, struct object object)
{
    return ADD(decoder, &decoder->objects, object) ? (uint32_t)decoder->objects.count - 1 : NO_OBJECT;
}

static uint32_t add_text(struct decoder *decoder, uint64_t size)
{
    struct slice text = cursor_take(&decoder->cursor, size);
    return add_object(decoder, (struct object){.kind = KIND_TEXT, .text = profile_string(decoder->profile, text)});
}

/* Reads an interned string, which Python 2 refers to by its number among these. */
static uint32_t add_interned(struct decoder *decoder)
{
    uint32_t text = add_text(decoder, cursor_u32(&decoder->cursor));
    return ADD(decoder, &decoder->interned, text) ? text : NO_OBJECT;
}

static uint32_t interned_at(struct decoder *decoder, uint32_t number)
{
    if (number < decoder->interned.count) return decoder->interned.items[number];
    return reject(decoder, STATUS_MALFORMED, "a reference to a string that is not there yet");
}

static uint32_t add_number(struct decoder *decoder, double number)
{
    return add_object(decoder, (struct object){.kind = KIND_NUMBER, .number = number});
}

/* Digits of 15 bits; a negative count for a negative number. */
static uint32_t read_long(struct decoder *decoder)
{
    int32_t count = (int32_t)cursor_u32(&decoder->cursor);
    double number = 0, weight = 1;
    uint32_t digits = count < 0 ? 0 - (uint32_t)count : (uint32_t)count;
    for (uint32_t i = 0; i < digits && !decoder->cursor.failed; i++, weight *= 32768)
        number += cursor_u16(&decoder->cursor) * weight;
    return add_number(decoder, count < 0 ? -number : number);
}

static double read_double(struct decoder *decoder)
{
    uint64_t bits = cursor_u64(&decoder->cursor);
    double number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* A number as text, of marshal's old form. */
static double read_number_text(struct decoder *decoder)
{
    char text[64] = "";
    struct slice bytes = cursor_take(&decoder->cursor, cursor_u8(&decoder->cursor));
    if (bytes.size < sizeof(text) && bytes.size) memcpy(text, bytes.data, bytes.size);
    return strtod(text, NULL);
}

static uint32_t read_object(struct decoder *decoder, int depth, bool *ret_ends);

/* Makes a container of the items that were read since FIRST. */
static uint32_t add_container(struct decoder *decoder, enum kind kind, size_t first)
{
    struct object object = {.kind = kind, .count = (uint32_t)(decoder->pending.count - first)};
    object.first = decoder->items.count;
    for (size_t i = first; i < decoder->pending.count; i++) {
        if (!ADD(decoder, &decoder->items, decoder->pending.items[i])) return NO_OBJECT;
    }
    decoder->pending.count = first;
    return add_object(decoder, object);
}

static uint32_t read_tuple(struct decoder *decoder, uint64_t count, int depth)
{
    size_t first = decoder->pending.count;
    for (uint64_t i = 0; i < count && decoder->status == STATUS_OK && !decoder->cursor.failed; i++) {
        bool ends = false;
        uint32_t item = read_object(decoder, depth + 1, &ends);
        if (ends) return reject(decoder, STATUS_MALFORMED, "a tuple is cut short");
        (void)ADD(decoder, &decoder->pending, item);
    }
    return add_container(decoder, KIND_TUPLE, first);
}

/* Keys and values until an end instead of a key. */
static uint32_t read_dictionary(struct decoder *decoder, int depth)
{
    size_t first = decoder->pending.count;
    while (decoder->status == STATUS_OK && !decoder->cursor.failed) {
        bool ends = false, value_ends = false;
        uint32_t key = read_object(decoder, depth + 1, &ends);
        if (ends) break;
        uint32_t value = read_object(decoder, depth + 1, &value_ends);
        if (value_ends) return reject(decoder, STATUS_MALFORMED, "a key without a value");
        if (ADD(decoder, &decoder->pending, key)) (void)ADD(decoder, &decoder->pending, value);
    }
    return add_container(decoder, KIND_DICTIONARY, first);
}

/* The name of a code object: `python3 -m profile` uses one as the name of what it ran. After five or six numbers there
 * are eight objects, of which the name is the last one, or the one before that since Python 3.11, which has bytes where
 * older versions have the tuple of free variables. Two or three objects follow. */
static uint32_t read_code(struct decoder *decoder, int depth)
{
    struct cursor *cursor = &decoder->cursor;
    uint32_t parts[CODE_PARTS];
    bool ends = false;
    (void)cursor_take(cursor, CODE_NUMBERS * sizeof(uint32_t));
    struct cursor ahead = *cursor; /* is it the bytecode? The sixth number may begin as bytes do. */
    bool is_bytes = (cursor_u8(&ahead) & ~FLAG_REFERENCE) == 's' && cursor_u32(&ahead) <= cursor_left(&ahead);
    if (!is_bytes) (void)cursor_u32(cursor);
    for (size_t i = 0; i < CODE_PARTS; i++) parts[i] = read_object(decoder, depth + 1, &ends);
    bool is_old = decoder->objects.items[parts[CODE_FREE_VARIABLES]].kind == KIND_TUPLE;
    (void)cursor_u32(cursor); /* the first line */
    for (int left = is_old ? 1 : 2; left > 0; left--) (void)read_object(decoder, depth + 1, &ends);
    if (ends) return reject(decoder, STATUS_MALFORMED, "a function's code is cut short");
    return parts[is_old ? CODE_PARTS - 1 : CODE_PARTS - 2];
}

static uint32_t read_body(struct decoder *decoder, uint8_t type, int depth, bool *ret_ends)
{
    struct cursor *cursor = &decoder->cursor;
    switch (type) {
    case '0':
        *ret_ends = true;
        return NO_OBJECT;
    case 'N':
    case 'T':
    case 'F':
    case 'S':
    case '.':
        return NO_OBJECT;
    case 'i':
        return add_number(decoder, (int32_t)cursor_u32(cursor));
    case 'I':
        return add_number(decoder, (double)(int64_t)cursor_u64(cursor));
    case 'l':
        return read_long(decoder);
    case 'g':
        return add_number(decoder, read_double(decoder));
    case 'f':
        return add_number(decoder, read_number_text(decoder));
    case 'y': /* a complex number */
        (void)cursor_take(cursor, 2 * sizeof(double));
        return NO_OBJECT;
    case 'c':
        return read_code(decoder, depth);
    case 'z':
    case 'Z':
        return add_text(decoder, cursor_u8(cursor));
    case 'a':
    case 'A':
    case 'u':
    case 's':
        return add_text(decoder, cursor_u32(cursor));
    case 't':
        return add_interned(decoder);
    case 'R':
        return interned_at(decoder, cursor_u32(cursor));
    case ')':
        return read_tuple(decoder, cursor_u8(cursor), depth);
    case '(':
    case '[':
    case '<':
    case '>':
        return read_tuple(decoder, cursor_u32(cursor), depth);
    case '{':
        return read_dictionary(decoder, depth);
    default:
        return reject(decoder, STATUS_UNSUPPORTED, "an object of a kind that no profile has");
    }
}

/* RET_ENDS: the end of a dictionary was there instead. An object gets its number when it begins. */
static uint32_t read_object(struct decoder *decoder, int depth, bool *ret_ends)
{
    uint8_t type = cursor_u8(&decoder->cursor);
    if (decoder->cursor.failed) return reject(decoder, STATUS_MALFORMED, "the file is cut short");
    if (depth > PSTATS_DEPTH_MAX) return reject(decoder, STATUS_TOO_LARGE, "more than 32 containers in each other");
    if ((type & ~FLAG_REFERENCE) == 'r') {
        uint32_t number = cursor_u32(&decoder->cursor);
        if (number < decoder->references.count) return decoder->references.items[number];
        return reject(decoder, STATUS_MALFORMED, "a reference to an object that is not there yet");
    }
    size_t number = decoder->references.count;
    if (type & FLAG_REFERENCE && !ADD(decoder, &decoder->references, NO_OBJECT)) return NO_OBJECT;
    uint32_t object = read_body(decoder, type & (uint8_t)~FLAG_REFERENCE, depth, ret_ends);
    if (decoder->cursor.failed) return reject(decoder, STATUS_MALFORMED, "the file is cut short");
    if (type & FLAG_REFERENCE) decoder->references.items[number] = object;
    return object;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static const struct object *item_of(const struct decoder *decoder, const struct object *container, uint32_t place)
{
    return &decoder->objects.items[decoder->items.items[container->first + place]];
}

static bool is_tuple(const struct object *object, uint32_t count)
{
    return object->kind == KIND_TUPLE && object->count == count;
}

/* The function and place of a key: (file, line, name). */
static uint32_t function_of(struct decoder *decoder, const struct object *key, struct location_id *ret_place)
{
    struct profile *profile = decoder->profile;
    if (!is_tuple(key, FUNCTION_PARTS)) return reject(decoder, STATUS_MALFORMED, "a key is not (file, line, name)");
    const struct object *file = item_of(decoder, key, 0), *line = item_of(decoder, key, 1);
    const struct object *name = item_of(decoder, key, 2);
    if (file->kind != KIND_TEXT || line->kind != KIND_NUMBER || name->kind != KIND_TEXT)
        return reject(decoder, STATUS_MALFORMED, "a key is not (file, line, name)");
    struct function function = {.name = name->text, .file_name = file->text};
    bool is_built_in = slice_equals_text(profile_slice(profile, file->text), "~");
    if (is_built_in) function.file_name.index = 0;
    if (line->number > 0 && line->number < INT32_MAX) function.start_line = (int64_t)line->number;
    struct stated_function stated = {.function = profile_add_function(profile, &function)};
    struct line at = {.function = stated.function, .line = function.start_line};
    struct location location = {.kind = is_built_in ? FRAME_NATIVE : FRAME_INTERPRETED};
    *ret_place = profile_add_location(profile, &location, &at, 1);
    return stated_function_add(profile, &stated);
}

static int64_t nanoseconds(double seconds)
{
    double value = seconds * 1e9;
    if (!(value > 0)) return 0;
    return value < 0x1p62 ? (int64_t)(value + 0.5) : INT64_MAX / 2;
}

static double number_at(const struct decoder *decoder, const struct object *tuple, uint32_t place)
{
    const struct object *item = item_of(decoder, tuple, place);
    return item->kind == KIND_NUMBER ? item->number : 0;
}

static int64_t count_of(double calls)
{
    return calls > 0 && calls < 0x1p62 ? (int64_t)calls : 0;
}

/* The profiler cProfile states (calls, primitive calls, own time, time with callees) of the calls of each caller. The
 * profiler "profile" states only how many calls there were: each then has its share of the SECONDS of all CALLS. */
static void add_callers(struct decoder *decoder, uint32_t callee, const struct object *callers, double seconds,
                        double calls)
{
    for (uint32_t i = 0; i + 1 < callers->count && decoder->status == STATUS_OK; i += 2) {
        const struct object *statistics = item_of(decoder, callers, i + 1);
        struct stated_call call = {.callee = callee};
        int64_t values[2] = {0};
        call.caller = function_of(decoder, item_of(decoder, callers, i), &call.location);
        if (is_tuple(statistics, STATISTICS_PARTS)) {
            values[0] = nanoseconds(number_at(decoder, statistics, 3));
            values[1] = count_of(number_at(decoder, statistics, 0));
        } else if (statistics->kind == KIND_NUMBER && calls > 0) {
            values[0] = nanoseconds(seconds * statistics->number / calls);
            values[1] = count_of(statistics->number);
        }
        call.count = values[1];
        if (decoder->status == STATUS_OK) stated_call_add(decoder->profile, &call, values, 2);
    }
}

/* (primitive calls, calls, own time, time with callees, callers) */
static void add_function(struct decoder *decoder, const struct object *key, const struct object *statistics)
{
    struct location_id place;
    uint32_t function = function_of(decoder, key, &place);
    if (decoder->status != STATUS_OK) return;
    if (!is_tuple(statistics, STATISTICS_PARTS + 1) ||
        item_of(decoder, statistics, STATISTICS_PARTS)->kind != KIND_DICTIONARY) {
        reject(decoder, STATUS_MALFORMED, "the statistics of a function are not five, the last one its callers");
        return;
    }
    double calls = number_at(decoder, statistics, 1);
    int64_t count = count_of(calls);
    stated_cost_add(decoder->profile, function, place,
                    (int64_t[]){nanoseconds(number_at(decoder, statistics, 2)), count}, 2);
    stated_inclusive_add(decoder->profile, function, (int64_t[]){nanoseconds(number_at(decoder, statistics, 3)), count},
                         2);
    add_callers(decoder, function, item_of(decoder, statistics, STATISTICS_PARTS), number_at(decoder, statistics, 3),
                calls);
}

static void read_file(struct decoder *decoder)
{
    bool ends = false;
    (void)add_object(decoder, (struct object){.kind = KIND_OTHER});
    uint32_t index = read_object(decoder, 0, &ends);
    if (decoder->status != STATUS_OK) return;
    const struct object *file = &decoder->objects.items[index];
    if (file->kind != KIND_DICTIONARY) {
        reject(decoder, STATUS_MALFORMED, "the file is not one dictionary");
        return;
    }
    for (uint32_t i = 0; i + 1 < file->count && decoder->status == STATUS_OK; i += 2)
        add_function(decoder, item_of(decoder, file, i), item_of(decoder, file, i + 1));
}

/* True for an empty dictionary, or one whose first key is a tuple of a text, a number and a text. Python 2 has no short
 * tuples. */
static bool pstats_detect(struct slice bytes)
{
    static const uint8_t start_of_2[] = {'{', '(', 3, 0, 0, 0};
    if (bytes.size == 2 && (bytes.data[0] & 0x7f) == '{' && bytes.data[1] == '0') return true;
    if (bytes.size < 16) return false;
    bool is_old = memcmp(bytes.data, start_of_2, sizeof(start_of_2)) == 0;
    bool is_new = (bytes.data[0] & 0x7f) == '{' && (bytes.data[1] & 0x7f) == ')' && bytes.data[2] == 3;
    uint8_t kind = bytes.data[is_old ? 6 : 3] & 0x7f;
    return (is_old || is_new) && kind != 0 && strchr("zZaAuts", kind) != NULL;
}

static enum status pstats_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!pstats_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a profile of Python's cProfile");
    struct decoder decoder = {.bytes = bytes, .cursor = cursor_of(bytes), .profile = profile, .error = error};
    profile_add_value_type(profile, "time", "nanoseconds");
    profile_add_value_type(profile, "calls", "count");
    profile->default_value_type = profile_text(profile, "time");
    profile->platform = profile_text(profile, "python");
    read_file(&decoder);
    if (decoder.status == STATUS_OK) decoder.status = stack_estimate_add_samples(profile, bytes.size, error);
    free(decoder.objects.items);
    free(decoder.items.items);
    free(decoder.references.items);
    free(decoder.interned.items);
    free(decoder.pending.items);
    return decoder.status == STATUS_OK ? profile_failed(profile, error) : decoder.status;
}

const struct format format_pstats = {
    .name = "pstats",
    .suffixes = {".pstats"},
    .detect = pstats_detect,
    .decode = pstats_decode,
};
