/* What the sampler asks the kernel about its own process.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SELF_H
#define OFFBEAT_SAMPLER_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t self_monotonic_ns(void);
uint64_t self_wall_ns(void);

/* Gives the calling thread a table of descriptors of its own, empty: nothing that it opens takes a number from the
 * program, nothing of the program is kept open by it, and no close by the program can hit it. False where the kernel
 * (before 5.9, or a seccomp filter) refuses. */
bool self_own_descriptors(void);
bool self_has_own_descriptors(void);
void self_close_descriptors(void); /* those that this file keeps open */

/* True if system calls that are out of the ordinary could end this process: a seccomp filter is in place. */
bool self_is_confined(void);

/* Copies memory of this process that may vanish at any time. The bytes that could be read, from ADDRESS on. Through
 * /proc/self/mem, which needs no call that a filter could object to. */
size_t self_read_memory(uint64_t address, void *buffer, size_t size);

/* The whole of a small file under /proc, NUL-terminated, cut at SIZE - 1. Negative if it cannot be read. */
ssize_t self_read_file(const char *path, char *buffer, size_t size);

#endif
