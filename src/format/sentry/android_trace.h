/* Method traces of Android, which Sentry's chunks carry, too.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_ANDROID_TRACE_H
#define OFFBEAT_FORMAT_SENTRY_ANDROID_TRACE_H

#include "format/common/format_ops.h"

/* Decodes BYTES into PROFILE, which must be initialised; after a failure it is only good for profile_fini. ERROR may be
 * NULL. */
enum status android_trace_decode(struct slice bytes, struct profile *profile, struct error *error);

/* The same of a trace that began START_NS nanoseconds after 1970; 0: as its header says, if it does. */
enum status android_trace_decode_at(struct slice bytes, uint64_t start_ns, struct profile *profile,
                                    struct error *error);

#endif
