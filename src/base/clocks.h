/* The clocks of libc, in nanoseconds.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_CLOCKS_H
#define OFFBEAT_BASE_CLOCKS_H

#include "base/timespec.h"

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_utc_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

#endif
