/* Writes OTLP profiles: one for each type of values, in one resource. The profiles are written first; what they refer
 * to gets its number in the dictionary on the way.  SPDX-License-Identifier: MIT */
#include "format/otlp/otlp.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/protobuf.h"
#include "base/utf8.h"
#include "format/otlp/otlp_private.h"
#include "profile/frame_kind.h"
#include "profile/processes.h"
#include "profile/thread_labels.h"

#include <stdio.h>
#include <stdlib.h>

/* Entries of one table of the profile that are written, in the order of their numbers; number 0 means "none". */
struct numbering {
    uint32_t *number_of; /* numbers by index in the profile */
    struct {
        uint32_t *items;
        size_t count, capacity;
    } order;
};

/* Messages of one table of the dictionary, each once. */
struct message_table {
    struct buffer bytes;
    struct {
        struct written_message {
            size_t offset, size;
        } * items;
        size_t count, capacity;
    } messages;
    struct index_table index;
};

/* Samples of one stack with the same attributes and link. */
struct group {
    uint32_t stack, link;
    size_t attribute_first, attribute_count; /* range of encoder.group_attributes */
    uint32_t first, last;                    /* samples */
    size_t size;
};

/* clang-format off */
struct encoder {
    const struct profile *profile;
    struct buffer *out;
    struct profile texts; /* the table of strings, which numbers them as the file does */
    struct numbering stacks, locations, functions, mappings;
    struct message_table attributes, links;
    struct { struct group *items; size_t count, capacity; struct index_table index; } groups;
    struct { uint64_t *items; size_t count, capacity; } group_attributes;
    uint32_t *next_samples; /* next sample of its group, by sample */
    struct { uint64_t *items; size_t count, capacity; } numbers; /* list at hand */
    enum status status;
};
/* clang-format on */

static void fail(struct encoder *encoder)
{
    if (encoder->status == STATUS_OK) encoder->status = STATUS_NO_MEMORY;
}

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

/* A text of protobuf is UTF-8. */
static uint64_t text_number(struct encoder *encoder, struct slice text)
{
    if (utf8_is_valid(text)) return profile_string(&encoder->texts, text).index;
    struct buffer repaired;
    buffer_init(&repaired, 3 * (size_t)PROFILE_STRING_BYTES_MAX);
    utf8_append_repaired(&repaired, text);
    if (repaired.failed) fail(encoder);
    uint64_t number = profile_string(&encoder->texts, buffer_slice(&repaired)).index;
    buffer_fini(&repaired);
    return number;
}

static uint64_t string_number(struct encoder *encoder, struct string_id id)
{
    return text_number(encoder, profile_slice(encoder->profile, id));
}

static uint64_t key_number(struct encoder *encoder, const char *key)
{
    return text_number(encoder, slice_of_text(key));
}

static uint32_t number_in(struct encoder *encoder, struct numbering *numbering, uint32_t index)
{
    if (index == 0 || numbering->number_of[index]) return numbering->number_of[index];
    uint32_t *added = ARRAY_ADD(&numbering->order, INT32_MAX);
    if (!added) {
        fail(encoder);
        return 0;
    }
    *added = index;
    return numbering->number_of[index] = (uint32_t)numbering->order.count;
}

static bool numbering_init(struct numbering *numbering, size_t count)
{
    numbering->number_of = calloc(count + 1, sizeof(*numbering->number_of));
    return numbering->number_of != NULL;
}

static void numbering_fini(struct numbering *numbering)
{
    free(numbering->number_of);
    free(numbering->order.items);
}

static void add_number(struct encoder *encoder, uint64_t number)
{
    uint64_t *added = ARRAY_ADD(&encoder->numbers, PROFILE_SAMPLES_MAX);
    if (added)
        *added = number;
    else
        fail(encoder);
}

static void append_numbers(struct encoder *encoder, uint32_t field)
{
    protobuf_append_packed(encoder->out, field, encoder->numbers.items, encoder->numbers.count);
    encoder->numbers.count = 0;
}

