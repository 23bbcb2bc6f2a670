/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_header.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "profile/build_id.h"
#include "unwind/unwinder.h"

#include <elf.h>
#include <inttypes.h>

struct section {
    uint64_t offset, size;
};

static enum status fail(enum status status, uint64_t offset, const char *message, struct error *error)
{
    return error_set(error, status, offset, "%s", message);
}

static enum status explain(enum status status, uint64_t offset, struct error *error)
{
    if (status == STATUS_TOO_LARGE)
        return fail(status, offset, "more than 4096 events, or 1048576 ids of events", error);
    if (status == STATUS_NO_MEMORY) return fail(status, offset, "not enough memory for the events", error);
    return status;
}

static bool is_inside(const struct perf_source *source, struct section section)
{
    return section.offset <= source->size && section.size <= source->size - section.offset;
}

/* Copies SIZE bytes at OFFSET into BYTES, which the caller frees. */
static enum status read_bytes(const struct perf_source *source, struct section section, uint8_t **bytes,
                              struct error *error)
{
    if (!is_inside(source, section))
        return fail(STATUS_MALFORMED, section.offset, "a part of the header is outside of the file", error);
    if (section.size > PERF_DATA_FEATURE_BYTES_MAX)
        return fail(STATUS_TOO_LARGE, section.offset, "a part of the header is larger than 64 MiB", error);
    *bytes = malloc(section.size ? section.size : 1);
    if (!*bytes) return fail(STATUS_NO_MEMORY, section.offset, "not enough memory for the header", error);
    if (source->read(source->context, section.offset, *bytes, section.size)) return STATUS_OK;
    free(*bytes);
    return fail(STATUS_IO, section.offset, "the header cannot be read", error);
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

struct slice perf_file_name(struct slice name)
{
    static const char *const kernels[] = {"[kernel.kallsyms]", "[guest.kernel.kallsyms]"};
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        size_t size = strlen(kernels[i]);
        if (name.size > size && memcmp(name.data, kernels[i], size) == 0) return slice_of(name.data, size);
    }
    return name;
}

struct string_id perf_hex(struct profile *profile, struct slice bytes)
{
    char text[2 * PERF_BUILD_ID_BYTES + 1];
    bool is_zero = true;
    size_t size = bytes.size < PERF_BUILD_ID_BYTES ? bytes.size : PERF_BUILD_ID_BYTES;
    for (size_t i = 0; i < size; i++) is_zero = is_zero && bytes.data[i] == 0;
    (void)hex_write(text, slice_of(bytes.data, size));
    bool is_id = !is_zero && size >= BUILD_ID_PAIRS_MIN;
    return profile_string(profile, slice_of(text, is_id ? 2 * size : 0));
}

/* A string after its size, padded with NULs. */
static struct slice take_text(struct cursor *cursor)
{
    struct slice text = cursor_take(cursor, cursor_u32(cursor));
    const uint8_t *end = text.size > 0 ? memchr(text.data, 0, text.size) : NULL;
    if (end) text.size = (size_t)(end - text.data);
    return text;
}

/* --- Build ids ---------------------------------------------------------------------------------------------------- */

static bool is_of_file(const void *context, uint32_t index, const void *key)
{
    const struct perf_header *header = context;
    return header->build_ids.items[index].file_name.index == ((const struct string_id *)key)->index;
}

static uint32_t find_build_id(const struct perf_header *header, struct string_id file_name)
{
    return index_table_find(&header->build_ids.index, hash_mix(file_name.index, 4), is_of_file, header, &file_name);
}

struct string_id perf_header_build_id(struct perf_header *header, struct string_id file_name, struct perf_file_id file)
{
    uint32_t found = find_build_id(header, file_name);
    if (found == INDEX_NONE) return (struct string_id){0};
    struct perf_build_id *item = &header->build_ids.items[found];
    if (!item->has_several_ids) return item->build_id;
    if (file.inode == 0) return (struct string_id){0};
    while (item->file.inode != 0 && (item->file.inode != file.inode || item->file.device != file.device)) {
        if (item->next == 0) return (struct string_id){0};
        item = &header->build_ids.items[item->next];
    }
    item->file = file;
    return item->build_id;
}

