/* The differences between two profiles, function by function.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_DIFF_H
#define OFFBEAT_ANALYZE_DIFF_H

#include "analyze/grouping.h"

/* The values of a function in one of the two profiles. */
struct diff_side {
    int64_t self, total;
    uint64_t self_samples, total_samples; /* 0 if the profile does not count samples */
};

enum diff_change { DIFF_SAME, DIFF_ADDED, DIFF_REMOVED, DIFF_GROWN, DIFF_SHRUNK, DIFF_CHANGES };

enum diff_noise {
    DIFF_NOISE_UNKNOWN, /* the profiles do not count samples */
    DIFF_WITHIN_NOISE,
    DIFF_EXCEEDS_NOISE,
};

struct diff_function {
    struct name_id name;
    struct string_id file, package; /* names as in struct top_function */
    struct diff_side base, new;
    enum diff_change change; /* ADDED and REMOVED: it is in one profile only; else of DIFFERENCE */
    int64_t difference;      /* difference of self, or of total */
    double probability; /* probability of such a difference without a change (analyze/sampling_noise.h); 1: unknown */
    enum diff_noise noise;
};

struct diff {
    size_t value_index;
    bool by_cumulative;
    struct diff_function *functions; /* functions by falling |difference|; the last ones have no difference */
    size_t count;
    struct diff_function all; /* the samples of each profile: self and total are equal */
    size_t change_counts[DIFF_CHANGES];
    size_t exceeding_count;
    double level, limit; /* a probability below LIMIT exceeds noise */
    struct names names;  /* names of the functions */
};

struct diff_options {
    size_t value_index;
    bool by_cumulative; /* compares TOTAL; default: SELF */
    bool normalizes;    /* scales the new profile to the sum of the base: compares shares, not amounts */
    enum granularity granularity;
    bool no_inlines, has_columns;
    double level; /* the probability that any function exceeds noise if nothing has changed */
};

/* Compares the samples of PROFILE that have the label DIFF_BASE_LABEL "true" with the others. Samples are counted by
 * the value samples/count. Samples without a stack are a function "(no stack)", so that SELF sums up to the samples of
 * each profile. Free DIFF with diff_fini, before PROFILE. */
enum status diff_compute(const struct profile *profile, const struct diff_options *options, struct diff *ret_diff,
                         struct error *error);
void diff_fini(struct diff *diff); /* accepts {0} */

#endif
