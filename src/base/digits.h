/* Reads decimal digits, and compares bytes, eight at a time.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_DIGITS_H
#define OFFBEAT_BASE_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EACH_BYTE(value) (0x0101010101010101u * (uint64_t)(value))

static inline uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

static inline uint32_t load_half(const uint8_t *bytes)
{
    uint32_t half;
    memcpy(&half, bytes, sizeof(half));
    return half;
}

/* Compares a few tens of bytes, for which a call of memcmp takes longer. */
static inline bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    if (size < 4) { /* the first, the middle and the last byte are all */
        return size == 0 || ((a[0] ^ b[0]) | (a[size / 2] ^ b[size / 2]) | (a[size - 1] ^ b[size - 1])) == 0;
    }
    if (size < 8) return ((load_half(a) ^ load_half(b)) | (load_half(a + size - 4) ^ load_half(b + size - 4))) == 0;
    uint64_t differences = load_word(a + size - 8) ^ load_word(b + size - 8);
    for (size_t i = 0; i + 8 < size; i += 8) differences |= load_word(a + i) ^ load_word(b + i);
    return differences == 0;
}

/* The place of the first byte with a bit in BITS, which has one. Little-endian: the lowest byte is the first. */
static inline unsigned lowest_byte(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits) >> 3;
}

/* clang-format off */
static const uint64_t powers_of_ten[20] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u, 100000000000u,
    1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u, 100000000000000000u,
    1000000000000000000u, 10000000000000000000u,
};
/* clang-format on */

/* The number whose digits are the bytes of WORD, from 0 to 9, the first digit in the lowest byte. Neighbours are joined
 * to twos, then to fours, then to eight. */
static inline uint64_t number_of_digits(uint64_t word)
{
    word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FF;
    word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFF;
    return (word * 10000 + (word >> 32)) & 0xFFFFFFFF;
}

/* The high bit of each byte that is more than 9; bits above the lowest one set may be wrong. */
static inline uint64_t other_than_digits(uint64_t word)
{
    return (word | (word + EACH_BYTE(0x80 - 10))) & EACH_BYTE(0x80);
}

/* The first COUNT (at most 7) bytes of WORD, with zeros in front. */
static inline uint64_t only_first(uint64_t word, unsigned count)
{
    return word << 8 << (56 - 8 * count);
}

/* Returns the end of the digits at POSITION; there may be no digit. DIGITS wraps if there are too many; the caller sees
 * it from their count. */
static inline const uint8_t *take_digits(const uint8_t *position, const uint8_t *end, uint64_t *digits)
{
    uint64_t value = *digits;
    while (end - position >= 8) {
        uint64_t word = load_word(position) ^ EACH_BYTE('0'), others = other_than_digits(word);
        if (others) {
            unsigned count = lowest_byte(others);
            *digits = value * powers_of_ten[count] + number_of_digits(only_first(word, count));
            return position + count;
        }
        value = value * 100000000 + number_of_digits(word);
        position += 8;
    }
    while (position < end && (uint8_t)(*position - '0') < 10) value = value * 10 + (uint64_t)(*position++ - '0');
    *digits = value;
    return position;
}

#endif
