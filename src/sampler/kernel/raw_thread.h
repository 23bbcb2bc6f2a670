/* A thread that libc does not know.
 *
 * A thread made by libc would change the program: its locks become atomic (a program of one thread skips that), and it
 * would not end when its last own thread does. The price: the new thread may call no function of libc that uses
 * thread-local storage or a lock (system calls go through base/kernel.h), and it does not take part in setuid and its
 * like (see privileges.h). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RAW_THREAD_H
#define OFFBEAT_SAMPLER_RAW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a thread that runs RUN(CONTEXT) with all signals blocked, and ends with RUN or with the process. There is one
 * such thread at a time, and the next one has its memory: a previous one must be about to end, and this waits 100 ms
 * for it. Returns false without memory, if the kernel denies it, or if the previous thread does not end. */
bool raw_thread_start(int (*run)(void *context), void *context);

/* Waits until the thread has left the process, and the kernel does not count it. Returns false after LIMIT_NS. */
bool raw_thread_await_end(uint64_t limit_ns);

/* Forgets the thread in a forked child, which does not have it. */
void raw_thread_forget(void);

#endif
