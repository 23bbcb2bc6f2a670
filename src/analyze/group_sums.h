/* What each group of frames has for itself and in total, in one walk over the tree of stacks.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_GROUP_SUMS_H
#define OFFBEAT_ANALYZE_GROUP_SUMS_H

#include "analyze/grouping.h"
#include "analyze/stack_tree.h"

/* As small as possible: the walk reads and writes it for every frame. */
struct group_sum {
    int64_t self, total; /* TOTAL counts a recursive function once a stack */
    uint32_t active;     /* frames of the group between the root and the place of the walk */
    bool is_used;        /* the group is in USED */
};

struct group_sums {
    const struct profile *profile;
    const struct grouping *grouping;
    struct group_sum *items; /* by group */
    uint32_t *used;          /* the groups in the stacks of the last walk */
    size_t used_count;
};

/* False without memory. */
bool group_sums_init(struct group_sums *sums, const struct profile *profile, const struct grouping *grouping);
void group_sums_fini(struct group_sums *sums); /* accepts {0} */

/* Sums what was added to TREE. Only the groups in USED have sums; the caller sets IS_USED of each to false before the
 * next walk (group_sums_clear). */
void group_sums_walk(struct group_sums *sums, struct stack_tree *tree);
void group_sums_clear(struct group_sums *sums);

#endif
