/* Times in nanoseconds, and as the kernel and libc take them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_TIMESPEC_H
#define OFFBEAT_BASE_TIMESPEC_H

#include <stdint.h>
#include <time.h>

#define MILLISECOND_NS ((uint64_t)1000000)
#define SECOND_NS ((uint64_t)1000000000)
#define DAY_NS (86400 * SECOND_NS)

/* Returns the latest time that fits if TIME_NS does not. */
static inline struct timespec timespec_of(uint64_t time_ns)
{
    if (time_ns > INT64_MAX) time_ns = INT64_MAX;
    return (struct timespec){.tv_sec = (time_t)(time_ns / SECOND_NS), .tv_nsec = (long)(time_ns % SECOND_NS)};
}

#endif
