/* Decodes base64 (RFC 4648), with or without padding.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_BASE64_H
#define OFFBEAT_BASE_BASE64_H

#include "base/slice.h"

/* Writes what TEXT stands for, up to its first byte that is no letter of base64, to RET_BYTES, which has room for three
 * quarters of TEXT. Returns the number of bytes. */
static inline size_t base64_decode(struct slice text, uint8_t *ret_bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { LETTERS = 64, BITS = 6 };
    uint32_t bits = 0, count = 0;
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char *letter = memchr(letters, text.data[i], LETTERS);
        if (!letter) break;
        bits = (bits << BITS | (uint32_t)(letter - letters)) & 0xffff;
        count += BITS;
        if (count < 8) continue;
        count -= 8;
        ret_bytes[size++] = (uint8_t)(bits >> count);
    }
    return size;
}

#endif
