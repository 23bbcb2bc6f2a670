/* What units measure, and in what size (requirements PPF-3, PPF-8).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_UNITS_H
#define OFFBEAT_PROFILE_UNITS_H

#include "profile/profile.h"

/* How many TO one FROM is: 1000 for "seconds" in "ms", 1 for equal names. 0 if they do not measure the same. Names are
 * those of pprof, in either case, with or without an s at the end: of times, of bytes (1024 each), of Google's compute
 * units. */
double unit_ratio(const char *from, const char *to);

/* The unit of the numbers that samples are labelled with under KEY: the first that any of them has; else bytes for
 * "alignment" and "request", else KEY itself. Valid until profile_fini. */
const char *profile_label_unit(const struct profile *profile, struct string_id key);

/* A unit that labels of KEY have although the first one has another. */
struct other_unit {
    struct string_id key, first, other;
};

/* Lists up to MAX of them, each once, and returns how many; 0 also without memory. A report shows all numbers of a key
 * in the first unit, so the others are wrong in it. */
size_t profile_other_units(const struct profile *profile, struct other_unit *ret_units, size_t max);

#endif
