/* The text of macOS's sample and of Activity Monitor's "Sample Process".  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_MACOS_SAMPLE_H
#define OFFBEAT_FORMAT_TEXT_MACOS_SAMPLE_H

#include "profile/profile.h"

enum {
    MACOS_SAMPLE_DEPTH_MAX = 4096, /* frames of a stack */
};

bool macos_sample_detect(struct slice bytes);

/* Values are samples/count and wall/nanoseconds. PROFILE must be initialised and empty; after a failure it is only good
 * for profile_fini. ERROR may be NULL. */
enum status macos_sample_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
