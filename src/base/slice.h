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

/* NAMES ends with NULL. */
static inline bool slice_is_one_of(struct slice text, const char *const *names)
{
    while (*names && !slice_equals_text(text, *names)) names++;
    return *names != NULL;
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

/* Takes the part before the first BYTE off TEXT, and BYTE; all of it if there is none. */
static inline struct slice text_take_until(struct slice *text, uint8_t byte)
{
    const uint8_t *end = text->size > 0 ? memchr(text->data, byte, text->size) : NULL;
    struct slice part = slice_of(text->data, end ? (size_t)(end - text->data) : text->size);
    *text = text_from(*text, part.size + (end != NULL));
    return part;
}

/* Returns TEXT without the blanks around it. */
static inline struct slice text_trim(struct slice text)
{
    while (text.size > 0 && text_is_blank(text.data[0])) text = text_from(text, 1);
    while (text.size > 0 && text_is_blank(text.data[text.size - 1])) text.size--;
    return text;
}

/* Returns the part of PATH after its last slash. */
static inline struct slice path_base_name(struct slice path)
{
    size_t start = path.size;
    while (start > 0 && path.data[start - 1] != '/') start--;
    return start > 0 ? text_from(path, start) : path;
}

static inline const char *path_base_name_text(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* For printf's "%.*s". */
#define SLICE_ARGUMENTS(slice) (int)((slice).size), (const char *)((slice).data)

#endif
