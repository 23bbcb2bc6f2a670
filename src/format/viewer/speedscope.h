/* speedscope's JSON, version 0.6.0 of the schema and its forerunners: evented and sampled profiles over one list of
 * frames. doc/formats/speedscope.md says what is kept.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_SPEEDSCOPE_H
#define OFFBEAT_FORMAT_VIEWER_SPEEDSCOPE_H

#include "base/buffer.h"
#include "profile/profile.h"

enum {
    SPEEDSCOPE_BYTES_MAX = 1 << 30, /* written */
    SPEEDSCOPE_DEPTH_MAX = 1 << 16, /* frames of a stack */
    SPEEDSCOPE_PROFILES_MAX = 1 << 16,
};

bool speedscope_detect(struct slice bytes);

/* Each profile of the file becomes a thread, each of its samples, or of the stretches between its events, a sample.
 * Times are the file's. Their start is arbitrary (profile.time_ns is then 0) unless offbeat wrote the file. Without a
 * unit of time there are no times. See format_decode for the rest of the contract. */
enum status speedscope_decode(struct slice bytes, struct profile *profile, struct error *error);

/* A sampled profile for each thread, of the default value. STATUS_UNSUPPORTED if a value is negative: speedscope shows
 * no such file; or if there is no sample. */
enum status speedscope_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
