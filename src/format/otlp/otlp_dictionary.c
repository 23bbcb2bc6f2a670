/* Reads the dictionary of OTLP: strings, attributes, functions, mappings, locations and stacks.
 * SPDX-License-Identifier: MIT */
#include "format/otlp/otlp_dictionary.h"

#include "base/hex.h"
#include "base/json_writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { ITEMS_MAX = PROFILE_ENTITIES_MAX };

void otlp_fail(struct otlp_decoder *decoder, const uint8_t *place, enum status status, const char *format, ...)
{
    char message[sizeof(decoder->error->message)];
    va_list arguments;
    if (decoder->status != STATUS_OK) return;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    uint64_t offset = place && !decoder->is_transcoded ? (uint64_t)(place - decoder->bytes.data) : 0;
    decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

void *otlp_add_item(struct otlp_decoder *decoder, void *items, size_t *count, size_t *capacity, size_t item_size)
{
    if (!array_reserve(items, capacity, *count + 1, item_size, ITEMS_MAX)) {
        otlp_fail(decoder, NULL, STATUS_NO_MEMORY, "no memory for the profile, or a table of more than %d items",
                  ITEMS_MAX);
        return NULL;
    }
    uint8_t *item = *(uint8_t **)items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

bool otlp_next_field(struct otlp_decoder *decoder, struct cursor *cursor, struct protobuf_field *field,
                     const char *message)
{
    if (decoder->status == STATUS_OK && protobuf_next(cursor, field)) return true;
    if (cursor->failed) otlp_fail(decoder, cursor->position, STATUS_MALFORMED, "%s is cut short or broken", message);
    return false;
}

void otlp_each_message(struct otlp_decoder *decoder, struct slice parent, uint32_t number, const char *name,
                       otlp_take_message take)
{
    struct cursor cursor = cursor_of(parent);
    struct protobuf_field field;
    while (otlp_next_field(decoder, &cursor, &field, name)) {
        if (field.number != number) continue;
        if (field.wire_type == PROTOBUF_BYTES)
            take(decoder, field.bytes);
        else
            otlp_fail(decoder, cursor.position, STATUS_MALFORMED, "%s has a number where a message must be", name);
    }
}

void otlp_add_numbers(struct otlp_decoder *decoder, struct otlp_numbers *list, const struct protobuf_field *field,
                      enum protobuf_wire_type alone, const char *what)
{
    struct cursor cursor = cursor_of(field->bytes);
    if (field->wire_type == alone) {
        uint64_t *number = OTLP_ADD(decoder, list);
        if (number) *number = field->value;
    }
    while (field->wire_type == PROTOBUF_BYTES && decoder->status == STATUS_OK && !cursor_at_end(&cursor)) {
        uint64_t value = alone == PROTOBUF_VARINT ? protobuf_varint(&cursor) : cursor_u64(&cursor);
        uint64_t *number = OTLP_ADD(decoder, list);
        if (number) *number = value;
    }
    if (cursor.failed) otlp_fail(decoder, cursor.position, STATUS_MALFORMED, "a list of %s is cut short", what);
}

uint64_t otlp_check_index(struct otlp_decoder *decoder, uint64_t index, size_t count, const char *table)
{
    if (index < count || index == 0) return index;
    otlp_fail(decoder, NULL, STATUS_MALFORMED, "an index %" PRId64 " into %s, which has %zu entries", (int64_t)index,
              table, count);
    return 0;
}

void otlp_read_numbers(struct otlp_decoder *decoder, struct slice message, const char *name, uint64_t *numbers,
                       uint32_t count)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    while (otlp_next_field(decoder, &cursor, &field, name)) {
        if (field.number < count && field.wire_type != PROTOBUF_BYTES) numbers[field.number] = field.value;
    }
}

/* --- Attributes --------------------------------------------------------------------------------------------------- */

static double double_of(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* Writes one value of an array as JSON. Lists in lists are null. */
static void write_scalar(struct otlp_decoder *decoder, struct slice value, struct json_writer *writer)
{
    struct cursor cursor = cursor_of(value);
    struct protobuf_field field = {0};
    (void)otlp_next_field(decoder, &cursor, &field, "a value");
    switch (field.number) {
    case ANY_STRING:
        json_write_string(writer, field.bytes);
        break;
    case ANY_BOOL:
        json_write_bool(writer, field.value != 0);
        break;
    case ANY_INT:
        json_write_i64(writer, (int64_t)field.value);
        break;
    case ANY_DOUBLE:
        json_write_double(writer, double_of(field.value));
        break;
    case ANY_STRINDEX:
        json_write_string(writer, profile_slice(decoder->profile, OTLP_AT(decoder, strings, field.value)));
        break;
    default:
        json_write_null(writer);
    }
}

/* Returns an array, or a double, as a text of JSON. */
static struct string_id text_of(struct otlp_decoder *decoder, const struct protobuf_field *value)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    struct json_writer writer = json_writer_of(&text);
    if (value->number == ANY_DOUBLE) {
        json_write_double(&writer, double_of(value->value));
    } else {
        struct cursor cursor = cursor_of(value->bytes);
        struct protobuf_field item;
        json_begin_array(&writer);
        while (otlp_next_field(decoder, &cursor, &item, "a list of values"))
            if (item.number == ARRAY_VALUES) write_scalar(decoder, item.bytes, &writer);
        json_end_array(&writer);
    }
    if (text.failed) otlp_fail(decoder, NULL, STATUS_TOO_LARGE, "an attribute is larger than %zu bytes", text.maximum);
    struct string_id id = profile_string(decoder->profile, buffer_slice(&text));
    buffer_fini(&text);
    return id;
}

bool otlp_read_value(struct otlp_decoder *decoder, struct slice message, struct otlp_attribute *attribute)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field value;
    struct label *label = &attribute->label;
    bool is_known = false;
    while (otlp_next_field(decoder, &cursor, &value, "a value")) {
        is_known = true;
        label->is_number = value.number == ANY_INT;
        label->number = label->is_number ? (int64_t)value.value : 0;
        label->text = (struct string_id){0};
        attribute->is_true = value.number == ANY_BOOL && value.value != 0;
        attribute->array = value.number == ANY_ARRAY ? value.bytes : slice_of(NULL, 0);
        if (value.number == ANY_STRING)
            label->text = profile_string(decoder->profile, value.bytes);
        else if (value.number == ANY_STRINDEX)
            label->text = OTLP_AT(decoder, strings, value.value);
        else if (value.number == ANY_BOOL)
            label->text = profile_text(decoder->profile, attribute->is_true ? "true" : "false");
        else if (value.number == ANY_DOUBLE || value.number == ANY_ARRAY)
            label->text = text_of(decoder, &value);
        else
            is_known = value.number == ANY_INT;
    }
    return is_known;
}

