/* Hashes for tables in memory. Not for files and not against attackers who can choose keys at leisure: tables have
 * maxima.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_HASH_H
#define OFFBEAT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Mixes VALUE into HASH: the high and low half of a 128-bit product depend on all bits of both. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    __uint128_t product = (__uint128_t)(hash ^ 0x9E3779B97F4A7C15u) * (value ^ 0xD6E8FEB86659FD93u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *data, size_t size);

#endif
