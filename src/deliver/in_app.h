/* Marks frames as in-app, by prefixes that the user gives.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_IN_APP_H
#define OFFBEAT_DELIVER_IN_APP_H

#include "profile/profile.h"

/* INCLUDE and EXCLUDE are prefixes of the paths of program files, the paths of source files, and the names of
 * functions, separated by commas; NULL or "" = none. The longest prefix that fits decides; if both are as long, EXCLUDE
 * does. A frame that no prefix fits stays as it is. */
void in_app_mark(struct profile *profile, const char *include, const char *exclude);

#endif
