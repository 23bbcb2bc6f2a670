/* Reads untrusted bytes front to back. A read past the end, or a value that does not fit, sets FAILED and gives 0 from
 * then on, so that a decoder checks once per record instead of once per field. Signal-safe.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_CURSOR_H
#define OFFBEAT_BASE_CURSOR_H

#include "base/slice.h"

struct cursor {
    const uint8_t *start;
    const uint8_t *position;
    const uint8_t *end;
    bool failed;
};

static inline struct cursor cursor_of(struct slice bytes)
{
    const uint8_t *end = bytes.size > 0 ? bytes.data + bytes.size : bytes.data; /* DATA of an empty slice may be NULL */
    return (struct cursor){.start = bytes.data, .position = bytes.data, .end = end};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return cursor->failed ? 0 : (size_t)(cursor->end - cursor->position);
}

static inline size_t cursor_offset(const struct cursor *cursor)
{
    return (size_t)(cursor->position - cursor->start);
}

static inline bool cursor_at_end(const struct cursor *cursor)
{
    return cursor->failed || cursor->position == cursor->end;
}

static inline struct slice cursor_take(struct cursor *cursor, uint64_t size)
{
    if (size > cursor_left(cursor)) {
        cursor->failed = true;
        return slice_of(NULL, 0);
    }
    struct slice taken = slice_of(cursor->position, (size_t)size);
    cursor->position += size;
    return taken;
}

static inline void cursor_skip(struct cursor *cursor, uint64_t size)
{
    (void)cursor_take(cursor, size);
}

/* Little-endian, as all that we read is. */
#define CURSOR_READ(name, type)                                                                                        \
    static inline type cursor_##name(struct cursor *cursor)                                                            \
    {                                                                                                                  \
        type value = 0;                                                                                                \
        struct slice taken = cursor_take(cursor, sizeof(value));                                                       \
        if (taken.data) memcpy(&value, taken.data, sizeof(value));                                                     \
        return value;                                                                                                  \
    }
CURSOR_READ(u8, uint8_t)
CURSOR_READ(u16, uint16_t)
CURSOR_READ(u32, uint32_t)
CURSOR_READ(u64, uint64_t)
#undef CURSOR_READ

/* LEB128; more than 64 bits is a failure. Most are of one byte. */
static inline uint64_t cursor_uleb128(struct cursor *cursor)
{
    if (!cursor_at_end(cursor) && *cursor->position < 0x80) return *cursor->position++;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return cursor->failed ? 0 : value;
    }
    cursor->failed = true;
    return 0;
}

static inline int64_t cursor_sleb128(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (shift + 7 < 64 && (byte & 0x40)) value |= ~(uint64_t)0 << (shift + 7);
            return cursor->failed ? 0 : (int64_t)value;
        }
    }
    cursor->failed = true;
    return 0;
}

/* A text that ends with a NUL; the NUL is taken but not part of the slice. */
static inline struct slice cursor_text(struct cursor *cursor)
{
    const uint8_t *end = cursor_left(cursor) ? memchr(cursor->position, 0, cursor_left(cursor)) : NULL;
    if (!end) {
        cursor->failed = true;
        return slice_of(NULL, 0);
    }
    struct slice text = cursor_take(cursor, (uint64_t)(end - cursor->position));
    cursor->position++;
    return text;
}

#endif
