/* SPDX-License-Identifier: MIT */
#include "store/running_values.h"

#include "base/array.h"
#include "store/stack_dictionary.h"

#include <stdlib.h>
#include <string.h>

#define RESTART_SHARE 0.01 /* part of the values; estimated ones may fall a little in a running process */

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a > (uint64_t)INT64_MAX - b ? (uint64_t)INT64_MAX : a + b;
}

bool running_values_note(struct running_values *running, const struct running_entry *entry)
{
    size_t count = running->entry_count;
    struct running_entry *before = count ? &running->entries[count - 1] : NULL;
    if (before && before->node == entry->node) {
        for (size_t i = 0; i < running->count; i++) {
            before->first[i] = sum_of(before->first[i], entry->first[i]);
            before->increase[i] = sum_of(before->increase[i], entry->increase[i]);
            before->last[i] = sum_of(before->last[i], entry->last[i]);
        }
        return true;
    }
    if (!array_reserve(&running->entries, &running->entry_capacity, count + 1, sizeof(*running->entries),
                       DICTIONARY_NODES_MAX))
        return false;
    running->entries[running->entry_count++] = *entry;
    return true;
}

/* Makes room for NODE_COUNT nodes at least. */
static bool make_room(struct running_values *running, size_t node_count)
{
    uint64_t **const arrays[] = {&running->first, &running->last};
    if (node_count <= running->node_count) return true;
    node_count += node_count / 2 + 64;
    if (!array_reserve(&running->used, &running->used_capacity, node_count, sizeof(*running->used), SIZE_MAX))
        return false;
    for (size_t i = 0; i < 2; i++) {
        uint64_t *grown = realloc(*arrays[i], node_count * running->count * sizeof(*grown));
        if (!grown) return false;
        (void)memset(grown + running->node_count * running->count, 0,
                     (node_count - running->node_count) * running->count * sizeof(*grown));
        *arrays[i] = grown;
    }
    running->node_count = node_count;
    return true;
}

/* Returns whether the entries show that the process began anew after the last values. */
static bool is_restart(const struct running_values *running)
{
    for (size_t i = 0; i < running->count; i++) {
        uint64_t missing = running->last_sums[i]; /* last values of stacks that the entries do not have */
        double fallen = 0;
        for (size_t k = 0; k < running->entry_count; k++) {
            uint64_t last = running->last[running->entries[k].node * running->count + i];
            missing -= last;
            if (running->entries[k].first[i] < last) fallen += (double)(last - running->entries[k].first[i]);
        }
        if (fallen + (double)missing > (double)running->last_sums[i] * RESTART_SHARE) return true;
    }
    return false;
}

static void add_increases(const struct running_values *running, bool has_restarted, uint64_t *sums, size_t value_count)
{
    for (size_t k = 0; k < running->entry_count; k++) {
        const struct running_entry *entry = &running->entries[k];
        for (size_t i = 0; i < running->count; i++) {
            uint64_t last = has_restarted ? 0 : running->last[entry->node * running->count + i];
            uint64_t increase = entry->first[i] > last ? entry->first[i] - last : 0,
                     *sum = &sums[entry->node * value_count + i];
            *sum = sum_of(*sum, running->has_any ? sum_of(increase, entry->increase[i]) : entry->increase[i]);
        }
    }
}

static void keep_last(struct running_values *running)
{
    for (size_t k = 0; k < running->used_count; k++)
        (void)memset(running->last + running->used[k] * running->count, 0, running->count * sizeof(*running->last));
    (void)memset(running->last_sums, 0, sizeof(running->last_sums));
    running->used_count = 0;
    for (size_t k = 0; k < running->entry_count; k++) {
        const struct running_entry *entry = &running->entries[k];
        size_t place = entry->node * running->count;
        running->used[running->used_count++] = entry->node;
        for (size_t i = 0; i < running->count; i++) {
            running->last[place + i] = entry->last[i];
            running->last_sums[i] += entry->last[i];
            if (!running->has_any) running->first[place + i] = entry->first[i];
        }
    }
}

bool running_values_add(struct running_values *running, uint64_t *sums, size_t value_count, uint64_t restart_count)
{
    size_t nodes = running->entry_count ? (size_t)running->entries[running->entry_count - 1].node + 1 : 1;
    if (!make_room(running, nodes)) return false;
    bool has_restarted = running->has_any && is_restart(running);
    add_increases(running, has_restarted, sums, value_count);
    keep_last(running);
    running->restart_count = sum_of(running->restart_count, restart_count + has_restarted);
    running->has_any = true;
    running->entry_count = 0;
    return true;
}

void running_values_fini(struct running_values *running)
{
    free(running->first);
    free(running->last);
    free(running->used);
    free(running->entries);
    *running = (struct running_values){0};
}
