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

/* Returns whether the caller shall try again to start a thread, after a pause of a millisecond. Call it after each
 * attempt with its errno, ERROR; 0: the thread has started. After 100 denials the limit counts as lasting: no attempt
 * is repeated until a thread starts. */
bool thread_denial_may_end(struct thread_denial *denial, long error);

#endif
