/* Reads recordings, which liboffbeat writes while it samples a program (recording_layout.h). SPDX-License-Identifier:
 * MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_RECORDING_H
#define OFFBEAT_FORMAT_RECORDING_RECORDING_H

#include "profile/profile.h"

/* True if BYTES begin as a recording does. */
bool recording_detect(struct slice bytes);

/* Returns the version of the layout of a recording that recording_decode does not read; 0 if BYTES are no such
 * recording. */
int recording_other_version(struct slice bytes);
/* The version that recording_decode reads. */
int recording_version(void);

/* Decodes one process's recording. A recording that breaks off (the program was killed, or replaced itself by exec) is
 * good up to there: the metadata "processes_cut_off" is 1 then. Values are samples/count and wall/nanoseconds, or
 * cpu/nanoseconds; a thread that stayed where it was is one sample with the count of ticks. Stacks that did not reach
 * the root end in a frame that says so; frames of liboffbeat itself are left out. Places have no names yet
 * (symbolize_profile). The metadata is the sampler's own counters. */
enum status recording_decode(struct slice bytes, struct profile *profile, struct error *error);

#endif
