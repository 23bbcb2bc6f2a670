/* Reads profile.proto.
 *
 * Messages come in any order; samples usually come before the strings that they refer to. One pass over the outermost
 * fields (a survey) notes where each kind of message is. Then the kinds are read in the order of their references:
 * strings, functions, mappings, locations, samples. The decoder copies bytes only into the profile. One array for each
 * kind maps ids of the file to ids of the profile.
 *
 * The decoder stops at the first error. It rejects what pprof's CheckValid rejects.
 * SPDX-License-Identifier: MIT */
#include "format/pprof/pprof.h"

#include "base/array.h"
#include "base/compression.h"
#include "base/hash.h"
#include "base/protobuf.h"
#include "base/varint_groups.h"
#include "format/common/format_ops.h"
#include "format/pprof/pprof_metadata.h"
#include "format/pprof/pprof_private.h"
#include "profile/processes.h"
#include "profile/thread_labels.h"
#include "profile/time_labels.h"

#include <inttypes.h>
#include <stdio.h>

/* --- Ids of the file → ids of the profile ------------------------------------------------------------------------- */

struct sparse_id {
    uint64_t id;
    uint32_t index;
};

/* Most files number their entities from 1 on, as the profile does: ids that are equal in both need no map. Dense ids
 * use an array. All other ids use a hash table. */
struct id_map {
    uint64_t same_count; /* the ids from 1 to this one are the same in the profile */
    uint32_t *dense;     /* 0: no such id */
    uint64_t dense_count;
    struct sparse_id *sparse;
    size_t sparse_count, sparse_capacity;
    struct index_table sparse_index;
};

static bool id_map_init(struct id_map *map, size_t entity_count)
{
    map->dense_count = entity_count * 2 + 64;
    map->dense = calloc(map->dense_count, sizeof(*map->dense));
    return map->dense != NULL;
}

static void id_map_fini(struct id_map *map)
{
    free(map->dense);
    free(map->sparse);
    index_table_fini(&map->sparse_index);
}

static bool sparse_id_equal(const void *context, uint32_t index, const void *key)
{
    const struct id_map *map = context;
    return map->sparse[index].id == *(const uint64_t *)key;
}

static inline bool id_map_is_same(const struct id_map *map, uint64_t id)
{
    return id - 1 < map->same_count;
}

/* Returns 0 if the file has no such id. */
static uint32_t id_map_find(const struct id_map *map, uint64_t id)
{
    if (id_map_is_same(map, id)) return (uint32_t)id;
    if (id < map->dense_count) return map->dense[id];
    uint32_t found = index_table_find(&map->sparse_index, hash_mix(0, id), sparse_id_equal, map, &id);
    return found == INDEX_NONE ? 0 : map->sparse[found].index;
}

/* ID must not be there yet. False if memory is short. */
static bool id_map_add(struct id_map *map, uint64_t id, uint32_t index)
{
    if (id == index && id == map->same_count + 1) {
        map->same_count++;
        return true;
    }
    if (id < map->dense_count) {
        map->dense[id] = index;
        return true;
    }
    if (!array_reserve(&map->sparse, &map->sparse_capacity, map->sparse_count + 1, sizeof(*map->sparse),
                       PROFILE_ENTITIES_MAX) ||
        !index_table_add(&map->sparse_index, hash_mix(0, id), (uint32_t)map->sparse_count)) {
        return false;
    }
    map->sparse[map->sparse_count++] = (struct sparse_id){.id = id, .index = index};
    return true;
}

/* --- The decoder -------------------------------------------------------------------------------------------------- */

/* The range of the messages of one kind, from the first to the end of the last; others may be between them. */
struct span {
    const uint8_t *first, *end;
    size_t count;
};

struct decoder {
    struct slice bytes;
    struct profile *profile;
    struct error *error;
    enum status status; /* the first failure; no more is read after it */
    bool is_cut;        /* the file ends in the middle of its strings */

    struct buffer *releasable; /* buffer of BYTES, if its memory may be given back while samples are read; else NULL */
    size_t released;           /* bytes of it that were given back */

    struct span spans[PROFILE_FIELDS_END];
    uint64_t numbers[PROFILE_FIELDS_END]; /* fields of the profile that are one number */
    struct string_id *strings;
    size_t string_count;
    /* keys of labels; "" if the file does not have the string */
    struct string_id thread_id_keys[THREAD_LABEL_KEYS], thread_name_keys[THREAD_LABEL_KEYS];
    struct string_id process_keys[THREAD_LABEL_KEYS];
    struct pprof_metadata metadata;
    struct id_map mappings, functions, locations;
    struct varint_groups groups;

    /* Samples that are read but not added yet: their stacks are added together, and their labels. FRAMES and LABELS are
     * of all of them. */
    struct {
        struct sample samples[PROFILE_ADDED_AT_ONCE];
        struct {
            size_t first;
            uint32_t count;
        } frames[PROFILE_ADDED_AT_ONCE], labels[PROFILE_ADDED_AT_ONCE];
        int64_t values[PROFILE_ADDED_AT_ONCE * PROFILE_VALUES_MAX]; /* a row of value_type_count for each */
        size_t count;
    } pending;
    struct location_id *frames;
    size_t frame_count, frame_capacity;
    struct label *labels;
    size_t label_count, label_capacity;

