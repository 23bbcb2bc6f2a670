/* Where threads wait for a processor. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_RUN_QUEUE_WAITS_H
#define OFFBEAT_SAMPLER_RUN_QUEUE_WAITS_H

#include "sampler/run/sampler_state.h"

enum { LONG_WAIT_NS = 8000000 }; /* a wait that is long enough to deserve its own stack, ns */

/* Returns true if THREAD may have a timer that sees where its waits begin. */
bool run_queue_waits_may_have_timer(const struct target_thread *thread);

/* Notes that THREAD has WAIT_NS of unwritten waits. If that is much, its waits are observed from now on. */
void run_queue_waits_note(struct sampler *sampler, struct target_thread *thread, uint64_t wait_ns);

/* Returns true if THREAD's waits are observed, so that other stacks do not stand for them. */
bool run_queue_waits_are_seen(const struct sampler *sampler, const struct target_thread *thread);

/* Chooses one of the waits that have ended, at random in proportion to their lengths. Returns false if there is none;
 * else *RET_SAMPLE is where it began. */
bool run_queue_waits_fetch_stop(struct sampler *sampler, struct target_thread *thread,
                                struct perf_timer_sample *ret_sample);

/* Returns true if THREAD has no right to such a timer, and is to be asked by a signal when it is seen waiting. */
bool run_queue_waits_are_asked(const struct target_thread *thread);
void run_queue_waits_note_request(const struct sampler *sampler, struct target_thread *thread, bool is_sent);
void run_queue_waits_note_reply(struct target_thread *thread, bool was_in_call);

#endif
