/* Samples as a number of ticks, for formats that store each tick.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_TICK_COUNTS_H
#define OFFBEAT_PROFILE_TICK_COUNTS_H

#include "profile/profile.h"

/* Makes the value types of PROFILE, whose times are in nanoseconds, those of a profile with timestamps (profile.h):
 * samples/count, then its time in nanoseconds, then its other values. The time of a sample stays, and so does its count
 * if each tick of it lasts between 10 us and 1 s. Else the time and the period (10 ms if there is none) give the count:
 * 35 ms without a count is 4 ticks of 8.75 ms. A sample without time has no ticks. The first value of a profile that
 * has no time is such a count, and its unit becomes so. */
void profile_count_ticks(struct profile *profile);

#endif
