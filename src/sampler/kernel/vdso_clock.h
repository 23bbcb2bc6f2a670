/* The clock, read through the vdso without libc.
 *
 * libc's clock_gettime can be interposed (libfaketime does it), and the other function would run on the sampler thread,
 * which has no thread-local storage, or in the signal handler. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_VDSO_CLOCK_H
#define OFFBEAT_SAMPLER_VDSO_CLOCK_H

#include "base/timespec.h"

/* Finds the vdso's clock_gettime. Call it on a thread of the program before the sampler thread starts. Without it, or
 * without a vdso, clock_ns makes the system call. */
void clock_prepare(void);

/* Returns the address of the vdso's clock_gettime; 0: none was found. */
uint64_t clock_code_address(void);

/* Returns the nanoseconds of CLOCK; 0 if there is no such clock. Signal-safe; keeps errno. */
uint64_t clock_ns(clockid_t clock);

uint64_t monotonic_ns(void);
uint64_t wall_clock_ns(void);

#endif
