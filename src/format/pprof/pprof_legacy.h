/* Reads the formats of pprof from before profile.proto: the CPU profiles of gperftools and of Java (binary, both word
 * sizes and byte orders), heap, growth and fragmentation profiles, contention and mutex profiles, threads, Go's counts
 * ("goroutine profile: total 5"), Java's heap and contention (doc/formats/pprof.md). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_LEGACY_H
#define OFFBEAT_FORMAT_PPROF_PPROF_LEGACY_H

#include "profile/profile.h"

enum {
    PPROF_LEGACY_SAMPLES_MAX = 16 << 20,
    PPROF_LEGACY_FRAMES_MAX = 256 << 20, /* frames of all samples */
    PPROF_LEGACY_MAPPINGS_MAX = 1 << 16,
    PPROF_LEGACY_VARIABLES_MAX = 64,         /* "name=value" among the mappings */
    PPROF_LEGACY_HEADER_LINES_MAX = 256,     /* before the line that identifies the format */
    PPROF_LEGACY_HEADER_BYTES_MAX = 1 << 20, /* bytes of one of these lines */
};

/* True if BYTES begin as one of them does. */
bool pprof_legacy_detect(struct slice bytes);

/* See format_decode for the contract. Values are as the reference tool has them: unsampled, call sites inside the call,
 * drop_frames and keep_frames by the kind of profile. */
enum status pprof_legacy_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
