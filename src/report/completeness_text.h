/* What is missing in a profile, why, and what to do about it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_COMPLETENESS_TEXT_H
#define OFFBEAT_REPORT_COMPLETENESS_TEXT_H

#include "analyze/completeness.h"
#include "base/buffer.h"

/* Append one sentence without the end of its line: "12 % of the stacks are incomplete: 9 % end in libfoo.so, which …".
 * False, with OUT as it was, where the share is below the limit. */
bool completeness_append_stacks(const struct profile *profile, const struct completeness *completeness,
                                struct buffer *out);
bool completeness_append_losses(const struct profile *profile, const struct completeness *completeness,
                                struct buffer *out);

/* Signals are answered in the next system call: user code of some microseconds between two calls is shown as the second
 * one. True where more answers came from calls than the kernel's own account of the time explains. */
bool completeness_append_calls(const struct profile *profile, struct buffer *out);

/* Where much of the time are waits for a processor of which nobody saw where they began. */
bool completeness_append_waits(const struct profile *profile, const struct completeness *completeness,
                               struct buffer *out);

/* Where much of the time is of threads and processes of which no stack was taken. */
bool completeness_append_too_short(const struct profile *profile, const struct completeness *completeness,
                                   struct buffer *out);

/* Where the sampler did not run for much of the time. */
bool completeness_append_late(const struct profile *profile, struct buffer *out);

/* The first two in short, for a table: "12 % of the stacks are incomplete, 3 % of the samples are lost". */
bool completeness_append_short(const struct completeness *completeness, struct buffer *out);

#endif
