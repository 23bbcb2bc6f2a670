/* Lines, words and numbers of text formats.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_TEXT_LINE_H
#define OFFBEAT_FORMAT_COMMON_TEXT_LINE_H

#include "base/slice.h"

/* The line at the front of *LEFT, without its end, which may be "\r\n"; *LEFT is then the text after it. */
static inline struct slice text_take_line(struct slice *left)
{
    const uint8_t *newline = left->size ? memchr(left->data, '\n', left->size) : NULL;
    size_t size = newline ? (size_t)(newline - left->data) : left->size;
    size_t taken = newline ? size + 1 : size;
    struct slice line = slice_of(left->data, size);
    *left = slice_of(left->data + taken, left->size - taken);
    if (line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
    return line;
}

static inline bool text_begins_with(struct slice text, const char *start)
{
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.data, start, size) == 0;
}

static inline bool text_ends_with(struct slice text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

static inline bool text_is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Returns TEXT without its first START bytes. */
static inline struct slice text_from(struct slice text, size_t start)
{
    return slice_of(text.data + start, text.size - start);
}

/* Returns TEXT without the blanks around it. */
static inline struct slice text_trim(struct slice text)
{
    while (text.size > 0 && text_is_blank(text.data[0])) text = text_from(text, 1);
    while (text.size > 0 && text_is_blank(text.data[text.size - 1])) text.size--;
    return text;
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

#endif