static struct slice message_at(const struct message_table *table, uint32_t index)
{
    const struct written_message *message = &table->messages.items[index];
    return slice_of(table->bytes.data + message->offset, message->size);
}

static bool is_same_message(const void *context, uint32_t index, const void *key)
{
    return slice_equal(message_at(context, index), *(const struct slice *)key);
}

/* Returns the number of the message that was appended to TABLE from OFFSET on. */
static uint32_t number_of_message(struct encoder *encoder, struct message_table *table, size_t offset)
{
    if (table->bytes.failed || table->bytes.size == offset) {
        if (table->bytes.failed) fail(encoder);
        return 0;
    }
    struct slice bytes = slice_of(table->bytes.data + offset, table->bytes.size - offset);
    uint64_t hash = hash_bytes(bytes.data, bytes.size);
    uint32_t found = index_table_find(&table->index, hash, is_same_message, table, &bytes);
    if (found != INDEX_NONE) {
        table->bytes.size = offset;
        return found + 1;
    }
    uint32_t added = (uint32_t)table->messages.count;
    if (!ARRAY_RESERVE(&table->messages, 1, PROFILE_ENTITIES_MAX) || !index_table_add(&table->index, hash, added)) {
        fail(encoder);
        return 0;
    }
    table->messages.items[table->messages.count++] = (struct written_message){offset, bytes.size};
    return added + 1;
}

static void message_table_fini(struct message_table *table)
{
    buffer_fini(&table->bytes);
    free(table->messages.items);
    index_table_fini(&table->index);
}

/* --- Attributes --------------------------------------------------------------------------------------------------- */

static void append_text_value(struct buffer *out, uint32_t field, struct slice text)
{
    size_t begin = protobuf_begin_message(out, field);
    protobuf_append_bytes(out, ANY_STRING, text);
    protobuf_end_message(out, begin);
}

static void append_number_value(struct buffer *out, uint32_t field, uint32_t kind, uint64_t number)
{
    size_t begin = protobuf_begin_message(out, field);
    protobuf_append_explicit_number(out, kind, number);
    protobuf_end_message(out, begin);
}

/* A text by its number in the table of strings is UTF-8 also where ID is not. */
static struct slice written_text(struct encoder *encoder, struct string_id id)
{
    uint64_t number = string_number(encoder, id); /* this may move the table */
    return encoder->texts.strings.items[number];
}

static uint32_t text_attribute(struct encoder *encoder, const char *key, struct string_id text)
{
    struct buffer *out = &encoder->attributes.bytes;
    size_t offset = out->size;
    protobuf_append_number(out, ATTRIBUTE_KEY, key_number(encoder, key));
    append_text_value(out, ATTRIBUTE_VALUE, written_text(encoder, text));
    return number_of_message(encoder, &encoder->attributes, offset);
}

static uint32_t number_attribute(struct encoder *encoder, uint64_t key, uint32_t kind, int64_t number, uint64_t unit)
{
    struct buffer *out = &encoder->attributes.bytes;
    size_t offset = out->size;
    protobuf_append_number(out, ATTRIBUTE_KEY, key);
    append_number_value(out, ATTRIBUTE_VALUE, kind, (uint64_t)number);
    protobuf_append_number(out, ATTRIBUTE_UNIT, unit);
    return number_of_message(encoder, &encoder->attributes, offset);
}

static void add_flag(struct encoder *encoder, const char *key, bool is_true)
{
    if (is_true) add_number(encoder, number_attribute(encoder, key_number(encoder, key), ANY_BOOL, 1, 0));
}

static void add_text(struct encoder *encoder, const char *key, struct string_id text)
{
    if (text.index) add_number(encoder, text_attribute(encoder, key, text));
}

