/* SPDX-License-Identifier: MIT */
#include "format/common/valgrind_frame.h"

#include "base/hex.h"

/* Takes "0x1F: " off the front of *TEXT. */
static uint64_t take_address(struct slice *text)
{
    uint64_t address = 0;
    size_t i = 2;
    if (text->size < 4 || memcmp(text->data, "0x", 2) != 0) return 0;
    for (; i < text->size && hex_digit(text->data[i]) >= 0; i++)
        address = address << 4 | (uint64_t)hex_digit(text->data[i]);
    if (i + 1 >= text->size || text->data[i] != ':' || text->data[i + 1] != ' ') return 0;
    *text = slice_of(text->data + i + 2, text->size - i - 2);
    return address;
}

/* Takes " (…)" off the end of *TEXT; empty if it has none. A name may have brackets in it. */
static struct slice take_brackets(struct slice *text)
{
    if (text->size < 4 || text->data[text->size - 1] != ')') return slice_of(NULL, 0);
    for (size_t i = text->size - 1; i-- > 1;) {
        if (text->data[i] != '(' || text->data[i - 1] != ' ') continue;
        struct slice inside = slice_of(text->data + i + 1, text->size - i - 2);
        text->size = i - 1;
        return inside;
    }
    return slice_of(NULL, 0);
}

/* The number after the last colon of *FILE, which it loses; 0 if there is none. */
static int64_t take_line(struct slice *file)
{
    size_t i = file->size;
    int64_t line = 0, weight = 1;
    while (i > 0 && file->data[i - 1] >= '0' && file->data[i - 1] <= '9' && weight < INT32_MAX) {
        line += weight * (file->data[--i] - '0');
        weight *= 10;
    }
    if (i == file->size || i < 2 || file->data[i - 1] != ':' || line > INT32_MAX) return 0;
    file->size = i - 1;
    return line;
}

struct location_id valgrind_frame_add(struct profile *profile, struct slice text)
{
    struct location location = {.address = take_address(&text)};
    struct slice place = take_brackets(&text);
    struct function function = {0};
    struct line line = {0};
    if (place.size > 3 && memcmp(place.data, "in ", 3) == 0) {
        struct mapping mapping = {.file_name = profile_string(profile, slice_of(place.data + 3, place.size - 3))};
        location.mapping = profile_add_mapping(profile, &mapping);
    } else if (place.size > 0) {
        line.line = take_line(&place);
        function.file_name = profile_string(profile, place);
    }
    bool is_named = text.size > 0 && !slice_equals_text(text, "???");
    if (!is_named) return profile_add_location(profile, &location, NULL, 0);
    function.name = profile_string(profile, text);
    line.function = profile_add_function(profile, &function);
    return profile_add_location(profile, &location, &line, 1);
}
