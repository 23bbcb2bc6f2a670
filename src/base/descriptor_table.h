/* Tables of descriptors for our threads in somebody else's process. What a thread with its own table opens takes no
 * number that the program relies on, not even for a moment: a shell closes 0 and opens a file as 0. And no close of the
 * program can hit it. Nothing here uses libc. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_DESCRIPTOR_TABLE_H
#define OFFBEAT_BASE_DESCRIPTOR_TABLE_H

#include <stdbool.h>

/* The calling thread gets its own table, in which nothing of the program's is open but KEPT (-1: nothing). False where
 * the kernel, or a filter (seccomp_filter.h), allows none; all is as before then. */
bool descriptor_table_take(int kept);

#endif
