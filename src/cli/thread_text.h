/* Describes threads of a profile in messages.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_THREAD_TEXT_H
#define OFFBEAT_CLI_THREAD_TEXT_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Whether the number of a thread may be ambiguous: PID/TID is not. */
bool has_several_processes(const struct profile *profile);

/* "main (101)"; without a name "101"; "(none)" for samples without a thread. In a profile of several processes the
 * number is PID/TID, as --thread accepts it. */
void append_thread_name(const struct profile *profile, struct thread_id thread, struct buffer *out);

/* Returns the number of threads with samples. */
size_t count_threads(const struct profile *profile);

/* One line on standard error: no thread matches PATTERN, and which there are. */
void message_unknown_thread(const struct profile *profile, const char *pattern);

#endif