    /* State of the sample or location at hand. */
    size_t frame_first, label_first; /* first items, indexes in FRAMES and LABELS */
    size_t value_count;
    struct line *lines;
    size_t line_count, line_capacity;
};

#define FAIL(decoder, place, ...)                                                                                      \
    ((decoder)->status =                                                                                               \
         error_set((decoder)->error, STATUS_MALFORMED, (uint64_t)((place) - (decoder)->bytes.data), __VA_ARGS__))

#define FAIL_TOO_LARGE(decoder, ...) ((decoder)->status = error_set((decoder)->error, STATUS_TOO_LARGE, 0, __VA_ARGS__))

static void fail_memory(struct decoder *decoder)
{
    decoder->status = error_set(decoder->error, STATUS_NO_MEMORY, 0, "not enough memory for the profile");
}

/* Makes room for one more item of a list at hand. */
static bool make_room(struct decoder *decoder, void *items, size_t *capacity, size_t count, size_t item_size,
                      size_t maximum, const char *what)
{
    if (array_reserve(items, capacity, count + 1, item_size, maximum)) return true;
    if (count < maximum)
        fail_memory(decoder);
    else
        FAIL_TOO_LARGE(decoder, "more than %zu %s", maximum, what);
    return false;
}

static void check_cursor(struct decoder *decoder, const struct cursor *cursor, const char *what)
{
    if (cursor->failed && decoder->status == STATUS_OK)
        FAIL(decoder, cursor->position, "%s is cut short or broken", what);
}

/* Reads a message all of whose known fields are single numbers, into VALUES by field number. A set bit for each field
 * that was there. */
static uint32_t read_numbers(struct decoder *decoder, struct slice message, const char *what, uint64_t *values,
                             uint32_t fields_end)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint32_t present = 0;
    while (protobuf_next(&cursor, &field)) {
        if (field.number == 0 || field.number >= fields_end) continue;
        if (field.wire_type != PROTOBUF_VARINT) {
            FAIL(decoder, message.data, "field %" PRIu32 " of a %s is not a number", field.number, what);
            return 0;
        }
        values[field.number] = field.value;
        present |= 1u << field.number;
    }
    check_cursor(decoder, &cursor, what);
    return present;
}

static void note_cut(struct decoder *decoder)
{
    decoder->is_cut = true;
    profile_add_omission(decoder->profile, "the file is cut short, at byte %zu: names that came after it are missing",
                         decoder->bytes.size);
}

static struct string_id string_at(struct decoder *decoder, uint64_t index)
{
    if (index < decoder->string_count) return decoder->strings[index];
    if (decoder->status != STATUS_OK || decoder->is_cut) return (struct string_id){0};
    /* A file that ends with its strings may be cut between two of them. */
    const struct span *strings = &decoder->spans[PROFILE_STRING_TABLE];
    enum { STRINGS_AFTER_CUT_MAX = 1 << 24 };
    bool may_be_cut = index <= STRINGS_AFTER_CUT_MAX && decoder->string_count > 1 &&
                      strings->end == decoder->bytes.data + decoder->bytes.size;
    if (may_be_cut)
        note_cut(decoder);
    else
        FAIL(decoder, decoder->bytes.data + decoder->bytes.size,
             "string %" PRIu64 " is named, but there are %zu: the file is broken or cut short", index,
             decoder->string_count);
    return (struct string_id){0};
}

/* Calls DECODE for each message of KIND in the order of the file, until one fails or the profile takes no more. */
static void each_message(struct decoder *decoder, uint32_t kind, void (*decode)(struct decoder *, struct slice))
{
    struct span span = decoder->spans[kind];
    if (span.count == 0) return;
    struct cursor cursor = cursor_of(slice_of(span.first, (size_t)(span.end - span.first)));
    struct protobuf_field field;
    while (decoder->status == STATUS_OK && protobuf_next(&cursor, &field)) {
        if (field.number == kind) decode(decoder, field.bytes);
        if (decoder->profile->failed != STATUS_OK) decoder->status = profile_failed(decoder->profile, decoder->error);
    }
}

/* Notes the id that an entity has in the file. */
static void define(struct decoder *decoder, struct id_map *map, struct slice message, uint64_t id, uint32_t index,
                   const char *what)
{
    if (decoder->status != STATUS_OK) return;
    if (id == 0) {
        FAIL(decoder, message.data, "a %s has the id 0", what);
    } else if (id_map_find(map, id) != 0) {
        FAIL(decoder, message.data, "two %ss have the id %" PRIu64, what, id);
    } else if (!id_map_add(map, id, index)) {
        fail_memory(decoder);
    }
}

/* --- The survey --------------------------------------------------------------------------------------------------- */

