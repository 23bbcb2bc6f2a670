/* The quantities that units measure, and their sizes (requirement PPF-3).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_UNITS_H
#define OFFBEAT_PROFILE_UNITS_H

#include "base/buffer.h"

/* Returns how many TO one FROM is: 1000 for "seconds" in "ms", 1 for equal names. 0 if they measure different things.
 * The names are pprof's, in upper or lower case, with or without an s at the end: times, bytes (1024 each), Google's
 * compute units.
 */
double unit_ratio(const char *from, const char *to);

/* VALUE, which is in the unit FROM, in the unit TO, and the name that reports give that unit. TO is "minimum" or "auto"
 * for the largest unit in which the value is at least 1. A unit that nobody knows is kept, with its name; "count",
 * "sample" and "unit" have none. A known FROM with another kind of TO becomes bytes, seconds or compute units. */
struct scaled_value {
    double value;
    const char *unit; /* "", a constant, or TO */
};
struct scaled_value unit_scale(int64_t value, const char *from, const char *to);
/* The same as text, with at most two decimals: "1.20s", "3", "0". */
void unit_append(struct buffer *out, int64_t value, const char *from, const char *to);

#endif
