/* SPDX-License-Identifier: MIT */
#include "profile/time_labels.h"

#include "base/array.h"
#include "profile/profile_private.h"

#include <stdlib.h>

enum { LABELS_MAX = 1 << 17 /* labels of one sample */ };

struct label_list {
    struct label *items;
    size_t capacity;
};

/* Copies the labels of sample SAMPLE, since the table they are in may move, with room for more. False if memory is
 * short. */
static bool copy_labels(const struct profile *profile, size_t sample, struct label_list *list, uint32_t *ret_count)
{
    struct label_set set = profile->label_sets.items[profile->samples.labels[sample].index];
    if (!array_reserve(&list->items, &list->capacity, (size_t)set.count + 1, sizeof(*list->items), LABELS_MAX))
        return false;
    if (set.count > 0) memcpy(list->items, &profile->labels.items[set.first], set.count * sizeof(*list->items));
    *ret_count = set.count;
    return true;
}

void time_labels_put(struct profile *profile)
{
    struct label_list list = {0};
    struct label label = {
        .key = profile_text(profile, TIME_LABEL), .is_number = true, .unit = profile_text(profile, "nanoseconds")};
    for (size_t i = 0; profile->has_times && profile->failed == STATUS_OK && i < profile->samples.count; i++) {
        uint32_t count;
        uint64_t time_ns = profile->samples.time_ns[i];
        if (!copy_labels(profile, i, &list, &count)) {
            profile_fail(profile, STATUS_NO_MEMORY);
            break;
        }
        label.number = time_ns < INT64_MAX ? (int64_t)time_ns : INT64_MAX;
        list.items[count++] = label;
        profile->samples.labels[i] = profile_add_labels(profile, list.items, count);
    }
    free(list.items);
}

/* The time that sample SAMPLE is labelled with, or NULL. */
static const struct label *find_time(const struct profile *profile, size_t sample)
{
    struct label_set set = profile->label_sets.items[profile->samples.labels[sample].index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        struct slice key = profile_slice(profile, label->key);
        bool is_time = slice_equals_text(key, TIME_LABEL) || slice_equals_text(key, TIME_END_LABEL);
        if (is_time && label->is_number && label->number >= 0) return label;
    }
    return NULL;
}

static bool all_have_times(const struct profile *profile)
{
    for (size_t i = 0; i < profile->samples.count; i++) {
        if (!find_time(profile, i)) return false;
    }
    return profile->samples.count > 0;
}

/* Returns when the sample of LABEL began: one that says when it ended took its wall time until then. */
static uint64_t start_of(const struct profile *profile, size_t sample, const struct label *label)
{
    uint64_t time_ns = (uint64_t)label->number;
    if (slice_equals_text(profile_slice(profile, label->key), TIME_LABEL)) return time_ns;
    for (size_t i = 0; i < profile->value_type_count; i++) {
        const struct value_type *type = &profile->value_types[i];
        int64_t value = profile_sample_values(profile, sample)[i];
        bool is_wall = profile_slice(profile, type->type).size >= 4 &&
                       strncmp(profile_c_string(profile, type->type), "wall", 4) == 0 &&
                       slice_equals_text(profile_slice(profile, type->unit), "nanoseconds");
        if (is_wall && value > 0 && (uint64_t)value <= time_ns) return time_ns - (uint64_t)value;
    }
    return time_ns;
}

static bool take_time(struct profile *profile, size_t sample, struct label_list *list)
{
    uint32_t count, kept = 0;
    struct label time = *find_time(profile, sample);
    if (!copy_labels(profile, sample, list, &count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (list->items[i].key.index != time.key.index) list->items[kept++] = list->items[i];
    }
    profile->samples.time_ns[sample] = start_of(profile, sample, &time);
    profile->samples.labels[sample] =
        kept > 0 ? profile_add_labels(profile, list->items, kept) : (struct label_set_id){0};
    return true;
}

void time_labels_take(struct profile *profile)
{
    struct label_list list = {0};
    if (profile->has_times || profile->failed != STATUS_OK || !all_have_times(profile)) return;
    for (size_t i = 0; i < profile->samples.count && profile->failed == STATUS_OK; i++) {
        if (!take_time(profile, i, &list)) profile_fail(profile, STATUS_NO_MEMORY);
    }
    free(list.items);
    profile->has_times = true;
    (void)profile_sort_by_time(profile, NULL);
}
