/* Threads and programs whose stacks have no room for the frame that the kernel writes for a signal: a signal would end
 * them, or overwrite what is below the stack. The kernel shows no thread's alternate stack to another thread, so
 * interpose/ reports them. It also reports that the program changes what it does at the signal, or calls exec.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_STACKS_H
#define OFFBEAT_SAMPLER_SIGNAL_STACKS_H

#include <stdbool.h>
#include <sys/types.h>

/* After fork, in the child: its thread has the alternate stack of the thread that called fork. */
void signal_stacks_after_fork(void);

/* --- On the sampler thread ---------------------------------------------------------------------------------------- */

/* False if THREAD must not be sent a signal. */
bool signal_stacks_have_room(pid_t thread);

/* The same, and if it returns true, a signal may be sent until signal_stacks_sent: until then, the thread does not
 * change to a small stack. */
bool signal_stacks_before_sending(pid_t thread);
void signal_stacks_sent(void);

/* True if a thread may be about to exec. To be asked between these two. */
bool signal_stacks_expect_exec(void);

#endif
