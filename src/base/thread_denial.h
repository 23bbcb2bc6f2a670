/* Recognizes a temporary failure to create a thread.
 *
 * While one thread of a process runs execve, no other can make a thread that shares its root directory (CLONE_FS, as
 * libc and the sampler do): clone fails with EAGAIN (copy_fs in Linux's kernel/fork.c). Either execve succeeds and ends
 * all other threads, or it fails and threads can be made again. A process at its limit of threads gets the same errno.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_THREAD_DENIAL_H
#define OFFBEAT_BASE_THREAD_DENIAL_H

#include <stdbool.h>

/* The attempts to make one thread; {0} at first. */
struct thread_denial {
    unsigned count;
};

/* To be called after each attempt. ERROR is an errno; 0: the thread was made. True if the caller shall try again: a
 * millisecond has passed then. After 100 denials the kernel seems to mean it: until a thread is made again, attempts
 * are not repeated. */
bool thread_denial_may_end(struct thread_denial *denial, long error);

#endif