static bool has_right_wire_type(const struct protobuf_field *field)
{
    enum {
        SINGLE_NUMBERS = 1 << PROFILE_DROP_FRAMES | 1 << PROFILE_KEEP_FRAMES | 1 << PROFILE_TIME_NANOS |
                         1 << PROFILE_DURATION_NANOS | 1 << PROFILE_PERIOD | 1 << PROFILE_DEFAULT_SAMPLE_TYPE |
                         1 << PROFILE_DOC_URL
    };
    if (SINGLE_NUMBERS & 1u << field->number) return field->wire_type == PROTOBUF_VARINT;
    bool is_list = field->number == PROFILE_COMMENT && field->wire_type == PROTOBUF_VARINT;
    return is_list || field->wire_type == PROTOBUF_BYTES;
}

/* Whether the field at PLACE, which cannot be read, is a known one that goes on after END. */
static bool is_cut_field(const uint8_t *place, const uint8_t *end)
{
    uint64_t tag, size;
    size_t left = (size_t)(end - place);
    const uint8_t *next = left > 0 ? protobuf_read_varint(place, end, &tag) : NULL;
    if (!next) return left > 0 && left < PROTOBUF_VARINT_BYTES_MAX;
    struct protobuf_field field = {.number = (uint32_t)(tag >> 3), .wire_type = (enum protobuf_wire_type)(tag & 7)};
    if (tag >> 3 == 0 || tag >> 3 >= PROFILE_FIELDS_END || !has_right_wire_type(&field)) return false;
    if (next == end) return true;
    const uint8_t *bytes = protobuf_read_varint(next, end, &size);
    if (!bytes) return end - next < PROTOBUF_VARINT_BYTES_MAX;
    return field.wire_type == PROTOBUF_BYTES && size > (size_t)(end - bytes);
}

/* Takes a file whose last field, at PLACE, is not whole. Strings come last: those that are there name the most of it.
 */
static void survey_cut(struct decoder *decoder, const uint8_t *place)
{
    size_t size = decoder->bytes.size;
    if (!is_cut_field(place, decoder->bytes.data + size)) return;
    if (decoder->spans[PROFILE_STRING_TABLE].count == 0) {
        FAIL(decoder, place, "the profile is cut short, before the names of its functions");
        return;
    }
    note_cut(decoder);
}

static void survey(struct decoder *decoder)
{
    struct cursor cursor = cursor_of(decoder->bytes);
    struct protobuf_field field;
    bool has_time = false;
    const uint8_t *place = cursor.position;
    for (; protobuf_next(&cursor, &field); place = cursor.position) {
        if (field.number == 0 || field.number >= PROFILE_FIELDS_END) continue;
        if (!has_right_wire_type(&field)) {
            FAIL(decoder, place, "field %" PRIu32 " of the profile has the wrong wire type", field.number);
            return;
        }
        if (field.number == PROFILE_TIME_NANOS && has_time) {
            FAIL(decoder, place, "these are two profiles, one after the other");
            return;
        }
        has_time |= field.number == PROFILE_TIME_NANOS;
        struct span *span = &decoder->spans[field.number];
        if (span->count++ == 0) span->first = place;
        span->end = cursor.position;
        decoder->numbers[field.number] = field.value;
    }
    if (cursor.failed) survey_cut(decoder, place);
    if (!decoder->is_cut) check_cursor(decoder, &cursor, "the profile");
}

/* --- Strings, and entities built from few ----------------------------------------------------------------------------
 */

static const char *const process_keys[THREAD_LABEL_KEYS] = {PROCESS_ID_LABEL, PROCESS_NAME_LABEL, NULL};

static void note_key(const char *const keys[THREAD_LABEL_KEYS], struct slice text, struct string_id id,
                     struct string_id ret_ids[THREAD_LABEL_KEYS])
{
    enum { KEY_BYTES_MAX = 16 }; /* most strings are longer */
    int place = text.size <= KEY_BYTES_MAX ? thread_label_place(keys, text) : -1;
    if (place >= 0) ret_ids[place] = id;
}

static void decode_string(struct decoder *decoder, struct slice text)
{
    if (decoder->string_count == 0 && text.size != 0) {
        FAIL(decoder, text.data, "the first string is not empty");
        return;
    }
    if (text.size > PROFILE_STRING_BYTES_MAX) {
        decoder->status = error_set(decoder->error, STATUS_TOO_LARGE, (uint64_t)(text.data - decoder->bytes.data),
                                    "a string of %zu bytes", text.size);
        return;
    }
    struct string_id id = profile_string(decoder->profile, text);
    note_key(thread_id_keys, text, id, decoder->thread_id_keys);
    note_key(thread_name_keys, text, id, decoder->thread_name_keys);
    note_key(process_keys, text, id, decoder->process_keys);
    decoder->strings[decoder->string_count++] = id;
}

