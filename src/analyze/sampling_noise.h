/* Whether two numbers of samples differ by more than chance explains (doc/decisions/reports.md).
 *
 * Samples are counts. If a function takes the same time in two recordings, its numbers of samples A and B are Poisson
 * distributed, and B of the A + B samples is binomial (Przyborowski and Wilenski, Biometrika 31, 1940). The test is
 * exact and holds for few samples too.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_SAMPLING_NOISE_H
#define OFFBEAT_ANALYZE_SAMPLING_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of samples of the base and of the new recording. */
struct sample_counts {
    uint64_t base, new;
};

/* The probability of a difference at least as large as that of COUNTS, in either direction, if nothing has changed.
 * SHARE, between 0 and 1, is the part of the samples that is expected in the new recording: 0.5 for recordings of one
 * rate. Twice the smaller tail, at most 1. */
double noise_probability(struct sample_counts counts, double share);

/* Returns the limit for the probability of each of COUNT differences so that, if nothing has changed, the probability
 * that any of them is below its limit is at most LEVEL. It is LEVEL / K for the smallest K such that at most K of the
 * differences have enough samples to be able to fall below it (Tarone, Biometrics 46, 1990). Without memory: LEVEL /
 * COUNT. */
double noise_limit(const struct sample_counts *counts, size_t count, double share, double level);

#endif
