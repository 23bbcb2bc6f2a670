/* Tables say for each message what its fields are called, what number they have and how they are written: JSON becomes
 * protobuf before it is decoded, and protobuf that was encoded becomes JSON. So there is one decoder and one encoder.
 * Fields that offbeat does not use have no row.  SPDX-License-Identifier: MIT */
#include "base/hex.h"
#include "base/json_writer.h"
#include "base/protobuf.h"
#include "format/common/format_ops.h"
#include "format/common/json_kind.h"
#include "format/otlp/otlp.h"
#include "format/otlp/otlp_private.h"

#include <inttypes.h>
#include <stdio.h>

enum kind {
    KIND_NUMBER,
    KIND_LONG,  /* 64 bits: a text in JSON */
    KIND_FIXED, /* 64 bits, of fixed size */
    KIND_DOUBLE,
    KIND_BOOL,
    KIND_TEXT,
    KIND_HEX, /* bytes: hexadecimal in JSON, as OTLP writes ids */
    KIND_MESSAGE,
};

struct message;

struct field {
    const char *name;
    uint32_t number;
    enum kind kind;
    bool is_repeated;
    const struct message *message; /* fields of a KIND_MESSAGE */
};

enum { FIELDS_MAX = 10 };

struct message {
    struct field fields[FIELDS_MAX]; /* up to the first without a name */
};

static const struct message any_message;
static const struct message array_message = {{{"values", ARRAY_VALUES, KIND_MESSAGE, true, &any_message}}};
static const struct message any_message = {{{"stringValue", ANY_STRING, KIND_TEXT, false, NULL},
                                            {"boolValue", ANY_BOOL, KIND_BOOL, false, NULL},
                                            {"intValue", ANY_INT, KIND_LONG, false, NULL},
                                            {"doubleValue", ANY_DOUBLE, KIND_DOUBLE, false, NULL},
                                            {"arrayValue", ANY_ARRAY, KIND_MESSAGE, false, &array_message},
                                            {"stringValueStrindex", ANY_STRINDEX, KIND_NUMBER, false, NULL}}};
static const struct message key_value_message = {{{"key", KEY_VALUE_KEY, KIND_TEXT, false, NULL},
                                                  {"value", KEY_VALUE_VALUE, KIND_MESSAGE, false, &any_message},
                                                  {"keyStrindex", KEY_VALUE_KEY_STRINDEX, KIND_NUMBER, false, NULL}}};
static const struct message resource_message = {
    {{"attributes", RESOURCE_ATTRIBUTES, KIND_MESSAGE, true, &key_value_message}}};
static const struct message scope_message = {{{"name", SCOPE_NAME, KIND_TEXT, false, NULL}}};
static const struct message value_type_message = {{{"typeStrindex", VALUE_TYPE_TYPE, KIND_NUMBER, false, NULL},
                                                   {"unitStrindex", VALUE_TYPE_UNIT, KIND_NUMBER, false, NULL}}};
static const struct message sample_message = {{{"stackIndex", SAMPLE_STACK, KIND_NUMBER, false, NULL},
                                               {"attributeIndices", SAMPLE_ATTRIBUTES, KIND_NUMBER, true, NULL},
                                               {"linkIndex", SAMPLE_LINK, KIND_NUMBER, false, NULL},
                                               {"values", SAMPLE_VALUES, KIND_LONG, true, NULL},
                                               {"timestampsUnixNano", SAMPLE_TIMES, KIND_FIXED, true, NULL}}};
static const struct message profile_message = {
    {{"sampleType", PROFILE_SAMPLE_TYPE, KIND_MESSAGE, false, &value_type_message},
     {"samples", PROFILE_SAMPLES, KIND_MESSAGE, true, &sample_message},
     {"timeUnixNano", PROFILE_TIME, KIND_FIXED, false, NULL},
     {"durationNano", PROFILE_DURATION, KIND_LONG, false, NULL},
     {"periodType", PROFILE_PERIOD_TYPE, KIND_MESSAGE, false, &value_type_message},
     {"period", PROFILE_PERIOD, KIND_LONG, false, NULL},
     {"profileId", PROFILE_ID, KIND_HEX, false, NULL},
     {"attributeIndices", PROFILE_ATTRIBUTES, KIND_NUMBER, true, NULL}}};
