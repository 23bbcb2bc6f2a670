/* Functions of one name in several packages, for formats and tables that distinguish functions by their names alone.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PACKAGES_H
#define OFFBEAT_PROFILE_PACKAGES_H

#include "profile/profile.h"

/* FMT-4, FMT-11: a name that two packages have becomes "name [libx.so]" in each, or has the entire path where the last
 * parts are equal. A package is the file of the mapping, or else the package of the function. Functions with modules
 * are already distinct after profile_give_full_names, which must be called first. ONLY_UNMAPPED: keeps names in
 * mappings, for a format that shows mappings. Nothing may be added to the profile afterwards. Fails as profile_failed
 * does. */
void profile_distinguish_packages(struct profile *profile, bool only_unmapped);

#endif
