/* Small texts without libc, whose functions for them look at the locale and so at thread-local storage.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PLAIN_TEXT_H
#define OFFBEAT_BASE_PLAIN_TEXT_H

#include "base/hex.h"

#include <stdint.h>
#include <string.h>

/* Appends TEXT, or NUMBER, to what ends at AT, and a NUL; END is after the last byte. Gives the new end of the text;
 * what does not fit is left out. */
static inline char *plain_text(char *at, const char *end, const char *text)
{
    while (*text && at + 1 < end) *at++ = *text++;
    if (at < end) *at = '\0';
    return at;
}

static inline char *plain_number(char *at, const char *end, uint64_t number, unsigned base)
{
    char digits[65];
    char *first = digits + sizeof(digits) - 1;
    *first = '\0';
    do {
        *--first = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    return plain_text(at, end, first);
}

/* The number at *TEXT (in base 16 with or without 0x), which is moved after it; 0 if there is none. */
static inline uint64_t plain_parse(const char **text, unsigned base)
{
    uint64_t number = 0;
    if (base == 16 && (*text)[0] == '0' && (*text)[1] == 'x') *text += 2;
    for (;; (*text)++) {
        int digit = hex_digit((uint8_t) * *text);
        if (digit < 0 || (unsigned)digit >= base) return number;
        number = number * base + (unsigned)digit;
    }
}

/* Takes off what the kernel appends to the path of a deleted file. */
static inline void plain_path(char *path)
{
    static const char deleted[] = " (deleted)";
    size_t size = strlen(path), suffix = sizeof(deleted) - 1;
    if (size > suffix && memcmp(path + size - suffix, deleted, suffix) == 0) path[size - suffix] = '\0';
}

#endif
