/* A function's total grows by a stack's sum where the function appears for the first time on the way from the root,
 * which counts recursion once. The cost is that of the distinct stacks, not of the samples times their depth.
 *
 * A frame costs three loads: its location, the location's group, the group's state, a byte. Only a group that is not
 * yet on the way is added to, and remembered; to leave a run of stacks is to forget the groups that it brought.
 * SPDX-License-Identifier: MIT */
#include "analyze/group_sums.h"

#include "analyze/stated_sums.h"

#include <stdlib.h>

enum { FRAMES_AT_ONCE = 64 };
enum { UNUSED, USED, ON_THE_WAY };

/* In WAY, in front of the groups of a run. */
#define RUN_BEGIN UINT32_MAX

bool group_sums_init(struct group_sums *sums, const struct grouping *grouping, const struct stack_tree *tree)
{
    size_t count = grouping->count + 1;
    *sums = (struct group_sums){.profile = tree->profile, .grouping = grouping};
    sums->self = calloc(count, sizeof(*sums->self));
    sums->total = calloc(count, sizeof(*sums->total));
    sums->used = malloc(count * sizeof(*sums->used));
    sums->state = calloc(count, sizeof(*sums->state));
    /* Each group and each run is there once, and one more that does not count. */
    sums->way = malloc((count + tree->run_count + 1) * sizeof(*sums->way));
    return sums->self && sums->total && sums->used && sums->state && sums->way;
}

void group_sums_fini(struct group_sums *sums)
{
    free(sums->self);
    free(sums->total);
    free(sums->used);
    free(sums->state);
    free(sums->way);
    *sums = (struct group_sums){0};
}

/* Enters a group without branches: whether a group is on the way already cannot be predicted. */
static inline void enter_group(struct group_sums *sums, uint32_t group)
{
    uint8_t state = sums->state[group];
    sums->used[sums->used_count] = group;
    sums->used_count += state == UNUSED;
    sums->state[group] = ON_THE_WAY;
    sums->way[sums->way_count] = group;
    sums->way_count += state != ON_THE_WAY;
}

static inline void enter_several(struct group_sums *sums, uint32_t list)
{
    const uint32_t *groups = &sums->grouping->lists[list & ~GROUPING_SEVERAL];
    for (uint32_t i = 1; i <= groups[0]; i++) enter_group(sums, groups[i]);
}

/* Puts the groups of COUNT frames on the way. All are loaded first, so that no branch waits for a load. */
static void enter_frames(struct group_sums *sums, const uint32_t *locations, size_t count)
{
    uint32_t groups[FRAMES_AT_ONCE];
    for (size_t i = 0; i < count; i++) groups[i] = sums->grouping->at[locations[i]];
    for (size_t i = 0; i < count; i++) {
        if (groups[i] & GROUPING_SEVERAL) {
            enter_several(sums, groups[i]);
        } else {
            enter_group(sums, groups[i]);
        }
    }
}

static void enter(struct group_sums *sums, const struct stack_visit *visit)
{
    const uint32_t *locations = profile_run_locations(sums->profile, visit->first);
    size_t count = (size_t)visit->last - visit->first + 1;
    sums->way[sums->way_count++] = RUN_BEGIN;
    size_t first_new = sums->way_count;
    for (size_t i = 0; i < count; i += FRAMES_AT_ONCE)
        enter_frames(sums, locations + i, count - i < FRAMES_AT_ONCE ? count - i : FRAMES_AT_ONCE);
    for (size_t i = first_new; i < sums->way_count; i++) {
        int64_t *total = &sums->total[sums->way[i]];
        *total = profile_add_values(*total, visit->sum);
    }
    if (visit->self == 0) return;
    uint32_t frame_count, innermost = grouping_frames(sums->grouping, locations[count - 1], &frame_count)[0];
    sums->self[innermost] = profile_add_values(sums->self[innermost], visit->self);
}

static void leave(struct group_sums *sums)
{
    uint32_t group;
    while ((group = sums->way[--sums->way_count]) != RUN_BEGIN) sums->state[group] = USED;
}

void group_sums_walk(struct group_sums *sums, struct stack_tree *tree)
{
    struct stack_visit visit;
    while (stack_tree_next(tree, &visit)) {
        if (visit.is_entry) {
            enter(sums, &visit);
        } else {
            leave(sums);
        }
    }
}

void group_sums_clear(struct group_sums *sums)
{
    for (size_t i = 0; i < sums->used_count; i++) {
        uint32_t group = sums->used[i];
        sums->self[group] = sums->total[group] = 0;
        sums->state[group] = UNUSED;
    }
    sums->used_count = 0;
}

bool group_sums_take_stated(struct group_sums *sums, size_t column, const bool *is_wanted)
{
    const struct stated_query query = {.profile = sums->profile,
                                       .grouping = sums->grouping,
                                       .row_count = sums->grouping->count,
                                       .column = column,
                                       .is_wanted = is_wanted};
    group_sums_clear(sums);
    if (!stated_sums_compute(&query, sums->self, sums->total)) return false;
    for (uint32_t i = 0; i < sums->grouping->count; i++) {
        if (sums->self[i] == 0 && sums->total[i] == 0) continue;
        sums->used[sums->used_count++] = i;
        sums->state[i] = USED;
    }
    return true;
}
