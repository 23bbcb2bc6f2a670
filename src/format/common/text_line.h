/* Lines of text formats.  SPDX-License-Identifier: MIT */
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

#endif
