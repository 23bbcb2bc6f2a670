/* Aggregations of stacks as bpftrace and DTrace print them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_BPFTRACE_H
#define OFFBEAT_FORMAT_TEXT_BPFTRACE_H

#include "profile/profile.h"

enum {
    BPFTRACE_DEPTH_MAX = 1 << 16, /* frames of a stack */
};

/* True if a map of bpftrace whose key begins with a stack is at the front: "@[" at the end of a line. */
bool bpftrace_detect(struct slice bytes);

/* Value is samples/count, or what the map adds up. Other parts of the key ("comm", a number) become the label "key".
 * Maps without stacks are passed over. PROFILE must be initialised and empty; after a failure it is only good for
 * profile_fini. ERROR may be NULL. */
enum status bpftrace_decode(struct slice bytes, struct profile *profile, struct error *error);

/* True for an indented line "module`function+0x1f". */
bool dtrace_detect(struct slice bytes);

/* Stacks with a number on the line after them, of DTrace's @[stack()] = count(). */
enum status dtrace_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
