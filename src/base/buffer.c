/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdio.h>

void buffer_init(struct buffer *buffer, size_t maximum_bytes)
{
    *buffer = (struct buffer){.maximum = maximum_bytes};
}

void buffer_fini(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = buffer->is_full = false;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t size)
{
    size_t needed;
    if (buffer->failed || __builtin_add_overflow(buffer->size, size, &needed) ||
        !array_reserve(&buffer->data, &buffer->capacity, needed ? needed : 1, 1, buffer->maximum)) {
        buffer->is_full = buffer->failed ? buffer->is_full : size > buffer->maximum - buffer->size;
        buffer->failed = true;
        return NULL;
    }
    return buffer->data + buffer->size;
}

void buffer_release(struct buffer *buffer, size_t from, size_t to)
{
    if (from < to && to <= buffer->size) pages_release(buffer->data + from, to - from);
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    uint8_t *place = buffer_reserve(buffer, size);
    if (!place || size == 0) return;
    memcpy(place, data, size);
    buffer->size += size;
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    uint8_t *place = length < 0 ? NULL : buffer_reserve(buffer, (size_t)length + 1);
    if (place) {
        (void)vsnprintf((char *)place, (size_t)length + 1, format, again);
        buffer->size += (size_t)length;
    }
    va_end(again);
}

void buffer_append_url_text(struct buffer *buffer, struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
        if (is_plain)
            buffer_append_byte(buffer, byte);
        else
            buffer_append_format(buffer, "%%%02X", byte);
    }
}
