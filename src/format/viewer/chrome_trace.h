/* Trace events: JSON of Chrome's about:tracing, which Perfetto, many build tools and instrumenting tracers write and
 * read. Traces that hold CPU profiles of V8 are chrome_cpuprofile.c's.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_CHROME_TRACE_H
#define OFFBEAT_FORMAT_VIEWER_CHROME_TRACE_H

#include "base/buffer.h"
#include "profile/profile.h"

enum { CHROME_TRACE_DEPTH_MAX = 1 << 16 }; /* events of one thread that are open at one time */

/* The member of "otherData" in which offbeat notes the start since 1970, from which the times count, in nanoseconds. */
#define CHROME_TRACE_START "offbeat_start_ns"

/* True for a list of events among which some begin (B) or are complete (X), and none is of a CPU profile. */
bool chrome_trace_detect(struct slice bytes);

/* Each stretch of time in which the same events of a thread are open is a sample: samples/count and wall/nanoseconds.
 * Time in which none is open is left out. A complete event that ends after the one that it began in ends with that.
 * PROFILE must be initialised and empty; after a failure it is only good for profile_fini. ERROR may be NULL. */
enum status chrome_trace_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Begin and end events: a frame that continues from one sample to the next is one event. STATUS_UNSUPPORTED for a
 * profile that measures neither time nor counts. */
enum status chrome_trace_encode(const struct profile *profile, struct buffer *out, struct error *error);

/* Returns how much of the time of PROFILE's samples, *RET_WHOLE_NS, the trace lacks: where samples of one thread
 * overlap, each lasts until the next one. */
uint64_t chrome_trace_cut_ns(const struct profile *profile, uint64_t *ret_whole_ns);

#endif
