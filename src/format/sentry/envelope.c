/* An envelope is a line with a JSON object, then items. An item is a line with a JSON object, its header, and the
 * payload, which ends at the header's length or, without a length, at the end of the line. Only '\n' ends a line.
 * SPDX-License-Identifier: MIT
 */
#include "format/sentry/envelope.h"

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/rfc3339.h"

#include <limits.h>

/* --- Headers ------------------------------------------------------------------------------------------------------ */

/* Keeps a text beyond the next one. TEXTS was given room for all texts of the header before the first one was read, so
 * that it does not move. */
static struct slice read_text(struct json_reader *reader, struct buffer *texts)
{
    struct slice text = json_string(reader);
    size_t first = texts->size;
    buffer_append(texts, text.data, text.size);
    return texts->failed ? slice_of(NULL, 0) : slice_of(texts->data + first, text.size);
}

/* Takes any value and returns its bytes in the input. */
static struct slice read_raw(struct json_reader *reader)
{
    (void)json_peek(reader);
    size_t first = json_reader_taken(reader);
    json_skip(reader);
    return slice_of(reader->start + first, json_reader_taken(reader) - first);
}

/* No text of a header is longer than the header, and there cannot be more of them than it has bytes. */
static bool make_room(struct buffer *texts, size_t header_size)
{
    buffer_fini(texts);
    buffer_init(texts, header_size);
    return buffer_reserve(texts, header_size) != NULL;
}

/* Returns the size of the line end that BYTES begin with: "\n", or "\r\n" if IS_LENIENT; 0 if they do not. */
static size_t line_end(struct slice bytes, bool is_lenient)
{
    if (bytes.size > 0 && bytes.data[0] == '\n') return 1;
    bool has_return = is_lenient && bytes.size > 1 && bytes.data[0] == '\r' && bytes.data[1] == '\n';
    return has_return ? 2 : 0;
}

/* Returns the size of the empty lines that BYTES begin with. */
static size_t empty_lines(struct slice bytes, bool is_lenient)
{
    size_t skipped = 0, end = 0;
    while (is_lenient && (end = line_end(slice_of(bytes.data + skipped, bytes.size - skipped), true)) > 0)
        skipped += end;
    return skipped;
}

/* The JSON object that BYTES begin with; it must end with its line or with BYTES. */
static enum status find_header(struct slice bytes, bool is_lenient, struct slice *ret_header, struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, bytes);
    if (json_peek(&reader) != JSON_OBJECT) json_reader_reject(&reader, STATUS_MALFORMED, "expected a JSON object");
    json_skip(&reader);
    size_t size = json_reader_taken(&reader);
    if (size < bytes.size && line_end(slice_of(bytes.data + size, bytes.size - size), is_lenient) == 0)
        json_reader_reject(&reader, STATUS_MALFORMED, "header does not end with its line");
    enum status status = json_reader_status(&reader, error);
    json_reader_fini(&reader);
    if (status == STATUS_OK) *ret_header = slice_of(bytes.data, size);
    return status;
}

static void read_sdk(struct json_reader *reader, struct buffer *texts, struct envelope_attributes *attributes)
{
    struct slice key;
    if (json_peek(reader) != JSON_OBJECT) {
        json_skip(reader);
        return;
    }
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        bool is_name = slice_equals_text(key, "name"), is_version = slice_equals_text(key, "version");
        if ((is_name || is_version) && json_peek(reader) == JSON_STRING) {
            *(is_name ? &attributes->sdk_name : &attributes->sdk_version) = read_text(reader, texts);
        } else {
            json_skip(reader);
        }
    }
}

/* True if KEY is one that envelopes have, and then its value was taken. */
static bool read_attribute(struct json_reader *reader, struct slice key, struct buffer *texts,
                           struct envelope_attributes *attributes)
{
    if (slice_equals_text(key, "event_id")) {
        if (!json_null(reader) && !uuid_parse(json_string(reader), attributes->event_id))
            json_reader_reject(reader, STATUS_MALFORMED, "event_id is no uuid");
    } else if (slice_equals_text(key, "dsn")) {
        if (!json_null(reader)) attributes->dsn = read_text(reader, texts);
    } else if (slice_equals_text(key, "sent_at")) {
        if (!json_null(reader) && !rfc3339_parse(json_string(reader), &attributes->sent_at_ns))
            json_reader_reject(reader, STATUS_MALFORMED, "sent_at is no RFC 3339 time");
    } else if (slice_equals_text(key, "sdk")) {
        read_sdk(reader, texts, attributes);
    } else if (slice_equals_text(key, "trace")) {
        bool is_object = json_peek(reader) == JSON_OBJECT; /* anything else is tolerated, and says nothing */
        struct slice trace = read_raw(reader);
        if (is_object) attributes->trace = trace;
    } else {
        return false;
    }
    return true;
}

