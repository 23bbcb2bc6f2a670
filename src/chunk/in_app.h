/* Which code is the program's own, where its makers say so.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CHUNK_IN_APP_H
#define OFFBEAT_CHUNK_IN_APP_H

#include "profile/profile.h"

/* INCLUDE and EXCLUDE are prefixes of the paths of program files and source files and of the names of functions, with
 * ',' between them; NULL or "" = none. The longest prefix that fits decides, EXCLUDE where both are as long. What none
 * fits is left as it is. */
void in_app_mark(struct profile *profile, const char *include, const char *exclude);

#endif