static const struct message scope_profiles_message = {
    {{"scope", SCOPE_PROFILES_SCOPE, KIND_MESSAGE, false, &scope_message},
     {"profiles", SCOPE_PROFILES_PROFILES, KIND_MESSAGE, true, &profile_message}}};
static const struct message resource_profiles_message = {
    {{"resource", RESOURCE_PROFILES_RESOURCE, KIND_MESSAGE, false, &resource_message},
     {"scopeProfiles", RESOURCE_PROFILES_SCOPE_PROFILES, KIND_MESSAGE, true, &scope_profiles_message}}};
static const struct message mapping_message = {{{"memoryStart", MAPPING_START, KIND_LONG, false, NULL},
                                                {"memoryLimit", MAPPING_LIMIT, KIND_LONG, false, NULL},
                                                {"fileOffset", MAPPING_OFFSET, KIND_LONG, false, NULL},
                                                {"filenameStrindex", MAPPING_FILE, KIND_NUMBER, false, NULL},
                                                {"attributeIndices", MAPPING_ATTRIBUTES, KIND_NUMBER, true, NULL}}};
static const struct message line_message = {{{"functionIndex", LINE_FUNCTION, KIND_NUMBER, false, NULL},
                                             {"line", LINE_LINE, KIND_LONG, false, NULL},
                                             {"column", LINE_COLUMN, KIND_LONG, false, NULL}}};
static const struct message location_message = {{{"mappingIndex", LOCATION_MAPPING, KIND_NUMBER, false, NULL},
                                                 {"address", LOCATION_ADDRESS, KIND_LONG, false, NULL},
                                                 {"lines", LOCATION_LINES, KIND_MESSAGE, true, &line_message},
                                                 {"attributeIndices", LOCATION_ATTRIBUTES, KIND_NUMBER, true, NULL}}};
static const struct message function_message = {{{"nameStrindex", FUNCTION_NAME, KIND_NUMBER, false, NULL},
                                                 {"systemNameStrindex", FUNCTION_SYSTEM_NAME, KIND_NUMBER, false, NULL},
                                                 {"filenameStrindex", FUNCTION_FILE, KIND_NUMBER, false, NULL},
                                                 {"startLine", FUNCTION_START_LINE, KIND_LONG, false, NULL}}};
static const struct message link_message = {
    {{"traceId", LINK_TRACE_ID, KIND_HEX, false, NULL}, {"spanId", LINK_SPAN_ID, KIND_HEX, false, NULL}}};
static const struct message attribute_message = {{{"keyStrindex", ATTRIBUTE_KEY, KIND_NUMBER, false, NULL},
                                                  {"value", ATTRIBUTE_VALUE, KIND_MESSAGE, false, &any_message},
                                                  {"unitStrindex", ATTRIBUTE_UNIT, KIND_NUMBER, false, NULL}}};
static const struct message stack_message = {{{"locationIndices", STACK_LOCATIONS, KIND_NUMBER, true, NULL}}};
static const struct message dictionary_message = {
    {{"mappingTable", DICTIONARY_MAPPINGS, KIND_MESSAGE, true, &mapping_message},
     {"locationTable", DICTIONARY_LOCATIONS, KIND_MESSAGE, true, &location_message},
     {"functionTable", DICTIONARY_FUNCTIONS, KIND_MESSAGE, true, &function_message},
     {"linkTable", DICTIONARY_LINKS, KIND_MESSAGE, true, &link_message},
     {"stringTable", DICTIONARY_STRINGS, KIND_TEXT, true, NULL},
     {"attributeTable", DICTIONARY_ATTRIBUTES, KIND_MESSAGE, true, &attribute_message},
     {"stackTable", DICTIONARY_STACKS, KIND_MESSAGE, true, &stack_message}}};
static const struct message data_message = {
    {{"resourceProfiles", DATA_RESOURCE_PROFILES, KIND_MESSAGE, true, &resource_profiles_message},
     {"dictionary", DATA_DICTIONARY, KIND_MESSAGE, false, &dictionary_message}}};

/* --- JSON into protobuf ------------------------------------------------------------------------------------------- */

