/* SPDX-License-Identifier: MIT */
#include "format/common/json_members.h"

struct slice json_take_value(struct json_reader *reader)
{
    (void)json_peek(reader); /* passes over white space */
    const uint8_t *start = reader->position;
    json_skip(reader);
    return slice_of(start, (size_t)(reader->position - start));
}

void json_members_note(struct json_reader *reader, struct json_member *members, size_t count)
{
    struct slice name;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        size_t i = 0;
        while (i < count && !slice_equals_text(name, members[i].name)) i++;
        struct slice value = json_take_value(reader);
        if (i < count) members[i].value = slice_equals_text(value, "null") ? slice_of(NULL, 0) : value;
    }
}

void json_parts_fail(struct json_parts *parts, enum status status, const uint8_t *place, const char *message)
{
    if (parts->status != STATUS_OK) return;
    parts->status = profile_failed(parts->profile, parts->error); /* after it, missing strings look broken */
    if (parts->status != STATUS_OK) return;
    uint64_t offset = place ? (uint64_t)(place - parts->bytes.data) : 0;
    parts->status = error_set(parts->error, status, offset, "%s", message);
}

void json_parts_finish(struct json_parts *parts, struct json_reader *reader)
{
    const uint8_t *place = reader->start ? reader->start + reader->failed_offset : NULL;
    if (reader->failed) json_parts_fail(parts, reader->status, place, reader->message);
    json_reader_fini(reader);
}

void json_parts_note(struct json_parts *parts, struct slice object, struct json_member *members, size_t count)
{
    struct json_reader reader;
    json_reader_init(&reader, object);
    json_members_note(&reader, members, count);
    (void)json_reader_finish(&reader, NULL);
    json_parts_finish(parts, &reader);
}

struct slice json_parts_member(struct json_parts *parts, struct slice object, const char *name)
{
    struct json_member member = {.name = name};
    if (object.size > 0) json_parts_note(parts, object, &member, 1);
    return member.value;
}

double json_number_or_text(struct json_reader *reader)
{
    struct json_number number = {0};
    if (json_peek(reader) != JSON_STRING) return json_double(reader);
    if (!json_number_of_text(json_string(reader), &number))
        json_reader_reject(reader, STATUS_MALFORMED, "expected a number, or a text that holds one");
    return json_number_to_double(&number);
}

double json_parts_double(struct json_parts *parts, struct slice value)
{
    struct json_reader reader;
    if (value.size == 0) return 0;
    json_reader_init(&reader, value);
    double number = json_number_or_text(&reader);
    json_parts_finish(parts, &reader);
    return number;
}

struct string_id json_parts_text(struct json_parts *parts, struct slice value)
{
    struct json_reader reader;
    if (value.size == 0) return (struct string_id){0};
    json_reader_init(&reader, value);
    struct string_id text = profile_string(parts->profile, json_string(&reader));
    json_parts_finish(parts, &reader);
    return text;
}

struct string_id json_parts_string(struct json_parts *parts, struct slice value)
{
    bool is_number = value.size > 0 && value.data[0] != '"';
    return is_number ? profile_string(parts->profile, value) : json_parts_text(parts, value);
}