static void decode_strings(struct decoder *decoder)
{
    size_t count = decoder->spans[PROFILE_STRING_TABLE].count;
    if (count == 0) {
        FAIL(decoder, decoder->bytes.data + decoder->bytes.size,
             "the profile has no strings: it is cut short, before the names of its functions");
        return;
    }
    decoder->strings = calloc(count, sizeof(*decoder->strings));
    if (!decoder->strings) {
        fail_memory(decoder);
        return;
    }
    each_message(decoder, PROFILE_STRING_TABLE, decode_string);
}

static struct value_type read_value_type(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[VALUE_TYPE_FIELDS_END] = {0};
    read_numbers(decoder, message, "value type", numbers, VALUE_TYPE_FIELDS_END);
    return (struct value_type){.type = string_at(decoder, numbers[VALUE_TYPE_TYPE]),
                               .unit = string_at(decoder, numbers[VALUE_TYPE_UNIT])};
}

static void decode_sample_type(struct decoder *decoder, struct slice message)
{
    struct value_type type = read_value_type(decoder, message);
    if (decoder->is_cut && (type.type.index == 0 || type.unit.index == 0))
        FAIL(decoder, message.data, "the profile is cut short, before the names of its values");
    if (decoder->profile->value_type_count == PROFILE_VALUES_MAX)
        FAIL_TOO_LARGE(decoder, "more than %d sample types", PROFILE_VALUES_MAX);
    else
        profile_add_value_type(decoder->profile, profile_c_string(decoder->profile, type.type),
                               profile_c_string(decoder->profile, type.unit));
}

static void decode_period_type(struct decoder *decoder, struct slice message)
{
    decoder->profile->period_type = read_value_type(decoder, message);
}

/* --- Mappings, functions, locations ------------------------------------------------------------------------------- */

static void decode_mapping(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[MAPPING_FIELDS_END] = {0};
    read_numbers(decoder, message, "mapping", numbers, MAPPING_FIELDS_END);
    struct mapping mapping = {
        .start = numbers[MAPPING_MEMORY_START],
        .limit = numbers[MAPPING_MEMORY_LIMIT],
        .file_offset = numbers[MAPPING_FILE_OFFSET],
        .file_name = string_at(decoder, numbers[MAPPING_FILENAME]),
        .build_id = string_at(decoder, numbers[MAPPING_BUILD_ID]),
        .has_functions = numbers[MAPPING_HAS_FUNCTIONS] != 0,
        .has_filenames = numbers[MAPPING_HAS_FILENAMES] != 0,
        .has_line_numbers = numbers[MAPPING_HAS_LINE_NUMBERS] != 0,
        .has_inline_frames = numbers[MAPPING_HAS_INLINE_FRAMES] != 0,
    };
    struct mapping_id id = profile_add_mapping(decoder->profile, &mapping);
    define(decoder, &decoder->mappings, message, numbers[MAPPING_ID], id.index, "mapping");
}

static void decode_function(struct decoder *decoder, struct slice message)
{
    uint64_t numbers[FUNCTION_FIELDS_END] = {0};
    read_numbers(decoder, message, "function", numbers, FUNCTION_FIELDS_END);
    struct function function = {
        .name = string_at(decoder, numbers[FUNCTION_NAME]),
        .system_name = string_at(decoder, numbers[FUNCTION_SYSTEM_NAME]),
        .file_name = string_at(decoder, numbers[FUNCTION_FILENAME]),
        .start_line = (int64_t)numbers[FUNCTION_START_LINE],
    };
    struct function_id id = profile_add_function(decoder->profile, &function);
    define(decoder, &decoder->functions, message, numbers[FUNCTION_ID], id.index, "function");
}

static void decode_line(struct decoder *decoder, struct slice message)
{
    if (!make_room(decoder, &decoder->lines, &decoder->line_capacity, decoder->line_count, sizeof(*decoder->lines),
                   PPROF_INLINED_MAX, "lines in a location")) {
        return;
    }
    uint64_t numbers[LINE_FIELDS_END] = {0};
    read_numbers(decoder, message, "line", numbers, LINE_FIELDS_END);
    uint32_t function = id_map_find(&decoder->functions, numbers[LINE_FUNCTION_ID]);
    if (function == 0 && decoder->status == STATUS_OK) {
        FAIL(decoder, message.data, "a line names function %" PRIu64 ", which there is not", numbers[LINE_FUNCTION_ID]);
    }
    decoder->lines[decoder->line_count++] = (struct line){
        .function = {function}, .line = (int64_t)numbers[LINE_LINE], .column = (int64_t)numbers[LINE_COLUMN]};
}

