/* Where a profile's samples are in time. A sample whose first value (samples/count) is n stands for n ticks from its
 * time on, evenly spaced.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_TIME_LINE_H
#define OFFBEAT_PROFILE_TIME_LINE_H

#include "profile/profile.h"

/* Nanoseconds between ticks: the profile's period if that is a time, else what its values say (time by count), else
 * 10 ms. Never 0. */
uint64_t time_line_period_ns(const struct profile *profile);

/* Whether the second value, which lays samples out in time, is CPU time: "cpu", and perf's "task-clock" and
 * "cpu-clock", which may have modifiers (":u"). */
bool profile_counts_cpu_time(const struct profile *profile);

/* How many ticks sample SAMPLE stands for: 1 where nothing counts them, or where it has a time and no period says when
 * the others were. */
uint64_t time_line_ticks(const struct profile *profile, size_t sample);

/* How far apart the ticks of sample SAMPLE are: the n-th part of its time, where its second value says that (which is
 * longer than the period where ticks were missed), else PERIOD_NS, which must not be 0. */
uint64_t time_line_spacing_ns(const struct profile *profile, size_t sample, uint64_t period_ns);

struct time_line_part {
    uint64_t first_ns, last_ns; /* of its ticks */
    uint64_t tick_count;        /* 0: nothing is there */
    uint64_t next_ns;           /* the first tick after it; UINT64_MAX = none */
};

/* What is at FROM_NS or later and before TO_NS. One pass over the samples. */
struct time_line_part time_line_part(const struct profile *profile, uint64_t from_ns, uint64_t to_ns);

/* Leaves what is at FROM_NS or later and before TO_NS: the other samples go, and ticks of samples that are on a
 * border. Every value of such a sample goes in proportion. */
void time_line_keep(struct profile *profile, uint64_t from_ns, uint64_t to_ns);

/* Gives times to a profile without: each thread's samples one after the other, in their order, from the profile's own
 * start or else START_NS. Sets the period that the ticks were laid out with. */
void time_line_lay_out(struct profile *profile, uint64_t start_ns);

#endif