/* Reads the SIZE bytes of the hexadecimal TEXT; false if it is no id. */
static bool parse_id(struct slice text, uint8_t *ret_bytes, size_t size)
{
    bool is_zero = true;
    if (text.size != 2 * size || !hex_is_lower(text)) return false;
    for (size_t i = 0; i < size; i++) {
        ret_bytes[i] = (uint8_t)hex_byte(text.data + 2 * i);
        is_zero = is_zero && ret_bytes[i] == 0;
    }
    return !is_zero;
}

struct ids {
    uint8_t trace[TRACE_ID_BYTES], span[SPAN_ID_BYTES];
    bool has_trace, has_span;
};

/* Whether LABEL is half of a link, which is then in IDS. */
static bool take_link(const struct profile *profile, const struct label *label, struct ids *ids)
{
    struct slice key = profile_slice(profile, label->key), text = profile_slice(profile, label->text);
    if (label->is_number) return false;
    if (!ids->has_trace && slice_equals_text(key, OTLP_TRACE_LABEL))
        return ids->has_trace = parse_id(text, ids->trace, sizeof(ids->trace));
    if (!ids->has_span && slice_equals_text(key, OTLP_SPAN_LABEL))
        return ids->has_span = parse_id(text, ids->span, sizeof(ids->span));
    return false;
}

static uint32_t link_number(struct encoder *encoder, const struct ids *ids)
{
    struct buffer *out = &encoder->links.bytes;
    size_t offset = out->size;
    if (!ids->has_trace && !ids->has_span) return 0;
    protobuf_append_bytes(out, LINK_TRACE_ID, slice_of(ids->trace, sizeof(ids->trace)));
    protobuf_append_bytes(out, LINK_SPAN_ID, slice_of(ids->span, sizeof(ids->span)));
    return number_of_message(encoder, &encoder->links, offset);
}

static void add_label(struct encoder *encoder, const struct label *label)
{
    const char *key = profile_c_string(encoder->profile, label->key);
    if (strcmp(key, PROCESS_ID_LABEL) == 0) key = KEY_PROCESS_ID;
    if (strcmp(key, PROCESS_NAME_LABEL) == 0) key = KEY_PROCESS_NAME;
    if (label->is_number)
        add_number(encoder, number_attribute(encoder, key_number(encoder, key), ANY_INT, label->number,
                                             string_number(encoder, label->unit)));
    else
        add_number(encoder, text_attribute(encoder, key, label->text));
}

/* Adds the id of a thread, and its name at the time of SAMPLE. */
static void add_thread(struct encoder *encoder, size_t sample)
{
    const struct profile *profile = encoder->profile;
    struct thread_id id = profile->samples.thread[sample];
    struct slice text = profile_slice(profile, profile_thread(profile, id)->id);
    int64_t number;
    if (id.index == 0) return;
    if (thread_id_is_number(text, &number))
        add_number(encoder, number_attribute(encoder, key_number(encoder, KEY_THREAD_ID), ANY_INT, number, 0));
    else
        add_number(encoder, text_attribute(encoder, KEY_THREAD_ID, profile_thread(profile, id)->id));
    add_text(encoder, KEY_THREAD_NAME, profile_thread_name_at(profile, sample));
}

/* Makes encoder.numbers the attributes of SAMPLE; returns the number of its link. */
static uint32_t collect_attributes(struct encoder *encoder, size_t sample)
{
    const struct profile *profile = encoder->profile;
    struct label_set set = profile->label_sets.items[profile->samples.labels[sample].index];
    bool has_thread = profile->samples.thread[sample].index != 0;
    struct ids ids = {.has_trace = false};
    encoder->numbers.count = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        bool is_name = has_thread && !label->is_number &&
                       slice_equals_text(profile_slice(profile, label->key), PROFILE_THREAD_NAME_LABEL);
        if (!is_name && !take_link(profile, label, &ids)) add_label(encoder, label);
    }
    add_thread(encoder, sample);
    return link_number(encoder, &ids);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

struct group_key {
    const struct encoder *encoder;
    uint32_t stack, link;
    const uint64_t *attributes;
    size_t count;
};

