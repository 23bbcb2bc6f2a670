/* AArch64: sixteen bytes at a time. Only varint_groups.c includes it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_VARINT_VECTOR_AARCH64_H
#define OFFBEAT_BASE_VARINT_VECTOR_AARCH64_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#define VARINT_VECTOR

typedef uint8x16_t varint_vector;

static inline bool varint_vector_is_there(void)
{
    return true;
}

static inline varint_vector varint_vector_load(const uint8_t *bytes)
{
    return vld1q_u8(bytes);
}

static inline void varint_vector_store(uint32_t *numbers, varint_vector vector)
{
    vst1q_u32(numbers, vreinterpretq_u32_u8(vector));
}

/* Returns a bit for each byte that ends a number: its highest bit is 0. */
static inline unsigned varint_vector_ends(varint_vector bytes)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t ends = vandq_u8(vcgezq_s8(vreinterpretq_s8_u8(bytes)), vld1q_u8(bits));
    return vaddv_u8(vget_low_u8(ends)) | (unsigned)vaddv_u8(vget_high_u8(ends)) << 8;
}

/* Returns the bytes in ORDER, 0 where that is 16 or more. */
static inline varint_vector varint_vector_order(varint_vector bytes, const uint8_t *order)
{
    return vqtbl1q_u8(bytes, vld1q_u8(order));
}

/* The numbers' bytes, each number's in its own word, become the numbers: seven bits of each byte. */
static inline varint_vector varint_vector_join(varint_vector bytes)
{
    uint32x4_t words = vreinterpretq_u32_u8(bytes), low = vandq_u32(words, vdupq_n_u32(0x7f));
    uint32x4_t middle = vshrq_n_u32(vandq_u32(words, vdupq_n_u32(0x7f00)), 1);
    uint32x4_t high = vshrq_n_u32(vandq_u32(words, vdupq_n_u32(0x7f0000)), 2);
    return vreinterpretq_u8_u32(vorrq_u32(low, vorrq_u32(middle, high)));
}

/* Returns true if none is 0, which less one is the largest, nor above MAXIMUM. */
static inline bool varint_vector_within(varint_vector bytes, uint32_t maximum)
{
    uint32x4_t less_one = vsubq_u32(vreinterpretq_u32_u8(bytes), vdupq_n_u32(1));
    return vmaxvq_u32(vcgeq_u32(less_one, vdupq_n_u32(maximum))) == 0;
}

#endif
