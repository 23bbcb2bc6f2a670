/* What V8 records: the .cpuprofile of Chrome's DevTools and of Node, today's and the old nested form, and the CPU
 * profiles in a trace of Chrome's.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_CHROME_CPUPROFILE_H
#define OFFBEAT_FORMAT_VIEWER_CHROME_CPUPROFILE_H

#include "profile/profile.h"

enum {
    CHROME_DEPTH_MAX = 1 << 16,  /* frames of a stack */
    CHROME_TRACKS_MAX = 1 << 12, /* profiles of one trace */
    CHROME_THREADS_MAX = 1 << 16 /* names of threads in a trace */
};

bool chrome_cpuprofile_detect(struct slice bytes);

/* Values are samples/count and wall/nanoseconds, the time to the next sample. Times are of the browser's clock,
 * whose start is arbitrary (profile.time_ns stays 0); a file without samples has hits instead and no times. "(root)" is
 * left out, "(idle)" is an empty stack, "(garbage collector)" is added to the stack that it interrupted, and
 * "(program)", native code, is a stack with this frame only. See format_decode for the rest of the contract. */
enum status chrome_cpuprofile_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