/* Item INDEX has the name of the item FIRST, which was there before. */
static void join_files(struct perf_header *header, uint32_t first, uint32_t index)
{
    struct perf_build_id *items = header->build_ids.items;
    uint32_t last = first;
    while (items[last].next != 0) last = items[last].next;
    items[last].next = index;
    items[first].count++;
}

/* BODY: a process id, the build id, its size, and the file's name. */
static bool add_build_id(struct perf_header *header, struct cursor body, uint16_t misc)
{
    enum { PADDING = 3 };
    cursor_skip(&body, sizeof(uint32_t));
    struct slice id = cursor_take(&body, PERF_BUILD_ID_BYTES);
    uint8_t size = cursor_u8(&body);
    cursor_skip(&body, PADDING);
    if ((misc & PERF_MISC_BUILD_ID_SIZE) && size < id.size) id.size = size;
    struct slice name = slice_of(body.position, cursor_left(&body));
    const uint8_t *end = name.size > 0 ? memchr(name.data, 0, name.size) : NULL;
    if (end) name.size = (size_t)(end - name.data);
    if (body.failed || name.size == 0) return true;
    struct perf_build_id found = {.file_name = profile_string(header->profile, perf_file_name(name)),
                                  .build_id = perf_hex(header->profile, id),
                                  .count = 1};
    uint32_t index = (uint32_t)header->build_ids.count, first = find_build_id(header, found.file_name);
    if (first != INDEX_NONE) {
        struct perf_build_id *known = &header->build_ids.items[first];
        known->has_several_ids |= known->build_id.index != found.build_id.index;
        if (known->count == PERF_FILES_OF_NAME_MAX) return true;
    }
    if (!ARRAY_PUSH(&header->build_ids, PERF_DATA_BUILD_IDS_MAX, found) ||
        (first == INDEX_NONE && !index_table_add(&header->build_ids.index, hash_mix(found.file_name.index, 4), index)))
        return false;
    if (first != INDEX_NONE) join_files(header, first, index);
    return true;
}

static bool read_build_ids(struct perf_header *header, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    while (!cursor_at_end(&cursor)) {
        cursor_skip(&cursor, sizeof(uint32_t));
        uint16_t misc = cursor_u16(&cursor), size = cursor_u16(&cursor);
        if (size < PERF_RECORD_HEADER_SIZE) break;
        struct slice body = cursor_take(&cursor, size - PERF_RECORD_HEADER_SIZE);
        if (cursor.failed) break;
        if (!add_build_id(header, cursor_of(body), misc)) return false;
    }
    return true;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static enum status add_event_ids(struct perf_header *header, struct cursor *cursor, uint64_t count, size_t event)
{
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK && !cursor->failed; i++) {
        uint64_t id = cursor_u64(cursor);
        if (!cursor->failed) status = perf_events_add_id(&header->events, id, event);
    }
    return status;
}

/* The names of events whose attributes were read already; the ids say which name is whose. */
static void read_event_names(struct perf_header *header, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    uint32_t count = cursor_u32(&cursor), attr_size = cursor_u32(&cursor);
    for (uint32_t i = 0; i < count && !cursor.failed; i++) {
        cursor_skip(&cursor, attr_size);
        uint32_t id_count = cursor_u32(&cursor);
        struct slice name = take_text(&cursor);
        struct perf_event *event = i < header->events.count && id_count == 0 ? &header->events.items[i] : NULL;
        for (uint32_t k = 0; k < id_count && !cursor.failed; k++) {
            uint64_t id = cursor_u64(&cursor);
            if (k == 0) event = perf_events_find(&header->events, id);
        }
        if (cursor.failed || !event || name.size > PERF_EVENT_NAME_BYTES_MAX) continue;
        event->name = profile_string(header->profile, name);
    }
}

