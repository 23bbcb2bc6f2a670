/* The kernel's number of a thread by its pthread_t. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_INTERPRETERS_THREAD_NUMBER_H
#define OFFBEAT_INTERPRETERS_THREAD_NUMBER_H

#include "interpreters/process_memory.h"

/* Offset of the kernel's number of a thread in glibc's struct pthread, at the address that pthread_self returns. */
#if defined(__aarch64__)
enum { GLIBC_THREAD_ID = 208 };
#else
enum { GLIBC_THREAD_ID = 720 };
#endif

/* Returns the number of the thread whose pthread_t is IDENTITY, by glibc's own note of it, which is right after a fork,
 * too; 0: it has none. */
static inline int thread_number(uint64_t identity, const struct process_memory *memory, struct memory_pieces *pieces)
{
    int tid = 0;
    if (!process_memory_read(memory, pieces, identity + GLIBC_THREAD_ID, &tid, sizeof(tid)) || tid < 0) return 0;
    return tid;
}

#endif
