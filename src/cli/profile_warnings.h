/* Warnings of what reports and writers cannot show.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PROFILE_WARNINGS_H
#define OFFBEAT_CLI_PROFILE_WARNINGS_H

#include "profile/profile.h"

/* Warns of each label key that comes with several units, and of each value type whose sum does not fit into 63 bits,
 * one line each on standard error. */
void warn_of_profile(const struct profile *profile);

#endif
