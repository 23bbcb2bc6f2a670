/* Reads OTLP profiles.
 *
 * Everything refers to the tables of one dictionary, so that it is read first, whatever its place in the file. A
 * profile of OTLP has values of one type. The profiles of a file become one, with a column for each type: the first
 * observation of one stack, thread, time and set of labels in one profile is in one row with the first of these in
 * another, the second with the second.  SPDX-License-Identifier: MIT */
#include "format/otlp/otlp.h"

#include "base/hex.h"
#include "base/json_reader.h"
#include "format/common/format_ops.h"
#include "format/otlp/otlp_dictionary.h"
#include "profile/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- Value types -------------------------------------------------------------------------------------------------- */

static struct value_type read_value_type(struct otlp_decoder *decoder, struct slice message)
{
    uint64_t numbers[VALUE_TYPE_UNIT + 1] = {0};
    otlp_read_numbers(decoder, message, "a value type", numbers, VALUE_TYPE_UNIT + 1);
    struct string_id type = OTLP_AT(decoder, strings, numbers[VALUE_TYPE_TYPE]);
    return (struct value_type){.type = type, .unit = OTLP_AT(decoder, strings, numbers[VALUE_TYPE_UNIT])};
}

/* Finds the column of the value type of the profile MESSAGE, a new one if there is none. */
static void find_column(struct otlp_decoder *decoder, struct slice message)
{
    struct profile *profile = decoder->profile;
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    struct slice value_type = slice_of(NULL, 0);
    while (otlp_next_field(decoder, &cursor, &field, "a profile")) {
        if (field.number == PROFILE_SAMPLE_TYPE) value_type = field.bytes;
    }
    struct value_type wanted = read_value_type(decoder, value_type);
    if (wanted.type.index == 0) wanted.type = profile_text(profile, "samples");
    for (decoder->column = 0; decoder->column < profile->value_type_count; decoder->column++) {
        const struct value_type *known = &profile->value_types[decoder->column];
        if (known->type.index == wanted.type.index && known->unit.index == wanted.unit.index) return;
    }
    if (profile->value_type_count == PROFILE_VALUES_MAX)
        otlp_fail(decoder, value_type.data, STATUS_TOO_LARGE, "more than %d types of values", PROFILE_VALUES_MAX);
    else
        profile_add_value_type(profile, profile_c_string(profile, wanted.type), profile_c_string(profile, wanted.unit));
}

static void find_scope_columns(struct otlp_decoder *decoder, struct slice message)
{
    otlp_each_message(decoder, message, SCOPE_PROFILES_PROFILES, "the profiles of a scope", find_column);
}

static void find_columns(struct otlp_decoder *decoder, struct slice message)
{
    otlp_each_message(decoder, message, RESOURCE_PROFILES_SCOPE_PROFILES, "the profiles of a resource",
                      find_scope_columns);
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
    const struct otlp_row_place *a = &((const struct otlp_decoder *)context)->rows.items[index], *b = key;
    return a->stack.index == b->stack.index && a->thread.index == b->thread.index &&
           a->labels.index == b->labels.index && a->time_ns == b->time_ns && a->column == b->column;
}

/* Returns the place of KEY in COLUMN, created if there is none; NULL on failure. Valid until the next one is made. */
static struct otlp_row_place *place_of(struct otlp_decoder *decoder, const struct otlp_row_place *key)
{
    uint64_t hash = hash_mix(hash_mix(key->stack.index, key->thread.index), key->labels.index);
    hash = hash_mix(hash_mix(hash, key->time_ns), key->column);
    uint32_t found = index_table_find(&decoder->rows.index, hash, is_same_place, decoder, key);
    if (found != INDEX_NONE) return &decoder->rows.items[found];
    struct otlp_row_place *place = OTLP_ADD(decoder, &decoder->rows);
    if (!place) return NULL;
    *place = *key;
    place->first = place->last = INDEX_NONE;
    if (index_table_add(&decoder->rows.index, hash, (uint32_t)decoder->rows.count - 1)) return place;
    otlp_fail(decoder, NULL, STATUS_NO_MEMORY, "no memory for the samples");
    return NULL;
}

static void add_row(struct otlp_decoder *decoder, const struct otlp_row_place *key, int64_t value)
{
    int64_t values[PROFILE_VALUES_MAX] = {0};
    struct sample sample = {.stack = key->stack, .thread = key->thread, .labels = key->labels, .time_ns = key->time_ns};
    values[decoder->column] = value;
    profile_add_sample(decoder->profile, &sample, values);
}

