/* Stacks of threads that are blocked in the kernel, taken from outside of them, without waking them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_REMOTE_UNWIND_H
#define OFFBEAT_SAMPLER_REMOTE_UNWIND_H

#include "sampler/threads.h"
#include "unwind/unwind.h"

enum remote_unwind_result {
    REMOTE_WALKED,     /* the stack ends at a root, or nobody can read more of it */
    REMOTE_INCOMPLETE, /* a register is needed that only the thread itself knows; it is not woken up for that */
    REMOTE_RUNNING,    /* the thread runs, or ran meanwhile */
    REMOTE_PENDING,    /* the last address needs a table first: modules_build, and again */
    REMOTE_DENIED,     /* the kernel does not say */
};

/* CPU_NS is the thread's CPU time as read before; if it has not changed afterwards, the stack did not move under us. */
enum remote_unwind_result remote_unwind(struct target_thread *thread, uint64_t cpu_ns,
                                        const struct unwind_modules *modules, uint64_t addresses[RECORDING_FRAMES_MAX],
                                        size_t *ret_count, enum unwind_outcome *ret_outcome);

/* True if the thread that a signal found with REGISTERS was asleep in a system call, which the signal broke off. */
bool registers_are_asleep(const struct unwind_registers *registers);

/* True if the thread that a signal found with REGISTERS was inside a system call. */
bool registers_are_in_call(const struct unwind_registers *registers);

/* True also where the kernel does not say. A thread that waits for a processor is running. */
bool thread_is_running(struct target_thread *thread);

/* True if thread_is_running has lately met a thread asleep in a system call that returns to PC. */
bool threads_sleep_at(uint64_t pc);

/* True if THREAD sleeps in wait for signals, of which any that we send could be one. CPU_NS is its CPU time. */
bool thread_awaits_signals(struct target_thread *thread, uint64_t cpu_ns);

#endif
