/* Reads recordings of Java (JDK Flight Recorder of JDK 11 and newer, async-profiler) chunk by chunk. A chunk has
 * metadata, which describe how its values are written, tables of constants that other values name by number, and
 * events. First it is seen which kinds of events there are, as all samples of a profile have the same value types.
 * SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "format/common/format_ops.h"
#include "format/jfr/jfr_metadata.h"

#include <stdlib.h>

#define MAGIC "FLR\0\0\2"

enum {
    JFR_CONSTANTS_MAX = 1 << 26, /* constants of one chunk */
    JFR_FRAMES_MAX = 1 << 16,    /* frames of one stack */
    JFR_STEPS_FREE = 1 << 20,    /* values that are passed over, and 16 more for each byte of a chunk */
};

enum { HEADER_BYTES = 68, METADATA_EVENT = 0, CONSTANTS_EVENT = 1, COMPRESSED_NUMBERS = 1 };

enum made { MADE_NOTHING, MADE_STRING, MADE_FUNCTION, MADE_THREAD, MADE_STACK };

/* A value of a table of constants: where it is, and what it became. */
struct constant {
    uint64_t class_id, number;
    uint32_t class_index;
    size_t offset;  /* offset in the chunk */
    enum made made; /* kind of table of the profile */
    uint32_t made_id;
};

struct decoder {
    struct slice bytes, chunk;
    struct profile *profile;
    struct jfr_types types;
    INDEXED_ARRAY_OF(struct constant) constants;
    ARRAY_OF(struct location_id) frames;
    uint64_t start_ns, start_ticks, ticks_per_second, steps_left;
    bool is_present[JFR_EVENTS];
    int columns[JFR_EVENTS];         /* the first value type of each kind */
    uint64_t periods_ns[JFR_EVENTS]; /* 0: not said */
    bool is_cut;                     /* the file ends within the chunk, after the descriptions of its events */
    enum status status;
    struct error *error;
};

static void reject(struct decoder *decoder, enum status status, size_t offset, const char *message)
{
    if (decoder->status != STATUS_OK) return;
    uint64_t in_file = (uint64_t)(decoder->chunk.data - decoder->bytes.data) + offset;
    decoder->status = error_set(decoder->error, status, in_file, "%s", message);
}

static struct cursor cursor_at(const struct decoder *decoder, size_t offset)
{
    struct cursor cursor = cursor_of(decoder->chunk);
    cursor_skip(&cursor, offset);
    return cursor;
}

/* --- Passing over values ------------------------------------------------------------------------------------------ */

static void skip_class(struct decoder *decoder, struct cursor *cursor, uint32_t class_index, unsigned depth);

static void skip_field(struct decoder *decoder, struct cursor *cursor, const struct jfr_field *field, unsigned depth)
{
    uint64_t count = field->is_array ? jfr_varint(cursor) : 1;
    for (uint64_t i = 0; i < count && !cursor->failed; i++) {
        if (decoder->steps_left == 0) cursor->failed = true;
        if (cursor->failed) return;
        decoder->steps_left--;
        if (field->is_constant)
            (void)jfr_varint(cursor);
        else
            skip_class(decoder, cursor, field->class_index, depth + 1);
    }
}

static void skip_class(struct decoder *decoder, struct cursor *cursor, uint32_t class_index, unsigned depth)
{
    if (class_index == INDEX_NONE || depth > JFR_DEPTH_MAX) {
        cursor->failed = true;
        return;
    }
    const struct jfr_class *class = &decoder->types.classes.items[class_index];
    switch (class->primitive) {
    case JFR_BYTE:
        cursor_skip(cursor, 1);
        break;
    case JFR_VARINT:
        (void)jfr_varint(cursor);
        break;
    case JFR_FLOAT:
        cursor_skip(cursor, 4);
        break;
    case JFR_DOUBLE:
        cursor_skip(cursor, 8);
        break;
    case JFR_TEXT:
        (void)jfr_text(cursor);
        break;
    case JFR_STRUCT:
        for (uint32_t i = 0; i < class->field_count && !cursor->failed; i++)
            skip_field(decoder, cursor, &decoder->types.fields.items[class->field_first + i], depth);
        break;
    }
}

