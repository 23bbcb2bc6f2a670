/* UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_UTF8_H
#define OFFBEAT_BASE_UTF8_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at POSITION (below END), 1 to 4; 0 if there is no valid one. */
static inline size_t utf8_sequence_size(const uint8_t *position, const uint8_t *end)
{
    uint8_t lead = position[0];
    if (lead < 0x80) return 1;
    size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (size == 0 || (size_t)(end - position) < size) return 0;
    /* Only the second byte's range depends on the lead (Unicode 15, table 3-7). */
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (position[1] < low || position[1] > high) return 0;
    for (size_t i = 2; i < size; i++) {
        if ((position[i] & 0xC0) != 0x80) return 0;
    }
    return size;
}

/* Returns the code point of the valid character of SIZE bytes at POSITION. */
static inline uint32_t utf8_code_point(const uint8_t *position, size_t size)
{
    static const uint8_t masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code_point = position[0] & masks[size];
    for (size_t i = 1; i < size; i++) code_point = code_point << 6 | (position[i] & 0x3F);
    return code_point;
}

/* Writes CODE_POINT (at most 0x10FFFF) and returns how many bytes it took, 1 to 4. */
static inline size_t utf8_write(uint32_t code_point, uint8_t *out)
{
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (uint8_t)(leads[size] | code_point);
    return size;
}

bool utf8_is_valid(struct slice text);

/* Appends TEXT with U+FFFD in place of invalid UTF-8. */
void utf8_append_repaired(struct buffer *out, struct slice text);

#endif