/* ATTRS: each the attribute of an event, and where its ids are. */
static enum status read_attrs(struct perf_header *header, const struct perf_source *source, struct section attrs,
                              uint64_t attr_size, struct error *error)
{
    uint8_t *bytes;
    uint64_t id_bytes_left = source->size;
    if (attr_size <= PERF_SECTION_SIZE)
        return fail(STATUS_MALFORMED, PERF_RECORD_HEADER_SIZE, "the events have no size", error);
    enum status status = read_bytes(source, attrs, &bytes, error);
    if (status != STATUS_OK) return status;
    struct cursor cursor = cursor_of(slice_of(bytes, attrs.size));
    while (status == STATUS_OK && cursor_left(&cursor) >= attr_size) {
        struct perf_event event;
        uint64_t offset = attrs.offset + cursor_offset(&cursor);
        bool is_parsed = perf_event_parse(&cursor, attr_size - PERF_SECTION_SIZE, &event);
        struct section ids = {.offset = cursor_u64(&cursor)};
        ids.size = cursor_u64(&cursor);
        if (!is_parsed) {
            status = fail(STATUS_MALFORMED, offset, "an event is broken", error);
            break;
        }
        uint8_t *id_bytes;
        id_bytes_left = ids.size <= id_bytes_left ? id_bytes_left - ids.size : 0;
        if (id_bytes_left == 0) status = fail(STATUS_MALFORMED, offset, "events share their ids", error);
        if (status != STATUS_OK) break;
        status = explain(perf_events_add(&header->events, &event), offset, error);
        if (status == STATUS_OK) status = read_bytes(source, ids, &id_bytes, error);
        if (status != STATUS_OK) break;
        struct cursor id_cursor = cursor_of(slice_of(id_bytes, ids.size));
        status = explain(add_event_ids(header, &id_cursor, ids.size / sizeof(uint64_t), header->events.count - 1),
                         offset, error);
        free(id_bytes);
    }
    free(bytes);
    return status;
}

/* --- Features ----------------------------------------------------------------------------------------------------- */

static void add_metadata(struct perf_header *header, const char *key, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    struct slice text = take_text(&cursor);
    if (cursor.failed || text.size == 0) return;
    struct string_id id = profile_string(header->profile, text);
    profile_add_metadata_text(header->profile, key, profile_c_string(header->profile, id));
    if (strcmp(key, "arch") == 0) header->unwinder = unwinder_named((const char *)text.data, text.size);
}

static void add_command(struct perf_header *header, struct slice bytes)
{
    enum { COMMAND_BYTES_MAX = 1 << 16 };
    struct cursor cursor = cursor_of(bytes);
    struct buffer line;
    buffer_init(&line, COMMAND_BYTES_MAX);
    uint32_t count = cursor_u32(&cursor);
    for (uint32_t i = 0; i < count && !cursor.failed && !line.failed; i++) {
        struct slice word = take_text(&cursor);
        if (i > 0) buffer_append_byte(&line, ' ');
        buffer_append(&line, word.data, word.size);
    }
    if (!cursor.failed && !line.failed) profile_add_comment(header->profile, buffer_slice(&line));
    buffer_fini(&line);
}

/* Reads the time since 1970 at one moment of perf's clock, which `perf record -k` writes. */
static void read_clock(struct perf_header *header, struct slice bytes)
{
    struct cursor cursor = cursor_of(bytes);
    cursor_skip(&cursor, 2 * sizeof(uint32_t)); /* version and clock */
    uint64_t wall = cursor_u64(&cursor), clock = cursor_u64(&cursor);
    if (cursor.failed || wall < clock) return;
    header->has_clock = true;
    header->clock_offset_ns = (int64_t)(wall - clock);
}

static bool take_feature(struct perf_header *header, uint64_t feature, struct slice bytes)
{
    if (feature >= 64 || (header->features_taken >> feature & 1)) return true;
    header->features_taken |= (uint64_t)1 << feature;
    switch (feature) {
    case PERF_FEATURE_BUILD_ID:
        return read_build_ids(header, bytes);
    case PERF_FEATURE_HOSTNAME:
        add_metadata(header, "host", bytes);
        break;
    case PERF_FEATURE_OSRELEASE:
        add_metadata(header, "kernel", bytes);
        break;
    case PERF_FEATURE_VERSION:
        add_metadata(header, "perf", bytes);
        break;
    case PERF_FEATURE_ARCH:
        add_metadata(header, "arch", bytes);
        break;
    case PERF_FEATURE_CMDLINE:
        add_command(header, bytes);
        break;
    case PERF_FEATURE_EVENT_DESC:
        read_event_names(header, bytes);
        break;
    case PERF_FEATURE_CLOCK_DATA:
        read_clock(header, bytes);
        break;
    default:
        break;
    }
    return true;
}

