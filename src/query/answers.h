/* The steps that answers share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_ANSWERS_H
#define OFFBEAT_QUERY_ANSWERS_H

#include "query/selection.h"

/* Initialises PROFILE, merges the selection of the parameters into it, filters it, gives its functions names, and sets
 * RET_COLUMN to the column of the chosen kind. PROFILE is to be finished in every case. */
enum status query_prepare(struct query *query, struct profile *profile, size_t *ret_column, struct error *error);
/* Applies the filters of the parameters: focus=EXPRESSION and others. */
enum status query_filter(const struct query *query, struct profile *profile, struct error *error);
/* Gives functions the names that comparisons know them by: answers are sums of processes and releases, and the page
 * compares two. */
void query_name_functions(struct profile *profile);

#endif
