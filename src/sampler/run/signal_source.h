/* Asks running threads for their stacks by a signal from the sampler thread.
 *
 * A signal takes about 10 µs to arrive. A thread that woke up only for a moment is then blocked again, or about to
 * block, and the signal would end its wait with EINTR. A thread that waits for a processor replies when it gets one, at
 * the instruction where it was stopped. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_SOURCE_H
#define OFFBEAT_SAMPLER_SIGNAL_SOURCE_H

#include "sampler/run/sampler_state.h"

/* Gives up the request to THREAD if it blocks the signal. A thread that gets a processor runs the handler first, unless
 * it blocks the signal, or is in a long system call, at whose end it replies. CPU_NS was read before the request is
 * checked. */
void signal_source_watch(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Sends a request to THREAD, which runs and whose clock shows CPU_NS. */
void signal_source_ask(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Sends a request to THREAD unless it may have slept since it was last considered. */
void signal_source_ask_unless_asleep(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Asks THREAD, which waits for a processor, for its stack. It replies when it gets a processor; the reply is for that
 * wait if a timer measures its CPU time. A stop in the timer's last record is not enough to ask: the kernel also stops
 * threads that are about to sleep, if another one wakes them at that moment, and a signal ends such a call. */
void signal_source_ask_for_wait(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Returns true if THREAD, whose CPU clock shows CPU_NS, sleeps in wait for signals. Then it is sent none for a while.
 */
bool signal_source_is_in_sigwait(struct target_thread *thread, uint64_t cpu_ns);

#endif
