/* Recordings of Java: JDK Flight Recorder (JDK 11 and newer) and async-profiler.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_JFR_JFR_H
#define OFFBEAT_FORMAT_JFR_JFR_H

#include "profile/profile.h"

enum {
    JFR_STRINGS_MAX = 1 << 20,   /* of the metadata of one chunk */
    JFR_CLASSES_MAX = 1 << 16,   /* of one chunk */
    JFR_CONSTANTS_MAX = 1 << 26, /* of one chunk */
    JFR_FRAMES_MAX = 1 << 16,    /* of one stack */
    JFR_DEPTH_MAX = 32,          /* of elements of the metadata, and of values in values */
    JFR_STEPS_FREE = 1 << 20,    /* values that are passed over, and 16 more for each byte of a chunk */
};

/* True if BYTES begin with a chunk of format 2. */
bool jfr_detect(struct slice bytes);

/* Execution samples, wall clock samples, allocations and waits for locks become samples with times and threads; a value
 * type is made for each kind that the file has. Errors have the offset of the event. See format_decode for the rest of
 * the contract. */
enum status jfr_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