/* --- Constants ---------------------------------------------------------------------------------------------------- */

static bool constant_equal(const void *context, uint32_t index, const void *key)
{
    const struct constant *a = &((const struct decoder *)context)->constants.items[index], *b = key;
    return a->class_id == b->class_id && a->number == b->number;
}

static uint64_t hash_of(const struct constant *constant)
{
    return hash_mix(hash_mix(0, constant->class_id), constant->number);
}

static uint32_t find_constant(const struct decoder *decoder, uint64_t class_id, uint64_t number)
{
    struct constant key = {.class_id = class_id, .number = number};
    return index_table_find(&decoder->constants.index, hash_of(&key), constant_equal, decoder, &key);
}

/* Adds CONSTANT. Of constants that come twice the first counts; both are the same. */
static void add_constant(struct decoder *decoder, const struct constant *constant)
{
    if (find_constant(decoder, constant->class_id, constant->number) != INDEX_NONE) return;
    if (!INDEXED_ARRAY_PUSH(&decoder->constants, JFR_CONSTANTS_MAX, hash_of(constant), *constant))
        reject(decoder, STATUS_NO_MEMORY, constant->offset, "no memory for the constants of the chunk");
}

/* Tables of constants of one event. */
static void read_constants(struct decoder *decoder, struct cursor *cursor)
{
    size_t event = cursor_offset(cursor);
    for (int i = 0; i < 5; i++) (void)jfr_varint(cursor); /* size, type, start, duration, the next such event */
    cursor_skip(cursor, 1);                               /* reason why it was written */
    uint64_t tables = jfr_varint(cursor);
    for (uint64_t i = 0; i < tables && !cursor->failed; i++) {
        struct constant constant = {.class_id = jfr_varint(cursor)};
        constant.class_index = jfr_types_find(&decoder->types, constant.class_id);
        uint64_t count = jfr_varint(cursor);
        for (uint64_t k = 0; k < count && !cursor->failed && decoder->status == STATUS_OK; k++) {
            constant.number = jfr_varint(cursor);
            constant.offset = cursor_offset(cursor);
            skip_class(decoder, cursor, constant.class_index, 0);
            if (!cursor->failed) add_constant(decoder, &constant);
        }
    }
    if (cursor->failed) reject(decoder, STATUS_MALFORMED, event, "a table of constants that is broken");
}

/* The constant NUMBER of the class of FIELD; NULL: there is none. */
static struct constant *constant_of(struct decoder *decoder, const struct jfr_field *field, uint64_t number)
{
    uint32_t index = field->is_constant ? find_constant(decoder, field->class_id, number) : INDEX_NONE;
    return index == INDEX_NONE ? NULL : &decoder->constants.items[index];
}

/* Walks the members of a constant: for each one that is no array, VALUE has its number, or its text. */
struct member {
    const struct jfr_field *field;
    uint64_t number;
    struct jfr_text text;
};

static bool next_member(struct decoder *decoder, struct cursor *cursor, uint32_t class_index, uint32_t *next,
                        struct member *ret_member)
{
    if (class_index == INDEX_NONE) return false;
    const struct jfr_class *class = &decoder->types.classes.items[class_index];
    if (class->primitive != JFR_STRUCT || *next == class->field_count || cursor->failed) return false;
    const struct jfr_field *field = &decoder->types.fields.items[class->field_first + (*next)++];
    *ret_member = (struct member){.field = field};
    if (field->role == JFR_FRAMES) return true; /* the caller reads them */
    enum jfr_primitive primitive =
        field->class_index == INDEX_NONE ? JFR_STRUCT : decoder->types.classes.items[field->class_index].primitive;
    if (field->is_array)
        skip_field(decoder, cursor, field, 0);
    else if (field->is_constant || primitive == JFR_VARINT)
        ret_member->number = jfr_varint(cursor);
    else if (primitive == JFR_TEXT)
        ret_member->text = jfr_text(cursor);
    else
        skip_field(decoder, cursor, field, 0);
    return !cursor->failed;
}

