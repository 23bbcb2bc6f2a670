/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>
#include <sys/auxv.h>

uint64_t hash_seed[2] = {HASH_SEED_FIRST, HASH_SEED_SECOND};

/* Derives the seed from the 16 random bytes that the kernel gives every process: this needs no system call and cannot
 * fail. libc derives its stack guard from the same bytes; the product in hash_mix does not lead back to them.
 * Runs before other constructors, because those of a program that links us may use tables. */
__attribute__((constructor(101))) static void seed_hashes(void)
{
    uint64_t words[2];
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (!random) return;
    memcpy(words, random, sizeof(words));
    uint64_t first = hash_mix(words[0], words[1]);
    uint64_t second = hash_mix(words[1], ~words[0]);
    hash_seed[0] ^= first;
    hash_seed[1] ^= second;
}

uint64_t hash_bytes(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = size;
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hash_mix(hash, word);
        bytes += 8;
        size -= 8;
    }
    uint64_t word = 0;
    if (size > 0) memcpy(&word, bytes, size);
    return hash_mix(hash, word);
}
