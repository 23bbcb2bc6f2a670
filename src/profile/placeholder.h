/* Placeholder names: "libx.so.1+0x1234", where a symbolizer knew nothing but the first address of the function.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PLACEHOLDER_H
#define OFFBEAT_PROFILE_PLACEHOLDER_H

#include "profile/profile.h"

/* Whether such a name is all that is known of LOCATION. */
bool location_has_placeholder(const struct profile *profile, const struct location *location);

#endif