/* --- Texts, methods and threads ----------------------------------------------------------------------------------- */

static void append_utf8(struct buffer *out, uint32_t code)
{
    if (code < 0x80) {
        buffer_append_byte(out, (uint8_t)code);
    } else if (code < 0x800) {
        buffer_append_byte(out, (uint8_t)(0xc0 | code >> 6));
        buffer_append_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
    } else {
        buffer_append_byte(out, (uint8_t)(0xe0 | code >> 12));
        buffer_append_byte(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
        buffer_append_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
    }
}

/* DOTS: a name of a class, whose packages are separated by slashes inside the JVM. */
static struct string_id string_of(struct decoder *decoder, const struct jfr_text *text, bool dots)
{
    struct buffer out = {.maximum = PROFILE_STRING_BYTES_MAX};
    struct cursor cursor = cursor_of(text->bytes);
    if (text->kind == JFR_TEXT_BYTES) buffer_append(&out, text->bytes.data, text->bytes.size);
    while (text->kind == JFR_TEXT_LATIN1 && cursor_left(&cursor) > 0) append_utf8(&out, cursor_u8(&cursor));
    while (text->kind == JFR_TEXT_UTF16 && cursor_left(&cursor) > 0) {
        uint64_t unit = jfr_varint(&cursor);
        bool is_alone = unit > 0xffff || (unit >= 0xd800 && unit < 0xe000);
        append_utf8(&out, is_alone ? '?' : (uint32_t)unit);
    }
    for (size_t i = 0; dots && i < out.size; i++) {
        if (out.data[i] == '/') out.data[i] = '.';
    }
    struct string_id id = profile_string(decoder->profile, buffer_slice(&out));
    buffer_fini(&out);
    return id;
}

/* The text of a constant that is a symbol or a class: its member "string", or that of its member "name". */
static struct string_id name_of_constant(struct decoder *decoder, struct constant *constant, bool dots, unsigned depth)
{
    struct member member;
    uint32_t next = 0;
    if (!constant || depth == JFR_DEPTH_MAX) return (struct string_id){0};
    if (constant->made == MADE_STRING) return (struct string_id){constant->made_id};
    struct cursor cursor = cursor_at(decoder, constant->offset);
    struct string_id name = {0};
    while (next_member(decoder, &cursor, constant->class_index, &next, &member)) {
        if (member.field->role == JFR_STRING && member.text.kind != JFR_TEXT_CONSTANT)
            name = string_of(decoder, &member.text, dots);
        if (member.field->role == JFR_NAME)
            name = name_of_constant(decoder, constant_of(decoder, member.field, member.number), dots, depth + 1);
    }
    /* A symbol may name a class and a method: only what has no dots to be made is kept. */
    if (!dots) {
        constant->made_id = name.index;
        constant->made = MADE_STRING;
    }
    return name;
}

/* "java.util.ArrayList.grow"; native functions, which async-profiler adds, have no class. */
static struct string_id full_name(struct decoder *decoder, struct string_id class, struct string_id method)
{
    if (class.index == 0) return method;
    struct buffer name = {.maximum = PROFILE_STRING_BYTES_MAX};
    struct slice front = profile_slice(decoder->profile, class), end = profile_slice(decoder->profile, method);
    buffer_append(&name, front.data, front.size);
    buffer_append_byte(&name, '.');
    buffer_append(&name, end.data, end.size);
    struct string_id id = profile_string(decoder->profile, buffer_slice(&name));
    buffer_fini(&name);
    return id;
}

static struct function_id function_of(struct decoder *decoder, struct constant *constant)
{
    struct member member;
    uint32_t next = 0;
    if (!constant) return (struct function_id){0};
    if (constant->made == MADE_FUNCTION) return (struct function_id){constant->made_id};
    struct cursor cursor = cursor_at(decoder, constant->offset);
    struct string_id class = {0}, method = {0};
    while (next_member(decoder, &cursor, constant->class_index, &next, &member)) {
        struct constant *other = constant_of(decoder, member.field, member.number);
        if (member.field->role == JFR_NAME) method = name_of_constant(decoder, other, false, 0);
        if (member.field->role == JFR_TYPE) class = name_of_constant(decoder, other, true, 0);
    }
    struct function function = {.name = full_name(decoder, class, method)};
    constant->made_id = profile_add_function(decoder->profile, &function).index;
    constant->made = MADE_FUNCTION;
    return (struct function_id){constant->made_id};
}

/* A text of a thread may be in the table of strings. */
static struct string_id thread_text(struct decoder *decoder, const struct member *member)
{
    if (member->text.kind != JFR_TEXT_CONSTANT) return string_of(decoder, &member->text, false);
    uint32_t index = find_constant(decoder, member->field->class_id, member->text.constant);
    if (index == INDEX_NONE) return (struct string_id){0};
    struct cursor cursor = cursor_at(decoder, decoder->constants.items[index].offset);
    struct jfr_text text = jfr_text(&cursor);
    return cursor.failed ? (struct string_id){0} : string_of(decoder, &text, false);
}

static struct thread_id thread_of(struct decoder *decoder, struct constant *constant)
{
    struct member member;
    uint32_t next = 0;
    if (!constant) return (struct thread_id){0};
    if (constant->made == MADE_THREAD) return (struct thread_id){constant->made_id};
    struct cursor cursor = cursor_at(decoder, constant->offset);
    struct string_id os_name = {0}, java_name = {0};
    uint64_t os_id = 0, java_id = 0;
    while (next_member(decoder, &cursor, constant->class_index, &next, &member)) {
        if (member.field->role == JFR_OS_NAME) os_name = thread_text(decoder, &member);
        if (member.field->role == JFR_JAVA_NAME) java_name = thread_text(decoder, &member);
        if (member.field->role == JFR_OS_ID) os_id = member.number;
        if (member.field->role == JFR_JAVA_ID) java_id = member.number;
    }
    struct buffer id = {.maximum = 64};
    buffer_append_format(&id, os_id ? "%llu" : "java-%llu", (unsigned long long)(os_id ? os_id : java_id));
    struct thread thread = {.id = profile_string(decoder->profile, buffer_slice(&id)),
                            .name = java_name.index ? java_name : os_name};
    buffer_fini(&id);
    constant->made_id = profile_add_thread(decoder->profile, &thread).index;
    constant->made = MADE_THREAD;
    return (struct thread_id){constant->made_id};
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* TYPE: its member "description" says what the code of a frame is. */
static enum frame_kind kind_of_type(struct decoder *decoder, struct constant *type)
{
    static const struct {
        const char *name;
        enum frame_kind kind;
    } known[] = {{"Interpreted", FRAME_INTERPRETED},
                 {"JIT compiled", FRAME_JIT},
                 {"C1 compiled", FRAME_JIT},
                 {"Inlined", FRAME_INLINED},
                 {"Native", FRAME_NATIVE},
                 {"C++", FRAME_NATIVE},
                 {"Kernel", FRAME_KERNEL}};
    struct slice name = profile_slice(decoder->profile, name_of_constant(decoder, type, false, 0));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_equals_text(name, known[i].name)) return known[i].kind;
    }
    return FRAME_UNKNOWN;
}

