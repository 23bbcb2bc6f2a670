/* The lesser and the greater of two, and what must not wrap around.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_UNSIGNED_H
#define OFFBEAT_BASE_UNSIGNED_H

#include <stdint.h>

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A minus B; 0 if B is greater. */
static inline uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
