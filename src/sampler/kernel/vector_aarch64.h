/* AArch64: 16 bytes at a time. Included by sampler/kernel/plain_memory.c.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_VECTOR_AARCH64_H
#define OFFBEAT_SAMPLER_VECTOR_AARCH64_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8x16_t vector;
typedef uint64_t vector_mask; /* bits for each byte of a vector, the first one lowest */
enum { MASK_BITS = 4 /* bits for a byte */ };
static const vector_mask MASK_ALL = UINT64_MAX;

static inline vector load(const uint8_t *from)
{
    return vld1q_u8(from);
}

static inline void store(uint8_t *to, vector value)
{
    vst1q_u8(to, value);
}

static inline vector vector_of(uint8_t byte)
{
    return vdupq_n_u8(byte);
}

/* Each pair of bytes becomes one, of half of each. */
static inline vector_mask equal_bytes(vector left, vector right)
{
    uint16x8_t equal = vreinterpretq_u16_u8(vceqq_u8(left, right));
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(equal, 4)), 0);
}

/* There is no string instruction in all processors: the loop copies and fills every size. */
static const size_t STRING_BYTES = SIZE_MAX;

static inline void copy_string(uint8_t *to, const uint8_t *from, size_t size)
{
    (void)to;
    (void)from;
    (void)size;
}

static inline void fill_string(uint8_t *to, uint8_t value, size_t size)
{
    (void)to;
    (void)value;
    (void)size;
}

#endif
