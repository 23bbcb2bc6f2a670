/* Divides the time of each thread. The kernel's numbers say how long: a thread's CPU clock, and schedstat for
 * the time that it waited for a processor; for the rest it was blocked. Stacks only say where. So a scan that comes
 * late stands for all the time since the previous one, and nothing is dropped. doc/decisions/sampler.md describes the
 * estimator. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_LEDGER_H
#define OFFBEAT_SAMPLER_LEDGER_H

#include "sampler/sampler_private.h"

struct found_stack {
    const uint64_t *addresses;
    size_t count;
    uint32_t flags; /* enum unwind_outcome | RECORDING_WITHOUT_SIGNAL */
};

/* Begins with CPU_NS, the clock of THREAD, which is older than the sampler. Time before that is not written. */
void ledger_open_existing(struct target_thread *thread, uint64_t cpu_ns);
/* Writes CPU_NS and the age of a process that was forked for its recording as the start of THREAD. */
void ledger_open_forked(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Begins at the first tick that sees THREAD. */
void ledger_open(struct target_thread *thread);

/* Corrects the start of THREAD, which was scanned before it reported its creation. */
void ledger_note_creation(struct sampler *sampler, struct target_thread *thread);

/* Adds the time since the previous tick. Called at each scan that does not leave THREAD to its last blocked stack. */
void ledger_begin_tick(struct sampler *sampler, struct target_thread *thread);

/* Reads how long THREAD, which has run since the last scan, waited for a processor. Does nothing in CPU mode. */
void ledger_read_run_queue_wait(struct sampler *sampler, struct target_thread *thread);

/* Writes STACK for THREAD's unwritten CPU time, up to CPU_NS of its clock, and for its waits for a processor, unless
 * it is known where these begin (run_queue_waits.c). */
void ledger_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                           const struct found_stack *stack);

/* Writes STACK for THREAD's waits for a processor alone. */
void ledger_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* Writes STACK for the time that THREAD was blocked, and for that of the ticks that follow until it runs. */
void ledger_credit_blocked(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* Writes STACK for the time that THREAD slept before it was woken. */
void ledger_credit_sleep(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* Writes CPU time up to CPU_NS for which there is no stack. */
void ledger_write_lost(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                       enum recording_loss cause);

/* Writes blocked time of THREAD for which the kernel shows no stack. */
void ledger_write_unreadable(struct sampler *sampler, struct target_thread *thread);

/* Returns the unwritten CPU time of THREAD up to CPU_NS, and its unwritten waits for a processor, ns. */
uint64_t ledger_unwritten_cpu_ns(const struct target_thread *thread, uint64_t cpu_ns);
uint64_t ledger_unwritten_wait_ns(const struct target_thread *thread);

/* Counts the state in which a late tick has found THREAD. */
void ledger_note_state(struct sampler *sampler, const struct target_thread *thread);

/* Writes that the open tick's time is written later, unless a sample of it was written. */
void ledger_end_tick(struct sampler *sampler, struct target_thread *thread);

/* Writes the rest of THREAD, which has ended, and ran for UNSEEN_CPU_NS after the last scan. */
void ledger_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

/* Does the same for a thread that has reported when it ended. */
void ledger_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

/* Writes all unwritten time to the last stacks, because THREAD or the recording ends. */
void ledger_write_rest(struct sampler *sampler, struct target_thread *thread);

#endif