static void decode_location(struct decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint64_t numbers[LOCATION_FIELDS_END] = {0};
    decoder->line_count = 0;
    while (decoder->status == STATUS_OK && protobuf_next(&cursor, &field)) {
        if (field.number == 0 || field.number >= LOCATION_FIELDS_END) continue;
        if (field.wire_type != (field.number == LOCATION_LINE ? PROTOBUF_BYTES : PROTOBUF_VARINT)) {
            FAIL(decoder, message.data, "field %" PRIu32 " of a location has the wrong wire type", field.number);
        } else if (field.number == LOCATION_LINE) {
            decode_line(decoder, field.bytes);
        } else {
            numbers[field.number] = field.value;
        }
    }
    check_cursor(decoder, &cursor, "a location");
    if (decoder->status != STATUS_OK) return;
    /* A mapping that is not there is none, as pprof has it. */
    struct location location = {.mapping = {id_map_find(&decoder->mappings, numbers[LOCATION_MAPPING_ID])},
                                .address = numbers[LOCATION_ADDRESS],
                                .is_folded = numbers[LOCATION_IS_FOLDED] != 0};
    struct location_id id =
        profile_add_location(decoder->profile, &location, decoder->lines, (uint32_t)decoder->line_count);
    define(decoder, &decoder->locations, message, numbers[LOCATION_ID], id.index, "location");
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

/* Returns the number of samples before the one at hand. */
static size_t sample_number(const struct decoder *decoder)
{
    return decoder->profile->samples.count + decoder->pending.count;
}

/* Makes room for MORE frames of the sample at hand. */
static bool reserve_frames(struct decoder *decoder, size_t more)
{
    size_t depth_max = decoder->frame_first + PPROF_DEPTH_MAX;
    if (more > depth_max - decoder->frame_count)
        FAIL_TOO_LARGE(decoder, "more than %d frames in a stack", PPROF_DEPTH_MAX);
    else if (array_reserve(&decoder->frames, &decoder->frame_capacity, decoder->frame_count + more,
                           sizeof(*decoder->frames), depth_max))
        return true;
    else
        fail_memory(decoder);
    return false;
}

/* Returns the location that the file calls ID. */
static inline struct location_id frame_of_id(struct decoder *decoder, uint64_t id)
{
    if (id_map_is_same(&decoder->locations, id)) return (struct location_id){(uint32_t)id};
    struct location_id location = {id_map_find(&decoder->locations, id)};
    if (location.index == 0 && decoder->status == STATUS_OK) {
        FAIL(decoder, decoder->bytes.data, "sample %zu names location %" PRIu64 ", which there is not",
             sample_number(decoder), id);
    }
    return location;
}

/* Returns a maximum of the numbers in BYTES, close to it if they are many. */
static size_t count_packed(struct slice bytes)
{
    if (bytes.size <= PPROF_DEPTH_MAX) return bytes.size;
    size_t count = 0;
    for (size_t i = 0; i < bytes.size; i++) count += bytes.data[i] < 0x80;
    return count;
}

/* The bulk of a profile passes through here. */
static void add_packed_frames(struct decoder *decoder, struct slice packed)
{
    if (packed.size == 0 || !reserve_frames(decoder, count_packed(packed))) return;
    struct location_id *next = decoder->frames + decoder->frame_count;
    const uint8_t *position = packed.data, *end = packed.data + packed.size;
    uint32_t same_max = (uint32_t)decoder->locations.same_count;
    next += varint_groups_read(&decoder->groups, &position, end, same_max, &next->index);
    while (position != end) { /* the last few, and all from one on that is not so */
        uint64_t id;
        position = protobuf_read_varint(position, end, &id);
        if (!position) {
            FAIL(decoder, packed.data, "a stack is cut short or broken");
            return;
        }
        *next++ = frame_of_id(decoder, id);
    }
    decoder->frame_count = (size_t)(next - decoder->frames);
}

static void add_frames(struct decoder *decoder, const struct protobuf_field *field)
{
    if (field->wire_type == PROTOBUF_BYTES) {
        add_packed_frames(decoder, field->bytes);
    } else if (reserve_frames(decoder, 1)) {
        decoder->frames[decoder->frame_count++] = frame_of_id(decoder, field->value);
    }
}

/* Returns the row of values of the pending sample PLACE. */
static int64_t *pending_values(struct decoder *decoder, size_t place)
{
    return decoder->pending.values + place * decoder->profile->value_type_count;
}

static void add_value(struct decoder *decoder, uint64_t value)
{
    if (decoder->value_count < decoder->profile->value_type_count)
        pending_values(decoder, decoder->pending.count)[decoder->value_count] = (int64_t)value;
    decoder->value_count++;
}

/* A repeated number, packed or not. */
static void add_numbers(struct decoder *decoder, const struct protobuf_field *field,
                        void (*add)(struct decoder *, uint64_t))
{
    if (field->wire_type == PROTOBUF_VARINT) {
        add(decoder, field->value);
        return;
    }
    struct cursor cursor = cursor_of(field->bytes);
    while (decoder->status == STATUS_OK && !cursor_at_end(&cursor)) {
        uint64_t number = protobuf_varint(&cursor);
        if (!cursor.failed) add(decoder, number);
    }
    check_cursor(decoder, &cursor, "a list of numbers");
}

/* Decodes a label. The wire does not always distinguish texts and numbers, because most writers leave out a zero: a
 * label is a text if its text is not empty, or if an empty one was written and no number; else it is a number. */
static void decode_label(struct decoder *decoder, struct slice message)
{
    if (!make_room(decoder, &decoder->labels, &decoder->label_capacity, decoder->label_count, sizeof(*decoder->labels),
                   decoder->label_first + PPROF_LABELS_MAX, "labels on a sample")) {
        return;
    }
    uint64_t numbers[LABEL_FIELDS_END] = {0};
    uint32_t present = read_numbers(decoder, message, "label", numbers, LABEL_FIELDS_END);
    bool has_number = present & (1u << LABEL_NUM | 1u << LABEL_NUM_UNIT);
    bool is_text = numbers[LABEL_STR] != 0 || ((present & 1u << LABEL_STR) && !has_number);
    struct label *label = &decoder->labels[decoder->label_count++];
    *label = (struct label){.key = string_at(decoder, numbers[LABEL_KEY]), .is_number = !is_text};
    if (is_text) {
        label->text = string_at(decoder, numbers[LABEL_STR]);
    } else {
        label->number = (int64_t)numbers[LABEL_NUM];
        label->unit = string_at(decoder, numbers[LABEL_NUM_UNIT]);
    }
}

static const struct label *find_label(const struct decoder *decoder, struct string_id key)
{
    if (key.index == 0) return NULL;
    for (size_t i = decoder->label_first; i < decoder->label_count; i++) {
        if (decoder->labels[i].key.index == key.index) return &decoder->labels[i];
    }
    return NULL;
}

static const struct label *find_first_label(const struct decoder *decoder, const struct string_id *keys)
{
    const struct label *found = NULL;
    for (size_t i = 0; i < THREAD_LABEL_KEYS && !found; i++) found = find_label(decoder, keys[i]);
    return found;
}

static struct process_id process_of_labels(struct decoder *decoder)
{
    const struct label *pid = find_label(decoder, decoder->process_keys[0]);
    const struct label *name = find_label(decoder, decoder->process_keys[1]);
    if (!pid || !pid->is_number) return (struct process_id){0};
    return profile_add_pid(decoder->profile, pid->number, name ? name->text : (struct string_id){0});
}

static struct thread_id thread_of_labels(struct decoder *decoder)
{
    const struct label *id = find_first_label(decoder, decoder->thread_id_keys);
    if (!id) return (struct thread_id){0};
    const struct label *name = find_first_label(decoder, decoder->thread_name_keys);
    struct thread thread = {.process = process_of_labels(decoder), .id = id->text};
    if (id->is_number) {
        char text[24];
        (void)snprintf(text, sizeof(text), "%" PRId64, id->number);
        thread.id = profile_text(decoder->profile, text);
    }
    if (name && !name->is_number) thread.name = name->text;
    struct thread_id found = profile_add_thread(decoder->profile, &thread);
    /* Each sample keeps the name that its thread had as a label, and the thread has the last one. */
    if (thread.name.index != 0 && found.index != 0) decoder->profile->threads.items[found.index].name = thread.name;
    return found;
}

static void decode_sample_field(struct decoder *decoder, const struct protobuf_field *field)
{
    bool is_list = field->number == SAMPLE_LOCATION_ID || field->number == SAMPLE_VALUE;
    if (!is_list && field->number != SAMPLE_LABEL) return;
    if (field->wire_type != PROTOBUF_BYTES && !(is_list && field->wire_type == PROTOBUF_VARINT)) {
        FAIL(decoder, decoder->bytes.data, "field %" PRIu32 " of sample %zu has the wrong wire type", field->number,
             sample_number(decoder));
    } else if (field->number == SAMPLE_LOCATION_ID) {
        add_frames(decoder, field);
    } else if (field->number == SAMPLE_VALUE) {
        add_numbers(decoder, field, add_value);
    } else {
        decode_label(decoder, field->bytes);
    }
}

/* Gives back the memory of the samples up to POSITION. They are read last and are most of a file: file and profile are
 * never in memory together. */
static void release_read(struct decoder *decoder, const uint8_t *position)
{
    enum { LARGE_PAGE_BYTES = 2 << 20 }; /* whole large pages are given back without a split */
    size_t beyond = (uintptr_t)position % LARGE_PAGE_BYTES;
    size_t read = (size_t)(position - decoder->bytes.data);
    if (!decoder->releasable || read < decoder->released + beyond) return;
    buffer_release(decoder->releasable, decoder->released, read - beyond);
    decoder->released = read - beyond;
}

/* Adds the samples that wait. */
static void add_pending(struct decoder *decoder)
{
    struct stack_frames stacks[PROFILE_ADDED_AT_ONCE] = {0};
    struct labels_of_one labels[PROFILE_ADDED_AT_ONCE] = {0};
    struct stack_id stack_ids[PROFILE_ADDED_AT_ONCE];
    struct label_set_id label_ids[PROFILE_ADDED_AT_ONCE];
    size_t count = decoder->pending.count;
    for (size_t i = 0; i < count; i++) {
        stacks[i].count = decoder->pending.frames[i].count;
        if (stacks[i].count > 0) stacks[i].frames = decoder->frames + decoder->pending.frames[i].first;
        labels[i].count = decoder->pending.labels[i].count;
        if (labels[i].count > 0) labels[i].labels = decoder->labels + decoder->pending.labels[i].first;
    }
    profile_add_stacks(decoder->profile, stacks, count, stack_ids);
    profile_add_labels_of_many(decoder->profile, labels, count, label_ids);
    for (size_t i = 0; i < count; i++) {
        decoder->pending.samples[i].stack = stack_ids[i];
        decoder->pending.samples[i].labels = label_ids[i];
        profile_add_sample(decoder->profile, &decoder->pending.samples[i], pending_values(decoder, i));
    }
    decoder->pending.count = decoder->frame_count = decoder->label_count = 0;
}

static void check_values(struct decoder *decoder, struct slice message)
{
    size_t wanted = decoder->profile->value_type_count;
    if (decoder->status != STATUS_OK || (wanted > 0 && decoder->value_count == wanted)) return;
    if (wanted == 0) {
        FAIL(decoder, message.data, "the profile has samples, but no sample types");
    } else {
        FAIL(decoder, message.data, "sample %zu has %zu values, but there are %zu sample types", sample_number(decoder),
             decoder->value_count, wanted);
    }
}

static void decode_sample(struct decoder *decoder, struct slice message)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    decoder->frame_first = decoder->frame_count;
    decoder->label_first = decoder->label_count;
    decoder->value_count = 0;
    while (decoder->status == STATUS_OK && protobuf_next(&cursor, &field)) decode_sample_field(decoder, &field);
    check_cursor(decoder, &cursor, "a sample");
    check_values(decoder, message);
    if (decoder->status != STATUS_OK) return;
    size_t place = decoder->pending.count++;
    decoder->pending.frames[place].first = decoder->frame_first;
    decoder->pending.frames[place].count = (uint32_t)(decoder->frame_count - decoder->frame_first);
    decoder->pending.labels[place].first = decoder->label_first;
    decoder->pending.labels[place].count = (uint32_t)(decoder->label_count - decoder->label_first);
    decoder->pending.samples[place] = (struct sample){.thread = thread_of_labels(decoder)};
    if (decoder->pending.count < PROFILE_ADDED_AT_ONCE && decoder->label_count < PPROF_LABELS_MAX) return;
    add_pending(decoder);
    release_read(decoder, message.data);
}

