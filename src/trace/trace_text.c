/* Texts of the program, kept up to a length.  SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include <stdlib.h>

size_t trace_text_size(const char *text, size_t maximum)
{
    size_t size = text ? strnlen(text, maximum + 1) : 0;
    if (size <= maximum) return size;
    size = maximum;
    while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80) size--; /* a character's later bytes */
    return size;
}

char *trace_text_copy(const char *text, size_t maximum)
{
    size_t size = trace_text_size(text, maximum);
    char *copy = malloc(size + 1);
    if (!copy) return NULL;
    if (text) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}