static bool is_same_group(const void *context, uint32_t index, const void *key)
{
    const struct encoder *encoder = context;
    const struct group *group = &encoder->groups.items[index];
    const struct group_key *wanted = key;
    return group->stack == wanted->stack && group->link == wanted->link && group->attribute_count == wanted->count &&
           (wanted->count == 0 || memcmp(encoder->group_attributes.items + group->attribute_first, wanted->attributes,
                                         wanted->count * sizeof(*wanted->attributes)) == 0);
}

/* Returns the group of STACK, LINK and the attributes in encoder.numbers; NULL on failure. */
static struct group *group_of(struct encoder *encoder, uint32_t stack, uint32_t link)
{
    struct group_key key = {encoder, stack, link, encoder->numbers.items, encoder->numbers.count};
    uint64_t hash = hash_mix((uint64_t)stack << 32 | link, hash_bytes(key.attributes, key.count * sizeof(uint64_t)));
    uint32_t found = index_table_find(&encoder->groups.index, hash, is_same_group, encoder, &key);
    if (found != INDEX_NONE) return &encoder->groups.items[found];
    size_t first = encoder->group_attributes.count;
    if (!ARRAY_RESERVE(&encoder->groups, 1, PROFILE_SAMPLES_MAX) ||
        !ARRAY_RESERVE(&encoder->group_attributes, key.count, (size_t)PROFILE_SAMPLES_MAX * 4) ||
        !index_table_add(&encoder->groups.index, hash, (uint32_t)encoder->groups.count)) {
        fail(encoder);
        return NULL;
    }
    if (key.count) memcpy(encoder->group_attributes.items + first, key.attributes, key.count * sizeof(uint64_t));
    encoder->group_attributes.count += key.count;
    struct group *group = &encoder->groups.items[encoder->groups.count++];
    *group = (struct group){.stack = stack,
                            .link = link,
                            .attribute_first = first,
                            .attribute_count = key.count,
                            .first = INDEX_NONE,
                            .last = INDEX_NONE};
    return group;
}

static void make_groups(struct encoder *encoder)
{
    const struct sample_columns *samples = &encoder->profile->samples;
    for (size_t i = 0; i < samples->count && encoder->status == STATUS_OK; i++) {
        uint32_t link = collect_attributes(encoder, i);
        struct group *group = group_of(encoder, number_in(encoder, &encoder->stacks, samples->stack[i].index), link);
        if (!group) return;
        encoder->next_samples[i] = INDEX_NONE;
        if (group->size++ == 0)
            group->first = (uint32_t)i;
        else
            encoder->next_samples[group->last] = (uint32_t)i;
        group->last = (uint32_t)i;
    }
    encoder->numbers.count = 0;
}

static void append_times(struct encoder *encoder, const struct group *group)
{
    protobuf_append_varint(encoder->out, SAMPLE_TIMES << 3 | PROTOBUF_BYTES);
    protobuf_append_varint(encoder->out, group->size * sizeof(uint64_t));
    for (uint32_t i = group->first; i != INDEX_NONE; i = encoder->next_samples[i])
        buffer_append(encoder->out, &encoder->profile->samples.time_ns[i], sizeof(uint64_t));
}

/* A sample alone that has 0 of the values is left out of all profiles but the first. */
static void append_group(struct encoder *encoder, const struct group *group, size_t column, bool is_first)
{
    for (uint32_t i = group->first; i != INDEX_NONE; i = encoder->next_samples[i])
        add_number(encoder, (uint64_t)profile_sample_values(encoder->profile, i)[column]);
    if (!is_first && group->size == 1 && encoder->numbers.count == 1 && encoder->numbers.items[0] == 0) {
        encoder->numbers.count = 0;
        return;
    }
    size_t begin = protobuf_begin_message(encoder->out, PROFILE_SAMPLES);
    protobuf_append_number(encoder->out, SAMPLE_STACK, group->stack);
    if (group->attribute_count)
        protobuf_append_packed(encoder->out, SAMPLE_ATTRIBUTES,
                               encoder->group_attributes.items + group->attribute_first, group->attribute_count);
    protobuf_append_number(encoder->out, SAMPLE_LINK, group->link);
    append_numbers(encoder, SAMPLE_VALUES);
    if (encoder->profile->has_times) append_times(encoder, group);
    protobuf_end_message(encoder->out, begin);
}

