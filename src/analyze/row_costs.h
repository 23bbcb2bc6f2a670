/* The cost of each row of a report. Rows are coarser than groups: several groups can belong to one row.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_ROW_COSTS_H
#define OFFBEAT_ANALYZE_ROW_COSTS_H

#include "analyze/grouping.h"
#include "analyze/totals.h"

/* FLAT is the sum of the stacks whose innermost frame is in the row, CUM of those with any frame in it: a stack counts
 * once, however often the row is in it. */
struct row_cost {
    int64_t flat, cum;
    bool is_used; /* a sample with a value has a frame in the row */
};

/* ROW_OF_GROUP has GROUPING's count entries below ROW_COUNT; groups of row 0 are not counted. RET_COSTS has ROW_COUNT
 * entries. With CHOICE.is_mean, costs are means. False without memory. */
bool row_costs_compute(const struct profile *profile, const struct grouping *grouping, const uint32_t *row_of_group,
                       size_t row_count, struct value_choice choice, struct row_cost *ret_costs);

#endif
