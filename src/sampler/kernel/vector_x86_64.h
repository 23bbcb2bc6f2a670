/* x86-64: 16 bytes at a time. Included by sampler/kernel/plain_memory.c.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_VECTOR_X86_64_H
#define OFFBEAT_SAMPLER_VECTOR_X86_64_H

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m128i vector;
typedef unsigned vector_mask; /* bits for each byte of a vector, the first one lowest */
enum { MASK_BITS = 1 /* bits for a byte */ };
static const vector_mask MASK_ALL = 0xffff;

static inline vector load(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline void store(uint8_t *to, vector value)
{
    _mm_storeu_si128((__m128i *)(void *)to, value);
}

static inline vector vector_of(uint8_t byte)
{
    return _mm_set1_epi8((char)byte);
}

static inline vector_mask equal_bytes(vector left, vector right)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(left, right));
}

/* From STRING_BYTES on, `rep movsb` is faster than a loop; its start costs some 30 ns. */
enum { STRING_BYTES = 1024 };

static inline void copy_string(uint8_t *to, const uint8_t *from, size_t size)
{
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
}

static inline void fill_string(uint8_t *to, uint8_t value, size_t size)
{
    void *at = to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
}

#endif