/* 64 bits are texts in JSON; many writers give numbers. */
static uint64_t take_integer(struct json_reader *reader)
{
    struct json_number number = {0};
    bool is_text = json_peek(reader) == JSON_STRING;
    if (!is_text) number = json_number(reader);
    bool is_number = is_text ? json_number_of_text(json_string(reader), &number) : !reader->failed;
    if (!is_number || !number.is_integer || number.text.size > 20) {
        json_reader_reject(reader, STATUS_MALFORMED, "expected a whole number, or a text that holds one");
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = number.is_negative ? 1 : 0; i < number.text.size; i++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(number.text.data[i] - '0'), &value))
            json_reader_reject(reader, STATUS_TOO_LARGE, "a number of more than 64 bits");
    return number.is_negative ? 0 - value : value;
}

static void take_hex(struct json_reader *reader, const struct field *field, struct buffer *out)
{
    struct slice text = json_string(reader);
    uint8_t bytes[TRACE_ID_BYTES];
    bool is_id = text.size % 2 == 0 && text.size <= 2 * sizeof(bytes);
    for (size_t i = 0; is_id && i < text.size; i += 2) {
        int byte = hex_byte(text.data + i);
        is_id = byte >= 0;
        if (is_id) bytes[i / 2] = (uint8_t)byte;
    }
    if (is_id)
        protobuf_append_bytes(out, field->number, slice_of(bytes, text.size / 2));
    else
        json_reader_reject(reader, STATUS_MALFORMED, "expected an id of at most 32 hexadecimal digits");
}

static void append_fixed(struct buffer *out, uint64_t value)
{
    buffer_append(out, &value, sizeof(value)); /* little-endian, as all machines that offbeat runs on */
}

static void append_fixed_field(struct buffer *out, uint32_t number, uint64_t value)
{
    protobuf_append_varint(out, (uint64_t)number << 3 | PROTOBUF_FIXED64);
    append_fixed(out, value);
}

static void take_message(struct json_reader *reader, const struct message *message, struct buffer *out);

static void take_value(struct json_reader *reader, const struct field *field, struct buffer *out)
{
    size_t begin;
    double number;
    uint64_t bits;
    switch (field->kind) {
    case KIND_NUMBER:
    case KIND_LONG:
        protobuf_append_explicit_number(out, field->number, take_integer(reader));
        break;
    case KIND_FIXED:
        append_fixed_field(out, field->number, take_integer(reader));
        break;
    case KIND_DOUBLE:
        number = json_double(reader);
        memcpy(&bits, &number, sizeof(bits));
        append_fixed_field(out, field->number, bits);
        break;
    case KIND_BOOL:
        protobuf_append_explicit_number(out, field->number, json_bool(reader));
        break;
    case KIND_TEXT:
        protobuf_append_bytes(out, field->number, json_string(reader));
        break;
    case KIND_HEX:
        take_hex(reader, field, out);
        break;
    case KIND_MESSAGE:
        begin = protobuf_begin_message(out, field->number);
        take_message(reader, field->message, out);
        protobuf_end_message(out, begin);
        break;
    }
}

static bool is_packed(const struct field *field)
{
    return field->kind == KIND_NUMBER || field->kind == KIND_LONG || field->kind == KIND_FIXED;
}

static void take_list(struct json_reader *reader, const struct field *field, struct buffer *out)
{
    size_t begin = is_packed(field) ? protobuf_begin_message(out, field->number) : 0;
    json_array_begin(reader);
    while (!out->failed && json_array_next(reader)) {
        if (!is_packed(field))
            take_value(reader, field, out);
        else if (field->kind == KIND_FIXED)
            append_fixed(out, take_integer(reader));
        else
            protobuf_append_varint(out, take_integer(reader));
    }
    if (is_packed(field)) protobuf_end_message(out, begin);
}

static const struct field *field_of_name(const struct message *message, struct slice name)
{
    for (size_t i = 0; i < FIELDS_MAX && message->fields[i].name; i++) {
        if (slice_equals_text(name, message->fields[i].name)) return &message->fields[i];
    }
    return NULL;
}

