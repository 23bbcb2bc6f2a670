/* Costs of the rows of a report, and of the calls between them, as the file states them (profile/stated_costs.h).
 *
 * A row that is a function has the inclusive costs that are stated. A row that is a part of functions, a source line,
 * has its own costs and those of the calls from there, and at most what the function has. A row of several functions
 * has their sum without the calls between them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_STATED_SUMS_H
#define OFFBEAT_ANALYZE_STATED_SUMS_H

#include "analyze/grouping.h"
#include "profile/stated_costs.h"

struct stated_query {
    const struct profile *profile; /* profile with stated costs */
    const struct grouping *grouping;
    const uint32_t *row_of_group; /* NULL: each group is a row */
    size_t row_count;
    size_t column;         /* index of the value type */
    const bool *is_wanted; /* marks of the stated functions; NULL: all */
};

/* Sets RET_SELF and RET_TOTAL, of row_count entries each. False without memory. */
bool stated_sums_compute(const struct stated_query *query, int64_t *ret_self, int64_t *ret_total);

struct stated_ends {
    uint32_t from, to; /* rows */
};
/* Returns the rows that CALL leads from and to. */
struct stated_ends stated_call_ends(const struct stated_query *query, const struct stated_call *call);

#endif
