/* Keeps the recorder within its memory: it says how many files with code are too many.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_MEMORY_BUDGET_H
#define OFFBEAT_RECORDER_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_budget {
    uint64_t bytes_max; /* most that this process may have, with what it has in the kernel; 0: any */
    uint64_t bytes;     /* bytes at the last check */
    uint64_t next_ns;   /* time of the next check, CLOCK_MONOTONIC */
    bool is_exceeded;
};

/* Returns the anonymous memory of this process. */
uint64_t memory_budget_own_bytes(void);

/* Takes over that the memory has BYTES, and OPEN files with code are open of FILES_MAX. Returns the number of files to
 * close: what is beyond, or a part of all if there is too little memory. */
size_t memory_budget_note(struct memory_budget *budget, uint64_t bytes, size_t open, size_t files_max);

/* Returns the number of files that may be open: half of what this process may open, and what the kernel's tables take.
 */
size_t memory_budget_files_max(void);

#endif