static struct location_id read_frame(struct decoder *decoder, struct cursor *cursor, uint32_t class_index)
{
    struct member member;
    struct location location = {0};
    struct line line = {0};
    uint32_t next = 0;
    while (next_member(decoder, cursor, class_index, &next, &member)) {
        if (member.field->role == JFR_TYPE)
            location.kind = kind_of_type(decoder, constant_of(decoder, member.field, member.number));
        if (member.field->role == JFR_METHOD)
            line.function = function_of(decoder, constant_of(decoder, member.field, member.number));
        if (member.field->role == JFR_LINE && member.number <= INT32_MAX) line.line = (int64_t)member.number;
    }
    return profile_add_location(decoder->profile, &location, &line, 1);
}

static void read_frames(struct decoder *decoder, struct cursor *cursor, const struct jfr_field *field)
{
    size_t offset = cursor_offset(cursor);
    uint64_t count = field->is_array ? jfr_varint(cursor) : 1;
    decoder->frames.count = 0;
    if (count > JFR_FRAMES_MAX) {
        reject(decoder, STATUS_TOO_LARGE, offset, "a stack of more than 65536 frames");
        return;
    }
    if (field->is_constant || count > cursor_left(cursor) ||
        !array_reserve(&decoder->frames.items, &decoder->frames.capacity, (size_t)count, sizeof(*decoder->frames.items),
                       JFR_FRAMES_MAX))
        cursor->failed = true;
    for (uint64_t i = 0; i < count && !cursor->failed; i++)
        decoder->frames.items[decoder->frames.count++] = read_frame(decoder, cursor, field->class_index);
}

