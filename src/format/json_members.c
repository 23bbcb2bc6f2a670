/* SPDX-License-Identifier: MIT */
#include "format/json_members.h"

static struct slice take_value(struct json_reader *reader)
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
        struct slice value = take_value(reader);
        if (i < count) members[i].value = slice_equals_text(value, "null") ? slice_of(NULL, 0) : value;
    }
}
