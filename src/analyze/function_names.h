/* The names that reports distinguish functions by.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_FUNCTION_NAMES_H
#define OFFBEAT_ANALYZE_FUNCTION_NAMES_H

#include "profile/profile.h"

struct function_naming {
    bool is_short; /* names without modules, packages and template arguments */
    bool compares; /* several profiles are shown: names must be the same in each */
    bool is_exact; /* addresses and run numbers stay, also if it COMPARES */
};

void name_functions(struct profile *profile, const struct function_naming *naming);

#endif
