/* SPDX-License-Identifier: MIT */
#include "analyze/totals.h"

#include <stdlib.h>

static bool is_base_set(const struct profile *profile, struct label_set_id id)
{
    struct label_set set = profile->label_sets.items[id.index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        bool is_key = slice_equals_text(profile_slice(profile, label->key), DIFF_BASE_LABEL);
        if (is_key && !label->is_number && slice_equals_text(profile_slice(profile, label->text), "true")) return true;
    }
    return false;
}

bool find_base_sets(const struct profile *profile, bool **ret_is_base)
{
    *ret_is_base = NULL;
    for (uint32_t i = 1; i < profile->label_sets.count; i++) {
        if (!is_base_set(profile, (struct label_set_id){i})) continue;
        if (!*ret_is_base) *ret_is_base = calloc(profile->label_sets.count, sizeof(**ret_is_base));
        if (!*ret_is_base) return false;
        (*ret_is_base)[i] = true;
    }
    return true;
}

int64_t total_of_samples(const struct profile *profile, struct value_choice choice, const bool *is_base)
{
    int64_t total = 0, divisor = 0, base_total = 0, base_divisor = 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        int64_t value = magnitude_of(values[choice.index]), count = choice.is_mean ? values[0] : 0;
        total = profile_add_values(total, value);
        divisor = profile_add_values(divisor, count);
        if (!is_base || !is_base[profile->samples.labels[i].index]) continue;
        base_total = profile_add_values(base_total, value);
        base_divisor = profile_add_values(base_divisor, count);
    }
    return base_total > 0 ? mean_of(base_total, base_divisor) : mean_of(total, divisor);
}
