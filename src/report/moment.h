/* The parts of a point in time, also of one before 1970.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_MOMENT_H
#define OFFBEAT_REPORT_MOMENT_H

#include <stdint.h>

enum { MOMENT_NS_PER_SECOND = 1000000000 };

/* Returns the nanoseconds after the second that moment_seconds gives: never negative. */
static inline unsigned moment_nanoseconds(int64_t time_ns)
{
    int64_t rest = time_ns % MOMENT_NS_PER_SECOND;
    return (unsigned)(rest < 0 ? rest + MOMENT_NS_PER_SECOND : rest);
}

/* Returns the last whole second that is not after TIME_NS, since 1970. */
static inline int64_t moment_seconds(int64_t time_ns)
{
    return time_ns / MOMENT_NS_PER_SECOND - (time_ns % MOMENT_NS_PER_SECOND < 0);
}

#endif
