/* Names as the system has them, for functions of sources that have one name only.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SYSTEM_NAMES_H
#define OFFBEAT_PROFILE_SYSTEM_NAMES_H

#include "profile/profile.h"

/* Sets the system name of each function that has none to its name (PPF-6): profile.proto wants both, and `go tool
 * pprof` prints "()" after a function without one. Not for profiles that were read from pprof, which keep what they
 * have. */
void profile_give_system_names(struct profile *profile);

#endif