static void add_attribute(struct otlp_decoder *decoder, struct slice message)
{
    struct otlp_attribute *attribute = OTLP_ADD(decoder, &decoder->attributes);
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t key = 0, unit = 0;
    bool is_known = false;
    while (attribute && otlp_next_field(decoder, &cursor, &field, "an attribute")) {
        if (field.number == ATTRIBUTE_KEY) key = field.value;
        if (field.number == ATTRIBUTE_VALUE) is_known = otlp_read_value(decoder, field.bytes, attribute);
        if (field.number == ATTRIBUTE_UNIT) unit = field.value;
    }
    if (!attribute || !is_known) return;
    attribute->label.key = OTLP_AT(decoder, strings, key);
    if (attribute->label.is_number) attribute->label.unit = OTLP_AT(decoder, strings, unit);
}

const struct otlp_attribute *otlp_attribute_at(struct otlp_decoder *decoder, size_t place)
{
    static const struct otlp_attribute none;
    uint64_t index =
        otlp_check_index(decoder, decoder->numbers.items[place], decoder->attributes.count, "the table of attributes");
    return decoder->status == STATUS_OK && decoder->attributes.count > 0 ? &decoder->attributes.items[index] : &none;
}

bool otlp_is_key(const struct otlp_decoder *decoder, const struct otlp_attribute *attribute, const char *key)
{
    return slice_equals_text(profile_slice(decoder->profile, attribute->label.key), key);
}

/* --- The dictionary ----------------------------------------------------------------------------------------------- */

static void add_string(struct otlp_decoder *decoder, struct slice text)
{
    struct string_id *id = OTLP_ADD(decoder, &decoder->strings);
    if (id) *id = profile_string(decoder->profile, text);
}

