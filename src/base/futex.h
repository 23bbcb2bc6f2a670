/* Waiting for a change of a word in memory, without libc.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_FUTEX_H
#define OFFBEAT_BASE_FUTEX_H

#include "base/kernel.h"
#include "base/timespec.h"

#include <linux/futex.h>

/* Returns at once if *WORD is not VALUE; otherwise waits for futex_wake, until DEADLINE_NS of CLOCK_MONOTONIC at most;
 * 0: without end. May return early. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
    struct timespec deadline = timespec_of(deadline_ns);
    (void)kernel_call6(SYS_futex, (long)(uintptr_t)word, FUTEX_WAIT_BITSET_PRIVATE, value,
                       deadline_ns ? kernel_address(&deadline) : 0, 0, FUTEX_BITSET_MATCH_ANY);
}

/* Wakes all threads of this process that wait for WORD. */
static inline void futex_wake(_Atomic uint32_t *word)
{
    (void)kernel_call3(SYS_futex, (long)(uintptr_t)word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

#endif
