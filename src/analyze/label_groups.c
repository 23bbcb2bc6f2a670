/* SPDX-License-Identifier: MIT */
#include "analyze/label_groups.h"

#include "base/array.h"
#include "base/hash.h"

#include <stdlib.h>

static bool group_equal(const void *context, uint32_t index, const void *key)
{
    const struct label_groups *groups = context;
    const struct label_group *a = &groups->items[index], *b = key;
    return a->labels.index == b->labels.index && a->thread.index == b->thread.index;
}

static bool find_group(struct label_groups *groups, struct label_group group, uint32_t *ret_index)
{
    uint64_t hash = hash_mix(group.labels.index, group.thread.index);
    *ret_index = index_table_find(&groups->index, hash, group_equal, groups, &group);
    if (*ret_index != INDEX_NONE) return true;
    *ret_index = (uint32_t)groups->count;
    if (!array_reserve(&groups->items, &groups->capacity, groups->count + 1, sizeof(*groups->items),
                       PROFILE_SAMPLES_MAX) ||
        !index_table_add(&groups->index, hash, *ret_index)) {
        return false;
    }
    groups->items[groups->count++] = group;
    return true;
}

/* Most samples have the labels of the one before. */
bool label_groups_init(struct label_groups *groups, const struct profile *profile)
{
    const struct sample_columns *samples = &profile->samples;
    *groups = (struct label_groups){.group_of_sample = calloc(samples->count + 1, sizeof(*groups->group_of_sample))};
    if (!groups->group_of_sample) return false;
    for (size_t i = 0; i < samples->count; i++) {
        bool is_same = i > 0 && samples->labels[i].index == samples->labels[i - 1].index &&
                       samples->thread[i].index == samples->thread[i - 1].index;
        struct label_group group = {samples->labels[i], samples->thread[i]};
        if (is_same)
            groups->group_of_sample[i] = groups->group_of_sample[i - 1];
        else if (!find_group(groups, group, &groups->group_of_sample[i]))
            return false;
    }
    return true;
}

void label_groups_fini(struct label_groups *groups)
{
    free(groups->items);
    free(groups->group_of_sample);
    index_table_fini(&groups->index);
    *groups = (struct label_groups){0};
}
