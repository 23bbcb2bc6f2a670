/* Bytes that belong to somebody else.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_SLICE_H
#define OFFBEAT_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A view; never freed through the slice. DATA may be NULL only when SIZE is 0. */
struct slice {
    const uint8_t *data;
    size_t size;
};

static inline struct slice slice_of(const void *data, size_t size)
{
    return (struct slice){.data = data, .size = size};
}

static inline struct slice slice_of_text(const char *text)
{
    return slice_of(text, text ? strlen(text) : 0);
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool slice_equals_text(struct slice a, const char *text)
{
    return slice_equal(a, slice_of_text(text));
}

/* For printf's "%.*s". */
#define SLICE_ARGUMENTS(slice) (int)((slice).size), (const char *)((slice).data)

#endif
