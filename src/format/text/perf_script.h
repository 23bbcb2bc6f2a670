/* The text that `perf script` prints.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_PERF_SCRIPT_H
#define OFFBEAT_FORMAT_TEXT_PERF_SCRIPT_H

#include "profile/profile.h"

enum {
    PERF_SCRIPT_DEPTH_MAX = 1 << 16,        /* frames of a stack */
    PERF_SCRIPT_HEADER_BYTES_MAX = 1 << 20, /* the first line: perf's own records have up to 64 KiB */
    PERF_SCRIPT_EVENTS_MAX = PROFILE_VALUES_MAX - 1,
};

/* True if the first line that is neither empty nor a comment is the header of a sample or one of perf's records. */
bool perf_script_detect(struct slice bytes);

/* Values are samples/count and, for each event, its period. Times are of perf's clock, whose start is arbitrary
 * (profile.time_ns stays 0). perf prints return addresses for all frames but the leaf: they are stored less one. If
 * there are several processes, samples have the label `pid`; if the file names processors, samples have the label
 * `cpu`. See format_decode for the rest of the contract. */
enum status perf_script_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