static enum status read_attributes(struct slice header, struct buffer *texts,
                                   struct envelope_attributes *ret_attributes, struct error *error)
{
    struct envelope_attributes attributes = {0};
    struct json_reader reader;
    struct slice key;
    if (!make_room(texts, header.size)) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for a header");
    json_reader_init(&reader, header);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (!read_attribute(&reader, key, texts, &attributes)) json_skip(&reader);
    }
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    if (status == STATUS_OK) *ret_attributes = attributes;
    return status;
}

struct item_header {
    struct envelope_item item; /* the item, except its payload */
    uint64_t length;
    bool has_type, has_length;
};

static void read_item_member(struct json_reader *reader, struct slice key, struct buffer *texts,
                             struct item_header *header)
{
    static const char *const framing[] = {"type", "length", "platform"};
    bool is_framing = false;
    for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++) is_framing |= slice_equals_text(key, framing[i]);
    header->item.has_further_members |= !is_framing;
    if (slice_equals_text(key, "type")) {
        header->item.type = read_text(reader, texts);
        header->has_type = true;
    } else if (json_null(reader)) {
        return;
    } else if (slice_equals_text(key, "length")) {
        header->length = json_u64(reader);
        header->has_length = true;
        if (header->length > UINT32_MAX) json_reader_reject(reader, STATUS_MALFORMED, "length is over 32 bits");
    } else if (slice_equals_text(key, "platform")) {
        header->item.platform = read_text(reader, texts);
    } else if (slice_equals_text(key, "content_type")) {
        header->item.content_type = read_text(reader, texts);
    } else if (slice_equals_text(key, "item_count")) {
        header->item.item_count = json_u64(reader);
    } else if (slice_equals_text(key, "meta_length")) {
        header->item.has_meta_length = true;
        if (json_peek(reader) == JSON_NUMBER)
            header->item.meta_length = json_u64(reader);
        else
            json_skip(reader);
    } else {
        json_skip(reader);
    }
}

static enum status read_item_header(struct slice json, struct buffer *texts, struct item_header *ret_header,
                                    struct error *error)
{
    struct item_header header = {.item.header = json};
    struct json_reader reader;
    struct slice key;
    if (!make_room(texts, json.size)) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for a header");
    json_reader_init(&reader, json);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) read_item_member(&reader, key, texts, &header);
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    if (status != STATUS_OK) return status;
    if (!header.has_type) return error_set(error, STATUS_MALFORMED, 0, "no type");
    *ret_header = header;
    return STATUS_OK;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* True if LINE is an object and all its known members may be in an envelope's header. */
static bool is_plain_header(struct slice line)
{
    static const char *const known[] = {"event_id", "dsn", "sdk", "sent_at", "trace"};
    struct json_reader reader;
    struct slice key;
    bool is_plain = true;
    json_reader_init(&reader, line);
    json_object_begin(&reader);
    while (is_plain && json_object_next(&reader, &key)) {
        is_plain = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) is_plain |= slice_equals_text(key, known[i]);
        json_skip(&reader);
    }
    is_plain = is_plain && json_reader_finish(&reader, NULL) == STATUS_OK;
    json_reader_fini(&reader);
    return is_plain;
}

bool envelope_detect(struct slice bytes)
{
    size_t skipped = empty_lines(bytes, true);
    bytes = slice_of(bytes.data + skipped, bytes.size - skipped);
    const uint8_t *newline = bytes.size ? memchr(bytes.data, '\n', bytes.size) : NULL;
    size_t line_size = newline ? (size_t)(newline - bytes.data) : bytes.size;
    struct slice header, line = slice_of(bytes.data, line_size);
    if (line_size > 0 && line.data[line_size - 1] == '\r') line.size--;
    if (!newline || line_size + 1 == bytes.size) return is_plain_header(line);
    size_t next = line_size + 1;
    next += empty_lines(slice_of(bytes.data + next, bytes.size - next), true);
    return next < bytes.size && bytes.data[next] == '{' && find_header(line, true, &header, NULL) == STATUS_OK;
}

static enum status open_envelope(struct envelope_reader *reader, struct slice bytes, bool is_lenient,
                                 struct error *error)
{
    struct error failure;
    size_t skipped = empty_lines(bytes, is_lenient);
    *reader = (struct envelope_reader){.bytes = bytes, .is_lenient = is_lenient};
    struct slice first = slice_of(bytes.data + skipped, bytes.size - skipped);
    enum status status = find_header(first, is_lenient, &reader->header, &failure);
    if (status != STATUS_OK) {
        status = status == STATUS_NO_MEMORY ? status : STATUS_NOT_THIS_FORMAT;
        return error_set(error, status, failure.offset, "no envelope header: %s", failure.message);
    }
    status = read_attributes(reader->header, &reader->header_texts, &reader->attributes, &failure);
    if (status != STATUS_OK) return error_set(error, status, failure.offset, "envelope header: %s", failure.message);
    reader->position = skipped + reader->header.size;
    reader->position += line_end(slice_of(bytes.data + reader->position, bytes.size - reader->position), is_lenient);
    return STATUS_OK;
}