static bool is_wanted(unsigned feature)
{
    return feature == PERF_FEATURE_BUILD_ID || feature == PERF_FEATURE_HOSTNAME || feature == PERF_FEATURE_OSRELEASE ||
           feature == PERF_FEATURE_VERSION || feature == PERF_FEATURE_ARCH || feature == PERF_FEATURE_CMDLINE ||
           feature == PERF_FEATURE_EVENT_DESC || feature == PERF_FEATURE_CLOCK_DATA;
}

static enum status omit_features(struct perf_header *header, const struct perf_source *source)
{
    profile_add_omission(header->profile,
                         "the file is cut short after its data, at byte %" PRIu64
                         ": perf's metadata, such as build ids, are missing",
                         source->size);
    return STATUS_OK;
}

/* Reads the features. After the data is the position of each feature whose bit is set. A file that was cut short ends
 * among them. */
static enum status read_features(struct perf_header *header, const struct perf_source *source, const uint64_t bits[4],
                                 struct error *error)
{
    uint64_t place = header->data_end;
    for (unsigned feature = 0; feature < PERF_FEATURES; feature++) {
        if (!(bits[feature / 64] >> feature % 64 & 1)) continue;
        uint8_t *bytes;
        header->is_in_folder |= feature == PERF_FEATURE_DIRECTORY;
        struct section entry = {place, PERF_SECTION_SIZE};
        if (!is_inside(source, entry)) return omit_features(header, source);
        enum status status = read_bytes(source, entry, &bytes, error);
        if (status != STATUS_OK) return status;
        struct cursor cursor = cursor_of(slice_of(bytes, PERF_SECTION_SIZE));
        struct section section = {.offset = cursor_u64(&cursor)};
        section.size = cursor_u64(&cursor);
        free(bytes);
        place += PERF_SECTION_SIZE;
        if (!is_wanted(feature)) continue;
        if (!is_inside(source, section)) return omit_features(header, source);
        status = read_bytes(source, section, &bytes, error);
        if (status != STATUS_OK) return status;
        bool is_taken = take_feature(header, feature, slice_of(bytes, section.size));
        free(bytes);
        if (!is_taken) return fail(STATUS_NO_MEMORY, section.offset, "not enough memory for build ids", error);
    }
    return STATUS_OK;
}

/* --- The header --------------------------------------------------------------------------------------------------- */

static struct section take_section(struct cursor *cursor)
{
    struct section section = {.offset = cursor_u64(cursor)};
    section.size = cursor_u64(cursor);
    return section;
}

/* Reads the header of a file. If perf ended before it wrote the size of the data, or the file was cut short in them,
 * they reach to the end of the file. */
static enum status read_file_header(struct perf_header *header, const struct perf_source *source, struct cursor cursor,
                                    struct error *error)
{
    enum { DATA_PLACE = 40 };
    uint64_t bits[4] = {0}, attr_size = cursor_u64(&cursor);
    struct section attrs = take_section(&cursor), data = take_section(&cursor);
    (void)take_section(&cursor); /* types of events, which current versions of perf do not write */
    for (size_t i = 0; i < 4; i++) bits[i] = cursor_u64(&cursor);
    if (cursor.failed) return fail(STATUS_MALFORMED, source->size, "the header is cut short", error);
    if (data.offset > source->size)
        return fail(STATUS_MALFORMED, DATA_PLACE, "the file is cut short: its data reach beyond its end", error);
    header->may_be_cut = data.size == 0 || !is_inside(source, data);
    if (header->may_be_cut)
        profile_add_omission(header->profile,
                             "the recording was not finished or is cut short, at byte %" PRIu64
                             ": later samples and perf's metadata, such as build ids, are missing",
                             source->size);
    header->data_start = data.offset;
    header->data_end = header->may_be_cut ? source->size : data.offset + data.size;
    enum status status = read_attrs(header, source, attrs, attr_size, error);
    return status == STATUS_OK && !header->may_be_cut ? read_features(header, source, bits, error) : status;
}

