/* Removes frames that a profile declares uninteresting (requirement PPF-9).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PROFILE_PRUNE_H
#define OFFBEAT_PROFILE_PROFILE_PRUNE_H

#include "profile/profile.h"

/* Applies PROFILE's drop_frames and keep_frames, as the reference tool does. Both are regular expressions in RE2's
 * syntax; they must match a complete function name without its parameters.
 *
 * A function matches if drop_frames matches its name and keep_frames does not. In a location with inlined functions,
 * the outermost function that matches is removed together with everything inlined into it. Stacks are read from root to
 * leaf. After the first location without a match, the next location with a match ends the stack: its remaining
 * functions are the leaf. Before that, a location whose functions would all be removed stays unchanged.
 *
 * For reports; samples whose stacks become equal are not summed. On failure (the message names an invalid expression)
 * the samples are unchanged. */
enum status profile_prune(struct profile *profile, struct error *error);

#endif
