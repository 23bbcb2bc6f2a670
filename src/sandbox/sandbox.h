/* Takes from this process what code that reads hostile bytes must not have.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SANDBOX_SANDBOX_H
#define OFFBEAT_SANDBOX_SANDBOX_H

#include "base/status.h"

struct sandbox_limits {
    uint64_t memory_bytes, file_bytes; /* maximum of address space, and of a file that is written */
    unsigned cpu_seconds;
    int descriptors; /* the first descriptor to close; those below stay open */
};

/* Restricts the process, which has one thread, permanently. It can read and write its open descriptors, allocate memory
 * up to the limit and exit. Calls that open, find or name a file, connect, start or signal a process or map code fail
 * with EPERM. The process dies with its parent. A failure leaves the process half restricted: the caller must end it.
 */
enum status sandbox_enter(const struct sandbox_limits *limits, struct error *error);

#endif
