/* What Python's cProfile and profile write, and the module pstats reads: functions with their times and callers, in
 * Python's marshal.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RUNTIME_PSTATS_H
#define OFFBEAT_FORMAT_RUNTIME_PSTATS_H

#include "profile/profile.h"

enum {
    PSTATS_DEPTH_MAX = 32,        /* of tuples, dictionaries and functions' code in each other */
    PSTATS_OBJECTS_MAX = 1 << 26, /* values in one file */
};

/* True for a dictionary whose first key is a tuple of a text, a number and a text. */
bool pstats_detect(struct slice bytes);

/* Values are time/nanoseconds, in a function itself, and calls/count. Stacks are estimated from who called whom, see
 * cost_graph.h. PROFILE must be initialised and empty; after a failure it is only good for profile_fini. ERROR may be
 * NULL. */
enum status pstats_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