struct string_id otlp_hex_id(struct otlp_decoder *decoder, struct slice bytes)
{
    char text[2 * TRACE_ID_BYTES + 1];
    size_t size = bytes.size < TRACE_ID_BYTES ? bytes.size : TRACE_ID_BYTES;
    bool is_zero = true;
    for (size_t i = 0; i < size; i++) is_zero = is_zero && bytes.data[i] == 0;
    (void)hex_write(text, slice_of(bytes.data, size));
    return is_zero ? (struct string_id){0} : profile_text(decoder->profile, text);
}

static void add_link(struct otlp_decoder *decoder, struct slice message)
{
    struct otlp_link *link = OTLP_ADD(decoder, &decoder->links);
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    while (link && otlp_next_field(decoder, &cursor, &field, "a link")) {
        if (field.wire_type != PROTOBUF_BYTES) continue;
        if (field.number == LINK_TRACE_ID) link->trace_id = otlp_hex_id(decoder, field.bytes);
        if (field.number == LINK_SPAN_ID) link->span_id = otlp_hex_id(decoder, field.bytes);
    }
}

static void add_function(struct otlp_decoder *decoder, struct slice message)
{
    uint64_t numbers[FUNCTION_START_LINE + 1] = {0};
    struct function_id *id = OTLP_ADD(decoder, &decoder->functions);
    otlp_read_numbers(decoder, message, "a function", numbers, FUNCTION_START_LINE + 1);
    struct function function = {
        .name = OTLP_AT(decoder, strings, numbers[FUNCTION_NAME]),
        .system_name = OTLP_AT(decoder, strings, numbers[FUNCTION_SYSTEM_NAME]),
        .file_name = OTLP_AT(decoder, strings, numbers[FUNCTION_FILE]),
        .start_line = (int64_t)numbers[FUNCTION_START_LINE],
    };
    if (function.system_name.index == function.name.index) function.system_name.index = 0;
    if (id && message.size > 0) *id = profile_add_function(decoder->profile, &function);
}

void otlp_read_list(struct otlp_decoder *decoder, struct slice message, uint32_t number, const char *name)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    decoder->numbers.count = 0;
    while (otlp_next_field(decoder, &cursor, &field, name)) {
        if (field.number == number) otlp_add_numbers(decoder, &decoder->numbers, &field, PROTOBUF_VARINT, "numbers");
    }
}

static void add_mapping(struct otlp_decoder *decoder, struct slice message)
{
    uint64_t numbers[MAPPING_FILE + 1] = {0};
    struct mapping_id *id = OTLP_ADD(decoder, &decoder->mappings);
    otlp_read_numbers(decoder, message, "a mapping", numbers, MAPPING_FILE + 1);
    otlp_read_list(decoder, message, MAPPING_ATTRIBUTES, "a mapping");
    struct mapping mapping = {
        .start = numbers[MAPPING_START],
        .limit = numbers[MAPPING_LIMIT],
        .file_offset = numbers[MAPPING_OFFSET],
        .file_name = OTLP_AT(decoder, strings, numbers[MAPPING_FILE]),
    };
    for (size_t i = 0; i < decoder->numbers.count; i++) {
        const struct otlp_attribute *attribute = otlp_attribute_at(decoder, i);
        if (otlp_is_key(decoder, attribute, KEY_BUILD_ID)) mapping.build_id = attribute->label.text;
        if (otlp_is_key(decoder, attribute, KEY_HAS_FUNCTIONS)) mapping.has_functions = attribute->is_true;
        if (otlp_is_key(decoder, attribute, KEY_HAS_FILENAMES)) mapping.has_filenames = attribute->is_true;
        if (otlp_is_key(decoder, attribute, KEY_HAS_LINES)) mapping.has_line_numbers = attribute->is_true;
        if (otlp_is_key(decoder, attribute, KEY_HAS_INLINED)) mapping.has_inline_frames = attribute->is_true;
    }
    if (id && message.size > 0) *id = profile_add_mapping(decoder->profile, &mapping);
}

static int64_t line_number(uint64_t number)
{
    return number <= INT32_MAX ? (int64_t)number : 0;
}

