/* Function names of symbol tables only, for a profiled process without a helper.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_SYMBOL_NAMES_H
#define OFFBEAT_DELIVER_SYMBOL_NAMES_H

#include "profile/profile.h"

/* Names each location that has no lines and is in a file with symbols. C++ names stay mangled. A file is used only if
 * its build id is that of the mapping. */
void symbol_names_add(struct profile *profile);

#endif
