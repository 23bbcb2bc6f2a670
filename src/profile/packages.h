/* Functions of one name in several packages, for formats and tables that distinguish functions by their names alone.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PACKAGES_H
#define OFFBEAT_PROFILE_PACKAGES_H

#include "profile/profile.h"

struct package_naming {
    bool only_unmapped;  /* keeps names in mappings, for a format that shows mappings */
    bool compares;       /* names packages without their versions, the same in each of several profiles */
    const bool *is_base; /* label sets of the base of a comparison; NULL: none */
};

/* FMT-4, FMT-11: a name that two modules have becomes "name [libx.so]" in each, or has the entire path where the last
 * parts are equal. Builds of one module (profile/same_modules.h) are one. In a comparison, two modules are one for a
 * name that each side has in one of them only, and "[libx.so]" is what frames without a name are called if the sides
 * have different builds and only one of them has the place.
 *
 * Functions with modules are already distinct after profile_give_full_names, which must be called first. Nothing may be
 * added to the profile afterwards. Fails as profile_failed does. */
void profile_distinguish_packages(struct profile *profile, const struct package_naming *naming);

#endif
