/* SPDX-License-Identifier: MIT */
#include "profile/drop_labels.h"

#include "base/array.h"
#include "profile/profile_private.h"
#include "profile/thread_labels.h"

#include <stdlib.h>

static bool is_listed(const char *keys, struct slice key)
{
    while (*keys) {
        size_t size = strcspn(keys, ",");
        if (slice_equal(slice_of(keys, size), key)) return true;
        keys += size + (keys[size] == ',');
    }
    return false;
}

static bool drops_threads(const char *keys)
{
    for (size_t i = 0; i < THREAD_LABEL_KEYS && thread_id_keys[i]; i++) {
        if (is_listed(keys, slice_of_text(thread_id_keys[i]))) return true;
    }
    return false;
}

/* The set without the labels of KEYS. The table moves when it grows, hence the copy. */
static struct label_set_id without(struct profile *profile, struct label_set_id id, const char *keys)
{
    struct label_set set = profile->label_sets.items[id.index];
    struct label *kept = calloc((size_t)set.count + 1, sizeof(*kept));
    uint32_t count = 0;
    if (!kept) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return id;
    }
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        if (!is_listed(keys, profile_slice(profile, label->key))) kept[count++] = *label;
    }
    if (count < set.count) id = count > 0 ? profile_add_labels(profile, kept, count) : (struct label_set_id){0};
    free(kept);
    return id;
}

void profile_drop_labels(struct profile *profile, const char *keys)
{
    size_t set_count = profile->label_sets.count;
    bool without_threads = drops_threads(keys);
    struct label_set_id *sets = calloc(set_count + 1, sizeof(*sets));
    if (!sets) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return;
    }
    for (uint32_t i = 1; i < set_count; i++) sets[i] = without(profile, (struct label_set_id){i}, keys);
    for (size_t i = 0; i < profile->samples.count; i++) {
        profile->samples.labels[i] = sets[profile->samples.labels[i].index];
        if (without_threads) profile->samples.thread[i] = (struct thread_id){0};
    }
    free(sets);
}
