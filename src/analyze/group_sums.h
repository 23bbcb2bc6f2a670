/* Self and total of each group of frames, in one walk over the tree of stacks.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GROUP_SUMS_H
#define OFFBEAT_ANALYZE_GROUP_SUMS_H

#include "analyze/grouping.h"
#include "analyze/stack_tree.h"

/* The arrays are apart because the walk reads STATE and adds to TOTAL for each frame: together they fit into a cache.
 */
struct group_sums {
    const struct profile *profile;
    const struct grouping *grouping;
    int64_t *self, *total; /* sums by group; a recursive function counts once a stack in TOTAL */
    uint32_t *used;        /* the groups in the stacks of the last walk */
    size_t used_count;
    uint8_t *state; /* private, by group */
    uint32_t *way;  /* private: the groups between the root and the place of the walk */
    size_t way_count;
};

/* Prepares walks over TREE. False without memory. */
bool group_sums_init(struct group_sums *sums, const struct grouping *grouping, const struct stack_tree *tree);
void group_sums_fini(struct group_sums *sums); /* accepts {0} */

/* Sums what was added to TREE. Only the groups in USED have sums. Before the next walk the caller calls
 * group_sums_clear. */
void group_sums_walk(struct group_sums *sums, struct stack_tree *tree);
void group_sums_clear(struct group_sums *sums);

/* Replaces the sums of the last walk by those of column COLUMN that the profile states (profile/stated_costs.h).
 * IS_WANTED is by stated function; NULL: all. False without memory. */
bool group_sums_take_stated(struct group_sums *sums, size_t column, const bool *is_wanted);

#endif