static struct stack_id stack_of(struct decoder *decoder, struct constant *constant)
{
    struct member member;
    uint32_t next = 0;
    if (!constant) return (struct stack_id){0};
    if (constant->made == MADE_STACK) return (struct stack_id){constant->made_id};
    struct cursor cursor = cursor_at(decoder, constant->offset);
    decoder->frames.count = 0;
    while (next_member(decoder, &cursor, constant->class_index, &next, &member)) {
        if (member.field->role == JFR_FRAMES) read_frames(decoder, &cursor, member.field);
    }
    struct stack_id stack = {0};
    for (size_t i = decoder->frames.count; i-- > 0;)
        stack = profile_add_stack(decoder->profile, stack, decoder->frames.items[i]);
    constant->made_id = stack.index;
    constant->made = MADE_STACK;
    return stack;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static uint64_t to_ns(const struct decoder *decoder, uint64_t ticks)
{
    __uint128_t ns = (__uint128_t)ticks * 1000000000 / decoder->ticks_per_second;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static int64_t to_value(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static uint64_t time_of(const struct decoder *decoder, uint64_t ticks)
{
    uint64_t time_ns;
    if (ticks < decoder->start_ticks) {
        uint64_t before = to_ns(decoder, decoder->start_ticks - ticks);
        return before < decoder->start_ns ? decoder->start_ns - before : 0;
    }
    bool is_over = __builtin_add_overflow(decoder->start_ns, to_ns(decoder, ticks - decoder->start_ticks), &time_ns);
    return is_over ? UINT64_MAX : time_ns;
}

static void add_event(struct decoder *decoder, struct cursor *cursor, uint32_t class_index)
{
    struct member member;
    struct sample sample = {0};
    int64_t values[PROFILE_VALUES_MAX] = {0};
    uint64_t ticks = 0, duration = 0, weight = 0, size = 0, samples = 1;
    uint32_t next = 0;
    while (next_member(decoder, cursor, class_index, &next, &member)) {
        switch ((int)member.field->role) {
        case JFR_START_TIME:
            ticks = member.number;
            break;
        case JFR_DURATION:
            duration = member.number;
            break;
        case JFR_WEIGHT:
            weight = member.number;
            break;
        case JFR_SIZE:
            size = member.number;
            break;
        case JFR_SAMPLES:
            samples = member.number;
            break;
        case JFR_THREAD:
            sample.thread = thread_of(decoder, constant_of(decoder, member.field, member.number));
            break;
        case JFR_STACK_TRACE:
            sample.stack = stack_of(decoder, constant_of(decoder, member.field, member.number));
            break;
        default:
            break;
        }
    }
    enum jfr_event kind = decoder->types.classes.items[class_index].event;
    int column = decoder->columns[kind];
    values[column] = to_value(samples);
    if (kind == JFR_LOCK)
        values[column + 1] = to_value(to_ns(decoder, duration));
    else if (kind >= JFR_ALLOCATION)
        values[column + 1] = to_value(weight > 0 ? weight : size);
    sample.time_ns = time_of(decoder, ticks);
    profile_add_sample(decoder->profile, &sample, values);
}

/* "20 ms", as the JDK writes it, or nanoseconds, as async-profiler does; 0 for anything else. */
static uint64_t period_of(struct slice text)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t number = 0;
    size_t digits = 0;
    while (digits < text.size && digits < 10 && text.data[digits] >= '0' && text.data[digits] <= '9')
        number = number * 10 + (uint64_t)(text.data[digits++] - '0');
    size_t end = digits + (digits < text.size && text.data[digits] == ' ');
    for (size_t i = 0; digits > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (slice_equals_text(slice_of(text.data + end, text.size - end), units[i].name)) return number * units[i].ns;
    }
    return 0;
}

/* Reads the period of a kind of event. */
static void read_setting(struct decoder *decoder, struct cursor *cursor, uint32_t class_index)
{
    struct member member;
    struct slice name = {0}, value = {0};
    uint32_t next = 0, of = INDEX_NONE;
    while (next_member(decoder, cursor, class_index, &next, &member)) {
        if (member.field->role == JFR_ID) of = jfr_types_find(&decoder->types, member.number);
        if (member.field->role == JFR_NAME) name = member.text.bytes;
        if (member.field->role == JFR_VALUE) value = member.text.bytes;
    }
    bool is_period = slice_equals_text(name, "period") || slice_equals_text(name, "interval");
    if (cursor->failed || of == INDEX_NONE || !is_period) return;
    uint64_t period_ns = period_of(value);
    if (period_ns > 0) decoder->periods_ns[decoder->types.classes.items[of].event] = period_ns;
}

/* Passes over the events of a chunk. */
enum pass { PASS_KINDS, PASS_CONSTANTS, PASS_SAMPLES };

static void read_event(struct decoder *decoder, size_t offset, uint64_t size, enum pass pass)
{
    struct cursor cursor = cursor_of(slice_of(decoder->chunk.data, offset + (size_t)size));
    cursor_skip(&cursor, offset);
    if (pass == PASS_CONSTANTS) {
        struct cursor head = cursor;
        (void)jfr_varint(&head);
        if (jfr_varint(&head) == CONSTANTS_EVENT) read_constants(decoder, &cursor);
        return;
    }
    (void)jfr_varint(&cursor);
    uint32_t class_index = jfr_types_find(&decoder->types, jfr_varint(&cursor));
    enum jfr_event kind = class_index == INDEX_NONE ? JFR_NO_EVENT : decoder->types.classes.items[class_index].event;
    if (kind == JFR_NO_EVENT) return;
    decoder->is_present[kind] = true;
    if (pass == PASS_SAMPLES && kind != JFR_SETTING) add_event(decoder, &cursor, class_index);
    if (pass == PASS_KINDS && kind == JFR_SETTING) read_setting(decoder, &cursor, class_index);
    if (cursor.failed) reject(decoder, STATUS_MALFORMED, offset, "an event that ends in the middle");
}

static void note_cut(struct decoder *decoder, size_t offset)
{
    profile_add_omission(decoder->profile,
                         "the file is cut short or was not finished, at byte %zu: events, stacks and names that came "
                         "after it are missing",
                         (size_t)(decoder->chunk.data - decoder->bytes.data) + offset);
}

static void for_each_event(struct decoder *decoder, enum pass pass)
{
    size_t offset = HEADER_BYTES;
    while (offset < decoder->chunk.size && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK) {
        struct cursor cursor = cursor_at(decoder, offset);
        uint64_t size = jfr_varint(&cursor);
        bool fits = !cursor.failed && size >= 2 && size <= decoder->chunk.size - offset;
        if (!fits && decoder->is_cut) break;
        if (!fits) {
            reject(decoder, STATUS_MALFORMED, offset, "an event that does not fit into its chunk");
            return;
        }
        read_event(decoder, offset, size, pass);
        offset += (size_t)size;
    }
    if (decoder->is_cut && pass == PASS_SAMPLES) note_cut(decoder, offset);
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

static uint64_t big_endian(const uint8_t *bytes, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) number = number << 8 | bytes[i];
    return number;
}

static bool jfr_detect(struct slice bytes)
{
    return bytes.size >= sizeof(MAGIC) - 1 && memcmp(bytes.data, MAGIC, sizeof(MAGIC) - 1) == 0;
}

/* Begins with the chunk at the front of LEFT: its header and its metadata. */
static void begin_chunk(struct decoder *decoder, struct slice left)
{
    const uint8_t *header = left.data;
    decoder->chunk = left;
    if (left.size < HEADER_BYTES || !jfr_detect(left)) {
        reject(decoder, STATUS_MALFORMED, left.size < HEADER_BYTES ? left.size : 0,
               "the header of a chunk is broken or cut short");
        return;
    }
    uint64_t size = decoder->is_cut ? left.size : big_endian(header + 8, 8), metadata = big_endian(header + 24, 8);
    decoder->start_ns = big_endian(header + 32, 8);
    uint64_t duration_ns = big_endian(header + 40, 8);
    decoder->start_ticks = big_endian(header + 48, 8);
    decoder->ticks_per_second = big_endian(header + 56, 8);
    if (!(big_endian(header + 64, 4) & COMPRESSED_NUMBERS)) {
        reject(decoder, STATUS_UNSUPPORTED, 64, "a chunk whose numbers are not compressed");
    } else if (size < HEADER_BYTES || size > left.size || metadata < HEADER_BYTES || metadata >= size ||
               decoder->ticks_per_second == 0) {
        bool is_short = size == 0 || size > left.size;
        reject(decoder, STATUS_MALFORMED, size > left.size ? left.size : 0,
               is_short ? "the recording is cut short or was not finished, before the descriptions of its events"
                        : "the header of a chunk is broken");
    }
    if (decoder->status != STATUS_OK) return;
    decoder->chunk.size = (size_t)size;
    decoder->steps_left = JFR_STEPS_FREE + 16 * size;
    struct cursor cursor = cursor_at(decoder, (size_t)metadata);
    if (!jfr_types_read(&decoder->types, &cursor))
        reject(decoder, decoder->types.status, (size_t)metadata, decoder->types.message);
    struct profile *profile = decoder->profile;
    uint64_t end_ns;
    if (__builtin_add_overflow(decoder->start_ns, duration_ns, &end_ns)) end_ns = UINT64_MAX;
    if (profile->time_ns == 0) profile->time_ns = profile_start_at(decoder->start_ns);
    uint64_t start_ns = profile_start_ns(profile);
    if (end_ns > start_ns && end_ns - start_ns > profile->duration_ns) profile->duration_ns = end_ns - start_ns;
}

/* Whether LEFT, after the first chunk, begins with a chunk that the file does not have to its end: the JVM was killed,
 * or the copy is cut short. The header of a chunk that is still written has the size 0. */
static bool is_cut_chunk(struct slice left)
{
    size_t magic_size = sizeof(MAGIC) - 1;
    if (left.size < HEADER_BYTES) return memcmp(left.data, MAGIC, left.size < magic_size ? left.size : magic_size) == 0;
    uint64_t size = big_endian(left.data + 8, 8);
    return jfr_detect(left) && (size == 0 || size > left.size);
}

/* Whether LEFT, a chunk that is cut, has the descriptions of its events. */
static bool has_descriptions(struct slice left)
{
    if (left.size < HEADER_BYTES || big_endian(left.data + 56, 8) == 0) return false;
    uint64_t place = big_endian(left.data + 24, 8);
    if (place < HEADER_BYTES || place >= left.size) return false;
    struct cursor cursor = cursor_of(left);
    cursor_skip(&cursor, (size_t)place);
    uint64_t size = jfr_varint(&cursor);
    return !cursor.failed && size > 0 && size <= left.size - place;
}

static void for_each_chunk(struct decoder *decoder, bool reads_samples)
{
    struct slice left = decoder->bytes;
    unsigned number = 1;
    while (left.size > 0 && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK) {
        bool is_cut = is_cut_chunk(left);
        decoder->is_cut = is_cut && has_descriptions(left);
        if (number > 1 && is_cut && !decoder->is_cut) {
            if (reads_samples)
                profile_add_omission(
                    decoder->profile,
                    "chunk %u, at byte %zu, is cut short or was not finished: its %zu bytes are left out", number,
                    (size_t)(left.data - decoder->bytes.data), left.size);
            return;
        }
        number++;
        begin_chunk(decoder, left);
        if (reads_samples) for_each_event(decoder, PASS_CONSTANTS);
        for_each_event(decoder, reads_samples ? PASS_SAMPLES : PASS_KINDS);
        jfr_types_fini(&decoder->types);
        index_table_fini(&decoder->constants.index);
        decoder->constants.index = (struct index_table){0};
        decoder->constants.count = 0;
        left = slice_of(left.data + decoder->chunk.size, left.size - decoder->chunk.size);
    }
}

static void add_value_types(struct decoder *decoder)
{
    static const struct {
        const char *count, *amount, *unit;
    } names[JFR_EVENTS] = {
        [JFR_EXECUTION] = {"samples", NULL, NULL},
        [JFR_NATIVE] = {"native", NULL, NULL},
        [JFR_WALL] = {"wall", NULL, NULL},
        [JFR_ALLOCATION] = {"alloc_objects", "alloc_space", "bytes"},
        [JFR_TLAB] = {"tlab_objects", "tlab_space", "bytes"},
        [JFR_LIVE] = {"live_objects", "live_space", "bytes"},
        [JFR_MALLOC] = {"malloc_objects", "malloc_space", "bytes"},
        [JFR_LOCK] = {"contentions", "delay", "nanoseconds"},
    };
    struct profile *profile = decoder->profile;
    for (int i = JFR_EXECUTION; i < JFR_EVENTS; i++) {
        if (!decoder->is_present[i]) continue;
        decoder->columns[i] = (int)profile->value_type_count;
        profile_add_value_type(profile, names[i].count, "count");
        if (names[i].amount) profile_add_value_type(profile, names[i].amount, names[i].unit);
    }
    if (profile->value_type_count == 0) profile_add_value_type(profile, "samples", "count");
    bool is_pair = profile->value_type_count > 1 && !decoder->is_present[JFR_EXECUTION] &&
                   !decoder->is_present[JFR_NATIVE] && !decoder->is_present[JFR_WALL];
    profile->default_value_type = profile->value_types[is_pair].type;
}

/* Sets the period of the kind of event that is shown. */
static void set_period(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    int kind = JFR_EXECUTION;
    while (kind < JFR_WALL && !decoder->is_present[kind]) kind++;
    if (!decoder->is_present[kind] || decoder->periods_ns[kind] == 0) return;
    profile->period = (int64_t)decoder->periods_ns[kind];
    profile->period_type = (struct value_type){.type = profile_text(profile, kind == JFR_WALL ? "wall" : "cpu"),
                                               .unit = profile_text(profile, "nanoseconds")};
}

/* Execution samples, wall clock samples, allocations and waits for locks become samples with times and threads; a value
 * type is made for each kind that the file has. Errors have the offset of the event. */
static enum status jfr_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!jfr_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a recording of Java");
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error};
    for_each_chunk(&decoder, false);
    if (decoder.status == STATUS_OK) {
        profile->has_times = true;
        add_value_types(&decoder);
        set_period(&decoder);
        for_each_chunk(&decoder, true);
    }
    free(decoder.constants.items);
    free(decoder.frames.items);
    return decoder.status != STATUS_OK ? decoder.status : profile_failed(profile, error);
}

const struct format format_jfr = {
    .name = "jfr",
    .suffixes = {".jfr"},
    .detect = jfr_detect,
    .decode = jfr_decode,
};
