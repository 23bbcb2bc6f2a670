/* SPDX-License-Identifier: MIT */
#include "cli/error_detail.h"

struct slice error_detail(struct json_reader *reader, struct slice answer)
{
    struct slice key, detail = slice_of_text("");
    json_reader_init(reader, answer);
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "detail") && json_peek(reader) == JSON_STRING)
            detail = json_string(reader);
        else
            json_skip(reader);
    }
    return detail;
}