/* --- Profiles ----------------------------------------------------------------------------------------------------- */

static void append_value_type(struct encoder *encoder, uint32_t field, const struct value_type *type)
{
    if (type->type.index == 0 && type->unit.index == 0) return;
    size_t begin = protobuf_begin_message(encoder->out, field);
    protobuf_append_number(encoder->out, VALUE_TYPE_TYPE, string_number(encoder, type->type));
    protobuf_append_number(encoder->out, VALUE_TYPE_UNIT, string_number(encoder, type->unit));
    protobuf_end_message(encoder->out, begin);
}

static void add_comments(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct buffer *out = &encoder->attributes.bytes;
    size_t offset = out->size;
    if (profile->comments.count == 0) return;
    protobuf_append_number(out, ATTRIBUTE_KEY, key_number(encoder, KEY_COMMENT));
    size_t value = protobuf_begin_message(out, ATTRIBUTE_VALUE), array = protobuf_begin_message(out, ANY_ARRAY);
    for (size_t i = 0; i < profile->comments.count; i++)
        append_text_value(out, ARRAY_VALUES, written_text(encoder, profile->comments.items[i]));
    protobuf_end_message(out, array);
    protobuf_end_message(out, value);
    add_number(encoder, number_of_message(encoder, &encoder->attributes, offset));
}

/* Appends the attributes that all profiles share to the first one. */
static void append_attributes(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    uint8_t id[PROFILE_ID_BYTES];
    if (parse_id(profile_slice(profile, profile->chunk_id), id, sizeof(id)))
        protobuf_append_bytes(encoder->out, PROFILE_ID, slice_of(id, sizeof(id)));
    add_comments(encoder);
    add_text(encoder, KEY_DOC_URL, profile->doc_url);
    add_text(encoder, KEY_DROP_FRAMES, profile->drop_frames);
    add_text(encoder, KEY_KEEP_FRAMES, profile->keep_frames);
    append_numbers(encoder, PROFILE_ATTRIBUTES);
}

/* Appends the profile of COLUMN; without values in the model, of none. */
static void append_profile(struct encoder *encoder, size_t column, bool is_first)
{
    const struct profile *profile = encoder->profile;
    size_t begin = protobuf_begin_message(encoder->out, SCOPE_PROFILES_PROFILES);
    if (column < profile->value_type_count)
        append_value_type(encoder, PROFILE_SAMPLE_TYPE, &profile->value_types[column]);
    for (size_t i = 0; i < encoder->groups.count; i++)
        append_group(encoder, &encoder->groups.items[i], column, is_first);
    uint64_t start_ns = profile_start_ns(profile);
    if (start_ns) {
        protobuf_append_varint(encoder->out, PROFILE_TIME << 3 | PROTOBUF_FIXED64);
        buffer_append(encoder->out, &start_ns, sizeof(start_ns));
    }
    protobuf_append_number(encoder->out, PROFILE_DURATION, profile->duration_ns);
    append_value_type(encoder, PROFILE_PERIOD_TYPE, &profile->period_type);
    protobuf_append_number(encoder->out, PROFILE_PERIOD, (uint64_t)profile->period);
    if (is_first) append_attributes(encoder);
    protobuf_end_message(encoder->out, begin);
}

