/* Collapsed stacks of austin, a sampling profiler of Python.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_AUSTIN_H
#define OFFBEAT_FORMAT_TEXT_AUSTIN_H

#include "profile/profile.h"

enum {
    AUSTIN_DEPTH_MAX = 1 << 16, /* frames of a line */
    AUSTIN_COMMENTS_MAX = 1024, /* later ones are ignored */
};

/* Whether BYTES begin with the header that austin writes, "# austin: 3.5.0". */
bool austin_detect(struct slice bytes);

/* Reads lines "P4317;T0:7ffff;module:function:line 152": process, thread, frames, and microseconds of wall or CPU time,
 * bytes, or in full mode time, 1 if the thread was idle, and bytes. The header says which. */
enum status austin_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