static void add_line(struct otlp_decoder *decoder, struct slice message)
{
    uint64_t numbers[LINE_COLUMN + 1] = {0};
    otlp_read_numbers(decoder, message, "a line", numbers, LINE_COLUMN + 1);
    if (decoder->lines.count == OTLP_LINES_MAX)
        otlp_fail(decoder, message.data, STATUS_TOO_LARGE, "more than %d functions at one location", OTLP_LINES_MAX);
    struct line *line = decoder->status == STATUS_OK ? OTLP_ADD(decoder, &decoder->lines) : NULL;
    if (!line) return;
    *line = (struct line){.function = OTLP_AT(decoder, functions, numbers[LINE_FUNCTION]),
                          .line = line_number(numbers[LINE_LINE]),
                          .column = line_number(numbers[LINE_COLUMN])};
}

/* Returns the kind that TYPE names, unless LOCATION shows it anyway. Some runtimes always interpret. */
static enum frame_kind kind_of_type(struct slice type, const struct location *location)
{
    static const char *const interpreters[] = {"cpython", "php", "ruby", "perl"};
    if (slice_equals_text(type, "kernel")) return FRAME_KERNEL;
    if (slice_equals_text(type, "native") && location->address == 0 && location->mapping.index == 0)
        return FRAME_NATIVE;
    for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
        if (slice_equals_text(type, interpreters[i])) return FRAME_INTERPRETED;
    }
    return FRAME_UNKNOWN;
}

static void add_location(struct otlp_decoder *decoder, struct slice message)
{
    uint64_t numbers[LOCATION_ADDRESS + 1] = {0};
    struct location_id *id = OTLP_ADD(decoder, &decoder->locations);
    decoder->lines.count = 0;
    otlp_each_message(decoder, message, LOCATION_LINES, "a location", add_line);
    otlp_read_numbers(decoder, message, "a location", numbers, LOCATION_ADDRESS + 1);
    otlp_read_list(decoder, message, LOCATION_ATTRIBUTES, "a location");
    struct location location = {.mapping = OTLP_AT(decoder, mappings, numbers[LOCATION_MAPPING]),
                                .address = numbers[LOCATION_ADDRESS]};
    for (size_t i = 0; i < decoder->numbers.count; i++) {
        const struct otlp_attribute *attribute = otlp_attribute_at(decoder, i);
        if (otlp_is_key(decoder, attribute, KEY_FOLDED)) location.is_folded = attribute->is_true;
        if (otlp_is_key(decoder, attribute, KEY_FRAME_TYPE))
            location.kind = kind_of_type(profile_slice(decoder->profile, attribute->label.text), &location);
    }
    if (id && message.size > 0)
        *id = profile_add_location(decoder->profile, &location, decoder->lines.items, (uint32_t)decoder->lines.count);
}

static void add_stack(struct otlp_decoder *decoder, struct slice message)
{
    struct stack_id stack = {0}, *id = OTLP_ADD(decoder, &decoder->stacks);
    otlp_read_list(decoder, message, STACK_LOCATIONS, "a stack");
    if (decoder->numbers.count > OTLP_DEPTH_MAX)
        otlp_fail(decoder, message.data, STATUS_TOO_LARGE, "a stack of more than %d frames", OTLP_DEPTH_MAX);
    for (size_t i = decoder->numbers.count; i-- > 0 && decoder->status == STATUS_OK;) {
        struct location_id location = OTLP_AT(decoder, locations, decoder->numbers.items[i]);
        if (location.index) stack = profile_add_stack(decoder->profile, stack, location);
    }
    if (id) *id = stack;
}

void otlp_read_dictionary(struct otlp_decoder *decoder, struct slice message)
{
    static const struct {
        uint32_t number;
        otlp_take_message take;
    } tables[] = {{DICTIONARY_STRINGS, add_string},   {DICTIONARY_ATTRIBUTES, add_attribute},
                  {DICTIONARY_LINKS, add_link},       {DICTIONARY_FUNCTIONS, add_function},
                  {DICTIONARY_MAPPINGS, add_mapping}, {DICTIONARY_LOCATIONS, add_location},
                  {DICTIONARY_STACKS, add_stack}};
    if (decoder->strings.count > 0) {
        otlp_fail(decoder, message.data, STATUS_UNSUPPORTED, "a second dictionary");
        return;
    }
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        otlp_each_message(decoder, message, tables[i].number, "the dictionary", tables[i].take);
}
