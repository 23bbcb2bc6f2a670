/* How the time of each thread is divided. The kernel's numbers say how long: a thread's CPU clock, and schedstat for
 * the time that it waited for a processor; for the rest it was blocked. Stacks only say where. So a scan that comes
 * late stands for all the time since the one before, and nothing is dropped. doc/decisions/sampler.md describes the
 * estimator. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_ACCOUNT_H
#define OFFBEAT_SAMPLER_ACCOUNT_H

#include "sampler/sampler_private.h"

struct found_stack {
    const uint64_t *addresses;
    size_t count;
    uint32_t flags; /* enum unwind_outcome | RECORDING_WITHOUT_SIGNAL */
};

/* THREAD was there when the sampler was started, with CPU_NS on its clock. What it spent before is not written. */
void account_was_there(struct watched_thread *thread, uint64_t cpu_ns);
/* unless the process was forked for it: then these CPU_NS, and its age, are its start. */
void account_forked(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns);

/* At the first tick that sees THREAD. */
void account_begin(struct watched_thread *thread);

/* The thread, which was looked at before, has said when it was created. */
void account_begins_at(struct sampler *sampler, struct watched_thread *thread);

/* At each scan that does not leave the thread to its last blocked stack: the time since the tick before is to be
 * written.
 */
void account_begin_tick(struct sampler *sampler, struct watched_thread *thread);

/* THREAD has run since the scan before. Wall clock only. */
void account_read_delay(struct sampler *sampler, struct watched_thread *thread);

/* STACK stands for THREAD's CPU time, up to CPU_NS of its clock, that was not written yet, and for its waits for a
 * processor, unless it is known where these begin (waits.c). */
void account_running(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns,
                     const struct found_stack *stack);

/* STACK stands for THREAD's waits for a processor alone. */
void account_waited(struct sampler *sampler, struct watched_thread *thread, const struct found_stack *stack);

/* STACK stands for the time that THREAD was blocked, and for that of the ticks that follow until it runs. */
void account_blocked(struct sampler *sampler, struct watched_thread *thread, const struct found_stack *stack);

/* The same of a thread that slept there and was woken: it is not blocked any more. */
void account_slept(struct sampler *sampler, struct watched_thread *thread, const struct found_stack *stack);

/* No stack stands for the CPU time up to CPU_NS. */
void account_lost(struct sampler *sampler, struct watched_thread *thread, uint64_t cpu_ns, enum recording_loss cause);

/* THREAD is blocked, and the kernel does not show where. */
void account_unreadable(struct sampler *sampler, struct watched_thread *thread);

/* CPU time of THREAD, and its waits for a processor, that were not written yet. */
uint64_t account_unwritten_cpu_ns(const struct watched_thread *thread, uint64_t cpu_ns);
uint64_t account_unwritten_wait_ns(const struct watched_thread *thread);

/* A late tick has met THREAD. */
void account_note_state(struct sampler *sampler, const struct watched_thread *thread);

/* Writes that the open tick's time is written later, unless a sample of it was written. */
void account_end_tick(struct sampler *sampler, struct watched_thread *thread);

/* THREAD has ended, and ran for UNSEEN_CPU_NS after the last scan. */
void account_end(struct sampler *sampler, struct watched_thread *thread, uint64_t unseen_cpu_ns);

/* THREAD has ended, and said when. It ran for UNSEEN_CPU_NS after the last scan. */
void account_end_as_reported(struct sampler *sampler, struct watched_thread *thread, uint64_t unseen_cpu_ns);

/* What was not written yet, to the last stacks: THREAD or the recording ends. */
void account_rest(struct sampler *sampler, struct watched_thread *thread);

#endif
