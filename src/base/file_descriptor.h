/* Descriptors that stay open in somebody else's process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_FILE_DESCRIPTOR_H
#define OFFBEAT_BASE_FILE_DESCRIPTOR_H

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* DESCRIPTOR under a number in the upper half of those that the process may have, so that files which the program opens
 * have the numbers that they have without us: a program may close 0 and rely on it that the next file is 0. Where there
 * is no room, it stays where it is. -1 stays -1. Closed on exec. */
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
