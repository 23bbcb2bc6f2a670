/* Reads OTLP profiles.
 *
 * Everything refers to the tables of one dictionary, so that it is read first, whatever its place in the file. A
 * profile of OTLP has values of one type. The profiles of a file become one, with a column for each type: the first
 * observation of one stack, thread, time and set of labels in one profile is in one row with the first of these in
 * another, the second with the second.  SPDX-License-Identifier: MIT */
#include "format/otlp/otlp.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/protobuf.h"
#include "format/common/format_ops.h"
#include "format/otlp/otlp_private.h"
#include "profile/processes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS_MAX = PROFILE_ENTITIES_MAX, COLUMN_NONE = PROFILE_VALUES_MAX };

struct attribute {
    struct label label; /* KEY 0: of a kind that has no label */
    struct slice array; /* bytes of an ANY_ARRAY */
    bool is_true;       /* value of an ANY_BOOL */
};

struct link {
    struct string_id trace_id, span_id;
};

/* Where the observations of one stack, thread, time and set of labels are: the first and last row of all columns, or
 * the last one that has a value in COLUMN. */
struct row_place {
    struct stack_id stack;
    struct thread_id thread;
    struct label_set_id labels;
    uint64_t time_ns;
    uint32_t column; /* COLUMN_NONE: of all */
    uint32_t first, last;
};

struct number_list {
    uint64_t *items;
    size_t count, capacity;
};

/* clang-format off */
struct decoder {
    struct slice bytes;
    bool is_transcoded; /* places in BYTES are not places in the file */
    struct profile *profile;
    struct { struct string_id *items; size_t count, capacity; } strings;
    struct { struct function_id *items; size_t count, capacity; } functions;
    struct { struct mapping_id *items; size_t count, capacity; } mappings;
    struct { struct attribute *items; size_t count, capacity; } attributes;
    struct { struct link *items; size_t count, capacity; } links;
    struct { struct location_id *items; size_t count, capacity; } locations;
    struct { struct stack_id *items; size_t count, capacity; } stacks;

    struct number_list numbers, times; /* lists at hand */
    struct { struct line *items; size_t count, capacity; } lines;
    struct label labels[OTLP_ATTRIBUTES_MAX];
    uint32_t label_count, resource_label_count; /* the resource's labels come first */
    bool has_several_resources, has_profile;

    struct { uint32_t *items; size_t count, capacity; } next_rows; /* next row of the same key, by row */
    struct { struct row_place *items; size_t count, capacity; struct index_table index; } rows;
    uint32_t column;
    uint64_t end_ns;

    enum status status;
    struct error *error;
};
/* clang-format on */

static void __attribute__((format(printf, 4, 5)))
fail(struct decoder *decoder, const uint8_t *place, enum status status, const char *format, ...)
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

#define ADD_ITEM(decoder, list)                                                                                        \
    ((__typeof__((list)->items))add_item((decoder), &(list)->items, &(list)->count, &(list)->capacity,                 \
                                         sizeof(*(list)->items)))

