/* Values of a profile in other sizes, and of two profiles in the same (requirements PPF-2, PPF-3).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PROFILE_SCALE_H
#define OFFBEAT_PROFILE_PROFILE_SCALE_H

#include "profile/profile.h"

/* Multiplies each value by the ratio of its type (value_type_count of them), rounded half away from zero, and takes the
 * samples away that are zero in all values then. What does not fit becomes the largest that does. */
void profile_scale(struct profile *profile, const double *ratios);

/* Scales values and the period that are times of another unit to nanoseconds, for formats that know only those. False
 * if a value would not fit; then nothing is changed. */
bool profile_scale_times_to_nanoseconds(struct profile *profile);

/* Sets the period of a profile of a clock: it has two types, and the second is in nanoseconds with one value in all
 * samples, which is the time between them. */
void profile_give_period(struct profile *profile);

/* Scales each type so that its sum is that of the same column of BASE, which must have the same number of them; a sum
 * of zero stays. STATUS_UNSUPPORTED if it has another number. */
enum status profile_normalize(struct profile *profile, const struct profile *base, struct error *error);

/* Sums equal samples (profile_aggregate) and removes samples whose values are all zero. The tables keep entries without
 * a reference; the encoders do not write those. */
enum status profile_compact(struct profile *profile, struct error *error);

/* Makes INTO and FROM fit for profile_merge where their value types differ: both keep the types that both have, by
 * name, in INTO's order, and each of them, and the period, in the finer of the two units. INTO may have none yet.
 * STATUS_UNSUPPORTED, with both as they were, if no type is in both or the units of one measure different things. */
enum status profile_make_compatible(struct profile *into, struct profile *from, struct error *error);

#endif
