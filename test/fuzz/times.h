/* The times that survive writing and reading. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_FUZZ_TIMES_H
#define OFFBEAT_TEST_FUZZ_TIMES_H

#include "profile/profile.h"

/* True if all times of PROFILE are before the year 2096: later ones have no microseconds in a double of nanoseconds,
 * which the backend uses. */
static inline bool has_exact_times(const struct profile *profile)
{
    const uint64_t limit_ns = (uint64_t)4 * 1000000000 * 1000000000;
    bool is_exact = true;
    for (size_t i = 0; i < profile->samples.count; i++) is_exact &= profile->samples.time_ns[i] < limit_ns;
    for (size_t i = 0; i < profile->measurements.count; i++) {
        const struct measurement *measurement = &profile->measurements.items[i];
        for (size_t k = 0; k < measurement->count; k++) is_exact &= measurement->values[k].time_ns < limit_ns;
    }
    return is_exact;
}

#endif
