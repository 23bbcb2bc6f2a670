/* Decides which thread is asked when, and by which way, so that programs are disturbed as little as possible.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_POLICY_H
#define OFFBEAT_SAMPLER_POLICY_H

#include "sampler/run/sampler_state.h"

/* The numbers of the policy, each with its reason. */
enum policy_number {
    /* Rechecks: a thread that is awake for a moment would be about to sleep when a signal arrives, 10 µs later. */
    POLICY_SELDOM_AWAKE = 16,        /* divisor: a thread that runs for a smaller part of two ticks is seldom awake */
    POLICY_LASTING_NS = 50000,       /* CPU time after which a thread is not about to sleep again, ns */
    POLICY_RECHECK_ROUNDS_MAX = 3,   /* rounds; a tick that lasts longer would see the other threads late */
    POLICY_RECHECKS_MAX = 256,       /* threads; further ones are asked at once */
    POLICY_RECHECK_AFTER_NS = 60000, /* pause before the first round, ns; each further one is twice as long */
    POLICY_RECHECK_LATE_NS = 200000, /* delay after which rechecks are given up, ns; timers are not late by so much */

    /* Threads that do not reply, or have no timer yet. */
    POLICY_TICKS_WITHOUT_REPLY_MAX = 2, /* ticks of a running thread until it is checked whether it blocks the signal */
    POLICY_PERIODS_TO_WAIT = 4, /* periods of CPU time to wait for a timer or a reply before another way is tried */

    /* Thousands of threads that start together are read in several ticks, so that no tick takes long. */
    POLICY_FIRST_SCANS_A_SECOND = 25600,
};

/* Ways to ask a running thread that no timer samples. */
enum policy_way {
    POLICY_ASK,               /* a signal at once */
    POLICY_ASK_UNLESS_ASLEEP, /* a signal if it has not slept since it was last considered; else POLICY_RECHECK */
    POLICY_RECHECK,           /* a signal if a recheck finds it still running */
};

/* Returns the limit of requests in the open tick. If ticks are late, threads without a stack have precedence. */
uint32_t policy_requests_max(const struct sampler *sampler, const struct target_thread *thread);

/* Returns true if the kernel takes THREAD's stacks of user code. Signals are for its calls, and come from its CPU clock
 * where that is possible. A first stack need not be exact. */
bool policy_asks_for_calls(const struct target_thread *thread);

/* Returns true if THREAD's CPU time needs no signal, because its timer reports it, sooner or later. */
bool policy_leaves_to_timer(const struct sampler *sampler, struct target_thread *thread, uint64_t cpu_ns);

/* Returns false if the first stack of THREAD is to be read at a later tick, and counts for this one, too: reading
 * thousands of threads that started together must not take several ticks. */
bool policy_allows_first_scan(struct sampler *sampler, const struct target_thread *thread);

/* Returns how to ask THREAD, which runs and has run for CPU_NS: a thread that runs only for a moment would be about to
 * sleep when the signal arrives. A late tick checks no thread again; it asks such a thread only if it was preempted, or
 * has never slept. A new thread that has run for a while and never slept does not wait for a recheck, nor does the
 * first thread of a process that has not slept since the recording began: they may end soon. MAY_RECHECK: there is room
 * for one more. */
enum policy_way policy_for_running(const struct sampler *sampler, const struct target_thread *thread, uint64_t cpu_ns,
                                   bool is_busy, bool may_recheck);

#endif