/* A file with one type of values has a row for each observation. */
static void put_observation(struct otlp_decoder *decoder, struct otlp_row_place key, int64_t value)
{
    struct profile *profile = decoder->profile;
    uint32_t new_row = (uint32_t)profile->samples.count, row;
    if (profile->value_type_count == 1) {
        add_row(decoder, &key, value);
        return;
    }
    key.column = OTLP_COLUMN_NONE;
    struct otlp_row_place *place = place_of(decoder, &key);
    if (!place) return;
    uint32_t first = place->first, last = place->last;
    key.column = decoder->column;
    struct otlp_row_place *own = place_of(decoder, &key);
    if (!own) return;
    row = own->last == INDEX_NONE ? first : decoder->next_rows.items[own->last];
    own->last = row == INDEX_NONE ? new_row : row;
    if (row != INDEX_NONE) {
        profile->samples.values[row * profile->value_type_count + decoder->column] = value;
        return;
    }
    uint32_t *next = OTLP_ADD(decoder, &decoder->next_rows);
    if (!next) return;
    *next = INDEX_NONE;
    if (last != INDEX_NONE) decoder->next_rows.items[last] = new_row;
    key.column = OTLP_COLUMN_NONE;
    place = place_of(decoder, &key);
    if (place && first == INDEX_NONE) place->first = new_row;
    if (place) place->last = new_row;
    add_row(decoder, &key, value);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static void add_label(struct otlp_decoder *decoder, const struct label *label)
{
    if (decoder->label_count == OTLP_ATTRIBUTES_MAX)
        otlp_fail(decoder, NULL, STATUS_TOO_LARGE, "more than %d attributes of one sample", OTLP_ATTRIBUTES_MAX);
    else
        decoder->labels[decoder->label_count++] = *label;
}

static void add_text_label(struct otlp_decoder *decoder, const char *key, struct string_id text)
{
    if (text.index) add_label(decoder, &(struct label){.key = profile_text(decoder->profile, key), .text = text});
}

static struct string_id text_of_label(struct otlp_decoder *decoder, const struct label *label)
{
    char text[24];
    if (!label->is_number) return label->text;
    (void)snprintf(text, sizeof(text), "%" PRId64, label->number);
    return profile_text(decoder->profile, text);
}

/* The attributes of a process have the names here that other formats use. */
static void add_attribute_label(struct otlp_decoder *decoder, const struct otlp_attribute *attribute)
{
    struct label label = attribute->label;
    if (otlp_is_key(decoder, attribute, KEY_PROCESS_ID)) label.key = profile_text(decoder->profile, PROCESS_ID_LABEL);
    if (otlp_is_key(decoder, attribute, KEY_PROCESS_NAME))
        label.key = profile_text(decoder->profile, PROCESS_NAME_LABEL);
    add_label(decoder, &label);
}

/* Returns the process that the labels at hand name: labels of the resource come first. */
static struct process_id process_at_hand(struct otlp_decoder *decoder)
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
static struct thread_id add_thread(struct otlp_decoder *decoder, struct string_id id, struct string_id name)
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
static struct thread_id read_attributes(struct otlp_decoder *decoder)
{
    struct string_id id = {0}, name = {0};
    decoder->label_count = decoder->resource_label_count;
    for (size_t i = 0; i < decoder->numbers.count && decoder->status == STATUS_OK; i++) {
        const struct otlp_attribute *attribute = otlp_attribute_at(decoder, i);
        if (otlp_is_key(decoder, attribute, KEY_THREAD_ID))
            id = text_of_label(decoder, &attribute->label);
        else if (otlp_is_key(decoder, attribute, KEY_THREAD_NAME))
            name = attribute->label.text;
        else if (attribute->label.key.index)
            add_attribute_label(decoder, attribute);
    }
    return add_thread(decoder, id, name);
}

/* Adds an observation for each value, or each time; decoder.numbers are the values. */
static void add_observations(struct otlp_decoder *decoder, const struct otlp_row_place *key, const uint8_t *place)
{
    size_t values = decoder->numbers.count, times = decoder->times.count, count = values > times ? values : times;
    if (count == 0) otlp_fail(decoder, place, STATUS_MALFORMED, "a sample without values and times");
    if (values > 0 && times > 0 && values != times)
        otlp_fail(decoder, place, STATUS_MALFORMED, "a sample has %zu values and %zu times", values, times);
    decoder->profile->has_times |= times > 0;
    for (size_t i = 0; i < count && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK; i++) {
        struct otlp_row_place row = *key;
        if (times > 0) row.time_ns = decoder->times.items[i];
        put_observation(decoder, row, values > 0 ? (int64_t)decoder->numbers.items[i] : 1);
    }
}

/* Adds the observations of a sample. In files of versions before 1.10, fields 2 to 4 are values, attributes and link; a
 * sample must have values or times, and both are in other fields there. */
static void add_sample(struct otlp_decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t stack = 0, link_index = 0;
    decoder->times.count = 0;
    otlp_read_list(decoder, message, SAMPLE_ATTRIBUTES, "a sample");
    while (otlp_next_field(decoder, &cursor, &field, "a sample")) {
        if (field.number == SAMPLE_STACK) stack = field.value;
        if (field.number == SAMPLE_LINK && field.wire_type == PROTOBUF_VARINT) link_index = field.value;
        if (field.number == SAMPLE_TIMES) otlp_add_numbers(decoder, &decoder->times, &field, PROTOBUF_FIXED64, "times");
        if ((field.number == SAMPLE_VALUES && field.wire_type == PROTOBUF_VARINT && field.value > 0) ||
            (field.number == SAMPLE_LINK && field.wire_type == PROTOBUF_BYTES))
            otlp_fail(decoder, message.data, STATUS_UNSUPPORTED,
                      "samples as opentelemetry-proto had them before 1.10; send them with a newer exporter");
    }
    struct otlp_row_place key = {.stack = OTLP_AT(decoder, stacks, stack), .thread = read_attributes(decoder)};
    struct otlp_link link = OTLP_AT(decoder, links, link_index);
    add_text_label(decoder, OTLP_TRACE_LABEL, link.trace_id);
    add_text_label(decoder, OTLP_SPAN_LABEL, link.span_id);
    key.labels = profile_add_labels(decoder->profile, decoder->labels, decoder->label_count);
    key.time_ns = 0;
    otlp_read_list(decoder, message, SAMPLE_VALUES, "a sample");
    if (decoder->status == STATUS_OK) add_observations(decoder, &key, message.data);
}

/* --- Profiles ----------------------------------------------------------------------------------------------------- */

static void add_comment(struct otlp_decoder *decoder, struct slice value)
{
    struct cursor cursor = cursor_of(value);
    struct protobuf_field field;
    while (otlp_next_field(decoder, &cursor, &field, "a comment")) {
        if (field.number == ANY_STRING) profile_add_comment(decoder->profile, field.bytes);
    }
}

static void add_metadata(struct otlp_decoder *decoder, const struct label *label)
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
static void read_profile_attributes(struct otlp_decoder *decoder)
{
    struct profile *profile = decoder->profile;
    for (size_t i = 0; i < decoder->numbers.count && decoder->status == STATUS_OK; i++) {
        const struct otlp_attribute *attribute = otlp_attribute_at(decoder, i);
        if (otlp_is_key(decoder, attribute, KEY_COMMENT))
            otlp_each_message(decoder, attribute->array, ARRAY_VALUES, "a list of comments", add_comment);
        else if (otlp_is_key(decoder, attribute, KEY_DOC_URL))
            profile->doc_url = attribute->label.text;
        else if (otlp_is_key(decoder, attribute, KEY_DROP_FRAMES))
            profile->drop_frames = attribute->label.text;
        else if (otlp_is_key(decoder, attribute, KEY_KEEP_FRAMES))
            profile->keep_frames = attribute->label.text;
        else if (attribute->label.key.index)
            add_metadata(decoder, &attribute->label);
    }
}

static void read_extent(struct otlp_decoder *decoder, uint64_t start_ns, uint64_t duration_ns)
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
static void read_profile(struct otlp_decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t start_ns = 0, duration_ns = 0;
    bool is_first = !decoder->has_profile;
    decoder->has_profile = true;
    find_column(decoder, message);
    while (otlp_next_field(decoder, &cursor, &field, "a profile")) {
        if (field.number == PROFILE_TIME) start_ns = field.value;
        if (field.number == PROFILE_DURATION) duration_ns = field.value;
        if (is_first && field.number == PROFILE_PERIOD) decoder->profile->period = (int64_t)field.value;
        if (is_first && field.number == PROFILE_PERIOD_TYPE)
            decoder->profile->period_type = read_value_type(decoder, field.bytes);
        if (is_first && field.number == PROFILE_ID && field.bytes.size == PROFILE_ID_BYTES)
            decoder->profile->chunk_id = otlp_hex_id(decoder, field.bytes);
    }
    read_extent(decoder, start_ns, duration_ns);
    otlp_read_list(decoder, message, PROFILE_ATTRIBUTES, "a profile");
    read_profile_attributes(decoder);
    otlp_each_message(decoder, message, PROFILE_SAMPLES, "a profile", add_sample);
}

/* Returns the hexadecimal digits of the id in TEXT, which may have hyphens; "" if TEXT is no id. */
static struct string_id id_of(struct otlp_decoder *decoder, struct slice text)
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
static void use_resource_attribute(struct otlp_decoder *decoder, const struct otlp_attribute *attribute)
{
    struct profile *profile = decoder->profile;
    if (decoder->has_several_resources || otlp_is_key(decoder, attribute, KEY_PROCESS_ID) ||
        otlp_is_key(decoder, attribute, KEY_PROCESS_NAME)) {
        add_attribute_label(decoder, attribute);
    } else if (otlp_is_key(decoder, attribute, KEY_RELEASE)) {
        profile->release = attribute->label.text;
    } else if (otlp_is_key(decoder, attribute, KEY_ENVIRONMENT)) {
        profile->environment = attribute->label.text;
    } else {
        struct string_id id = {0};
        if (otlp_is_key(decoder, attribute, KEY_INSTANCE))
            id = id_of(decoder, profile_slice(profile, attribute->label.text));
        if (id.index)
            profile->profiler_id = id;
        else
            add_metadata(decoder, &attribute->label);
    }
}

static void read_resource_attribute(struct otlp_decoder *decoder, struct slice message)
{
    struct otlp_attribute attribute = {0};
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    struct string_id key = {0};
    bool is_known = false;
    while (otlp_next_field(decoder, &cursor, &field, "an attribute")) {
        if (field.number == KEY_VALUE_KEY) key = profile_string(decoder->profile, field.bytes);
        if (field.number == KEY_VALUE_KEY_STRINDEX && field.value) key = OTLP_AT(decoder, strings, field.value);
        if (field.number == KEY_VALUE_VALUE) is_known = otlp_read_value(decoder, field.bytes, &attribute);
    }
    attribute.label.key = key;
    if (is_known && key.index && decoder->status == STATUS_OK) use_resource_attribute(decoder, &attribute);
}

static void read_resource(struct otlp_decoder *decoder, struct slice message)
{
    otlp_each_message(decoder, message, RESOURCE_ATTRIBUTES, "a resource", read_resource_attribute);
}

static void read_scope(struct otlp_decoder *decoder, struct slice message)
{
    otlp_each_message(decoder, message, SCOPE_PROFILES_PROFILES, "the profiles of a scope", read_profile);
}

static void read_resource_profiles(struct otlp_decoder *decoder, struct slice message)
{
    decoder->label_count = 0;
    otlp_each_message(decoder, message, RESOURCE_PROFILES_RESOURCE, "the profiles of a resource", read_resource);
    decoder->resource_label_count = decoder->label_count;
    otlp_each_message(decoder, message, RESOURCE_PROFILES_SCOPE_PROFILES, "the profiles of a resource", read_scope);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static void decoder_fini(struct otlp_decoder *decoder)
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

static void read_data(struct otlp_decoder *decoder)
{
    otlp_each_message(decoder, decoder->bytes, DATA_DICTIONARY, "the file", otlp_read_dictionary);
    struct cursor cursor = cursor_of(decoder->bytes);
    struct protobuf_field field;
    size_t resources = 0;
    while (protobuf_next(&cursor, &field)) resources += field.number == DATA_RESOURCE_PROFILES;
    decoder->has_several_resources = resources > 1;
    otlp_each_message(decoder, decoder->bytes, DATA_RESOURCE_PROFILES, "the file", find_columns);
    put_first_type_last(decoder->profile);
    otlp_each_message(decoder, decoder->bytes, DATA_RESOURCE_PROFILES, "the file", read_resource_profiles);
}

static enum status decode(struct slice bytes, bool is_transcoded, struct profile *profile, struct error *error)
{
    struct otlp_decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the profile");
    *decoder =
        (struct otlp_decoder){.bytes = bytes, .is_transcoded = is_transcoded, .profile = profile, .error = error};
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
