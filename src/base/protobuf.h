/* The wire format of protocol buffers: fields out of a cursor, fields into a buffer.
 *
 * Reading is as lenient as the format: unknown fields are the caller's to skip, varints drop what is over 64 bits.
 * Groups, which are obsolete, make the cursor fail.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_PROTOBUF_H
#define OFFBEAT_BASE_PROTOBUF_H

#include "base/buffer.h"
#include "base/cursor.h"

enum protobuf_wire_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5,
};

enum { PROTOBUF_VARINT_BYTES_MAX = 10 };

/* --- Reading ------------------------------------------------------------------------------------------------------ */

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire_type wire_type;
    uint64_t value;     /* value of a varint or fixed field */
    struct slice bytes; /* content of a PROTOBUF_BYTES field: a text, a message or packed numbers */
};

/* Reads the varint at POSITION, which is before END. Where the next one begins, or NULL if this one is broken. */
static inline const uint8_t *protobuf_read_varint(const uint8_t *position, const uint8_t *end, uint64_t *ret_value)
{
    size_t left = (size_t)(end - position);
    /* Most of what is large are ids of two or three bytes. */
    if (left >= 3) {
        uint32_t first = position[0], second = position[1], third = position[2];
        *ret_value = first;
        if (first < 0x80) return position + 1;
        *ret_value = (first & 0x7f) | second << 7;
        if (second < 0x80) return position + 2;
        *ret_value = (first & 0x7f) | (second & 0x7f) << 7 | third << 14;
        if (third < 0x80) return position + 3;
    }
    size_t size_max = left < PROTOBUF_VARINT_BYTES_MAX ? left : PROTOBUF_VARINT_BYTES_MAX;
    uint64_t value = 0;
    for (size_t i = 0; i < size_max; i++) {
        value |= (uint64_t)(position[i] & 0x7f) << (7 * i);
        if (position[i] < 0x80) {
            *ret_value = value;
            return position + i + 1;
        }
    }
    return NULL;
}

static inline uint64_t protobuf_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    const uint8_t *next = cursor_at_end(cursor) ? NULL : protobuf_read_varint(cursor->position, cursor->end, &value);
    if (!next) {
        cursor->failed = true;
        return 0;
    }
    cursor->position = next;
    return value;
}

/* The next field of a message. False at its end, and when it is broken (CURSOR->failed). */
static inline bool protobuf_next(struct cursor *cursor, struct protobuf_field *ret_field)
{
    if (cursor_at_end(cursor)) return false;
    uint64_t tag = protobuf_varint(cursor);
    if (tag >> 3 > UINT32_MAX) cursor->failed = true;
    struct protobuf_field field = {.number = (uint32_t)(tag >> 3), .wire_type = (enum protobuf_wire_type)(tag & 7)};
    switch ((int)field.wire_type) {
    case PROTOBUF_VARINT:
        field.value = protobuf_varint(cursor);
        break;
    case PROTOBUF_FIXED64:
        field.value = cursor_u64(cursor);
        break;
    case PROTOBUF_BYTES:
        field.bytes = cursor_take(cursor, protobuf_varint(cursor));
        break;
    case PROTOBUF_FIXED32:
        field.value = cursor_u32(cursor);
        break;
    default:
        cursor->failed = true;
    }
    if (cursor->failed) return false;
    *ret_field = field;
    return true;
}

/* --- Writing: zero and "" are what a reader takes where nothing is written, so they are left out. ----------------- */

/* The bytes that VALUE takes. */
size_t protobuf_varint_size(uint64_t value);
/* Writes as many to PLACE, and says how many. */
size_t protobuf_put_varint(uint8_t *place, uint64_t value);

void protobuf_append_varint(struct buffer *out, uint64_t value);
void protobuf_append_number(struct buffer *out, uint32_t field, uint64_t value);
/* Written even if it is zero. */
void protobuf_append_explicit_number(struct buffer *out, uint32_t field, uint64_t value);
/* A text or a message; written even if it is empty. */
void protobuf_append_bytes(struct buffer *out, uint32_t field, struct slice bytes);
/* Packed. Nothing is written for no numbers. */
void protobuf_append_packed(struct buffer *out, uint32_t field, const uint64_t *values, size_t count);

/* A message of unknown size in place: begin, append its fields, end. Room for its length is left before it and closed
 * up at the end; messages may be nested. */
size_t protobuf_begin_message(struct buffer *out, uint32_t field);
void protobuf_end_message(struct buffer *out, size_t begin);

#endif
