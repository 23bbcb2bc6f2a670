/* The stacks of a profile's samples as one tree of functions: each node is a function under one chain of callers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PAGE_PAGE_TREE_H
#define OFFBEAT_PAGE_PAGE_TREE_H

#include "analyze/grouping.h"
#include "base/index_table.h"

#define PAGE_NO_NODE UINT32_MAX

struct page_node {
    uint32_t parent, group;
    uint32_t first_child, next_sibling; /* PAGE_NO_NODE: none */
    uint32_t number;                    /* depth first, from 0; a child's is larger than its parent's */
};

struct page_tree {
    struct page_node *nodes; /* [0] is the root, which has no group */
    size_t count, capacity;
    uint32_t *of_stack; /* node of each stack of the profile, or PAGE_NO_NODE if no sample needs it */
    struct index_table index;
};

/* Takes only the stacks that samples have. STATUS_TOO_LARGE above PAGE_NODES_MAX nodes. */
enum status page_tree_init(struct page_tree *tree, const struct profile *profile, const struct grouping *grouping,
                           struct error *error);
void page_tree_fini(struct page_tree *tree); /* accepts {0} */

/* Returns the node after NODE, depth first, or PAGE_NO_NODE. RET_POPS is the number of levels that it is above a child
 * of NODE. */
uint32_t page_tree_next(const struct page_tree *tree, uint32_t node, uint32_t *ret_pops);

#endif
