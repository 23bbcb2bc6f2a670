/* Hexadecimal digits. Calls no function of libc.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_HEX_H
#define OFFBEAT_BASE_HEX_H

#include "base/slice.h"

/* Returns the value of the digit BYTE, 0 to 15, or -1. */
static inline int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Returns whether TEXT has only digits of which none is in upper case. */
static inline bool hex_is_lower(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (hex_digit(text.data[i]) < 0 || (text.data[i] >= 'A' && text.data[i] <= 'F')) return false;
    }
    return true;
}

/* Reads all of TEXT, 1 to 16 digits. RET_NUMBER is unchanged on failure. */
static inline bool hex_parse(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (text.size == 0 || text.size > 16) return false;
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0) return false;
        number = number << 4 | (uint64_t)digit;
    }
    *ret_number = number;
    return true;
}

/* Reads the two digits at TEXT; returns the byte, or -1. */
static inline int hex_byte(const uint8_t *text)
{
    int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
    return low < 0 ? -1 : high << 4 | low;
}

/* Writes two digits for each of BYTES, in lower case, and a NUL; returns the place of the NUL. */
static inline char *hex_write(char *out, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        *out++ = digits[bytes.data[i] >> 4];
        *out++ = digits[bytes.data[i] & 15];
    }
    *out = '\0';
    return out;
}

/* Writes the 16 digits of NUMBER and a NUL. */
static inline void hex_write_u64(char out[17], uint64_t number)
{
    uint64_t bytes = __builtin_bswap64(number);
    (void)hex_write(out, slice_of(&bytes, sizeof(bytes)));
}

#endif
