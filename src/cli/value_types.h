/* The value of the samples that a user asks for.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_VALUE_TYPES_H
#define OFFBEAT_CLI_VALUE_TYPES_H

#include "profile/profile.h"

/* The column called NAME, or the one of that number, from 0 on; "": the profile's own choice. -1 after a line on
 * standard error that names what there is. */
int choose_value_type(const struct profile *profile, const char *name);

#endif
