/* The part of a profile that a span ran in.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TIME_CUT_H
#define OFFBEAT_ANALYZE_TIME_CUT_H

#include "profile/profile.h"

/* A range of times as samples have them. */
struct time_cut {
    uint64_t start_ns, end_ns;
    bool has_thread; /* samples of THREAD only */
    struct thread_id thread;
};

/* Keeps what PROFILE, which must have times, shows of CUT. A sample lasts until the next one of its thread; the last
 * one as long as its longest value in nanoseconds. Of a sample that is partly within the range, the same part of its
 * values remains, but for values of the unit "count", and it begins within the range. Sorts the samples by time. */
enum status time_cut_apply(struct profile *profile, const struct time_cut *cut, struct error *error);

/* Returns the time that --from counts from: the start of the profile, or the first sample if the start is not known. */
uint64_t times_origin_ns(const struct profile *profile);

#endif
