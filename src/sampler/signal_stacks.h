/* Threads and programs whose stacks have no room for the frame that the kernel writes for a signal: a signal would end
 * them, or overwrite what is below the stack. The kernel shows no thread's alternate stack to another thread, so
 * interpose/ reports them. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_STACKS_H
#define OFFBEAT_SAMPLER_SIGNAL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* False if THREAD must not be sent a signal. From any thread. */
bool signal_stacks_have_room(pid_t thread);

/* --- On a thread of the program; signal-safe ---------------------------------------------------------------------- */

/* THREAD is about to change to an alternate stack. It is taken for a small one: an address that the program gives is
 * read by the kernel only. */
void signal_stacks_expect_small(pid_t thread);

/* A coroutine's stack has BYTES. True if it is the first one without room: from now on no thread has. */
bool signal_stacks_note_coroutine(size_t bytes);

/* In the child: its thread has the alternate stack of the thread that called fork. */
void signal_stacks_after_fork(void);

#endif
