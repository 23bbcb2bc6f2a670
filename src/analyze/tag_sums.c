/* SPDX-License-Identifier: MIT */
#include "analyze/tag_sums.h"

#include "analyze/label_groups.h"
#include "base/array.h"
#include "base/hash.h"
#include "profile/label_units.h"
#include "profile/units.h"

#include <stdlib.h>

struct computation {
    struct tag_sums *sums;
    const struct profile *profile;
    const char *unit;
    struct label_groups groups;
    int64_t *of_group;
    struct label_units units;
    struct sample_labels labels;
    struct index_table index;
    struct buffer text;
};

static bool sum_equal(const void *context, uint32_t index, const void *key)
{
    const struct tag_sums *sums = context;
    const struct tag_sum *a = &sums->items[index], *b = key;
    return a->key.index == b->key.index && a->value.index == b->value.index;
}

static bool add(struct computation *all, struct tag_sum one)
{
    struct tag_sums *sums = all->sums;
    uint64_t hash = hash_mix(one.key.index, one.value.index);
    uint32_t index = index_table_find(&all->index, hash, sum_equal, sums, &one);
    if (index != INDEX_NONE) {
        sums->items[index].sum = profile_add_values(sums->items[index].sum, one.sum);
        return true;
    }
    if (!array_reserve(&sums->items, &sums->capacity, sums->count + 1, sizeof(*sums->items), TAG_SUMS_MAX) ||
        !index_table_add(&all->index, hash, (uint32_t)sums->count)) {
        return false;
    }
    sums->items[sums->count++] = one;
    return true;
}

static bool add_label(struct computation *all, const struct sample_label *label, int64_t sum)
{
    struct profile *strings = &all->sums->strings;
    buffer_clear(&all->text);
    if (label->is_number)
        unit_append(&all->text, label->number, label_unit(&all->units, label), all->unit);
    else
        buffer_append_text(&all->text, label->text);
    return add(all, (struct tag_sum){.key = profile_text(strings, label->key),
                                     .value = profile_string(strings, buffer_slice(&all->text)),
                                     .sum = sum});
}

static int compare_sums(const void *left, const void *right, void *context)
{
    const struct tag_sum *a = left, *b = right;
    const struct profile *strings = context;
    if (a->key.index != b->key.index)
        return strcmp(profile_c_string(strings, a->key), profile_c_string(strings, b->key));
    int64_t first = magnitude_of(a->sum), second = magnitude_of(b->sum);
    if (first != second) return first > second ? -1 : 1;
    return strcmp(profile_c_string(strings, a->value), profile_c_string(strings, b->value));
}

static bool sum_up(struct computation *all, size_t value_index)
{
    const struct profile *profile = all->profile;
    if (!label_groups_init(&all->groups, profile) || !label_units_init(&all->units, profile) ||
        !sample_labels_init(&all->labels, profile)) {
        return false;
    }
    all->of_group = calloc(all->groups.count + 1, sizeof(*all->of_group));
    if (!all->of_group) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t *sum = &all->of_group[all->groups.group_of_sample[i]];
        *sum = profile_add_values(*sum, profile_sample_values(profile, i)[value_index]);
    }
    for (size_t i = 0; i < all->groups.count; i++) {
        sample_labels_collect(&all->labels, profile, all->groups.items[i].labels, all->groups.items[i].thread);
        for (uint32_t l = 0; l < all->labels.count; l++) {
            if (!add_label(all, &all->labels.items[l], all->of_group[i])) return false;
        }
    }
    struct tag_sums *sums = all->sums;
    if (sums->count > 1) qsort_r(sums->items, sums->count, sizeof(*sums->items), compare_sums, &sums->strings);
    return sums->strings.failed == STATUS_OK;
}

enum status tag_sums_init(struct tag_sums *sums, const struct profile *profile, size_t value_index, const char *unit,
                          struct error *error)
{
    struct computation all = {.sums = sums, .profile = profile, .unit = unit, .text = {.maximum = SIZE_MAX}};
    *sums = (struct tag_sums){0};
    profile_init(&sums->strings);
    bool is_done = sum_up(&all, value_index);
    label_groups_fini(&all.groups);
    label_units_fini(&all.units);
    sample_labels_fini(&all.labels);
    free(all.of_group);
    index_table_fini(&all.index);
    buffer_fini(&all.text);
    if (is_done) return STATUS_OK;
    tag_sums_fini(sums);
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the labels");
}

void tag_sums_fini(struct tag_sums *sums)
{
    free(sums->items);
    profile_fini(&sums->strings);
    *sums = (struct tag_sums){0};
}

size_t tag_sums_key_end(const struct tag_sums *sums, size_t first, int64_t *ret_sum)
{
    size_t end = first;
    *ret_sum = 0;
    for (; end < sums->count && sums->items[end].key.index == sums->items[first].key.index; end++)
        *ret_sum = profile_add_values(*ret_sum, sums->items[end].sum);
    return end;
}
