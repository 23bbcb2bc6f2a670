/* A thread that libc knows nothing of.
 *
 * A thread made by libc would change the program: its locks become atomic (a program of one thread skips that), and it
 * would not end when its last own thread does. The price: the new thread may call no function of libc that uses
 * thread-local storage or a lock (system calls go through base/kernel.h), and it does not take part in setuid and its
 * like (see privileges.h). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RAW_THREAD_H
#define OFFBEAT_SAMPLER_RAW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Runs RUN(CONTEXT) with all signals blocked. There is one such thread at a time, whose memory the next one has again:
 * the one before must be about to end, and is waited for for 100 ms. False without memory, if the kernel denies it, or
 * if that one does not end. It ends with RUN or with the process. */
bool raw_thread_start(int (*run)(void *context), void *context);

/* Waits until the thread has left the process, so that the kernel counts it no more. False after LIMIT_NS. */
bool raw_thread_await_end(uint64_t limit_ns);

/* In a forked child, where it is not. */
void raw_thread_forget(void);

#endif
