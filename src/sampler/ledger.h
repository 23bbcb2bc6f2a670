/* How the time of each thread is divided. The kernel's numbers say how long: a thread's CPU clock, and schedstat for
 * the time that it waited for a processor; for the rest it was blocked. Stacks only say where. So a scan that comes
 * late stands for all the time since the one before, and nothing is dropped. doc/decisions/sampler.md describes the
 * estimator. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_LEDGER_H
#define OFFBEAT_SAMPLER_LEDGER_H

#include "sampler/sampler_private.h"

struct found_stack {
    const uint64_t *addresses;
    size_t count;
    uint32_t flags; /* enum unwind_outcome | RECORDING_WITHOUT_SIGNAL */
};

/* THREAD was there when the sampler was started, with CPU_NS on its clock. What it spent before is not written. */
void ledger_open_existing(struct target_thread *thread, uint64_t cpu_ns);
/* unless the process was forked for it: then these CPU_NS, and its age, are its start. */
void ledger_open_forked(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* At the first tick that sees THREAD. */
void ledger_open(struct target_thread *thread);

/* The thread, which was looked at before, has said when it was created. */
void ledger_note_creation(struct sampler *sampler, struct target_thread *thread);

/* At each scan that does not leave the thread to its last blocked stack: the time since the tick before is to be
 * written.
 */
void ledger_begin_tick(struct sampler *sampler, struct target_thread *thread);

/* THREAD has run since the scan before. Wall clock only. */
void ledger_read_run_queue_wait(struct sampler *sampler, struct target_thread *thread);

/* STACK stands for THREAD's CPU time, up to CPU_NS of its clock, that was not written yet, and for its waits for a
 * processor, unless it is known where these begin (run_queue_waits.c). */
void ledger_credit_running(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                           const struct found_stack *stack);

/* STACK stands for THREAD's waits for a processor alone. */
void ledger_credit_wait(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* STACK stands for the time that THREAD was blocked, and for that of the ticks that follow until it runs. */
void ledger_credit_blocked(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* The same of a thread that slept there and was woken: it is not blocked any more. */
void ledger_credit_sleep(struct sampler *sampler, struct target_thread *thread, const struct found_stack *stack);

/* No stack stands for the CPU time up to CPU_NS. */
void ledger_write_lost(struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns,
                       enum recording_loss cause);

/* THREAD is blocked, and the kernel does not show where. */
void ledger_write_unreadable(struct sampler *sampler, struct target_thread *thread);

/* CPU time of THREAD, and its waits for a processor, that were not written yet. */
uint64_t ledger_unwritten_cpu_ns(const struct target_thread *thread, uint64_t cpu_ns);
uint64_t ledger_unwritten_wait_ns(const struct target_thread *thread);

/* A late tick has met THREAD. */
void ledger_note_state(struct sampler *sampler, const struct target_thread *thread);

/* Writes that the open tick's time is written later, unless a sample of it was written. */
void ledger_end_tick(struct sampler *sampler, struct target_thread *thread);

/* THREAD has ended, and ran for UNSEEN_CPU_NS after the last scan. */
void ledger_close(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

/* THREAD has ended, and said when. It ran for UNSEEN_CPU_NS after the last scan. */
void ledger_close_as_reported(struct sampler *sampler, struct target_thread *thread, uint64_t unseen_cpu_ns);

/* What was not written yet, to the last stacks: THREAD or the recording ends. */
void ledger_write_rest(struct sampler *sampler, struct target_thread *thread);

#endif
