/* SPDX-License-Identifier: MIT */
#include "base/uuid.h"

#include "base/hex.h"

#include <sys/random.h>

bool uuid_new(char ret_text[UUID_TEXT_SIZE])
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) return false; /* 16 bytes are never cut short */
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);                        /* version 4 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);                        /* the variant of RFC 9562 */
    (void)hex_write(ret_text, slice_of(bytes, sizeof(bytes)));
    return true;
}

bool uuid_parse(struct slice text, char ret_text[UUID_TEXT_SIZE])
{
    char digits[UUID_TEXT_SIZE] = {0};
    size_t count = 0;
    bool is_hyphenated = text.size == 36;
    if (!is_hyphenated && text.size != 32) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (is_hyphenated && (i == 8 || i == 13 || i == 18 || i == 23)) {
            if (text.data[i] != '-') return false;
        } else {
            if (hex_digit(text.data[i]) < 0) return false;
            digits[count++] = (char)(text.data[i] | 0x20); /* lower case; digits have this bit */
        }
    }
    memcpy(ret_text, digits, sizeof(digits));
    return true;
}

bool uuid_is_random(const char *plain)
{
    enum { VERSION = 12, VARIANT = 16 };
    return plain[VERSION] == '4' && memchr("89ab", plain[VARIANT], 4) != NULL;
}
