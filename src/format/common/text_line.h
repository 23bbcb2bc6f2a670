/* Lines, words and numbers of text formats.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_TEXT_LINE_H
#define OFFBEAT_FORMAT_COMMON_TEXT_LINE_H

#include "base/slice.h"

/* The line at the front of *LEFT, without its end, which may be "\r\n"; *LEFT is then the text after it. */
static inline struct slice text_take_line(struct slice *left)
{
    struct slice line = text_take_until(left, '\n');
    if (line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
    return line;
}

/* Whether LINE is the last one of BYTES and has no end: a file that was cut short ends with such a line. */
static inline bool text_line_is_open(struct slice line, struct slice bytes)
{
    return line.data + line.size == bytes.data + bytes.size;
}

/* Takes the next word off *LEFT; empty at the end. */
static inline struct slice text_take_word(struct slice *left)
{
    size_t start = 0;
    while (start < left->size && text_is_blank(left->data[start])) start++;
    size_t end = start;
    while (end < left->size && !text_is_blank(left->data[end])) end++;
    struct slice word = slice_of(left->data + start, end - start);
    *left = text_from(*left, end);
    return word;
}

/* Reads all of TEXT, decimal digits. RET_NUMBER is unchanged on failure. */
static inline bool text_number(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
            return false;
    }
    if (text.size > 0) *ret_number = number;
    return text.size > 0;
}

/* Takes ":NUMBER" from the end of *TEXT; false if there is none. */
static inline bool text_take_last_number(struct slice *text, uint64_t *ret_number)
{
    size_t end = text->size;
    while (end > 0 && text->data[end - 1] != ':') end--;
    if (end == 0 || !text_number(text_from(*text, end), ret_number)) return false;
    text->size = end - 1;
    return true;
}

/* The same as text_number with a minus sign, or none. */
static inline bool text_integer(struct slice text, int64_t *ret_number)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    uint64_t number = 0;
    if (!text_number(is_negative ? text_from(text, 1) : text, &number) || number > INT64_MAX) return false;
    *ret_number = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

#endif