/* --- Comments ----------------------------------------------------------------------------------------------------- */

static void add_comment(struct decoder *decoder, uint64_t index)
{
    struct string_id text = string_at(decoder, index);
    struct slice comment = profile_slice(decoder->profile, text);
    if (decoder->status != STATUS_OK || pprof_metadata_read(&decoder->metadata, comment)) return;
    profile_add_comment(decoder->profile, comment);
}

static void decode_comments(struct decoder *decoder)
{
    struct span span = decoder->spans[PROFILE_COMMENT];
    if (span.count == 0) return;
    struct cursor cursor = cursor_of(slice_of(span.first, (size_t)(span.end - span.first)));
    struct protobuf_field field;
    while (decoder->status == STATUS_OK && protobuf_next(&cursor, &field)) {
        if (field.number == PROFILE_COMMENT) add_numbers(decoder, &field, add_comment);
    }
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static void decode_header(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    const uint64_t *numbers = decoder->numbers;
    profile->drop_frames = string_at(decoder, numbers[PROFILE_DROP_FRAMES]);
    profile->keep_frames = string_at(decoder, numbers[PROFILE_KEEP_FRAMES]);
    profile->default_value_type = string_at(decoder, numbers[PROFILE_DEFAULT_SAMPLE_TYPE]);
    profile->doc_url = string_at(decoder, numbers[PROFILE_DOC_URL]);
    profile->time_ns = (int64_t)numbers[PROFILE_TIME_NANOS];
    profile->duration_ns = numbers[PROFILE_DURATION_NANOS];
    profile->period = (int64_t)numbers[PROFILE_PERIOD];
    each_message(decoder, PROFILE_PERIOD_TYPE, decode_period_type);
    each_message(decoder, PROFILE_SAMPLE_TYPE, decode_sample_type);
    decode_comments(decoder);
}

/* Rejects too many messages before memory is allocated for them. */
static void check_counts(struct decoder *decoder)
{
    static const uint32_t kinds[] = {PROFILE_MAPPING, PROFILE_LOCATION, PROFILE_FUNCTION, PROFILE_STRING_TABLE};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (decoder->spans[kinds[i]].count <= PROFILE_ENTITIES_MAX) continue;
        FAIL_TOO_LARGE(decoder, "%zu messages of field %" PRIu32, decoder->spans[kinds[i]].count, kinds[i]);
    }
}

