/* Reads frames of valgrind's tools: "0x109156: main (a.c:5)", "0x4C: malloc (in /usr/lib/vg.so)", "0x4C: ???".
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_VALGRIND_FRAME_H
#define OFFBEAT_FORMAT_COMMON_VALGRIND_FRAME_H

#include "profile/profile.h"

/* The place that TEXT is, added to PROFILE. What has not this form is the name of a function. */
struct location_id valgrind_frame_add(struct profile *profile, struct slice text);

#endif
