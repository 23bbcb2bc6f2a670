/* An envelope is a JSON object on a line of its own, then items: again such a line, then the payload, which ends where
 * the header's length says or, without one, at the end of the line. Only '\n' ends a line. SPDX-License-Identifier: MIT
 */
#include "format/envelope.h"

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/uuid.h"

#include <stdio.h>
#include <time.h>

struct header_fields {
    struct slice type; /* data NULL: none */
    uint64_t length;
    bool has_length;
};

static void check_event_id(struct json_reader *reader)
{
    char uuid[UUID_TEXT_SIZE];
    if (!uuid_parse(json_string(reader), uuid)) json_reader_refuse(reader, STATUS_MALFORMED, "event_id is no uuid");
}

/* Reads the header at the start of BYTES. *RET_SIZE is its size, without the newline. Fails if what follows is neither
 * a newline nor the end. */
static enum status read_header(struct slice bytes, struct header_fields *ret_fields, size_t *ret_size,
                               struct error *error)
{
    struct header_fields fields = {0};
    struct json_reader reader;
    struct slice key;

    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "type")) {
            struct slice type = json_string(&reader);
            bool is_view = type.data >= bytes.data && type.data < bytes.data + bytes.size;
            fields.type = is_view ? type : slice_of(bytes.data, 0);
        } else if (json_null(&reader)) {
            continue;
        } else if (slice_equals_text(key, "length")) {
            fields.length = json_u64(&reader);
            fields.has_length = true;
            if (fields.length > UINT32_MAX) json_reader_refuse(&reader, STATUS_MALFORMED, "length is over 32 bits");
        } else if (slice_equals_text(key, "event_id")) {
            check_event_id(&reader);
        } else if (slice_equals_text(key, "dsn") || slice_equals_text(key, "sent_at")) {
            (void)json_string(&reader);
        } else {
            json_skip(&reader);
        }
    }
    size_t size = json_reader_taken(&reader);
    if (size < bytes.size && bytes.data[size] != '\n')
        json_reader_refuse(&reader, STATUS_MALFORMED, "header does not end with its line");
    enum status status = json_reader_status(&reader, error);
    json_reader_fini(&reader);
    if (status != STATUS_OK) return status;
    *ret_fields = fields;
    *ret_size = size;
    return STATUS_OK;
}

static struct slice rest_of(const struct envelope_reader *reader)
{
    return slice_of(reader->bytes.data + reader->position, reader->bytes.size - reader->position);
}

enum status envelope_open(struct envelope_reader *reader, struct slice bytes, struct error *error)
{
    struct header_fields fields;
    size_t size;

    if (read_header(bytes, &fields, &size, error) != STATUS_OK) {
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "the first line is no envelope header");
    }
    *reader = (struct envelope_reader){.bytes = bytes, .header = slice_of(bytes.data, size), .position = size};
    if (reader->position < bytes.size) reader->position++;
    if (reader->position == bytes.size || bytes.data[reader->position] != '{') {
        return error_set(error, STATUS_NOT_THIS_FORMAT, reader->position, "no item header in the second line");
    }
    return STATUS_OK;
}

/* The payload at the start of REST, up to the newline or the end; *RET_TAKEN counts the newline too. */
static bool find_payload(struct slice rest, const struct header_fields *fields, struct slice *ret_payload,
                         size_t *ret_taken)
{
    size_t size = (size_t)fields->length;
    if (!fields->has_length) {
        const uint8_t *newline = rest.size ? memchr(rest.data, '\n', rest.size) : NULL;
        size = newline ? (size_t)(newline - rest.data) : rest.size;
    }
    if (size > rest.size || (size < rest.size && rest.data[size] != '\n')) return false;
    *ret_payload = slice_of(rest.data, size);
    *ret_taken = size + (size < rest.size);
    return true;
}

bool envelope_next(struct envelope_reader *reader, struct envelope_item *ret_item, struct error *error)
{
    struct error failure = {.status = STATUS_OK};
    struct header_fields fields = {0};
    struct slice rest = rest_of(reader), payload;
    size_t header_size, payload_taken;

    if (rest.size == 0) {
        if (error) *error = failure;
        return false;
    }
    if (read_header(rest, &fields, &header_size, &failure) != STATUS_OK) {
        (void)error_set(error, failure.status, reader->position + failure.offset, "item header: %s", failure.message);
        return false;
    }
    if (!fields.type.data) {
        (void)error_set(error, STATUS_MALFORMED, reader->position, "item header without a type");
        return false;
    }
    size_t header_taken = header_size + (header_size < rest.size);
    struct slice after = slice_of(rest.data + header_taken, rest.size - header_taken);
    if (!find_payload(after, &fields, &payload, &payload_taken)) {
        (void)error_set(error, STATUS_MALFORMED, reader->position + header_taken,
                        "item's length does not fit its payload");
        return false;
    }
    *ret_item =
        (struct envelope_item){.header = slice_of(rest.data, header_size), .payload = payload, .type = fields.type};
    reader->position += header_taken + payload_taken;
    return true;
}

static void write_time(struct json_writer *writer, uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm utc;
    char text[80];
    if (!gmtime_r(&seconds, &utc)) return;
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ", utc.tm_year + 1900, utc.tm_mon + 1,
                   utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (unsigned)(time_ns % 1000000000 / 1000));
    json_write_key(writer, "sent_at");
    json_write_text(writer, text);
}

void envelope_begin(struct buffer *out, const char *sdk_name, const char *sdk_version, uint64_t sent_at_ns)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    if (sdk_name && sdk_version) {
        json_write_key(&writer, "sdk");
        json_begin_object(&writer);
        json_write_key(&writer, "name");
        json_write_text(&writer, sdk_name);
        json_write_key(&writer, "version");
        json_write_text(&writer, sdk_version);
        json_end_object(&writer);
    }
    if (sent_at_ns) write_time(&writer, sent_at_ns);
    json_end_object(&writer);
    buffer_append_byte(out, '\n');
}

void envelope_add_item(struct buffer *out, const char *type, const char *platform, struct slice payload)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    json_write_key(&writer, "type");
    json_write_text(&writer, type);
    if (platform) {
        json_write_key(&writer, "platform");
        json_write_text(&writer, platform);
    }
    json_write_key(&writer, "length");
    json_write_u64(&writer, payload.size);
    json_end_object(&writer);
    buffer_append_byte(out, '\n');
    buffer_append(out, payload.data, payload.size);
    buffer_append_byte(out, '\n');
}
