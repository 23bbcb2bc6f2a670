/* The times of samples. A sample whose first value (samples/count) is n represents n ticks, evenly spaced from its time
 * on.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SAMPLE_TIMES_H
#define OFFBEAT_PROFILE_SAMPLE_TIMES_H

#include "profile/profile.h"

enum { SAMPLE_PERIOD_NS_DEFAULT = 10000000 };

/* Nanoseconds between ticks: the profile's period if that is a time, else the ratio of its values (time by count), else
 * 10 ms. Never 0. */
uint64_t sample_times_period_ns(const struct profile *profile);

/* Returns the column of the default value if that is a time in nanoseconds, else the last one that is and that the
 * samples which the default value counts have, too; -1 if there is none. */
int profile_time_column(const struct profile *profile);

/* Whether the second value, which determines the times of ticks, is CPU time: "cpu", and perf's "task-clock" and
 * "cpu-clock", which may have modifiers (":u"). */
bool profile_counts_cpu_time(const struct profile *profile);

/* The number of ticks that sample SAMPLE represents. It is 1 if no value counts them, or if the sample has a time but
 * no period gives the times of the other ticks. */
uint64_t sample_ticks(const struct profile *profile, size_t sample);

/* The distance between the ticks of sample SAMPLE: the n-th part of its time if the second value is a time (longer than
 * the period where ticks were missed), else PERIOD_NS, which must not be 0. */
uint64_t sample_times_spacing_ns(const struct profile *profile, size_t sample, uint64_t period_ns);

struct sample_times_part {
    uint64_t first_ns, last_ns; /* times of its first and last tick */
    uint64_t tick_count;        /* 0: no sample */
    uint64_t next_ns;           /* the first tick after it; UINT64_MAX = none */
};

/* The ticks at FROM_NS or later and before TO_NS. One pass over the samples. */
struct sample_times_part sample_times_part(const struct profile *profile, uint64_t from_ns, uint64_t to_ns);

/* Keeps the ticks at FROM_NS or later and before TO_NS. Samples without such ticks are removed. A sample that crosses a
 * border loses the ticks outside, and every value in proportion. */
void sample_times_keep(struct profile *profile, uint64_t from_ns, uint64_t to_ns);

/* Assigns times to a profile that has none: the samples of each thread follow each other in their order, from the
 * profile's start or else START_NS. Sets the period that the ticks have. */
void sample_times_assign(struct profile *profile, uint64_t start_ns);

#endif
