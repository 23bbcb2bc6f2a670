/* SPDX-License-Identifier: MIT */
#include "base/sha1.h"

void sha1_init(struct sha1 *sha1)
{
    *sha1 = (struct sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

static uint32_t rotate(uint32_t word, unsigned count)
{
    return word << count | word >> (32 - count);
}

static uint32_t load(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The function and the constant of round ROUND (section 4.1.1, 4.2.1). */
static uint32_t choose(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20) return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40) return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

/* Section 6.1.2. */
static void take_block(struct sha1 *sha1, const uint8_t *block)
{
    uint32_t words[80];
    uint32_t a = sha1->state[0], b = sha1->state[1], c = sha1->state[2], d = sha1->state[3], e = sha1->state[4];
    for (size_t i = 0; i < 16; i++) words[i] = load(block + 4 * i);
    for (size_t i = 16; i < 80; i++) words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = rotate(a, 5) + choose(i, b, c, d) + e + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    sha1->state[0] += a;
    sha1->state[1] += b;
    sha1->state[2] += c;
    sha1->state[3] += d;
    sha1->state[4] += e;
}

void sha1_add(struct sha1 *sha1, struct slice bytes)
{
    size_t used = sha1->size % SHA1_BLOCK_BYTES;
    sha1->size += bytes.size;
    while (bytes.size > 0) {
        if (used == 0 && bytes.size >= SHA1_BLOCK_BYTES) {
            take_block(sha1, bytes.data);
            bytes = slice_of(bytes.data + SHA1_BLOCK_BYTES, bytes.size - SHA1_BLOCK_BYTES);
            continue;
        }
        size_t size = SHA1_BLOCK_BYTES - used < bytes.size ? SHA1_BLOCK_BYTES - used : bytes.size;
        memcpy(sha1->block + used, bytes.data, size);
        bytes = slice_of(bytes.data + size, bytes.size - size);
        used = (used + size) % SHA1_BLOCK_BYTES;
        if (used == 0) take_block(sha1, sha1->block);
    }
}

void sha1_finish(struct sha1 *sha1, char ret_text[SHA1_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[SHA1_BLOCK_BYTES] = {0x80};
    uint64_t bits = sha1->size * 8;
    uint8_t size[8];
    for (size_t i = 0; i < 8; i++) size[i] = (uint8_t)(bits >> (56 - 8 * i));
    size_t used = sha1->size % SHA1_BLOCK_BYTES;
    sha1_add(sha1, slice_of(padding, used < 56 ? 56 - used : 120 - used));
    sha1_add(sha1, slice_of(size, sizeof(size)));
    for (size_t i = 0; i < 40; i++) ret_text[i] = digits[sha1->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret_text[40] = '\0';
}

void sha1_of(struct slice bytes, char ret_text[SHA1_TEXT_SIZE])
{
    struct sha1 sha1;
    sha1_init(&sha1);
    sha1_add(&sha1, bytes);
    sha1_finish(&sha1, ret_text);
}