static void append_profiles(struct encoder *encoder)
{
    size_t default_column = (size_t)profile_value_index(encoder->profile, "");
    size_t begin = protobuf_begin_message(encoder->out, RESOURCE_PROFILES_SCOPE_PROFILES);
    size_t scope = protobuf_begin_message(encoder->out, SCOPE_PROFILES_SCOPE);
    protobuf_append_bytes(encoder->out, SCOPE_NAME, slice_of_text("offbeat"));
    protobuf_end_message(encoder->out, scope);
    append_profile(encoder, default_column, true);
    for (size_t i = 0; i < encoder->profile->value_type_count; i++) {
        if (i != default_column) append_profile(encoder, i, false);
    }
    protobuf_end_message(encoder->out, begin);
}

/* --- The resource ------------------------------------------------------------------------------------------------- */

static void append_resource_text(struct encoder *encoder, const char *key, struct string_id text)
{
    if (text.index == 0) return;
    size_t begin = protobuf_begin_message(encoder->out, RESOURCE_ATTRIBUTES);
    protobuf_append_bytes(encoder->out, KEY_VALUE_KEY, slice_of_text(key));
    append_text_value(encoder->out, KEY_VALUE_VALUE, written_text(encoder, text));
    protobuf_end_message(encoder->out, begin);
}

static void append_metadata(struct encoder *encoder, const struct metadata_entry *entry)
{
    struct slice key = written_text(encoder, entry->key);
    struct buffer name;
    buffer_init(&name, PROFILE_STRING_BYTES_MAX + sizeof(METADATA_PREFIX));
    if (!key.data || !memchr(key.data, '.', key.size)) buffer_append_text(&name, METADATA_PREFIX);
    buffer_append(&name, key.data, key.size);
    if (name.failed) fail(encoder);
    size_t begin = protobuf_begin_message(encoder->out, RESOURCE_ATTRIBUTES);
    protobuf_append_bytes(encoder->out, KEY_VALUE_KEY, buffer_slice(&name));
    if (entry->is_number)
        append_number_value(encoder->out, KEY_VALUE_VALUE, ANY_INT, (uint64_t)entry->number);
    else
        append_text_value(encoder->out, KEY_VALUE_VALUE, written_text(encoder, entry->text));
    protobuf_end_message(encoder->out, begin);
    buffer_fini(&name);
}

static void append_resource(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    size_t begin = protobuf_begin_message(encoder->out, RESOURCE_PROFILES_RESOURCE);
    append_resource_text(encoder, KEY_RELEASE, profile->release);
    append_resource_text(encoder, KEY_ENVIRONMENT, profile->environment);
    append_resource_text(encoder, KEY_INSTANCE, profile->profiler_id);
    for (size_t i = 0; i < profile->metadata.count; i++) append_metadata(encoder, &profile->metadata.items[i]);
    protobuf_end_message(encoder->out, begin);
}

/* --- The dictionary ----------------------------------------------------------------------------------------------- */

static void append_empty(struct encoder *encoder, uint32_t field)
{
    protobuf_append_bytes(encoder->out, field, slice_of(NULL, 0));
}

/* Each stack has all of its frames. */
static void append_stacks(struct encoder *encoder)
{
    append_empty(encoder, DICTIONARY_STACKS);
    for (size_t i = 0; i < encoder->stacks.order.count && !encoder->out->failed; i++) {
        size_t begin = protobuf_begin_message(encoder->out, DICTIONARY_STACKS);
        for (uint32_t at = encoder->stacks.order.items[i]; at != 0;) {
            struct stack stack = profile_stack_at(encoder->profile, at);
            add_number(encoder, number_in(encoder, &encoder->locations, stack.location.index));
            at = stack.parent.index;
        }
        append_numbers(encoder, STACK_LOCATIONS);
        protobuf_end_message(encoder->out, begin);
    }
}

static void append_line(struct encoder *encoder, const struct line *line)
{
    size_t begin = protobuf_begin_message(encoder->out, LOCATION_LINES);
    protobuf_append_number(encoder->out, LINE_FUNCTION, number_in(encoder, &encoder->functions, line->function.index));
    protobuf_append_number(encoder->out, LINE_LINE, (uint64_t)line->line);
    protobuf_append_number(encoder->out, LINE_COLUMN, (uint64_t)line->column);
    protobuf_end_message(encoder->out, begin);
}

