/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

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
