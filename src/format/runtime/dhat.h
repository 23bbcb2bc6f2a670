/* Files of valgrind's DHAT (dhat.out.PID), and of Rust's dhat crate.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RUNTIME_DHAT_H
#define OFFBEAT_FORMAT_RUNTIME_DHAT_H

#include "profile/profile.h"

enum {
    DHAT_DEPTH_MAX = 65536, /* frames of a stack */
};

bool dhat_detect(struct slice bytes);

/* Values are what each place allocated (alloc_objects, alloc_space), what of it was there when the heap was largest
 * (peak_…) and at the end (end_…), and bytes read and written; as far as the file has them. PROFILE must be initialised
 * and empty; after a failure it is only good for profile_fini. ERROR may be NULL. */
enum status dhat_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
