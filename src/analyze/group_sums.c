/* A function's total grows by a stack's sum where the function appears for the first time on the way from the root,
 * which counts recursion once. The cost is that of the distinct stacks, not of the samples times their depth.
 * SPDX-License-Identifier: MIT */
#include "analyze/group_sums.h"

#include <stdlib.h>

bool group_sums_init(struct group_sums *sums, const struct profile *profile, const struct grouping *grouping)
{
    *sums = (struct group_sums){.profile = profile, .grouping = grouping};
    sums->items = calloc(grouping->count + 1, sizeof(*sums->items));
    sums->used = calloc(grouping->count + 1, sizeof(*sums->used));
    return sums->items && sums->used;
}

void group_sums_fini(struct group_sums *sums)
{
    free(sums->items);
    free(sums->used);
    *sums = (struct group_sums){0};
}

static inline void enter_frame(struct group_sums *sums, uint32_t index)
{
    struct group_sum *sum = &sums->items[index];
    if (!sum->is_used) {
        sum->is_used = true;
        sum->self = sum->total = 0;
        sums->used[sums->used_count++] = index;
    }
    sum->active++;
}

static void enter(struct group_sums *sums, const struct stack_visit *visit)
{
    const uint32_t *locations = sums->profile->stacks.items;
    uint32_t count;
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        const uint32_t *groups = grouping_frames(sums->grouping, locations[stack], &count);
        for (uint32_t i = 0; i < count; i++) enter_frame(sums, groups[i]);
    }
    struct group_sum *innermost = &sums->items[grouping_frames(sums->grouping, locations[visit->last], &count)[0]];
    innermost->self = profile_add_values(innermost->self, visit->self);
}

static void leave(struct group_sums *sums, const struct stack_visit *visit)
{
    const uint32_t *locations = sums->profile->stacks.items;
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        uint32_t count;
        const uint32_t *groups = grouping_frames(sums->grouping, locations[stack], &count);
        for (uint32_t i = 0; i < count; i++) {
            struct group_sum *sum = &sums->items[groups[i]];
            if (--sum->active == 0) sum->total = profile_add_values(sum->total, visit->sum);
        }
    }
}

void group_sums_walk(struct group_sums *sums, struct stack_tree *tree)
{
    struct stack_visit visit;
    while (stack_tree_next(tree, &visit)) {
        if (visit.is_entry) {
            enter(sums, &visit);
        } else {
            leave(sums, &visit);
        }
    }
}

void group_sums_clear(struct group_sums *sums)
{
    for (size_t i = 0; i < sums->used_count; i++) sums->items[sums->used[i]].is_used = false;
    sums->used_count = 0;
}
