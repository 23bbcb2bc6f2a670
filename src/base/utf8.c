/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stdbool.h>

bool utf8_is_valid(struct slice text)
{
    const uint8_t *place = text.data, *end = place + text.size;
    while (place < end) {
        size_t size = *place < 0x80 ? 1 : utf8_sequence_size(place, end);
        if (size == 0) return false;
        place += size;
    }
    return true;
}

/* The bytes of a character that is cut off are replaced as one. */
static size_t broken_size(const uint8_t *place, const uint8_t *end)
{
    size_t size = 1;
    if (place[0] < 0xC2 || place[0] > 0xF4) return size;
    while (size < 4 && place + size < end && (place[size] & 0xC0) == 0x80) size++;
    return size;
}

void utf8_append_repaired(struct buffer *out, struct slice text)
{
    const uint8_t *place = text.data, *end = place + text.size;
    while (place < end) {
        size_t size = utf8_sequence_size(place, end);
        if (size > 0) {
            buffer_append(out, place, size);
        } else {
            size = broken_size(place, end);
            buffer_append_text(out, "\xEF\xBF\xBD");
        }
        place += size;
    }
}
