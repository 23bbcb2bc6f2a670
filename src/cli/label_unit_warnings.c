/* SPDX-License-Identifier: MIT */
#include "cli/label_unit_warnings.h"

#include "cli/message.h"
#include "profile/label_units.h"

enum { WARNINGS_MAX = 8 };

void warn_label_units(const struct profile *profile)
{
    struct other_unit units[WARNINGS_MAX];
    size_t count = profile_other_units(profile, units, WARNINGS_MAX);
    for (size_t i = 0; i < count; i++) {
        message("label %s has several units: %s is used, %s also occurs", profile_c_string(profile, units[i].key),
                profile_c_string(profile, units[i].first), profile_c_string(profile, units[i].other));
    }
}
