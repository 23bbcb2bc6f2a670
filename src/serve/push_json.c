/* SPDX-License-Identifier: MIT */
#include "serve/push_json.h"

#include "base/base64.h"
#include "base/json_reader.h"
#include "base/protobuf.h"

struct member {
    const char *name, *other_name; /* OTHER_NAME: "", or the name in push.proto */
    uint32_t field;                /* number in push.proto */
    void (*read)(struct json_reader *reader, uint32_t field, struct buffer *message);
};

/* Reads an object into the message that is open in MESSAGE. Members that are not in MEMBERS are passed over. */
static void read_object(struct json_reader *reader, const struct member *members, struct buffer *message)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        const struct member *member = members;
        while (member->name && !slice_equals_text(key, member->name) && !slice_equals_text(key, member->other_name))
            member++;
        if (!member->name)
            json_skip(reader);
        else if (!json_null(reader))
            member->read(reader, member->field, message);
    }
}

/* Reads an array of objects as messages of FIELD. */
static void read_objects(struct json_reader *reader, uint32_t field, const struct member *members,
                         struct buffer *message)
{
    json_array_begin(reader);
    while (json_array_next(reader)) {
        size_t begin = protobuf_begin_message(message, field);
        read_object(reader, members, message);
        protobuf_end_message(message, begin);
    }
}

static void read_text(struct json_reader *reader, uint32_t field, struct buffer *message)
{
    protobuf_append_bytes(message, field, json_string(reader));
}

static void read_bytes(struct json_reader *reader, uint32_t field, struct buffer *message)
{
    struct slice text = json_string(reader);
    size_t begin = protobuf_begin_message(message, field);
    uint8_t *room = buffer_reserve(message, text.size);
    if (room) buffer_grow(message, base64_decode(text, room));
    protobuf_end_message(message, begin);
}

static void read_labels(struct json_reader *reader, uint32_t field, struct buffer *message)
{
    static const struct member members[] = {
        {"name", "", LABEL_NAME, read_text}, {"value", "", LABEL_VALUE, read_text}, {0}};
    read_objects(reader, field, members, message);
}

static void read_samples(struct json_reader *reader, uint32_t field, struct buffer *message)
{
    static const struct member members[] = {
        {"rawProfile", "raw_profile", SAMPLE_PROFILE, read_bytes}, {"ID", "id", SAMPLE_ID, read_text}, {0}};
    read_objects(reader, field, members, message);
}

static void read_series(struct json_reader *reader, uint32_t field, struct buffer *message)
{
    static const struct member members[] = {
        {"labels", "", SERIES_LABELS, read_labels}, {"samples", "", SERIES_SAMPLES, read_samples}, {0}};
    read_objects(reader, field, members, message);
}

enum status push_json_read(struct slice json, struct buffer *message, struct error *error)
{
    static const struct member members[] = {{"series", "", PUSH_SERIES, read_series}, {0}};
    struct json_reader reader;
    json_reader_init(&reader, json);
    read_object(&reader, members, message);
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    if (status == STATUS_OK && message->failed)
        status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the push");
    return status;
}
