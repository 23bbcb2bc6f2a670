/* Reads the stacks of threads that are blocked in the kernel, from another thread and without waking them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_REMOTE_UNWIND_H
#define OFFBEAT_SAMPLER_REMOTE_UNWIND_H

#include "format/recording/recording_layout.h"
#include "sampler/kernel/proc_files.h"
#include "unwind/unwind.h"

enum remote_unwind_result {
    REMOTE_WALKED,     /* the stack ends at a root, or no more of it can be read */
    REMOTE_INCOMPLETE, /* the walk needs a register that only the thread itself knows */
    REMOTE_RUNNING,    /* the thread runs, or ran meanwhile */
    REMOTE_PENDING,    /* the last address needs a table first: call modules_build, and walk again */
    REMOTE_DENIED,     /* the kernel does not show the registers */
};

struct remote_stack {
    uint64_t addresses[RECORDING_FRAMES_MAX], stack_pointers[RECORDING_FRAMES_MAX];
    size_t count;
    enum unwind_outcome outcome;
    uint64_t argument;   /* first argument of the system call; 0: it is in none */
    bool awaits_signals; /* true if the thread is in sigwait */
};

/* Walks the stack of the thread of FILES, whose CPU clock shows CPU_NS; if it shows the same afterwards, the stack has
 * not moved. */
enum remote_unwind_result remote_unwind(struct thread_files *files, uint64_t cpu_ns,
                                        const struct unwind_modules *modules, struct remote_stack *ret_stack);

/* Returns true if REGISTERS, which a signal found, are those of a thread asleep in a system call, which the signal has
 * interrupted. */
bool registers_are_asleep(const struct unwind_registers *registers);

/* Returns true if REGISTERS, which a signal found, are those of a thread inside a system call. */
bool registers_are_in_call(const struct unwind_registers *registers);

/* Returns true if the thread of FILES runs or waits for a processor, or the kernel does not show it. */
bool thread_is_running(struct thread_files *files);

/* Returns true if thread_is_running has lately seen a thread asleep in a system call that returns to PC. */
bool threads_sleep_at(uint64_t pc);

/* Returns true if the thread of FILES, whose CPU clock shows CPU_NS, sleeps in wait for signals, which could be ours. A
 * thread that returns from sigwait takes signals that are sent to it until it has left the call, which can last long
 * where processors are scarce: it gets none until its clock shows *NO_SIGNAL_UNTIL_NS. */
bool thread_awaits_signals(struct thread_files *files, uint64_t cpu_ns, uint64_t *no_signal_until_ns);
enum { LEFT_ALONE_NS = 10000000 };

#endif
