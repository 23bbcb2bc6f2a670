/* Completes profiles that lack what Sentry's formats require. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_COMPLETE_H
#define OFFBEAT_DELIVER_COMPLETE_H

#include "profile/profile.h"

enum { DELIVER_V1_SECONDS_MAX = 30 };

/* Gives PROFILE a release, the program's name and build id, if it has none. If it has no timestamps, puts its samples
 * in sequence; then returns true. A failure is PROFILE's. */
bool deliver_complete(struct profile *profile);
/* Does the same, and gives it the id that all chunks of one profile share. */
bool deliver_complete_v2(struct profile *profile);
/* Does the same, and gives it an id and a transaction, of the first sample's thread and as long as the profile. */
bool deliver_complete_v1(struct profile *profile);

/* Cuts PROFILE to 30 s from its start: servers reject a longer one of V1. True if samples were dropped. */
bool deliver_cut_v1(struct profile *profile);

#endif
