/* The tree of a profile's stacks, walked depth first for some of its samples at a time.
 *
 * Its nodes are runs: stacks that each are the parent of the next, as long as they have no samples and no other child.
 * All stacks of a run have the same sum of values below them, and there are far fewer runs than stacks. The cost of a
 * walk grows with the distinct stacks and callers of its samples, not with the number of samples or their depth.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_STACK_TREE_H
#define OFFBEAT_ANALYZE_STACK_TREE_H

#include "base/ranked_bits.h"
#include "profile/profile.h"

struct stack_run {
    uint32_t first, last; /* stacks with consecutive indices */
    uint32_t parent;      /* run */
};

/* A run as part of a walk. */
struct stack_node {
    int64_t self, sum; /* SUM is complete when the walk begins */
    uint32_t walk;     /* the last one that it was part of */
    uint32_t end;      /* number of runs below it at first, then the end of the next child in ORDER */
};

struct stack_tree {
    const struct profile *profile;
    struct ranked_bits ends; /* the last stack of each run: its rank is the run's number */
    struct stack_run *runs;  /* [0] is the empty stack; a parent is before its children */
    uint32_t run_count;
    struct stack_node *nodes; /* nodes by run */
    uint32_t *included;       /* the runs of the next walk; a parent is before its children */
    uint32_t *order;          /* the same runs, depth first */
    uint32_t included_count;
    uint32_t entered_count; /* number of runs in ORDER that the walk has entered; 0: the walk has not begun */
    uint32_t walk;          /* number of the walk, from 1 on */
    uint32_t at;            /* the run that the walk is in */
};

/* One step of the walk: into a run, or out of it again. */
struct stack_visit {
    uint32_t first, last; /* stacks, root first */
    bool is_entry;
    int64_t self; /* value of the samples with just the last stack */
    int64_t sum;  /* value of these, and of all stacks below it */
};

/* Builds the tree of a profile whose stacks and samples stay as they are. False without memory. */
bool stack_tree_init(struct stack_tree *tree, const struct profile *profile);
void stack_tree_fini(struct stack_tree *tree);

/* Adds VALUE to STACK, which some sample of the profile has, before a walk; STACK becomes part of it. */
void stack_tree_add(struct stack_tree *tree, struct stack_id stack, int64_t value);

/* Takes the next step; the empty stack is not visited. False at the end of the walk; the tree is then ready for the
 * next one. */
bool stack_tree_next(struct stack_tree *tree, struct stack_visit *ret_visit);

#endif