enum status envelope_open(struct envelope_reader *reader, struct slice bytes, struct error *error)
{
    return open_envelope(reader, bytes, false, error);
}

enum status envelope_open_lenient(struct envelope_reader *reader, struct slice bytes, struct error *error)
{
    return open_envelope(reader, bytes, true, error);
}

void envelope_close(struct envelope_reader *reader)
{
    buffer_fini(&reader->header_texts);
    buffer_fini(&reader->item_texts);
    *reader = (struct envelope_reader){0};
}

/* The payload at the start of REST, up to the newline or the end; *RET_TAKEN counts the newline too. */
static bool find_payload(struct slice rest, const struct item_header *header, bool is_lenient,
                         struct slice *ret_payload, size_t *ret_taken)
{
    size_t size = (size_t)header->length;
    if (!header->has_length) {
        const uint8_t *newline = rest.size ? memchr(rest.data, '\n', rest.size) : NULL;
        size = newline ? (size_t)(newline - rest.data) : rest.size;
    }
    if (!header->has_length && is_lenient && size > 0 && size < rest.size && rest.data[size - 1] == '\r') size--;
    size_t end = size < rest.size ? line_end(slice_of(rest.data + size, rest.size - size), is_lenient) : 0;
    if (size > rest.size || (size < rest.size && end == 0)) return false;
    *ret_payload = slice_of(rest.data, size);
    *ret_taken = size + end;
    return true;
}

bool envelope_next(struct envelope_reader *reader, struct envelope_item *ret_item, struct error *error)
{
    struct error failure = {.status = STATUS_OK};
    struct item_header header = {0};
    struct slice rest = slice_of(reader->bytes.data + reader->position, reader->bytes.size - reader->position), json;
    size_t payload_taken, skipped = empty_lines(rest, reader->is_lenient);

    rest = slice_of(rest.data + skipped, rest.size - skipped);
    reader->position += skipped;
    if (rest.size == 0) {
        if (error) *error = failure;
        return false;
    }
    if (find_header(rest, reader->is_lenient, &json, &failure) != STATUS_OK ||
        read_item_header(json, &reader->item_texts, &header, &failure) != STATUS_OK) {
        (void)error_set(error, failure.status, reader->position + failure.offset, "item header: %s", failure.message);
        return false;
    }
    size_t header_taken = json.size;
    header_taken += line_end(slice_of(rest.data + json.size, rest.size - json.size), reader->is_lenient);
    struct slice after = slice_of(rest.data + header_taken, rest.size - header_taken);
    if (!find_payload(after, &header, reader->is_lenient, &header.item.payload, &payload_taken)) {
        (void)error_set(error, STATUS_MALFORMED, reader->position + header_taken,
                        "item's length does not fit its payload");
        return false;
    }
    *ret_item = header.item;
    reader->position += header_taken + payload_taken;
    return true;
}

bool envelope_item_is_chunk(const struct envelope_item *item)
{
    return slice_equals_text(item->type, "profile_chunk") || slice_equals_text(item->type, "profile_chunk_ui");
}

bool envelope_item_is_perfetto(const struct envelope_item *item)
{
    return envelope_item_is_chunk(item) && slice_equals_text(item->content_type, "application/x-perfetto-trace");
}

/* --- What a server accepts ---------------------------------------------------------------------------------------- */

enum { KIB = 1 << 10, MIB = 1 << 20, SESSIONS_MAX = 100 };

/* Largest size of an item, and the group of items whose number is limited. */
struct item_rule {
    const char *type;
    size_t bytes_max;
    enum { NO_GROUP, EVENT_GROUP, PROFILE_GROUP, SESSION_GROUP, GROUP_COUNT } group;
};

static const struct item_rule *rule_of(struct slice type)
{
    static const struct item_rule rules[] = {
        {"event", MIB, EVENT_GROUP},
        {"transaction", MIB, EVENT_GROUP},
        {"span", MIB, NO_GROUP},
        {"profile", 50 * MIB, PROFILE_GROUP},
        {"profile_chunk", 50 * MIB, PROFILE_GROUP},
        {"profile_chunk_ui", 50 * MIB, PROFILE_GROUP},
        {"client_report", 4 * KIB, NO_GROUP},
        {"check_in", 100 * KIB, NO_GROUP},
        {"session", ENVELOPE_BYTES_MAX, SESSION_GROUP},
    };
    static const struct item_rule other = {"", ENVELOPE_BYTES_MAX, NO_GROUP};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (slice_equals_text(type, rules[i].type)) return &rules[i];
    }
    return &other;
}

