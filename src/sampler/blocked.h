/* Stacks of threads that are blocked in the kernel, taken from outside of them, without waking them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_BLOCKED_H
#define OFFBEAT_SAMPLER_BLOCKED_H

#include "sampler/threads.h"
#include "unwind/unwind.h"

enum blocked_result {
    BLOCKED_WALKED,       /* the stack is whole, or as whole as it can be */
    BLOCKED_RUNNING,      /* the thread runs, or ran meanwhile */
    BLOCKED_PENDING,      /* the last address needs a table first: modules_build, and again */
    BLOCKED_NEEDS_SIGNAL, /* a register is needed that only the thread itself knows */
    BLOCKED_REFUSED,      /* the kernel does not tell */
};

/* CPU_NS is the thread's CPU time as read before; if it has not changed afterwards, the stack did not move under us. */
enum blocked_result blocked_walk(struct watched_thread *thread, uint64_t cpu_ns, const struct unwind_modules *modules,
                                 uint64_t addresses[RECORDING_FRAMES_MAX], size_t *ret_count,
                                 enum unwind_outcome *ret_outcome);

/* THREAD was signalled because its stack could not be walked from outside, and answered with SLOT: when it is blocked
 * at the same place again, and the registers that it had there lead to the same stack, it is walked without a signal.
 */
void blocked_remember(struct watched_thread *thread, const struct slot *slot);

/* True if the thread that a signal found with REGISTERS was asleep in a system call, which the signal broke off. */
bool blocked_was_asleep(const struct unwind_registers *registers);

/* True if the thread that a signal found with REGISTERS was inside a system call. */
bool blocked_was_in_call(const struct unwind_registers *registers);

/* True also where the kernel does not tell. A thread that waits for a processor is running. */
bool blocked_is_running(struct watched_thread *thread);

/* True if THREAD sleeps in wait for signals, of which any that we send could be one. CPU_NS is its CPU time. */
bool blocked_awaits_signals(struct watched_thread *thread, uint64_t cpu_ns);

#endif
