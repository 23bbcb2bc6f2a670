/* The value of the samples that a report is about, and its sum over all of them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_TOTALS_H
#define OFFBEAT_ANALYZE_TOTALS_H

#include "profile/profile.h"

/* The label of samples that come from the base of a comparison (pprof's key). */
#define DIFF_BASE_LABEL "pprof::base"

struct value_choice {
    size_t index; /* index below the profile's value_type_count */
    bool is_mean; /* each sum is divided by the sum of the first value */
};

/* Finds the label sets of the base of a comparison: `pprof -diff_base` labels its samples, whose values it has negated,
 * so that they do not cancel the others. NULL if no set is. False without memory. */
bool find_base_sets(const struct profile *profile, bool **ret_is_base);

/* Returns the sum of the values of all samples, each without its sign; where samples have the label DIFF_BASE_LABEL
 * "true", only of those. IS_BASE is the result of find_base_sets. */
int64_t total_of_samples(const struct profile *profile, struct value_choice choice, const bool *is_base);

/* Returns SUM divided by the sum of divisors, which is 0 where there is no mean. */
static inline int64_t mean_of(int64_t sum, int64_t divisor)
{
    bool would_overflow = sum == INT64_MIN && divisor == -1;
    return divisor == 0 || would_overflow ? sum : sum / divisor;
}

static inline int64_t magnitude_of(int64_t value)
{
    if (value == INT64_MIN) return INT64_MAX;
    return value < 0 ? -value : value;
}

#endif
