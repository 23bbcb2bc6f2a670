/* SPDX-License-Identifier: MIT */
#include "analyze/function_names.h"

#include "analyze/totals.h"
#include "profile/comparable_name.h"
#include "profile/full_names.h"
#include "profile/packages.h"
#include "profile/short_names.h"

#include <stdlib.h>

void name_functions(struct profile *profile, const struct function_naming *naming)
{
    bool *is_base = NULL;
    if (naming->is_short)
        profile_give_short_names(profile);
    else
        profile_give_full_names(profile, true);
    if (naming->compares && !naming->is_exact) profile_give_comparable_names(profile);
    if (!find_base_sets(profile, &is_base)) profile_fail(profile, STATUS_NO_MEMORY);
    const struct package_naming packages = {.compares = naming->compares, .is_base = is_base};
    if (!naming->is_short) profile_distinguish_packages(profile, &packages);
    free(is_base);
}
