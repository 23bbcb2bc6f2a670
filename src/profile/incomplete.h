/* The frames that stand for the missing root of a stack that could not be walked to its end, and for time without a
 * stack. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_INCOMPLETE_H
#define OFFBEAT_PROFILE_INCOMPLETE_H

#include "profile/profile.h"

#define INCOMPLETE_PREFIX "[incomplete: "
#define INCOMPLETE_TOO_DEEP "[incomplete: deeper than the limit]"
#define INCOMPLETE_NO_TABLE "[incomplete: code without unwind table]"
#define INCOMPLETE_BAD_MEMORY "[incomplete: unreadable stack]"
#define INCOMPLETE_BAD_FRAME "[incomplete: impossible frame]"
#define INCOMPLETE_UNKNOWN_REGISTER "[incomplete: unknown register]"

#define SHORT_THREADS "[short threads]" /* a thread's name */
#define STARTING "[starting]" /* a thread that has had no processor yet, a forked child before the sampler is there */
#define STOPPED "[stopped]"   /* a process that a signal, a debugger or the freezer of a container stopped */
#define NO_STACK_TOO_SHORT "[too short to sample]"
#define NO_STACK_LATE "[no stack: the answer came too late]"
#define NO_STACK_UNANSWERED "[no stack: the thread takes no signal]"
#define NO_STACK_IN_KERNEL "[no stack: in the kernel]"
#define NO_STACK_NO_TABLE "[no stack: unwind table is being read]"
#define NO_STACK_UNREADABLE "[no stack: not shown by the kernel]"
#define NO_STACK_WAIT "[no stack: the beginning of the wait was not seen]"
#define SHORT_WAITS "[short waits]" /* waits below the threshold that the user chose */
#define NO_STACK_RUNNING "[no stack: it was running]"

/* True if NAME is one of these, which has no module. */
bool incomplete_is_name(const char *name);

/* Returns the place where a process starts, for frames of which no address is known: the code of the loader, or of the
 * program if it has no loader. {0} if PROFILE has no mappings. */
struct location incomplete_location(const struct profile *profile);

#endif
