/* Hashes for tables in memory, not for files: they differ from process to process. Each process has its own seed, so
 * that nobody can choose keys that share a hash.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_HASH_H
#define OFFBEAT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The seed until the constructor in hash.c has run; not a secret. */
#define HASH_SEED_FIRST 0x9E3779B97F4A7C15u
#define HASH_SEED_SECOND 0xD6E8FEB86659FD93u

/* Set before any other constructor runs, and never again. */
extern uint64_t hash_seed[2];

/* Mixes VALUE into HASH: the high and low half of a 128-bit product depend on all bits of both. A factor of 0 would
 * make every product 0; only the secret seed says which value that is. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    __uint128_t product = (__uint128_t)(hash ^ hash_seed[0]) * (value ^ hash_seed[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *data, size_t size);

#endif
