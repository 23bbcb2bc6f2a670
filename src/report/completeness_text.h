/* Sentences about missing parts of a profile, their causes and remedies.  SPDX-License-Identifier: MIT */
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

/* True where more answers to signals came from system calls than the kernel's own account of the time explains: signals
 * are answered in the next call, and a few microseconds of user code between two calls are shown as the second one. */
bool completeness_append_calls(const struct profile *profile, struct buffer *out);

/* True where much of the time is waits for a processor with an unknown start. */
bool completeness_append_waits(const struct profile *profile, const struct completeness *completeness,
                               struct buffer *out);

/* True where much of the time is of threads and processes without any stack. */
bool completeness_append_too_short(const struct profile *profile, const struct completeness *completeness,
                                   struct buffer *out);

/* True where waits after wake-ups make the shares of calls in which threads sleep less exact. */
bool completeness_append_woken(const struct profile *profile, const struct completeness *completeness,
                               struct buffer *out);

/* True where the sampler did not run for much of the time. */
bool completeness_append_late(const struct profile *profile, struct buffer *out);

/* True where a process had more threads than the sampler follows. */
bool completeness_append_unfollowed(const struct completeness *completeness, struct buffer *out);

/* Appends the first two in short, for a table: "12 % of the stacks are incomplete, 3 % of the samples are lost". */
bool completeness_append_short(const struct completeness *completeness, struct buffer *out);

#endif