static enum status check_item(const struct envelope_item *item, unsigned counts[GROUP_COUNT], struct error *error)
{
    static const unsigned counts_max[GROUP_COUNT] = {
        [NO_GROUP] = UINT_MAX, [EVENT_GROUP] = 1, [PROFILE_GROUP] = 1, [SESSION_GROUP] = SESSIONS_MAX};
    const struct item_rule *rule = rule_of(item->type);
    int type_size = item->type.size < 60 ? (int)item->type.size : 60;
    if (item->payload.size > rule->bytes_max) {
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "envelope exceeded size limits for type '%.*s' (%zu bytes, at most %zu)", type_size,
                         (const char *)item->type.data, item->payload.size, rule->bytes_max);
    }
    if (++counts[rule->group] > counts_max[rule->group]) {
        return error_set(error, STATUS_TOO_LARGE, 0,
                         "envelope exceeded size limits for type '%.*s' (at most %u of its kind)", type_size,
                         (const char *)item->type.data, counts_max[rule->group]);
    }
    return STATUS_OK;
}

enum status envelope_check(struct slice bytes, struct error *error)
{
    struct envelope_reader reader;
    struct envelope_item item;
    struct error framing = {.status = STATUS_OK};
    unsigned counts[GROUP_COUNT] = {0};
    if (bytes.size > ENVELOPE_BYTES_MAX) {
        return error_set(error, STATUS_TOO_LARGE, 0, "envelope exceeded size limits (%zu bytes, at most %d)",
                         bytes.size, ENVELOPE_BYTES_MAX);
    }
    enum status status = envelope_open(&reader, bytes, error);
    while (status == STATUS_OK && envelope_next(&reader, &item, &framing)) status = check_item(&item, counts, error);
    envelope_close(&reader);
    if (status == STATUS_NOT_THIS_FORMAT) status = error_set(error, STATUS_MALFORMED, 0, "no envelope header");
    if (status != STATUS_OK || framing.status == STATUS_OK) return status;
    return error_set(error, framing.status, framing.offset, "%s", framing.message);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void write_sdk(struct json_writer *writer, const struct envelope_attributes *attributes)
{
    if (attributes->sdk_name.size == 0) return;
    json_begin_object_member(writer, "sdk");
    json_member_string_if_any(writer, "name", attributes->sdk_name);
    json_member_string_if_any(writer, "version", attributes->sdk_version);
    json_end_object(writer);
}

void envelope_begin(struct buffer *out, const struct envelope_attributes *attributes)
{
    struct json_writer writer = json_writer_of(out);
    char event_id[UUID_TEXT_SIZE];
    memcpy(event_id, attributes->event_id, sizeof(event_id));
    if (!event_id[0]) (void)uuid_new(event_id);
    json_begin_object(&writer);
    json_member_string_if_any(&writer, "event_id", slice_of_text(event_id));
    json_member_string_if_any(&writer, "dsn", attributes->dsn);
    write_sdk(&writer, attributes);
    if (attributes->sent_at_ns) json_member_time(&writer, "sent_at", attributes->sent_at_ns);
    if (attributes->trace.size) {
        json_write_key(&writer, "trace");
        json_write_raw(&writer, attributes->trace);
    }
    json_end_object(&writer);
    buffer_append_byte(out, '\n');
}

/* An object on one line: between its tokens a newline is white space, and in a string it cannot be. It begins with a
 * bracket, which distinguishes the second line of an envelope. */
void envelope_begin_with(struct buffer *out, struct slice header)
{
    while (header.size > 0 && header.data[0] != '{') header = slice_of(header.data + 1, header.size - 1);
    uint8_t *place = buffer_reserve(out, header.size + 1);
    if (!place) return;
    for (size_t i = 0; i < header.size; i++) place[i] = header.data[i] == '\n' ? ' ' : header.data[i];
    place[header.size] = '\n';
    buffer_grow(out, header.size + 1);
}

void envelope_add_item(struct buffer *out, const char *type, const char *platform, struct slice payload)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    json_member_string_if_any(&writer, "type", slice_of_text(type));
    json_member_string_if_any(&writer, "platform", slice_of_text(platform));
    json_member_u64(&writer, "length", payload.size);
    json_end_object(&writer);
    buffer_append_byte(out, '\n');
    buffer_append(out, payload.data, payload.size);
    buffer_append_byte(out, '\n');
}

void envelope_add_item_with(struct buffer *out, struct slice header, struct slice payload)
{
    envelope_begin_with(out, header);
    buffer_append(out, payload.data, payload.size);
    buffer_append_byte(out, '\n');
}
