/* Profiles without some of their labels, so that runs which differ only in them add up.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_PROFILE_DROP_LABELS_H
#define OFFBEAT_PROFILE_DROP_LABELS_H

#include "profile/profile.h"

/* KEYS: with commas between them. Samples whose thread's id is dropped (thread_labels.h) have no thread. Failure is the
 * profile's. */
void profile_drop_labels(struct profile *profile, const char *keys);

#endif
