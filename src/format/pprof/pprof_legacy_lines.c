/* Lines, words and numbers of pprof's older text formats.  SPDX-License-Identifier: MIT */
#include "base/hex.h"
#include "format/pprof/pprof_legacy_private.h"

bool legacy_next_line(struct cursor *cursor, struct slice *ret_line)
{
    size_t left = cursor_left(cursor);
    if (left == 0) return false;
    const uint8_t *end = memchr(cursor->position, '\n', left);
    *ret_line = cursor_take(cursor, end ? (uint64_t)(end - cursor->position) : left);
    if (end) cursor_skip(cursor, 1);
    if (ret_line->size > 0 && ret_line->data[ret_line->size - 1] == '\r') ret_line->size--;
    return true;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

struct slice legacy_trim(struct slice text)
{
    while (text.size > 0 && is_blank(text.data[text.size - 1])) text.size--;
    while (text.size > 0 && is_blank(text.data[0])) text = slice_of(text.data + 1, text.size - 1);
    return text;
}

bool legacy_is_blank(struct slice line)
{
    struct slice text = legacy_trim(line);
    return text.size == 0 || text.data[0] == '#';
}

const uint8_t *legacy_search(struct slice text, const char *word)
{
    return !text.data ? NULL : memmem(text.data, text.size, word, strlen(word));
}

bool legacy_split_attribute(struct slice line, struct slice *ret_key, struct slice *ret_value)
{
    const uint8_t *equals = line.size > 0 ? memchr(line.data, '=', line.size) : NULL;
    if (!equals) return false;
    *ret_key = legacy_trim(slice_of(line.data, (size_t)(equals - line.data)));
    *ret_value = legacy_trim(slice_of(equals + 1, line.size - (size_t)(equals + 1 - line.data)));
    return true;
}

bool legacy_announces_mappings(struct slice line)
{
    return legacy_search(line, "--- Memory map: ---") || legacy_search(line, "MAPPED_LIBRARIES:");
}

void legacy_skip_blanks(struct cursor *cursor)
{
    while (cursor_left(cursor) > 0 && is_blank(*cursor->position)) cursor->position++;
}

void legacy_expect(struct cursor *cursor, const char *text)
{
    if (!slice_equals_text(cursor_take(cursor, strlen(text)), text)) cursor->failed = true;
}

static bool is_digit(const struct cursor *cursor)
{
    return cursor_left(cursor) > 0 && *cursor->position >= '0' && *cursor->position <= '9';
}

int64_t legacy_decimal(struct cursor *cursor)
{
    bool is_negative = cursor_left(cursor) > 0 && *cursor->position == '-';
    if (is_negative) cursor->position++;
    if (!is_digit(cursor)) cursor->failed = true;
    int64_t number = 0;
    while (is_digit(cursor)) {
        int64_t digit = *cursor->position++ - '0';
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, is_negative ? -digit : digit, &number)) {
            cursor->failed = true;
        }
    }
    return cursor->failed ? 0 : number;
}

static int hex_digit_at(const struct cursor *cursor)
{
    return cursor_left(cursor) > 0 ? hex_digit(*cursor->position) : -1;
}

uint64_t legacy_hex(struct cursor *cursor)
{
    if (hex_digit_at(cursor) < 0) cursor->failed = true;
    uint64_t number = 0;
    for (int digit; (digit = hex_digit_at(cursor)) >= 0; cursor->position++) {
        if (number >> 60) cursor->failed = true;
        number = number << 4 | (uint64_t)digit;
    }
    return cursor->failed ? 0 : number;
}

struct slice legacy_word(struct cursor *cursor)
{
    const uint8_t *start = cursor->position;
    while (cursor_left(cursor) > 0 && !is_blank(*cursor->position)) cursor->position++;
    return slice_of(start, (size_t)(cursor->position - start));
}

void legacy_two_decimals(struct cursor *cursor, int64_t *ret_first, int64_t *ret_second)
{
    *ret_first = legacy_decimal(cursor);
    legacy_skip_blanks(cursor);
    *ret_second = legacy_decimal(cursor);
    legacy_skip_blanks(cursor);
    legacy_expect(cursor, "@");
}