/* The convention has values for these kinds, and for runtimes, which the model does not know. */
static void add_frame_type(struct encoder *encoder, const struct location *location)
{
    uint32_t outermost = location->line_count > 0 ? location->line_count - 1 : 0;
    enum frame_kind kind = frame_kind_of(encoder->profile, location, outermost);
    if (kind != FRAME_NATIVE && kind != FRAME_KERNEL) return;
    struct buffer *out = &encoder->attributes.bytes;
    size_t offset = out->size;
    protobuf_append_number(out, ATTRIBUTE_KEY, key_number(encoder, KEY_FRAME_TYPE));
    append_text_value(out, ATTRIBUTE_VALUE, slice_of_text(frame_kind_name(kind)));
    add_number(encoder, number_of_message(encoder, &encoder->attributes, offset));
}

static void append_locations(struct encoder *encoder)
{
    append_empty(encoder, DICTIONARY_LOCATIONS);
    for (size_t i = 0; i < encoder->locations.order.count && !encoder->out->failed; i++) {
        const struct location *location = &encoder->profile->locations.items[encoder->locations.order.items[i]];
        const struct line *lines = profile_lines(encoder->profile, location);
        size_t begin = protobuf_begin_message(encoder->out, DICTIONARY_LOCATIONS);
        protobuf_append_number(encoder->out, LOCATION_MAPPING,
                               number_in(encoder, &encoder->mappings, location->mapping.index));
        protobuf_append_explicit_number(encoder->out, LOCATION_ADDRESS, location->address);
        for (uint32_t k = 0; k < location->line_count; k++) append_line(encoder, &lines[k]);
        add_flag(encoder, KEY_FOLDED, location->is_folded);
        add_frame_type(encoder, location);
        append_numbers(encoder, LOCATION_ATTRIBUTES);
        protobuf_end_message(encoder->out, begin);
    }
}

/* A function without a name is written with an explicit 0, because an empty message is read as no function. */
static void append_functions(struct encoder *encoder)
{
    append_empty(encoder, DICTIONARY_FUNCTIONS);
    for (size_t i = 0; i < encoder->functions.order.count; i++) {
        const struct function *function = &encoder->profile->functions.items[encoder->functions.order.items[i]];
        size_t begin = protobuf_begin_message(encoder->out, DICTIONARY_FUNCTIONS);
        protobuf_append_explicit_number(encoder->out, FUNCTION_NAME, string_number(encoder, function->name));
        protobuf_append_number(encoder->out, FUNCTION_SYSTEM_NAME, string_number(encoder, function->system_name));
        protobuf_append_number(encoder->out, FUNCTION_FILE, string_number(encoder, function->file_name));
        protobuf_append_number(encoder->out, FUNCTION_START_LINE, (uint64_t)function->start_line);
        protobuf_end_message(encoder->out, begin);
    }
}

static void append_mappings(struct encoder *encoder)
{
    append_empty(encoder, DICTIONARY_MAPPINGS);
    for (size_t i = 0; i < encoder->mappings.order.count; i++) {
        const struct mapping *mapping = &encoder->profile->mappings.items[encoder->mappings.order.items[i]];
        size_t begin = protobuf_begin_message(encoder->out, DICTIONARY_MAPPINGS);
        protobuf_append_explicit_number(encoder->out, MAPPING_START, mapping->start);
        protobuf_append_number(encoder->out, MAPPING_LIMIT, mapping->limit);
        protobuf_append_number(encoder->out, MAPPING_OFFSET, mapping->file_offset);
        protobuf_append_number(encoder->out, MAPPING_FILE, string_number(encoder, mapping->file_name));
        add_text(encoder, KEY_BUILD_ID, mapping->build_id);
        add_flag(encoder, KEY_HAS_FUNCTIONS, mapping->has_functions);
        add_flag(encoder, KEY_HAS_FILENAMES, mapping->has_filenames);
        add_flag(encoder, KEY_HAS_LINES, mapping->has_line_numbers);
        add_flag(encoder, KEY_HAS_INLINED, mapping->has_inline_frames);
        append_numbers(encoder, MAPPING_ATTRIBUTES);
        protobuf_end_message(encoder->out, begin);
    }
}