/* The survey has counted all but the frames: most are new, of three bytes or so. */
static void expect_counted(struct decoder *decoder)
{
    enum { FRAME_BYTES = 3 };
    const struct span *samples = &decoder->spans[PROFILE_SAMPLE];
    struct profile_expected expected = {
        .strings = decoder->spans[PROFILE_STRING_TABLE].count,
        .functions = decoder->spans[PROFILE_FUNCTION].count,
        .locations = decoder->spans[PROFILE_LOCATION].count,
        .stacks = (size_t)(samples->end - samples->first) / FRAME_BYTES,
        .samples = samples->count,
    };
    profile_expect(decoder->profile, &expected);
}

static void decode_all(struct decoder *decoder)
{
    survey(decoder);
    if (decoder->status == STATUS_OK) check_counts(decoder);
    if (decoder->status == STATUS_OK) expect_counted(decoder);
    if (decoder->status == STATUS_OK) decode_strings(decoder);
    if (decoder->status != STATUS_OK) return;
    if (!id_map_init(&decoder->mappings, decoder->spans[PROFILE_MAPPING].count) ||
        !id_map_init(&decoder->functions, decoder->spans[PROFILE_FUNCTION].count) ||
        !id_map_init(&decoder->locations, decoder->spans[PROFILE_LOCATION].count)) {
        fail_memory(decoder);
        return;
    }
    decode_header(decoder);
    each_message(decoder, PROFILE_MAPPING, decode_mapping);
    each_message(decoder, PROFILE_FUNCTION, decode_function);
    each_message(decoder, PROFILE_LOCATION, decode_location);
    profile_expect_samples(decoder->profile, decoder->spans[PROFILE_SAMPLE].count);
    varint_groups_init(&decoder->groups);
    each_message(decoder, PROFILE_SAMPLE, decode_sample);
    if (decoder->status == STATUS_OK) add_pending(decoder);
    if (decoder->status == STATUS_OK) decoder->status = profile_failed(decoder->profile, decoder->error);
    if (decoder->status != STATUS_OK) return;
    time_labels_take(decoder->profile);
    decoder->status = profile_failed(decoder->profile, decoder->error);
}