enum status perf_header_read(struct perf_header *header, const struct perf_source *source, struct profile *profile,
                             struct error *error)
{
    uint8_t bytes[PERF_FILE_HEADER_SIZE];
    size_t size = source->size < sizeof(bytes) ? (size_t)source->size : sizeof(bytes);
    *header = (struct perf_header){.profile = profile, .unwinder = unwinder_of_elf(EM_X86_64)};
    if (!source->read(source->context, 0, bytes, size)) return fail(STATUS_IO, 0, "the header cannot be read", error);
    struct cursor cursor = cursor_of(slice_of(bytes, size));
    struct slice magic = cursor_take(&cursor, PERF_MAGIC_SIZE);
    if (slice_equals_text(magic, PERF_MAGIC_SWAPPED))
        return fail(STATUS_UNSUPPORTED, 0,
                    "a file of perf record from a big-endian machine; there, type: perf script | offbeat top -", error);
    if (!slice_equals_text(magic, PERF_MAGIC)) return fail(STATUS_NOT_THIS_FORMAT, 0, "not a perf.data file", error);
    uint64_t header_size = cursor_u64(&cursor);
    header->is_pipe = header_size == PERF_PIPE_HEADER_SIZE;
    header->data_start = PERF_PIPE_HEADER_SIZE;
    header->data_end = source->size;
    if (cursor.failed) return fail(STATUS_MALFORMED, source->size, "the header is cut short", error);
    if (header->is_pipe) return STATUS_OK;
    return read_file_header(header, source, cursor, error);
}

void perf_header_fini(struct perf_header *header)
{
    perf_events_fini(&header->events);
    free(header->build_ids.items);
    index_table_fini(&header->build_ids.index);
    *header = (struct perf_header){0};
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static enum status take_attr(struct perf_header *header, struct cursor body, uint64_t offset, struct error *error)
{
    struct perf_event event;
    struct cursor ahead = body;
    cursor_skip(&ahead, sizeof(uint32_t));
    uint32_t size = cursor_u32(&ahead);
    if (!perf_event_parse(&body, size, &event)) return fail(STATUS_MALFORMED, offset, "an event is broken", error);
    if (header->events.has_columns)
        return fail(STATUS_UNSUPPORTED, offset, "an event is declared after the first sample", error);
    enum status status = perf_events_add(&header->events, &event);
    if (status == STATUS_OK)
        status = add_event_ids(header, &body, cursor_left(&body) / sizeof(uint64_t), header->events.count - 1);
    return explain(status, offset, error);
}

static void take_update(struct perf_header *header, struct cursor body)
{
    uint64_t kind = cursor_u64(&body), id = cursor_u64(&body);
    struct slice name = kind == PERF_UPDATE_NAME ? cursor_text(&body) : slice_of(NULL, 0);
    struct perf_event *event = perf_events_find(&header->events, id);
    if (body.failed || !event || name.size == 0 || name.size > PERF_EVENT_NAME_BYTES_MAX) return;
    event->name = profile_string(header->profile, name);
}

enum status perf_header_take(struct perf_header *header, const struct perf_record *record, uint64_t offset,
                             struct error *error)
{
    struct cursor body = perf_record_body(record);
    bool is_taken = true;
    switch (record->type) {
    case PERF_RECORD_HEADER_ATTR:
        return header->is_pipe ? take_attr(header, body, offset, error) : STATUS_OK;
    case PERF_RECORD_EVENT_UPDATE:
        take_update(header, body);
        break;
    case PERF_RECORD_HEADER_BUILD_ID:
        is_taken = add_build_id(header, body, record->misc);
        break;
    case PERF_RECORD_HEADER_FEATURE: {
        uint64_t feature = cursor_u64(&body);
        is_taken = body.failed || take_feature(header, feature, slice_of(body.position, cursor_left(&body)));
        break;
    }
    default:
        break;
    }
    return is_taken ? STATUS_OK : fail(STATUS_NO_MEMORY, offset, "not enough memory for build ids", error);
}
