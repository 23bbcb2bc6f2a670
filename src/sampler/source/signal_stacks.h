/* Threads and programs whose stacks have no room for the frame that the kernel writes for a signal: a signal would end
 * them, or overwrite what is below the stack. The kernel shows no thread's alternate stack to another thread, so
 * interpose/ reports them. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_STACKS_H
#define OFFBEAT_SAMPLER_SIGNAL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns false if THREAD must not be sent a signal. From any thread. */
bool signal_stacks_have_room(pid_t thread);

/* --- On a thread of the program; signal-safe ---------------------------------------------------------------------- */

/* Notes that THREAD is about to change its alternate stack. It is taken for a small one: only the kernel reads
 * addresses that the program passes. */
void signal_stacks_expect_small(pid_t thread);

/* Notes that a coroutine's stack has BYTES. Returns true if it is the first one without room: from now on no thread has
 * room. */
bool signal_stacks_note_coroutine(size_t bytes);

/* Starts again in a forked child, whose thread has the alternate stack of the thread that called fork. */
void signal_stacks_after_fork(void);

#endif
