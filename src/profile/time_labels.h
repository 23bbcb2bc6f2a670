/* The times of samples as labels, for a format that has labels and no times.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_TIME_LABELS_H
#define OFFBEAT_PROFILE_TIME_LABELS_H

#include "profile/profile.h"

/* A number of nanoseconds; UTC since 1970 where the profile knows its start. */
#define TIME_LABEL "timestamp_ns"
/* libdatadog's: when a sample ended. Read, not written. */
#define TIME_END_LABEL "end_timestamp_ns"

/* Gives each sample its time as the last label. Does nothing to a profile without times. Failure is the profile's. */
void time_labels_put(struct profile *profile);

/* Takes the labels off again, if every sample has one, and gives the samples these times, in the order of which they
 * then are. A profile that has times keeps its labels. Failure is the profile's. */
void time_labels_take(struct profile *profile);

#endif
