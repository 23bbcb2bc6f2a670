/* Hides the frames of the sampler itself in the profile of a program.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_OWN_FRAMES_H
#define OFFBEAT_PROFILE_OWN_FRAMES_H

#include "profile/profile.h"

/* Removes the frames in liboffbeat.so from the stacks of all samples: their time belongs to the caller (the loader that
 * started the sampler, a function of the program that called exit). A stack with no other frames stays. The mapping
 * stays, too. Failure is the profile's. */
void profile_hide_own_frames(struct profile *profile);

#endif