/* RELEASABLE may be NULL. */
static enum status decode_raw(struct slice bytes, struct buffer *releasable, struct profile *profile,
                              struct error *error)
{
    if (!pprof_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a pprof profile");
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error, .releasable = releasable};
    decoder.metadata.profile = profile;
    decode_all(&decoder);
    if (decoder.is_cut && decoder.status == STATUS_MALFORMED)
        decoder.status = error_set(error, STATUS_MALFORMED, bytes.size,
                                   "the profile is cut short, and what is left names parts that are missing");
    index_table_fini(&decoder.metadata.index);
    id_map_fini(&decoder.mappings);
    id_map_fini(&decoder.functions);
    id_map_fini(&decoder.locations);
    free(decoder.strings);
    free(decoder.frames);
    free(decoder.labels);
    free(decoder.lines);
    return decoder.status;
}

enum status pprof_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    return decode_raw(bytes, NULL, profile, error);
}

/* Decodes bytes that are not compressed and that nobody else needs: their memory is given back while they are read. RAW
 * keeps its size, and is good only for buffer_fini. */
static enum status pprof_decode_buffer(struct buffer *raw, struct profile *profile, struct error *error)
{
    return decode_raw(buffer_slice(raw), raw, profile, error);
}

/* A few fields are enough: a text that is one by chance is not one twice. */
bool pprof_detect(struct slice bytes)
{
    enum { FIELDS_LOOKED_AT = 16, FIELDS_OF_CUT_MIN = 4 };
    struct cursor cursor = cursor_of(bytes);
    struct protobuf_field field;
    unsigned known = 0, read = 0;
    const uint8_t *place = cursor.position;
    for (; read < FIELDS_LOOKED_AT && protobuf_next(&cursor, &field); read++) {
        place = cursor.position;
        if (field.number == 0 || field.number >= PROFILE_FIELDS_END) continue;
        if (!has_right_wire_type(&field)) return false;
        known++;
    }
    if (cursor.failed)
        return known == read && known >= FIELDS_OF_CUT_MIN && is_cut_field(place, bytes.data + bytes.size);
    return known > 0;
}

/* --- The format --------------------------------------------------------------------------------------------------- */

const struct format format_pprof = {
    .name = "pprof",
    .suffixes = {".pb", ".pprof"},
    .written_suffix = ".pb.gz",
    .detect = pprof_detect,
    .decode = pprof_decode,
    .decode_buffer = pprof_decode_buffer,
    .encode = pprof_encode,
    .keeps = KEEPS_ALL_NUMBERS | KEEPS_TIMES | KEEPS_THREADS | KEEPS_LABELS | KEEPS_VALUES | KEEPS_INLINED |
             KEEPS_LINES | KEEPS_ADDRESSES | KEEPS_IMAGES | KEEPS_COMMENTS | KEEPS_RULES | KEEPS_RECORDER_METADATA |
             KEEPS_MEMBERS_OF_SAMPLES | KEEPS_DOC_URL,
    .is_gzip = true,
};
