/* Writes the wire format of protocol buffers.  SPDX-License-Identifier: MIT */
#include "base/protobuf.h"

size_t protobuf_put_varint(uint8_t *place, uint64_t value)
{
    size_t size = 0;
    while (value >= 0x80) {
        place[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    place[size++] = (uint8_t)value;
    return size;
}

size_t protobuf_varint_size(uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits + 6) / 7;
}

void protobuf_append_varint(struct buffer *out, uint64_t value)
{
    uint8_t *place = buffer_reserve(out, PROTOBUF_VARINT_BYTES_MAX);
    if (place) buffer_grow(out, protobuf_put_varint(place, value));
}

static void append_tag(struct buffer *out, uint32_t field, enum protobuf_wire_type wire_type)
{
    protobuf_append_varint(out, (uint64_t)field << 3 | (uint64_t)wire_type);
}

void protobuf_append_explicit_number(struct buffer *out, uint32_t field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_VARINT);
    protobuf_append_varint(out, value);
}

void protobuf_append_number(struct buffer *out, uint32_t field, uint64_t value)
{
    if (value != 0) protobuf_append_explicit_number(out, field, value);
}

void protobuf_append_bytes(struct buffer *out, uint32_t field, struct slice bytes)
{
    append_tag(out, field, PROTOBUF_BYTES);
    protobuf_append_varint(out, bytes.size);
    buffer_append(out, bytes.data, bytes.size);
}

void protobuf_append_packed(struct buffer *out, uint32_t field, const uint64_t *values, size_t count)
{
    if (count == 0) return;
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += protobuf_varint_size(values[i]);
    append_tag(out, field, PROTOBUF_BYTES);
    protobuf_append_varint(out, size);
    uint8_t *place = buffer_reserve(out, size);
    if (!place) return;
    for (size_t i = 0; i < count; i++) place += protobuf_put_varint(place, values[i]);
    buffer_grow(out, size);
}

size_t protobuf_begin_message(struct buffer *out, uint32_t field)
{
    append_tag(out, field, PROTOBUF_BYTES);
    size_t begin = out->size;
    buffer_append_byte(out, 0);
    return begin;
}

/* One byte was left for the length, enough for most; the content moves on where it is longer. */
void protobuf_end_message(struct buffer *out, size_t begin)
{
    if (out->failed) return;
    size_t size = out->size - begin - 1;
    size_t extra = protobuf_varint_size(size) - 1;
    if (extra > 0) {
        if (!buffer_reserve(out, extra)) return;
        memmove(out->data + begin + 1 + extra, out->data + begin + 1, size);
        buffer_grow(out, extra);
    }
    (void)protobuf_put_varint(out->data + begin, size);
}