static void append_messages(struct encoder *encoder, uint32_t field, const struct message_table *table)
{
    for (uint32_t i = 0; i < table->messages.count; i++)
        protobuf_append_bytes(encoder->out, field, message_at(table, i));
}

/* Appends the tables in an order in which each refers only to later ones. */
static void append_dictionary(struct encoder *encoder)
{
    static const uint8_t no_link[TRACE_ID_BYTES];
    size_t begin = protobuf_begin_message(encoder->out, DATA_DICTIONARY);
    append_stacks(encoder);
    append_locations(encoder);
    append_functions(encoder);
    append_mappings(encoder);
    size_t link = protobuf_begin_message(encoder->out, DICTIONARY_LINKS);
    protobuf_append_bytes(encoder->out, LINK_TRACE_ID, slice_of(no_link, TRACE_ID_BYTES));
    protobuf_append_bytes(encoder->out, LINK_SPAN_ID, slice_of(no_link, SPAN_ID_BYTES));
    protobuf_end_message(encoder->out, link);
    append_messages(encoder, DICTIONARY_LINKS, &encoder->links);
    append_empty(encoder, DICTIONARY_ATTRIBUTES);
    append_messages(encoder, DICTIONARY_ATTRIBUTES, &encoder->attributes);
    for (size_t i = 0; i < encoder->texts.strings.count; i++)
        protobuf_append_bytes(encoder->out, DICTIONARY_STRINGS, encoder->texts.strings.items[i]);
    protobuf_end_message(encoder->out, begin);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void encode(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    encoder->next_samples = calloc(profile->samples.count + 1, sizeof(*encoder->next_samples));
    if (!encoder->next_samples || !numbering_init(&encoder->stacks, profile_stack_limit(profile)) ||
        !numbering_init(&encoder->locations, profile->locations.count) ||
        !numbering_init(&encoder->functions, profile->functions.count) ||
        !numbering_init(&encoder->mappings, profile->mappings.count)) {
        fail(encoder);
        return;
    }
    if (profile->mappings.count > 1) (void)number_in(encoder, &encoder->mappings, 1); /* the program is the first */
    make_groups(encoder);
    if (encoder->status != STATUS_OK) return;
    size_t begin = protobuf_begin_message(encoder->out, DATA_RESOURCE_PROFILES);
    append_resource(encoder);
    append_profiles(encoder);
    protobuf_end_message(encoder->out, begin);
    append_dictionary(encoder);
}

static void encoder_fini(struct encoder *encoder)
{
    profile_fini(&encoder->texts);
    numbering_fini(&encoder->stacks);
    numbering_fini(&encoder->locations);
    numbering_fini(&encoder->functions);
    numbering_fini(&encoder->mappings);
    message_table_fini(&encoder->attributes);
    message_table_fini(&encoder->links);
    free(encoder->groups.items);
    index_table_fini(&encoder->groups.index);
    free(encoder->group_attributes.items);
    free(encoder->next_samples);
    free(encoder->numbers.items);
}

enum status otlp_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    if (profile->samples.count > 0 && profile->value_type_count == 0)
        return error_set(error, STATUS_UNSUPPORTED, 0, "there is no sample to be written");
    struct encoder encoder = {.profile = profile, .out = out};
    profile_init(&encoder.texts);
    buffer_init(&encoder.attributes.bytes, out->maximum);
    buffer_init(&encoder.links.bytes, out->maximum);
    encode(&encoder);
    if (encoder.status == STATUS_OK) encoder.status = encoder.texts.failed;
    status = encoder.status;
    encoder_fini(&encoder);
    if (status == STATUS_OK && !out->failed) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "larger than %zu bytes, or than memory", out->maximum);
}