/* The depth of JSON bounds the recursion. */
static void take_message(struct json_reader *reader, const struct message *message, struct buffer *out)
{
    struct slice name;
    json_object_begin(reader);
    while (!out->failed && json_object_next(reader, &name)) {
        const struct field *field = field_of_name(message, name);
        if (json_null(reader)) continue;
        if (!field)
            json_skip(reader);
        else if (field->is_repeated)
            take_list(reader, field, out);
        else
            take_value(reader, field, out);
    }
}

void otlp_json_take(struct json_reader *reader, struct buffer *out)
{
    take_message(reader, &data_message, out);
}

/* --- Protobuf into JSON ------------------------------------------------------------------------------------------- */

static void write_message(struct json_writer *writer, const struct message *message, struct slice bytes);

static bool is_unsigned(const struct field *field)
{
    static const char *const names[] = {"memoryStart", "memoryLimit", "fileOffset", "address", "durationNano"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(field->name, names[i]) == 0) return true;
    }
    return field->kind == KIND_FIXED;
}

static void write_hex(struct json_writer *writer, struct slice bytes)
{
    char text[2 * TRACE_ID_BYTES + 1];
    (void)hex_write(text, slice_of(bytes.data, bytes.size < TRACE_ID_BYTES ? bytes.size : TRACE_ID_BYTES));
    json_write_text(writer, text);
}

static void write_number(struct json_writer *writer, const struct field *field, uint64_t value)
{
    char text[24];
    if (field->kind == KIND_NUMBER) {
        json_write_u64(writer, value);
        return;
    }
    (void)snprintf(text, sizeof(text), is_unsigned(field) ? "%" PRIu64 : "%" PRId64, value);
    json_write_text(writer, text);
}

static void write_value(struct json_writer *writer, const struct field *field, const struct protobuf_field *value)
{
    double number;
    switch (field->kind) {
    case KIND_NUMBER:
    case KIND_LONG:
    case KIND_FIXED:
        write_number(writer, field, value->value);
        break;
    case KIND_DOUBLE:
        memcpy(&number, &value->value, sizeof(number));
        json_write_double(writer, number);
        break;
    case KIND_BOOL:
        json_write_bool(writer, value->value != 0);
        break;
    case KIND_TEXT:
        json_write_string(writer, value->bytes);
        break;
    case KIND_HEX:
        write_hex(writer, value->bytes);
        break;
    case KIND_MESSAGE:
        write_message(writer, field->message, value->bytes);
        break;
    }
}

static void write_packed(struct json_writer *writer, const struct field *field, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    while (!cursor_at_end(&cursor))
        write_number(writer, field, field->kind == KIND_FIXED ? cursor_u64(&cursor) : protobuf_varint(&cursor));
}

/* Writes all values of one field, which may be anywhere in the message. */
static void write_field(struct json_writer *writer, const struct field *field, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    struct protobuf_field value;
    bool has_begun = false;
    while (protobuf_next(&cursor, &value)) {
        if (value.number != field->number) continue;
        if (!has_begun) {
            json_write_key(writer, field->name);
            if (field->is_repeated) json_begin_array(writer);
        }
        has_begun = true;
        if (field->is_repeated && is_packed(field) && value.wire_type == PROTOBUF_BYTES)
            write_packed(writer, field, value.bytes);
        else
            write_value(writer, field, &value);
    }
    if (has_begun && field->is_repeated) json_end_array(writer);
}

static void write_message(struct json_writer *writer, const struct message *message, struct slice bytes)
{
    json_begin_object(writer);
    for (size_t i = 0; i < FIELDS_MAX && message->fields[i].name; i++) write_field(writer, &message->fields[i], bytes);
    json_end_object(writer);
}

/* --- The format --------------------------------------------------------------------------------------------------- */

bool otlp_json_detect(struct slice bytes)
{
    return json_kind_of_profile(bytes) == JSON_PROFILE_OTLP;
}

enum status otlp_json_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    struct buffer message;
    buffer_init(&message, out->maximum);
    enum status status = otlp_encode(profile, &message, error);
    struct json_writer writer = json_writer_of(out);
    if (status == STATUS_OK) write_message(&writer, &data_message, buffer_slice(&message));
    buffer_fini(&message);
    if (status == STATUS_OK && out->failed)
        status = error_set(error, STATUS_NO_MEMORY, 0, "larger than %zu bytes, or than memory", out->maximum);
    return status;
}
