/* Taking away frames that a profile itself calls uninteresting (requirement PPF-9).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PROFILE_PRUNE_H
#define OFFBEAT_PROFILE_PROFILE_PRUNE_H

#include "profile/profile.h"

/* By PROFILE's drop_frames and keep_frames, regular expressions in RE2's syntax that a whole function name must match,
 * without its parameters, as the reference tool has it: of a place with inlined functions the outermost one that
 * matches drop_frames (and not keep_frames) goes with all that is inlined into it; from root to leaf, after the first
 * place where nothing matches, the first where something does ends the stack, with what is left of it. A place all of
 * which would go, ahead of that first one, stays as it is. For reports; samples whose stacks get equal stay apart.
 * On failure (an expression that is none: the message says which) the samples are as they were. */
enum status profile_prune(struct profile *profile, struct error *error);

#endif
