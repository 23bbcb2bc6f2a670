/* What Sentry's formats ask of a profile that came without it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_COMPLETE_H
#define OFFBEAT_DELIVER_COMPLETE_H

#include "profile/profile.h"

enum { DELIVER_V1_SECONDS_MAX = 30 };

/* Gives PROFILE a release, the program's name and build id, if it has none. If it has no timestamps, puts its samples
 * in sequence; then returns true. A failure is PROFILE's. */
bool deliver_complete(struct profile *profile);
/* Also the id that all chunks of one profile share. */
bool deliver_complete_v2(struct profile *profile);
/* Also the profile's id and a transaction: of the thread of the first sample, for as long as there are samples. */
bool deliver_complete_v1(struct profile *profile);

/* Cuts PROFILE to 30 s from its start: servers reject a longer one of V1. True if samples were dropped. */
bool deliver_cut_v1(struct profile *profile);

#endif
