/* The frames that stand for the missing root of a stack that could not be walked to its end.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_INCOMPLETE_H
#define OFFBEAT_PROFILE_INCOMPLETE_H

#define INCOMPLETE_PREFIX "[incomplete: "
#define INCOMPLETE_TOO_DEEP "[incomplete: deeper than the limit]"
#define INCOMPLETE_NO_TABLE "[incomplete: code without unwind table]"
#define INCOMPLETE_BAD_MEMORY "[incomplete: unreadable stack]"
#define INCOMPLETE_BAD_FRAME "[incomplete: impossible frame]"
#define INCOMPLETE_UNKNOWN_REGISTER "[incomplete: unknown register]"

#endif