/* Room for one more item, zeroed and counted; NULL on failure. */
static void *add_item(struct decoder *decoder, void *items, size_t *count, size_t *capacity, size_t item_size)
{
    if (!array_reserve(items, capacity, *count + 1, item_size, ITEMS_MAX)) {
        fail(decoder, NULL, STATUS_NO_MEMORY, "no memory for the profile, or a table of more than %d items", ITEMS_MAX);
        return NULL;
    }
    uint8_t *item = *(uint8_t **)items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

/* The next field of MESSAGE, which CURSOR reads; false at its end, and when it is broken. */
static bool next_field(struct decoder *decoder, struct cursor *cursor, struct protobuf_field *field,
                       const char *message)
{
    if (decoder->status == STATUS_OK && protobuf_next(cursor, field)) return true;
    if (cursor->failed) fail(decoder, cursor->position, STATUS_MALFORMED, "%s is cut short or broken", message);
    return false;
}

typedef void (*take_message)(struct decoder *, struct slice message);

/* Gives TAKE each message of field NUMBER in turn. */
static void each_message(struct decoder *decoder, struct slice parent, uint32_t number, const char *name,
                         take_message take)
{
    struct cursor cursor = cursor_of(parent);
    struct protobuf_field field;
    while (next_field(decoder, &cursor, &field, name)) {
        if (field.number != number) continue;
        if (field.wire_type == PROTOBUF_BYTES)
            take(decoder, field.bytes);
        else
            fail(decoder, cursor.position, STATUS_MALFORMED, "%s has a number where a message must be", name);
    }
}

/* Adds the numbers of FIELD, packed or alone, to LIST, a list of WHAT. A number alone has the wire type ALONE. */
static void add_numbers(struct decoder *decoder, struct number_list *list, const struct protobuf_field *field,
                        enum protobuf_wire_type alone, const char *what)
{
    struct cursor cursor = cursor_of(field->bytes);
    if (field->wire_type == alone) {
        uint64_t *number = ADD_ITEM(decoder, list);
        if (number) *number = field->value;
    }
    while (field->wire_type == PROTOBUF_BYTES && decoder->status == STATUS_OK && !cursor_at_end(&cursor)) {
        uint64_t value = alone == PROTOBUF_VARINT ? protobuf_varint(&cursor) : cursor_u64(&cursor);
        uint64_t *number = ADD_ITEM(decoder, list);
        if (number) *number = value;
    }
    if (cursor.failed) fail(decoder, cursor.position, STATUS_MALFORMED, "a list of %s is cut short", what);
}

/* Returns INDEX if a table of COUNT items has it; else 0 after a failure. Entry 0, "none", may be missing. */
static uint64_t checked(struct decoder *decoder, uint64_t index, size_t count, const char *table)
{
    if (index < count || index == 0) return index;
    fail(decoder, NULL, STATUS_MALFORMED, "an index %" PRId64 " into %s, which has %zu entries", (int64_t)index, table,
         count);
    return 0;
}

#define AT(decoder, table, index)                                                                                      \
    ((decoder)->table.count > 0                                                                                        \
         ? (decoder)->table.items[checked((decoder), (index), (decoder)->table.count, "the table of " #table)]         \
         : (checked((decoder), (index), 0, "the table of " #table), (__typeof__(*(decoder)->table.items)){0}))

/* Reads the fields of MESSAGE that are numbers, up to field COUNT. */
static void read_numbers(struct decoder *decoder, struct slice message, const char *name, uint64_t *numbers,
                         uint32_t count)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    while (next_field(decoder, &cursor, &field, name)) {
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
static void write_scalar(struct decoder *decoder, struct slice value, struct json_writer *writer)
{
    struct cursor cursor = cursor_of(value);
    struct protobuf_field field = {0};
    (void)next_field(decoder, &cursor, &field, "a value");
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
        json_write_string(writer, profile_slice(decoder->profile, AT(decoder, strings, field.value)));
        break;
    default:
        json_write_null(writer);
    }
}

/* Returns an array, or a double, as a text of JSON. */
static struct string_id text_of(struct decoder *decoder, const struct protobuf_field *value)
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
        while (next_field(decoder, &cursor, &item, "a list of values"))
            if (item.number == ARRAY_VALUES) write_scalar(decoder, item.bytes, &writer);
        json_end_array(&writer);
    }
    if (text.failed) fail(decoder, NULL, STATUS_TOO_LARGE, "an attribute is larger than %zu bytes", text.maximum);
    struct string_id id = profile_string(decoder->profile, buffer_slice(&text));
    buffer_fini(&text);
    return id;
}

/* Reads the AnyValue MESSAGE into ATTRIBUTE; false for a kind that has no label. */
static bool read_value(struct decoder *decoder, struct slice message, struct attribute *attribute)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field value;
    struct label *label = &attribute->label;
    bool is_known = false;
    while (next_field(decoder, &cursor, &value, "a value")) {
        is_known = true;
        label->is_number = value.number == ANY_INT;
        label->number = label->is_number ? (int64_t)value.value : 0;
        label->text = (struct string_id){0};
        attribute->is_true = value.number == ANY_BOOL && value.value != 0;
        attribute->array = value.number == ANY_ARRAY ? value.bytes : slice_of(NULL, 0);
        if (value.number == ANY_STRING)
            label->text = profile_string(decoder->profile, value.bytes);
        else if (value.number == ANY_STRINDEX)
            label->text = AT(decoder, strings, value.value);
        else if (value.number == ANY_BOOL)
            label->text = profile_text(decoder->profile, attribute->is_true ? "true" : "false");
        else if (value.number == ANY_DOUBLE || value.number == ANY_ARRAY)
            label->text = text_of(decoder, &value);
        else
            is_known = value.number == ANY_INT;
    }
    return is_known;
}

static void add_attribute(struct decoder *decoder, struct slice message)
{
    struct attribute *attribute = ADD_ITEM(decoder, &decoder->attributes);
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t key = 0, unit = 0;
    bool is_known = false;
    while (attribute && next_field(decoder, &cursor, &field, "an attribute")) {
        if (field.number == ATTRIBUTE_KEY) key = field.value;
        if (field.number == ATTRIBUTE_VALUE) is_known = read_value(decoder, field.bytes, attribute);
        if (field.number == ATTRIBUTE_UNIT) unit = field.value;
    }
    if (!attribute || !is_known) return;
    attribute->label.key = AT(decoder, strings, key);
    if (attribute->label.is_number) attribute->label.unit = AT(decoder, strings, unit);
}

/* Makes the attributes of the list at hand, decoder.numbers, one after the other. */
static const struct attribute *attribute_at(struct decoder *decoder, size_t place)
{
    static const struct attribute none;
    uint64_t index =
        checked(decoder, decoder->numbers.items[place], decoder->attributes.count, "the table of attributes");
    return decoder->status == STATUS_OK && decoder->attributes.count > 0 ? &decoder->attributes.items[index] : &none;
}

static bool is_key(const struct decoder *decoder, const struct attribute *attribute, const char *key)
{
    return slice_equals_text(profile_slice(decoder->profile, attribute->label.key), key);
}

/* --- The dictionary ----------------------------------------------------------------------------------------------- */

static void add_string(struct decoder *decoder, struct slice text)
{
    struct string_id *id = ADD_ITEM(decoder, &decoder->strings);
    if (id) *id = profile_string(decoder->profile, text);
}

static struct string_id hex_of(struct decoder *decoder, struct slice bytes)
{
    char text[2 * TRACE_ID_BYTES + 1];
    size_t size = bytes.size < TRACE_ID_BYTES ? bytes.size : TRACE_ID_BYTES;
    bool is_zero = true;
    for (size_t i = 0; i < size; i++) is_zero = is_zero && bytes.data[i] == 0;
    (void)hex_write(text, slice_of(bytes.data, size));
    return is_zero ? (struct string_id){0} : profile_text(decoder->profile, text);
}

static void add_link(struct decoder *decoder, struct slice message)
{
    struct link *link = ADD_ITEM(decoder, &decoder->links);
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    while (link && next_field(decoder, &cursor, &field, "a link")) {
        if (field.wire_type != PROTOBUF_BYTES) continue;
        if (field.number == LINK_TRACE_ID) link->trace_id = hex_of(decoder, field.bytes);
        if (field.number == LINK_SPAN_ID) link->span_id = hex_of(decoder, field.bytes);
    }
}

static void add_function(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[FUNCTION_START_LINE + 1] = {0};
    struct function_id *id = ADD_ITEM(decoder, &decoder->functions);
    read_numbers(decoder, message, "a function", numbers, FUNCTION_START_LINE + 1);
    struct function function = {
        .name = AT(decoder, strings, numbers[FUNCTION_NAME]),
        .system_name = AT(decoder, strings, numbers[FUNCTION_SYSTEM_NAME]),
        .file_name = AT(decoder, strings, numbers[FUNCTION_FILE]),
        .start_line = (int64_t)numbers[FUNCTION_START_LINE],
    };
    if (function.system_name.index == function.name.index) function.system_name.index = 0;
    if (id && message.size > 0) *id = profile_add_function(decoder->profile, &function);
}

/* Reads the list in field NUMBER of MESSAGE into decoder.numbers. */
static void read_list(struct decoder *decoder, struct slice message, uint32_t number, const char *name)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    decoder->numbers.count = 0;
    while (next_field(decoder, &cursor, &field, name)) {
        if (field.number == number) add_numbers(decoder, &decoder->numbers, &field, PROTOBUF_VARINT, "numbers");
    }
}

static void add_mapping(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[MAPPING_FILE + 1] = {0};
    struct mapping_id *id = ADD_ITEM(decoder, &decoder->mappings);
    read_numbers(decoder, message, "a mapping", numbers, MAPPING_FILE + 1);
    read_list(decoder, message, MAPPING_ATTRIBUTES, "a mapping");
    struct mapping mapping = {
        .start = numbers[MAPPING_START],
        .limit = numbers[MAPPING_LIMIT],
        .file_offset = numbers[MAPPING_OFFSET],
        .file_name = AT(decoder, strings, numbers[MAPPING_FILE]),
    };
    for (size_t i = 0; i < decoder->numbers.count; i++) {
        const struct attribute *attribute = attribute_at(decoder, i);
        if (is_key(decoder, attribute, KEY_BUILD_ID)) mapping.build_id = attribute->label.text;
        if (is_key(decoder, attribute, KEY_HAS_FUNCTIONS)) mapping.has_functions = attribute->is_true;
        if (is_key(decoder, attribute, KEY_HAS_FILENAMES)) mapping.has_filenames = attribute->is_true;
        if (is_key(decoder, attribute, KEY_HAS_LINES)) mapping.has_line_numbers = attribute->is_true;
        if (is_key(decoder, attribute, KEY_HAS_INLINED)) mapping.has_inline_frames = attribute->is_true;
    }
    if (id && message.size > 0) *id = profile_add_mapping(decoder->profile, &mapping);
}

static int64_t line_number(uint64_t number)
{
    return number <= INT32_MAX ? (int64_t)number : 0;
}

static void add_line(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[LINE_COLUMN + 1] = {0};
    read_numbers(decoder, message, "a line", numbers, LINE_COLUMN + 1);
    if (decoder->lines.count == OTLP_LINES_MAX)
        fail(decoder, message.data, STATUS_TOO_LARGE, "more than %d functions at one location", OTLP_LINES_MAX);
    struct line *line = decoder->status == STATUS_OK ? ADD_ITEM(decoder, &decoder->lines) : NULL;
    if (!line) return;
    *line = (struct line){.function = AT(decoder, functions, numbers[LINE_FUNCTION]),
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

static void add_location(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[LOCATION_ADDRESS + 1] = {0};
    struct location_id *id = ADD_ITEM(decoder, &decoder->locations);
    decoder->lines.count = 0;
    each_message(decoder, message, LOCATION_LINES, "a location", add_line);
    read_numbers(decoder, message, "a location", numbers, LOCATION_ADDRESS + 1);
    read_list(decoder, message, LOCATION_ATTRIBUTES, "a location");
    struct location location = {.mapping = AT(decoder, mappings, numbers[LOCATION_MAPPING]),
                                .address = numbers[LOCATION_ADDRESS]};
    for (size_t i = 0; i < decoder->numbers.count; i++) {
        const struct attribute *attribute = attribute_at(decoder, i);
        if (is_key(decoder, attribute, KEY_FOLDED)) location.is_folded = attribute->is_true;
        if (is_key(decoder, attribute, KEY_FRAME_TYPE))
            location.kind = kind_of_type(profile_slice(decoder->profile, attribute->label.text), &location);
    }
    if (id && message.size > 0)
        *id = profile_add_location(decoder->profile, &location, decoder->lines.items, (uint32_t)decoder->lines.count);
}

static void add_stack(struct decoder *decoder, struct slice message)
{
    struct stack_id stack = {0}, *id = ADD_ITEM(decoder, &decoder->stacks);
    read_list(decoder, message, STACK_LOCATIONS, "a stack");
    if (decoder->numbers.count > OTLP_DEPTH_MAX)
        fail(decoder, message.data, STATUS_TOO_LARGE, "a stack of more than %d frames", OTLP_DEPTH_MAX);
    for (size_t i = decoder->numbers.count; i-- > 0 && decoder->status == STATUS_OK;) {
        struct location_id location = AT(decoder, locations, decoder->numbers.items[i]);
        if (location.index) stack = profile_add_stack(decoder->profile, stack, location);
    }
    if (id) *id = stack;
}

static void read_dictionary(struct decoder *decoder, struct slice message)
{
    static const struct {
        uint32_t number;
        take_message take;
    } tables[] = {{DICTIONARY_STRINGS, add_string},   {DICTIONARY_ATTRIBUTES, add_attribute},
                  {DICTIONARY_LINKS, add_link},       {DICTIONARY_FUNCTIONS, add_function},
                  {DICTIONARY_MAPPINGS, add_mapping}, {DICTIONARY_LOCATIONS, add_location},
                  {DICTIONARY_STACKS, add_stack}};
    if (decoder->strings.count > 0) {
        fail(decoder, message.data, STATUS_UNSUPPORTED, "a second dictionary");
        return;
    }
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        each_message(decoder, message, tables[i].number, "the dictionary", tables[i].take);
}

/* --- Value types -------------------------------------------------------------------------------------------------- */

static struct value_type read_value_type(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[VALUE_TYPE_UNIT + 1] = {0};
    read_numbers(decoder, message, "a value type", numbers, VALUE_TYPE_UNIT + 1);
    struct string_id type = AT(decoder, strings, numbers[VALUE_TYPE_TYPE]);
    return (struct value_type){.type = type, .unit = AT(decoder, strings, numbers[VALUE_TYPE_UNIT])};
}

/* Finds the column of the value type of the profile MESSAGE, a new one if there is none. */
static void find_column(struct decoder *decoder, struct slice message)
{
    struct profile *profile = decoder->profile;
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    struct slice value_type = slice_of(NULL, 0);
    while (next_field(decoder, &cursor, &field, "a profile")) {
        if (field.number == PROFILE_SAMPLE_TYPE) value_type = field.bytes;
    }
    struct value_type wanted = read_value_type(decoder, value_type);
    if (wanted.type.index == 0) wanted.type = profile_text(profile, "samples");
    for (decoder->column = 0; decoder->column < profile->value_type_count; decoder->column++) {
        const struct value_type *known = &profile->value_types[decoder->column];
        if (known->type.index == wanted.type.index && known->unit.index == wanted.unit.index) return;
    }
    if (profile->value_type_count == PROFILE_VALUES_MAX)
        fail(decoder, value_type.data, STATUS_TOO_LARGE, "more than %d types of values", PROFILE_VALUES_MAX);
    else
        profile_add_value_type(profile, profile_c_string(profile, wanted.type), profile_c_string(profile, wanted.unit));
}

static void find_scope_columns(struct decoder *decoder, struct slice message)
{
    each_message(decoder, message, SCOPE_PROFILES_PROFILES, "the profiles of a scope", find_column);
}

static void find_columns(struct decoder *decoder, struct slice message)
{
    each_message(decoder, message, RESOURCE_PROFILES_SCOPE_PROFILES, "the profiles of a resource", find_scope_columns);
}

/* Makes the first type the last one, which is shown: OTLP shows the first profile. */
static void put_first_type_last(struct profile *profile)
{
    struct value_type first = profile->value_types[0];
    for (size_t i = 1; i < profile->value_type_count; i++) profile->value_types[i - 1] = profile->value_types[i];
    if (profile->value_type_count > 0) profile->value_types[profile->value_type_count - 1] = first;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static bool is_same_place(const void *context, uint32_t index, const void *key)
{
    const struct row_place *a = &((const struct decoder *)context)->rows.items[index], *b = key;
    return a->stack.index == b->stack.index && a->thread.index == b->thread.index &&
           a->labels.index == b->labels.index && a->time_ns == b->time_ns && a->column == b->column;
}

/* Returns the place of KEY in COLUMN, created if there is none; NULL on failure. Valid until the next one is made. */
static struct row_place *place_of(struct decoder *decoder, const struct row_place *key)
{
    uint64_t hash = hash_mix(hash_mix(key->stack.index, key->thread.index), key->labels.index);
    hash = hash_mix(hash_mix(hash, key->time_ns), key->column);
    uint32_t found = index_table_find(&decoder->rows.index, hash, is_same_place, decoder, key);
    if (found != INDEX_NONE) return &decoder->rows.items[found];
    struct row_place *place = ADD_ITEM(decoder, &decoder->rows);
    if (!place) return NULL;
    *place = *key;
    place->first = place->last = INDEX_NONE;
    if (index_table_add(&decoder->rows.index, hash, (uint32_t)decoder->rows.count - 1)) return place;
    fail(decoder, NULL, STATUS_NO_MEMORY, "no memory for the samples");
    return NULL;
}

static void add_row(struct decoder *decoder, const struct row_place *key, int64_t value)
{
    int64_t values[PROFILE_VALUES_MAX] = {0};
    struct sample sample = {.stack = key->stack, .thread = key->thread, .labels = key->labels, .time_ns = key->time_ns};
    values[decoder->column] = value;
    profile_add_sample(decoder->profile, &sample, values);
}

/* A file with one type of values has a row for each observation. */
static void put_observation(struct decoder *decoder, struct row_place key, int64_t value)
{
    struct profile *profile = decoder->profile;
    uint32_t new_row = (uint32_t)profile->samples.count, row;
    if (profile->value_type_count == 1) {
        add_row(decoder, &key, value);
        return;
    }
    key.column = COLUMN_NONE;
    struct row_place *place = place_of(decoder, &key);
    if (!place) return;
    uint32_t first = place->first, last = place->last;
    key.column = decoder->column;
    struct row_place *own = place_of(decoder, &key);
    if (!own) return;
    row = own->last == INDEX_NONE ? first : decoder->next_rows.items[own->last];
    own->last = row == INDEX_NONE ? new_row : row;
    if (row != INDEX_NONE) {
        profile->samples.values[row * profile->value_type_count + decoder->column] = value;
        return;
    }
    uint32_t *next = ADD_ITEM(decoder, &decoder->next_rows);
    if (!next) return;
    *next = INDEX_NONE;
    if (last != INDEX_NONE) decoder->next_rows.items[last] = new_row;
    key.column = COLUMN_NONE;
    place = place_of(decoder, &key);
    if (place && first == INDEX_NONE) place->first = new_row;
    if (place) place->last = new_row;
    add_row(decoder, &key, value);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static void add_label(struct decoder *decoder, const struct label *label)
{
    if (decoder->label_count == OTLP_ATTRIBUTES_MAX)
        fail(decoder, NULL, STATUS_TOO_LARGE, "more than %d attributes of one sample", OTLP_ATTRIBUTES_MAX);
    else
        decoder->labels[decoder->label_count++] = *label;
}

static void add_text_label(struct decoder *decoder, const char *key, struct string_id text)
{
    if (text.index) add_label(decoder, &(struct label){.key = profile_text(decoder->profile, key), .text = text});
}

static struct string_id text_of_label(struct decoder *decoder, const struct label *label)
{
    char text[24];
    if (!label->is_number) return label->text;
    (void)snprintf(text, sizeof(text), "%" PRId64, label->number);
    return profile_text(decoder->profile, text);
}

/* The attributes of a process have the names here that other formats use. */
static void add_attribute_label(struct decoder *decoder, const struct attribute *attribute)
{
    struct label label = attribute->label;
    if (is_key(decoder, attribute, KEY_PROCESS_ID)) label.key = profile_text(decoder->profile, PROCESS_ID_LABEL);
    if (is_key(decoder, attribute, KEY_PROCESS_NAME)) label.key = profile_text(decoder->profile, PROCESS_NAME_LABEL);
    add_label(decoder, &label);
}

/* Returns the process that the labels at hand name: labels of the resource come first. */
static struct process_id process_at_hand(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    struct string_id name = {0};
    int64_t pid = 0;
    for (uint32_t i = 0; i < decoder->label_count; i++) {
        const struct label *label = &decoder->labels[i];
        struct slice key = profile_slice(profile, label->key);
        if (pid == 0 && label->is_number && slice_equals_text(key, PROCESS_ID_LABEL)) pid = label->number;
        if (name.index == 0 && !label->is_number && slice_equals_text(key, PROCESS_NAME_LABEL)) name = label->text;
    }
    return profile_add_pid(profile, pid, name);
}

/* A thread that has a name alone is known by it. A sample whose thread had another name then has that as a label. */
static struct thread_id add_thread(struct decoder *decoder, struct string_id id, struct string_id name)
{
    struct profile *profile = decoder->profile;
    struct thread thread = {.process = process_at_hand(decoder), .id = id.index ? id : name, .name = name};
    if (thread.id.index == 0) return (struct thread_id){0};
    struct thread_id found = profile_add_thread(profile, &thread);
    if (name.index && profile_thread(profile, found)->name.index != name.index)
        add_text_label(decoder, PROFILE_THREAD_NAME_LABEL, name);
    return found;
}

/* Makes labels of the attributes in decoder.numbers. */
static struct thread_id read_attributes(struct decoder *decoder)
{
    struct string_id id = {0}, name = {0};
    decoder->label_count = decoder->resource_label_count;
    for (size_t i = 0; i < decoder->numbers.count && decoder->status == STATUS_OK; i++) {
        const struct attribute *attribute = attribute_at(decoder, i);
        if (is_key(decoder, attribute, KEY_THREAD_ID))
            id = text_of_label(decoder, &attribute->label);
        else if (is_key(decoder, attribute, KEY_THREAD_NAME))
            name = attribute->label.text;
        else if (attribute->label.key.index)
            add_attribute_label(decoder, attribute);
    }
    return add_thread(decoder, id, name);
}

/* Adds an observation for each value, or each time; decoder.numbers are the values. */
static void add_observations(struct decoder *decoder, const struct row_place *key, const uint8_t *place)
{
    size_t values = decoder->numbers.count, times = decoder->times.count, count = values > times ? values : times;
    if (count == 0) fail(decoder, place, STATUS_MALFORMED, "a sample without values and times");
    if (values > 0 && times > 0 && values != times)
        fail(decoder, place, STATUS_MALFORMED, "a sample has %zu values and %zu times", values, times);
    decoder->profile->has_times |= times > 0;
    for (size_t i = 0; i < count && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK; i++) {
        struct row_place row = *key;
        if (times > 0) row.time_ns = decoder->times.items[i];
        put_observation(decoder, row, values > 0 ? (int64_t)decoder->numbers.items[i] : 1);
    }
}

/* Adds the observations of a sample. In files of versions before 1.10, fields 2 to 4 are values, attributes and link; a
 * sample must have values or times, and both are in other fields there. */
static void add_sample(struct decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t stack = 0, link_index = 0;
    decoder->times.count = 0;
    read_list(decoder, message, SAMPLE_ATTRIBUTES, "a sample");
    while (next_field(decoder, &cursor, &field, "a sample")) {
        if (field.number == SAMPLE_STACK) stack = field.value;
        if (field.number == SAMPLE_LINK && field.wire_type == PROTOBUF_VARINT) link_index = field.value;
        if (field.number == SAMPLE_TIMES) add_numbers(decoder, &decoder->times, &field, PROTOBUF_FIXED64, "times");
        if ((field.number == SAMPLE_VALUES && field.wire_type == PROTOBUF_VARINT && field.value > 0) ||
            (field.number == SAMPLE_LINK && field.wire_type == PROTOBUF_BYTES))
            fail(decoder, message.data, STATUS_UNSUPPORTED,
                 "samples as opentelemetry-proto had them before 1.10; send them with a newer exporter");
    }
    struct row_place key = {.stack = AT(decoder, stacks, stack), .thread = read_attributes(decoder)};
    struct link link = AT(decoder, links, link_index);
    add_text_label(decoder, OTLP_TRACE_LABEL, link.trace_id);
    add_text_label(decoder, OTLP_SPAN_LABEL, link.span_id);
    key.labels = profile_add_labels(decoder->profile, decoder->labels, decoder->label_count);
    key.time_ns = 0;
    read_list(decoder, message, SAMPLE_VALUES, "a sample");
    if (decoder->status == STATUS_OK) add_observations(decoder, &key, message.data);
}

/* --- Profiles ----------------------------------------------------------------------------------------------------- */

static void add_comment(struct decoder *decoder, struct slice value)
{
    struct cursor cursor = cursor_of(value);
    struct protobuf_field field;
    while (next_field(decoder, &cursor, &field, "a comment")) {
        if (field.number == ANY_STRING) profile_add_comment(decoder->profile, field.bytes);
    }
}

static void add_metadata(struct decoder *decoder, const struct label *label)
{
    struct profile *profile = decoder->profile;
    const char *key = profile_c_string(profile, label->key);
    if (strncmp(key, METADATA_PREFIX, strlen(METADATA_PREFIX)) == 0) key += strlen(METADATA_PREFIX);
    for (size_t i = 0; i < profile->metadata.count; i++) {
        if (strcmp(profile_c_string(profile, profile->metadata.items[i].key), key) == 0) return;
    }
    if (profile->metadata.count == PROFILE_METADATA_MAX / 2)
        return; /* room for others: each of many resources may have some */
    if (label->is_number)
        profile_add_metadata_number(profile, key, label->number);
    else
        profile_add_metadata_text(profile, key, profile_c_string(profile, label->text));
}

/* The attributes in decoder.numbers, of a profile. */
static void read_profile_attributes(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    for (size_t i = 0; i < decoder->numbers.count && decoder->status == STATUS_OK; i++) {
        const struct attribute *attribute = attribute_at(decoder, i);
        if (is_key(decoder, attribute, KEY_COMMENT))
            each_message(decoder, attribute->array, ARRAY_VALUES, "a list of comments", add_comment);
        else if (is_key(decoder, attribute, KEY_DOC_URL))
            profile->doc_url = attribute->label.text;
        else if (is_key(decoder, attribute, KEY_DROP_FRAMES))
            profile->drop_frames = attribute->label.text;
        else if (is_key(decoder, attribute, KEY_KEEP_FRAMES))
            profile->keep_frames = attribute->label.text;
        else if (attribute->label.key.index)
            add_metadata(decoder, &attribute->label);
    }
}

static void read_extent(struct decoder *decoder, uint64_t start_ns, uint64_t duration_ns)
{
    struct profile *profile = decoder->profile;
    uint64_t end_ns;
    if (start_ns == 0 || start_ns > INT64_MAX) {
        if (duration_ns > profile->duration_ns) profile->duration_ns = duration_ns;
        return;
    }
    if (__builtin_add_overflow(start_ns, duration_ns, &end_ns)) end_ns = UINT64_MAX;
    if (profile->time_ns == 0 || (int64_t)start_ns < profile->time_ns) profile->time_ns = (int64_t)start_ns;
    if (end_ns > decoder->end_ns) decoder->end_ns = end_ns;
    profile->duration_ns = decoder->end_ns - (uint64_t)profile->time_ns;
}

/* Period and id are the first profile's. */
static void read_profile(struct decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t start_ns = 0, duration_ns = 0;
    bool is_first = !decoder->has_profile;
    decoder->has_profile = true;
    find_column(decoder, message);
    while (next_field(decoder, &cursor, &field, "a profile")) {
        if (field.number == PROFILE_TIME) start_ns = field.value;
        if (field.number == PROFILE_DURATION) duration_ns = field.value;
        if (is_first && field.number == PROFILE_PERIOD) decoder->profile->period = (int64_t)field.value;
        if (is_first && field.number == PROFILE_PERIOD_TYPE)
            decoder->profile->period_type = read_value_type(decoder, field.bytes);
        if (is_first && field.number == PROFILE_ID && field.bytes.size == PROFILE_ID_BYTES)
            decoder->profile->chunk_id = hex_of(decoder, field.bytes);
    }
    read_extent(decoder, start_ns, duration_ns);
    read_list(decoder, message, PROFILE_ATTRIBUTES, "a profile");
    read_profile_attributes(decoder);
    each_message(decoder, message, PROFILE_SAMPLES, "a profile", add_sample);
}

/* Returns the hexadecimal digits of the id in TEXT, which may have hyphens; "" if TEXT is no id. */
static struct string_id id_of(struct decoder *decoder, struct slice text)
{
    char digits[2 * PROFILE_ID_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '-') continue;
        if (!hex_is_lower(slice_of(&byte, 1)) || count == sizeof(digits)) return (struct string_id){0};
        digits[count++] = (char)byte;
    }
    if (count != sizeof(digits)) return (struct string_id){0};
    return profile_string(decoder->profile, slice_of(digits, count));
}

/* The attributes of the only resource belong to the profile; if there are several, to the samples, as labels. */
static void use_resource_attribute(struct decoder *decoder, const struct attribute *attribute)
{
    struct profile *profile = decoder->profile;
    if (decoder->has_several_resources || is_key(decoder, attribute, KEY_PROCESS_ID) ||
        is_key(decoder, attribute, KEY_PROCESS_NAME)) {
        add_attribute_label(decoder, attribute);
    } else if (is_key(decoder, attribute, KEY_RELEASE)) {
        profile->release = attribute->label.text;
    } else if (is_key(decoder, attribute, KEY_ENVIRONMENT)) {
        profile->environment = attribute->label.text;
    } else {
        struct string_id id = {0};
        if (is_key(decoder, attribute, KEY_INSTANCE))
            id = id_of(decoder, profile_slice(profile, attribute->label.text));
        if (id.index)
            profile->profiler_id = id;
        else
            add_metadata(decoder, &attribute->label);
    }
}

static void read_resource_attribute(struct decoder *decoder, struct slice message)
{
    struct attribute attribute = {0};
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    struct string_id key = {0};
    bool is_known = false;
    while (next_field(decoder, &cursor, &field, "an attribute")) {
        if (field.number == KEY_VALUE_KEY) key = profile_string(decoder->profile, field.bytes);
        if (field.number == KEY_VALUE_KEY_STRINDEX && field.value) key = AT(decoder, strings, field.value);
        if (field.number == KEY_VALUE_VALUE) is_known = read_value(decoder, field.bytes, &attribute);
    }
    attribute.label.key = key;
    if (is_known && key.index && decoder->status == STATUS_OK) use_resource_attribute(decoder, &attribute);
}

static void read_resource(struct decoder *decoder, struct slice message)
{
    each_message(decoder, message, RESOURCE_ATTRIBUTES, "a resource", read_resource_attribute);
}

static void read_scope(struct decoder *decoder, struct slice message)
{
    each_message(decoder, message, SCOPE_PROFILES_PROFILES, "the profiles of a scope", read_profile);
}

static void read_resource_profiles(struct decoder *decoder, struct slice message)
{
    decoder->label_count = 0;
    each_message(decoder, message, RESOURCE_PROFILES_RESOURCE, "the profiles of a resource", read_resource);
    decoder->resource_label_count = decoder->label_count;
    each_message(decoder, message, RESOURCE_PROFILES_SCOPE_PROFILES, "the profiles of a resource", read_scope);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void decoder_fini(struct decoder *decoder)
{
    free(decoder->strings.items);
    free(decoder->functions.items);
    free(decoder->mappings.items);
    free(decoder->attributes.items);
    free(decoder->links.items);
    free(decoder->locations.items);
    free(decoder->stacks.items);
    free(decoder->numbers.items);
    free(decoder->times.items);
    free(decoder->lines.items);
    free(decoder->next_rows.items);
    free(decoder->rows.items);
    index_table_fini(&decoder->rows.index);
}

static void read_data(struct decoder *decoder)
{
    each_message(decoder, decoder->bytes, DATA_DICTIONARY, "the file", read_dictionary);
    struct cursor cursor = cursor_of(decoder->bytes);
    struct protobuf_field field;
    size_t resources = 0;
    while (protobuf_next(&cursor, &field)) resources += field.number == DATA_RESOURCE_PROFILES;
    decoder->has_several_resources = resources > 1;
    each_message(decoder, decoder->bytes, DATA_RESOURCE_PROFILES, "the file", find_columns);
    put_first_type_last(decoder->profile);
    each_message(decoder, decoder->bytes, DATA_RESOURCE_PROFILES, "the file", read_resource_profiles);
}

static enum status decode(struct slice bytes, bool is_transcoded, struct profile *profile, struct error *error)
{
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the profile");
    *decoder = (struct decoder){.bytes = bytes, .is_transcoded = is_transcoded, .profile = profile, .error = error};
    read_data(decoder);
    enum status status = decoder->status;
    decoder_fini(decoder);
    free(decoder);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    return status == STATUS_OK && profile->has_times ? profile_sort_by_time(profile, error) : status;
}

/* Returns whether MESSAGE begins as a dictionary: the first of its strings is empty. */
static bool is_dictionary(struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    while (protobuf_next(&cursor, &field)) {
        if (field.number == 0 || field.number >= DICTIONARY_END || field.wire_type != PROTOBUF_BYTES) return false;
        if (field.number == DICTIONARY_STRINGS) return field.bytes.size == 0;
    }
    return false;
}

/* Returns whether BYTES begin a field of a file and end before it does: profiles of a resource, which begin with its
 * attributes or with those of a scope, or a dictionary. A shorter field is not told from lines of text. */
static bool is_cut_field(struct slice bytes)
{
    enum { RESOURCE = 1, SCOPE_PROFILES = 2, SIZE_MIN = 128 };
    struct cursor cursor = cursor_of(bytes);
    uint8_t tag = cursor_u8(&cursor);
    uint64_t size = cursor_uleb128(&cursor);
    size_t start = cursor_offset(&cursor);
    if (size < SIZE_MIN || size <= cursor_left(&cursor) || (tag & 7) != PROTOBUF_BYTES) return false;
    uint8_t inner = cursor_u8(&cursor);
    uint64_t inner_size = cursor_uleb128(&cursor);
    if (cursor.failed || inner_size > size - (cursor_offset(&cursor) - start)) return false;
    if ((inner & 7) != PROTOBUF_BYTES) return false;
    if (tag >> 3 == DATA_RESOURCE_PROFILES) return inner >> 3 == RESOURCE || inner >> 3 == SCOPE_PROFILES;
    return tag >> 3 == DATA_DICTIONARY && inner >> 3 > 0 && inner >> 3 < DICTIONARY_END;
}

/* Whether BYTES are a file, RET_IS_CUT: or the beginning of one. */
static bool is_file(struct slice bytes, bool *ret_is_cut)
{
    struct cursor cursor = cursor_of(bytes);
    struct protobuf_field field;
    bool has_dictionary = false;
    size_t whole = 0;
    *ret_is_cut = false;
    while (protobuf_next(&cursor, &field)) {
        if (field.wire_type != PROTOBUF_BYTES || field.number > DATA_DICTIONARY) return false;
        if (field.number == DATA_DICTIONARY && !is_dictionary(field.bytes)) return false;
        has_dictionary |= field.number == DATA_DICTIONARY;
        whole = cursor_offset(&cursor);
    }
    *ret_is_cut = !has_dictionary && is_cut_field(text_from(bytes, whole));
    return has_dictionary || *ret_is_cut;
}

bool otlp_detect(struct slice bytes)
{
    bool is_cut;
    return is_file(bytes, &is_cut);
}

enum status otlp_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    bool is_cut;
    if (!is_file(bytes, &is_cut)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not OTLP profiles");
    if (is_cut)
        return error_set(error, STATUS_MALFORMED, bytes.size, "the file is cut short, before its stacks and names");
    return decode(bytes, false, profile, error);
}

/* A file of the collector has one document a line. One document is decoded in place, others are merged. */
enum status otlp_json_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct json_reader reader;
    enum status status = STATUS_OK;
    if (!otlp_json_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not OTLP profiles in JSON");
    json_reader_init(&reader, bytes);
    for (int documents = 0; status == STATUS_OK && json_next_byte(&reader) != 0; documents++) {
        struct profile part;
        struct buffer message;
        buffer_init(&message, 2 * bytes.size + 64);
        profile_init(&part);
        if (documents == OTLP_DOCUMENTS_MAX)
            json_reader_reject(&reader, STATUS_TOO_LARGE, "more than 65536 documents in one file");
        otlp_json_take(&reader, &message);
        status = json_reader_status(&reader, error);
        if (status == STATUS_OK && message.failed) status = error_set(error, STATUS_NO_MEMORY, 0, "no memory");
        if (status == STATUS_OK) status = decode(buffer_slice(&message), true, documents ? &part : profile, error);
        if (status == STATUS_OK && documents) status = profile_merge(profile, &part, NULL, error);
        profile_fini(&part);
        buffer_fini(&message);
    }
    json_reader_fini(&reader);
    return status;
}

#define OTLP_KEEPS                                                                                                     \
    (KEEPS_ALL_NUMBERS | KEEPS_TIMES | KEEPS_THREADS | KEEPS_LABELS | KEEPS_VALUES | KEEPS_INLINED | KEEPS_LINES |     \
     KEEPS_ADDRESSES | KEEPS_IMAGES | KEEPS_METADATA | KEEPS_COMMENTS | KEEPS_RULES | KEEPS_RECORDER_METADATA |        \
     KEEPS_MEMBERS_OF_SAMPLES | KEEPS_DOC_URL)

const struct format format_otlp = {
    .name = "otlp",
    .suffixes = {".otlp"},
    .detect = otlp_detect,
    .decode = otlp_decode,
    .encode = otlp_encode,
    .keeps = OTLP_KEEPS,
    .needs_full_names = true,
};

const struct format format_otlp_json = {
    .name = "otlp-json",
    .suffixes = {".otlp.json"},
    .detect = otlp_json_detect,
    .decode = otlp_json_decode,
    .encode = otlp_json_encode,
    .keeps = OTLP_KEEPS,
    .needs_full_names = true,
};
