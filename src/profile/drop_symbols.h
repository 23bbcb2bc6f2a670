/* Profiles with addresses only.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_DROP_SYMBOLS_H
#define OFFBEAT_PROFILE_DROP_SYMBOLS_H

#include "profile/profile.h"

/* Takes the functions and lines from each location that has an address in a file: that address can be symbolized later
 * (PPF-5). Others, such as code of an interpreter or of a JIT compiler, keep their names. The profile is not to be
 * added to afterwards. */
void profile_drop_symbols(struct profile *profile);

#endif
