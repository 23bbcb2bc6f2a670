/* One walk over the tree of stacks; a second one sums the divisors of means.  SPDX-License-Identifier: MIT */
#include "analyze/row_costs.h"

#include "analyze/stack_tree.h"
#include "analyze/stated_sums.h"

#include <stdlib.h>

struct walk {
    const struct profile *profile;
    const struct grouping *grouping;
    const uint32_t *row_of_group;
    struct stack_tree tree;
    uint32_t *active; /* number of each row's frames between the root and the place of the walk */
    struct row_cost *costs;
};

static void enter(struct walk *walk, const struct stack_visit *visit)
{
    uint32_t count;
    const uint32_t *groups = NULL;
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        groups = grouping_frames(walk->grouping, profile_stack_location(walk->profile, stack), &count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t row = walk->row_of_group[groups[i]];
            walk->active[row]++;
            walk->costs[row].is_used = true;
        }
    }
    if (!groups) return;
    struct row_cost *innermost = &walk->costs[walk->row_of_group[groups[0]]];
    innermost->flat = profile_add_values(innermost->flat, visit->self);
}

static void leave(struct walk *walk, const struct stack_visit *visit)
{
    for (uint32_t stack = visit->first; stack <= visit->last; stack++) {
        uint32_t count;
        const uint32_t *groups = grouping_frames(walk->grouping, profile_stack_location(walk->profile, stack), &count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t row = walk->row_of_group[groups[i]];
            if (--walk->active[row] == 0) walk->costs[row].cum = profile_add_values(walk->costs[row].cum, visit->sum);
        }
    }
}

/* Sets the costs to the stated ones of column SUMMED. */
static bool take_stated(struct walk *walk, size_t row_count, size_t summed)
{
    const struct stated_query query = {.profile = walk->profile,
                                       .grouping = walk->grouping,
                                       .row_of_group = walk->row_of_group,
                                       .row_count = row_count,
                                       .column = summed};
    int64_t *self = calloc(row_count, sizeof(*self)), *total = calloc(row_count, sizeof(*total));
    bool is_done = self && total && stated_sums_compute(&query, self, total);
    for (size_t i = 0; is_done && i < row_count; i++)
        walk->costs[i] = (struct row_cost){.flat = self[i], .cum = total[i], .is_used = self[i] != 0 || total[i] != 0};
    free(self);
    free(total);
    return is_done;
}

/* Adds up column SUMMED of the samples that have a value in column CHOICE. */
static bool sum(struct walk *walk, struct value_choice choice, size_t row_count, size_t summed)
{
    const struct profile *profile = walk->profile;
    if (profile->stated) return take_stated(walk, row_count, summed);
    struct stack_visit visit;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        bool is_empty = values[choice.index] == 0 && (!choice.is_mean || values[0] == 0);
        if (!is_empty) stack_tree_add(&walk->tree, profile->samples.stack[i], values[summed]);
    }
    while (stack_tree_next(&walk->tree, &visit)) {
        if (visit.is_entry)
            enter(walk, &visit);
        else
            leave(walk, &visit);
    }
    return true;
}

static bool divide(struct walk *walk, struct value_choice choice, size_t row_count)
{
    struct row_cost *sums = walk->costs, *divisors = calloc(row_count, sizeof(*divisors));
    if (!divisors) return false;
    walk->costs = divisors;
    bool is_done = sum(walk, choice, row_count, 0);
    for (size_t i = 0; is_done && i < row_count; i++) {
        sums[i].flat = mean_of(sums[i].flat, divisors[i].flat);
        sums[i].cum = mean_of(sums[i].cum, divisors[i].cum);
    }
    walk->costs = sums;
    free(divisors);
    return is_done;
}

bool row_costs_compute(const struct profile *profile, const struct grouping *grouping, const uint32_t *row_of_group,
                       size_t row_count, struct value_choice choice, struct row_cost *ret_costs)
{
    struct walk walk = {.profile = profile, .grouping = grouping, .row_of_group = row_of_group, .costs = ret_costs};
    memset(ret_costs, 0, row_count * sizeof(*ret_costs));
    walk.active = calloc(row_count, sizeof(*walk.active));
    bool is_done = walk.active && stack_tree_init(&walk.tree, profile);
    if (is_done) is_done = sum(&walk, choice, row_count, choice.index);
    if (is_done && choice.is_mean) is_done = divide(&walk, choice, row_count);
    stack_tree_fini(&walk.tree);
    free(walk.active);
    return is_done;
}
