/* Decides which thread is asked when, and by which way, so that programs are disturbed as little as possible.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_POLICY_H
#define OFFBEAT_SAMPLER_POLICY_H

#include "sampler/run/sampler_state.h"

/* The numbers of the policy, each with its reason. */
enum policy_number {
    /* Rechecks: a thread that is awake for a moment would be about to sleep when a signal arrives, 10 µs later. */
    POLICY_SELDOM_AWAKE = 16,        /* divisor: a thread that runs for a smaller part of two ticks is seldom awake */
    POLICY_RECHECK_ROUNDS_MAX = 3,   /* rounds; a tick that lasts longer would see the other threads late */
    POLICY_RECHECKS_MAX = 256,       /* threads; further ones are asked at once */
    POLICY_RECHECK_AFTER_NS = 60000, /* pause before the first round, ns; each further one is twice as long */
    POLICY_RECHECK_LATE_NS = 200000, /* delay after which rechecks are given up, ns; timers are not late by so much */

    /* Thousands of threads that start together are read in several ticks, so that no tick takes long. */
    POLICY_FIRST_SCANS_A_SECOND = 25600,
};

enum policy_recheck {
    POLICY_NO_RECHECK,
    POLICY_RECHECK,      /* it is asked if a recheck finds it still running */
    POLICY_RECHECK_WAIT, /* it is asked where it waits if a recheck finds that it does */
};

/* Facts of a thread, one bit each. */
enum policy_fact {
    POLICY_WAITS_LONG = 1 << 0,      /* it has waited for a processor since long before the last tick */
    POLICY_STOPS_SEEN = 1 << 1,      /* a source sees where it waits, or can be had for that */
    POLICY_NEEDS_TABLE = 1 << 2,     /* it is blocked, and its stack needs a table that is being built */
    POLICY_COMES = 1 << 3,           /* a source brings a stack of its CPU time */
    POLICY_RUNS = 1 << 4,            /* it runs, or waits for a processor */
    POLICY_WAITS_ARE_ASKED = 1 << 5, /* nothing but a request can show where it waits */
    POLICY_BUSY = 1 << 6,            /* it ran for long before the last two ticks */
    POLICY_IN_CALLS = 1 << 7,        /* its user code is sampled, and its calls are to be found */
    POLICY_NO_TIME = 1 << 8,         /* ticks are too close for rechecks: more than 1 kHz */
    POLICY_NO_ROOM = 1 << 9,         /* no further thread can be rechecked at this tick */
    POLICY_LATE = 1 << 10,           /* the tick is late */
    POLICY_SEES_USER_CODE = 1 << 11, /* its user code is sampled, and there is no stack of it */
    POLICY_STARTER = 1 << 12,        /* it started the sampler, and there is no stack of it */
    POLICY_NEW = 1 << 13,            /* it is scanned for the first time, and has run for a while */
};

struct policy_row {
    uint32_t facts;              /* all of these must hold; 0: the last row */
    enum source_need need;       /* the request that is made at once */
    enum policy_recheck recheck; /* the check that follows, unless the thread was asked */
};

/* All rows. The first one whose facts hold is chosen. */
extern const struct policy_row policy_rows[];
const struct policy_row *policy_choose(uint32_t facts);

/* Returns what is known of THREAD, which has run; READ: what came of reading it as a blocked thread. */
uint32_t policy_facts_of_running(struct sampler *sampler, struct target_thread *thread, enum source_offer read,
                                 bool is_busy);
/* Returns what is known of THREAD, which is not blocked and has not run since the last tick. */
uint32_t policy_facts_of_waiting(struct sampler *sampler, struct target_thread *thread);

/* Returns the limit of requests in the open tick. If ticks are late, threads without a stack have precedence. */
uint32_t policy_requests_max(const struct sampler *sampler, const struct target_thread *thread);

/* Returns false if the first stack of THREAD is to be read at a later tick, and counts for this one, too: reading
 * thousands of threads that started together must not take several ticks. */
bool policy_allows_first_scan(struct sampler *sampler, const struct target_thread *thread);

/* Notes that THREAD ran for RAN_NS before the tick. Returns true if it is busy: only two long runs in a row count,
 * because in a virtual machine the kernel adds time of the host to the thread. */
bool policy_note_run(const struct sampler *sampler, struct target_thread *thread, uint64_t ran_ns);

#endif
