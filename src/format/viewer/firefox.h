/* The processed profile of the Firefox Profiler (profiler.firefox.com).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_FIREFOX_H
#define OFFBEAT_FORMAT_VIEWER_FIREFOX_H

#include "base/buffer.h"
#include "profile/profile.h"

enum {
    FIREFOX_VERSION = 61, /* version of the processed format: the first with tables for all threads */
    FIREFOX_THREADS_MAX = 65536,
    FIREFOX_LIBRARIES_MAX = 65536,
    FIREFOX_INLINED_MAX = 64,         /* functions inlined into one place; more become callers */
    FIREFOX_PROCESS_DEPTH_MAX = 8,    /* levels of processes within processes, in the raw form */
    FIREFOX_MARKER_FIELDS_MAX = 4096, /* members of markers that are strings, of all schemas */
};

bool firefox_detect(struct slice bytes);

/* Decodes a processed profile of any version, or the raw form that Firefox itself writes, into PROFILE, which must be
 * initialised and empty. */
enum status firefox_decode(struct slice bytes, struct profile *profile, struct error *error);

/* A thread for each thread, its samples in the order of time, weighted with the default value. Where the profile has no
 * times, each thread's samples follow one another. STATUS_UNSUPPORTED if there is no sample. */
enum status firefox_encode(const struct profile *profile, struct buffer *out, struct error *error);

/* Returns the value type that is written as the CPU time of samples (threadCPUDelta), -1 if there is none. */
int firefox_cpu_column(const struct profile *profile);

/* Whether the address of LOCATION is kept: only one in a file, relative to the start of that. */
bool firefox_has_address(const struct profile *profile, const struct location *location);

#endif
