/* All that is in a profile, as text or JSON.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_RAW_REPORT_H
#define OFFBEAT_REPORT_RAW_REPORT_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Appends PROFILE in the form of `pprof -raw`, times in UTC: samples, locations and mappings in their order, by their
 * numbers in the profile. A sample's thread is the labels that it becomes in a pprof profile. A failure is OUT's. */
void raw_write_text(const struct profile *profile, struct buffer *out);
/* Appends the same as one JSON object. */
void raw_write_json(const struct profile *profile, struct buffer *out);

#endif
