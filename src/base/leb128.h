/* Writes unsigned LEB128, which cursor_uleb128 reads.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_LEB128_H
#define OFFBEAT_BASE_LEB128_H

#include "base/buffer.h"

enum { LEB128_BYTES_MAX = 10 };

/* Writes VALUE at AT, which has room for LEB128_BYTES_MAX; returns the end. */
static inline uint8_t *leb128_put(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline void leb128_append(struct buffer *out, uint64_t value)
{
    uint8_t bytes[LEB128_BYTES_MAX];
    buffer_append(out, bytes, (size_t)(leb128_put(bytes, value) - bytes));
}

#endif
