/* Descriptors that stay open in somebody else's process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_FILE_DESCRIPTOR_H
#define OFFBEAT_BASE_FILE_DESCRIPTOR_H

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Moves DESCRIPTOR to the upper half of the numbers that the process may have, and returns the new number. The
 * program's files then have the numbers that they have without us: a program may close 0 and expect that the next file
 * is 0. Returns DESCRIPTOR if there is no room above, or if it is -1. The new one is closed on exec. */
static inline int descriptor_move_up(int descriptor)
{
    enum { HIGHEST_START = 1 << 16 };
    struct rlimit limit;
    if (descriptor < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return descriptor;
    rlim_t start = limit.rlim_cur / 2 < HIGHEST_START ? limit.rlim_cur / 2 : HIGHEST_START;
    int moved = (rlim_t)descriptor < start ? fcntl(descriptor, F_DUPFD_CLOEXEC, (int)start) : -1;
    if (moved < 0) return descriptor;
    (void)close(descriptor);
    return moved;
}

#endif
