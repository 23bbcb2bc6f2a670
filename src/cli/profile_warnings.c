/* SPDX-License-Identifier: MIT */
#include "cli/profile_warnings.h"

#include "cli/message.h"
#include "profile/label_units.h"

#include <inttypes.h>

enum { WARNINGS_MAX = 8 };

static void warn_label_units(const struct profile *profile)
{
    struct other_unit units[WARNINGS_MAX];
    size_t count = profile_other_units(profile, units, WARNINGS_MAX);
    for (size_t i = 0; i < count; i++) {
        message("label %s has several units: %s is used, %s also occurs", profile_c_string(profile, units[i].key),
                profile_c_string(profile, units[i].first), profile_c_string(profile, units[i].other));
    }
}

/* profile_add_values limits sums. */
static void warn_limited_sums(const struct profile *profile)
{
    uint64_t sums[PROFILE_VALUES_MAX] = {0};
    for (size_t i = 0; i < profile->samples.count; i++) {
        const int64_t *values = profile_sample_values(profile, i);
        for (size_t k = 0; k < profile->value_type_count; k++) {
            uint64_t value = values[k] < 0 ? 0 - (uint64_t)values[k] : (uint64_t)values[k];
            sums[k] = sums[k] > INT64_MAX ? sums[k] : sums[k] + value;
        }
    }
    for (size_t k = 0; k < profile->value_type_count; k++) {
        if (sums[k] <= INT64_MAX) continue;
        message("values of %s add up to more than 63 bits: a larger sum is shown and written as %" PRId64,
                profile_c_string(profile, profile->value_types[k].type), INT64_MAX);
    }
}

void warn_of_profile(const struct profile *profile)
{
    warn_label_units(profile);
    warn_limited_sums(profile);
}
