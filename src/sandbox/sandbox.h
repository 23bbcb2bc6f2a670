/* Takes from this process what code that reads hostile bytes must not have.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SANDBOX_SANDBOX_H
#define OFFBEAT_SANDBOX_SANDBOX_H

#include "base/status.h"

struct sandbox_limits {
    uint64_t memory_bytes, file_bytes; /* maximum of address space, and of a file that is written */
    unsigned cpu_seconds;
    int descriptors; /* the first descriptor to close; those below stay open */
};

/* From here on, the process, which has one thread, can read and write its open descriptors, allocate memory up to the
 * limit and end. It can open, find or name no file, connect to nothing, start nothing, signal nothing and map no code:
 * such calls fail with EPERM. It dies with its parent. There is no way back. A failure leaves the process half
 * restricted: the caller has to end it. */
enum status sandbox_enter(const struct sandbox_limits *limits, struct error *error);

#endif
