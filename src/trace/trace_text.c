/* Texts of the program, kept up to a length; and the clock.  SPDX-License-Identifier: MIT */
#include "trace/trace_private.h"

#include <stdlib.h>
#include <time.h>

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

uint64_t trace_now_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
