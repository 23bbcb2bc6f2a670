/* SPDX-License-Identifier: MIT */
#include "base/varint_groups.h"

#include <smmintrin.h>

enum { NUMBERS = 4, SIZE_MAX_OF_ONE = 3 };

/* Notes for all patterns that begin with numbers of these sizes where their bytes go. */
static void add_order(struct varint_groups *groups, uint8_t order, const uint8_t sizes[NUMBERS])
{
    enum { NO_BYTE = 0x80 };
    unsigned size = 0, pattern = 0;
    for (unsigned number = 0; number < NUMBERS; number++) {
        for (unsigned byte = 0; byte < sizeof(uint32_t); byte++) {
            uint8_t *from = &groups->bytes[order][number * sizeof(uint32_t) + byte];
            *from = byte < sizes[number] ? (uint8_t)(size + byte) : NO_BYTE;
        }
        size += sizes[number];
        pattern |= 1u << (size - 1);
    }
    for (unsigned rest = 0; rest < (unsigned)VARINT_GROUP_PATTERNS >> size; rest++) {
        groups->sizes[pattern | rest << size] = (uint8_t)size;
        groups->orders[pattern | rest << size] = order;
    }
}

void varint_groups_init(struct varint_groups *groups)
{
    groups->can_read = __builtin_cpu_supports("sse4.1");
    for (unsigned order = 0; order < VARINT_GROUP_ORDERS; order++) {
        uint8_t sizes[NUMBERS];
        for (unsigned number = 0, digits = order; number < NUMBERS; number++, digits /= SIZE_MAX_OF_ONE)
            sizes[number] = (uint8_t)(1 + digits % SIZE_MAX_OF_ONE);
        add_order(groups, (uint8_t)order, sizes);
    }
}

/* The numbers' bytes, each number's in its own word, become the numbers: seven bits of each byte. */
__attribute__((target("sse4.1"))) static inline __m128i join_sevens(__m128i words)
{
    __m128i low = _mm_and_si128(words, _mm_set1_epi32(0x7f));
    __m128i middle = _mm_srli_epi32(_mm_and_si128(words, _mm_set1_epi32(0x7f00)), 1);
    __m128i high = _mm_srli_epi32(_mm_and_si128(words, _mm_set1_epi32(0x7f0000)), 2);
    return _mm_or_si128(low, _mm_or_si128(middle, high));
}

/* None is 0, which less one is the largest, nor above MAXIMUM. */
__attribute__((target("sse4.1"))) static inline bool all_within(__m128i numbers, uint32_t maximum)
{
    __m128i less_one = _mm_add_epi32(numbers, _mm_set1_epi32(-1));
    __m128i limit = _mm_set1_epi32((int)maximum);
    __m128i is_beyond = _mm_cmpeq_epi32(_mm_max_epu32(less_one, limit), less_one);
    return _mm_testz_si128(is_beyond, is_beyond);
}

__attribute__((target("sse4.1"))) static size_t read_groups(const struct varint_groups *groups,
                                                            const uint8_t **position, const uint8_t *end,
                                                            uint32_t maximum, uint32_t *ret_values)
{
    const uint8_t *at = *position;
    uint32_t *next = ret_values;
    while (end - at >= VARINT_GROUP_ROOM) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        unsigned pattern = ~(unsigned)_mm_movemask_epi8(bytes) & (VARINT_GROUP_PATTERNS - 1);
        const uint8_t *order = groups->bytes[groups->orders[pattern]];
        __m128i numbers = join_sevens(_mm_shuffle_epi8(bytes, _mm_loadu_si128((const __m128i *)(const void *)order)));
        if (groups->sizes[pattern] == 0 || !all_within(numbers, maximum)) break;
        _mm_storeu_si128((__m128i *)(void *)next, numbers);
        at += groups->sizes[pattern];
        next += NUMBERS;
    }
    *position = at;
    return (size_t)(next - ret_values);
}

size_t varint_groups_read(const struct varint_groups *groups, const uint8_t **position, const uint8_t *end,
                          uint32_t maximum, uint32_t *ret_values)
{
    return groups->can_read ? read_groups(groups, position, end, maximum, ret_values) : 0;
}
