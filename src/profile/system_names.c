/* SPDX-License-Identifier: MIT */
#include "profile/system_names.h"

void profile_give_system_names(struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        if (function->system_name.index == 0) function->system_name = function->name;
    }
}
