/* Bytes that grow.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_BUFFER_H
#define OFFBEAT_BASE_BUFFER_H

#include "base/slice.h"

/* Appending past SIZE_MAX_BYTES, or without memory, sets FAILED and appends nothing more: check once, at the end.
 * Make one with buffer_init, or {.maximum = …}. Not for several threads. */
struct buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t maximum;
    bool failed;
    bool is_full; /* the failure is due to MAXIMUM, not for want of memory */
};

void buffer_init(struct buffer *buffer, size_t maximum_bytes);
void buffer_fini(struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* empty, not failed; keeps its memory */

/* Returns room for SIZE more bytes at the end; the caller fills it and calls buffer_grow. NULL on failure.
 */
uint8_t *buffer_reserve(struct buffer *buffer, size_t size);
static inline void buffer_grow(struct buffer *buffer, size_t size)
{
    buffer->size += size;
}

/* Gives the memory from FROM to TO, which is not read again, back to the system; the buffer keeps its size. */
void buffer_release(struct buffer *buffer, size_t from, size_t to);

void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends TEXT as a part of a URL: every byte that is no ASCII letter or digit as %XX. */
void buffer_append_url_text(struct buffer *buffer, struct slice text);

static inline void buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
    buffer_append(buffer, &byte, 1);
}

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return slice_of(buffer->data, buffer->size);
}

#endif
