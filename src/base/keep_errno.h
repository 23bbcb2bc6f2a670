/* errno for functions that other people's programs call without expecting a change of it.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_BASE_KEEP_ERRNO_H
#define OFFBEAT_BASE_KEEP_ERRNO_H

#include <errno.h>

static inline void errno_restore(const int *kept)
{
    errno = *kept;
}

/* Restores errno at the end of the block. */
#define KEEP_ERRNO __attribute__((cleanup(errno_restore), unused)) const int kept_errno = errno

#endif
