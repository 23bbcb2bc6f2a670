/* x86-64: sixteen bytes at a time, with SSE4.1. Only varint_groups.c includes it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_VARINT_VECTOR_X86_64_H
#define OFFBEAT_BASE_VARINT_VECTOR_X86_64_H

#include <smmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VARINT_VECTOR __attribute__((target("sse4.1")))

typedef __m128i varint_vector;

static inline bool varint_vector_is_there(void)
{
    return __builtin_cpu_supports("sse4.1");
}

VARINT_VECTOR static inline varint_vector varint_vector_load(const uint8_t *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

VARINT_VECTOR static inline void varint_vector_store(uint32_t *numbers, varint_vector vector)
{
    _mm_storeu_si128((__m128i *)(void *)numbers, vector);
}

/* Returns a bit for each byte that ends a number: its highest bit is 0. */
VARINT_VECTOR static inline unsigned varint_vector_ends(varint_vector bytes)
{
    return ~(unsigned)_mm_movemask_epi8(bytes);
}

/* Returns the bytes in ORDER, 0 where that has its highest bit. */
VARINT_VECTOR static inline varint_vector varint_vector_order(varint_vector bytes, const uint8_t *order)
{
    return _mm_shuffle_epi8(bytes, varint_vector_load(order));
}

/* The numbers' bytes, each number's in its own word, become the numbers: seven bits of each byte. */
VARINT_VECTOR static inline varint_vector varint_vector_join(varint_vector words)
{
    __m128i low = _mm_and_si128(words, _mm_set1_epi32(0x7f));
    __m128i middle = _mm_srli_epi32(_mm_and_si128(words, _mm_set1_epi32(0x7f00)), 1);
    __m128i high = _mm_srli_epi32(_mm_and_si128(words, _mm_set1_epi32(0x7f0000)), 2);
    return _mm_or_si128(low, _mm_or_si128(middle, high));
}

/* Returns true if none is 0, which less one is the largest, nor above MAXIMUM. */
VARINT_VECTOR static inline bool varint_vector_within(varint_vector numbers, uint32_t maximum)
{
    __m128i less_one = _mm_add_epi32(numbers, _mm_set1_epi32(-1));
    __m128i limit = _mm_set1_epi32((int)maximum);
    __m128i is_beyond = _mm_cmpeq_epi32(_mm_max_epu32(less_one, limit), less_one);
    return _mm_testz_si128(is_beyond, is_beyond);
}

#endif
