/* The size that a profile has when its shared parts are written out: the model holds callers and inlined functions
 * once, however often they are used, so that a small file can describe very many frames.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_PROFILE_PROFILE_EXTENT_H
#define OFFBEAT_PROFILE_PROFILE_EXTENT_H

#include "profile/profile.h"

enum {
    EXTENT_FRAMES_FREE = 1 << 23, /* frames that each profile may have */
    EXTENT_FRAMES_OF_BYTE = 8,    /* more for each byte that it was read from */
    EXTENT_LINES_FREE = 64,       /* inlined functions of a location that are not counted */
};

/* STATUS_TOO_LARGE if the stacks, each with all its inlined functions, have more frames than a profile that was read
 * from SOURCE_BYTES may have: every analysis visits them. */
enum status profile_check_inlined(const struct profile *profile, uint64_t source_bytes, struct error *error);

/* STATUS_TOO_LARGE if a format that writes stacks in full would write too many frames: the stack of each sample, or
 * (STACKS_ONCE) each stack that samples have. Profiles that were not read from a file have no limit. */
enum status profile_check_flat(const struct profile *profile, bool stacks_once, struct error *error);

#endif
