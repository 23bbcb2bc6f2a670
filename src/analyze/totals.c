/* SPDX-License-Identifier: MIT */
#include "analyze/totals.h"

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

/* Profiles without the label, nearly all, are not searched for it. */
static bool has_base_label(const struct profile *profile)
{
    for (size_t i = 0; i < profile->labels.count; i++) {
        if (slice_equals_text(profile_slice(profile, profile->labels.items[i].key), DIFF_BASE_LABEL)) return true;
    }
    return false;
}

int64_t total_of_samples(const struct profile *profile, struct value_choice choice)
{
    int64_t total = 0, divisor = 0, base_total = 0, base_divisor = 0;
    bool has_base = has_base_label(profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        int64_t value = magnitude_of(values[choice.index]), count = choice.is_mean ? values[0] : 0;
        total = profile_add_values(total, value);
        divisor = profile_add_values(divisor, count);
        if (!has_base || !is_base_set(profile, profile->samples.labels[i])) continue;
        base_total = profile_add_values(base_total, value);
        base_divisor = profile_add_values(base_divisor, count);
    }
    return base_total > 0 ? mean_of(base_total, base_divisor) : mean_of(total, divisor);
}
