/* Files of valgrind's massif (massif.out.PID).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_MASSIF_H
#define OFFBEAT_FORMAT_TEXT_MASSIF_H

#include "profile/profile.h"

enum {
    MASSIF_DEPTH_MAX = 1024, /* frames of a stack; massif records at most 200 */
};

bool massif_detect(struct slice bytes);

/* The heap where it was largest, or the last one that the file has in detail: inuse_space/bytes. PROFILE must be
 * initialised and empty; after a failure it is only good for profile_fini. ERROR may be NULL. */
enum status massif_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
