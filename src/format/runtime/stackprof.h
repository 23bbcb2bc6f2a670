/* The JSON of Ruby's stackprof (stackprof --json, StackProf.results as JSON).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RUNTIME_STACKPROF_H
#define OFFBEAT_FORMAT_RUNTIME_STACKPROF_H

#include "profile/profile.h"

enum {
    STACKPROF_DEPTH_MAX = 65536, /* frames of a stack */
};

bool stackprof_detect(struct slice bytes);

/* Values are samples/count and, if the interval is a time, wall or cpu/nanoseconds; objects/count for allocations.
 * A file without "raw" has no stacks: each function is a stack of one frame, and a comment says so. PROFILE must be
 * initialised and empty; after a failure it is only good for profile_fini. ERROR may be NULL. */
enum status stackprof_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
