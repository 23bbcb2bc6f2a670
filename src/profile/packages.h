/* Functions of one name in several packages, for formats and tables that distinguish functions by their names alone.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PACKAGES_H
#define OFFBEAT_PROFILE_PACKAGES_H

#include "profile/profile.h"

/* FMT-4, FMT-11: a name that two packages have becomes "name [libx.so]" in each, or with the entire path where the last
 * parts are equal. A package is the mapping's file, or else the function's package. A function with a module is told
 * apart by that (profile_give_full_names, which comes first). ONLY_UNMAPPED: names in mappings stay as they are, for a
 * format that shows those. The profile is not to be added to afterwards. Failures are those of profile_failed. */
void profile_distinguish_packages(struct profile *profile, bool only_unmapped);

#endif
