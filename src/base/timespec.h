/* SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_TIMESPEC_H
#define OFFBEAT_BASE_TIMESPEC_H

#include <stdint.h>
#include <time.h>

/* As the kernel and libc take times. One that does not fit is the latest. */
static inline struct timespec timespec_of(uint64_t time_ns)
{
    if (time_ns > INT64_MAX) time_ns = INT64_MAX;
    return (struct timespec){.tv_sec = (time_t)(time_ns / 1000000000u), .tv_nsec = (long)(time_ns % 1000000000u)};
}

#endif
