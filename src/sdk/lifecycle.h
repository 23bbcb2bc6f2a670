/* When the profiler runs: SES-2 to SES-11 as a machine without threads, clock, input or output.
 *
 * The caller reports each event, executes the step that is returned, and prints its message for people who debug the
 * program. Random numbers come from the caller, from 0 to below 1. doc/lifecycle.md has the table. Not for several
 * threads: the caller has a lock around each step and what it does for it. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_LIFECYCLE_H
#define OFFBEAT_SDK_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lifecycle_mode { LIFECYCLE_MANUAL, LIFECYCLE_TRACE };

/* The decision of an earlier launch about the profile of this one's start (SES-10). */
enum lifecycle_kept { LIFECYCLE_KEPT_NOTHING, LIFECYCLE_KEPT_NO, LIFECYCLE_KEPT_YES };

/* {0} has the defaults. */
struct lifecycle_options {
    enum lifecycle_mode mode;
    double profile_session_sample_rate;
    bool has_v1;      /* profiles_sample_rate or profiles_sampler is set: the other options have no effect (SES-8) */
    bool has_tracing; /* traces_sample_rate or traces_sampler is set */
    bool is_ui;       /* sessions are a user's, not the process's (SES-9) */
    bool starts_on_app_start;
};

enum lifecycle_action {
    LIFECYCLE_NOTHING,
    LIFECYCLE_START,        /* start the profiler, with a new profiler_id (SES-11) */
    LIFECYCLE_STOP,         /* stop it now, and send what it has */
    LIFECYCLE_RESTART,      /* stop, then start */
    LIFECYCLE_FINISH_CHUNK, /* let it run to the end of the chunk, then call lifecycle_chunk_ended */
    LIFECYCLE_KEEP_ON,      /* let it continue after the chunk that it was finishing */
};

struct lifecycle_step {
    enum lifecycle_action action;
    const char *message; /* constant text, or NULL */
};

enum lifecycle_profiler { LIFECYCLE_IDLE, LIFECYCLE_RUNNING, LIFECYCLE_FINISHING };
enum lifecycle_app_start { LIFECYCLE_STARTED, LIFECYCLE_AWAITS_ROOT, LIFECYCLE_IN_ROOT };

/* Counts sampled roots of one trace that began in one session; a free place has no roots. */
struct lifecycle_trace {
    uint64_t trace;
    uint32_t session, roots;
};

enum { LIFECYCLE_TRACES_MAX = 63 }; /* roots of more open traces do not let later roots join */

/* All members are private unless a comment says public. */
struct lifecycle {
    struct lifecycle_options options;
    enum lifecycle_kept for_next_launch; /* public: decision to keep on disk; KEPT_NOTHING: delete the file */
    enum lifecycle_profiler profiler;    /* public */
    enum lifecycle_app_start app_start;
    bool is_sampled; /* the session */
    bool is_in_background, is_closed;
    bool is_limited; /* public: the server wants no profiles */
    uint32_t session;
    uint32_t profiler_session; /* session in which the profiler was started */
    size_t roots;              /* number of open sampled roots that began in this session */
    size_t carried_roots;      /* number of those that began in an earlier session, for which the profiler still runs */
    struct lifecycle_trace traces[LIFECYCLE_TRACES_MAX];
};

/* Returns warning number INDEX about OPTIONS, a constant string; NULL after the last one. No warning is fatal. */
const char *lifecycle_warning(const struct lifecycle_options *options, size_t index);

/* Returns the first step. DRAW decides the session, unless KEPT did; DRAW_NEXT decides the next launch's start. */
struct lifecycle_step lifecycle_init(struct lifecycle *lifecycle, const struct lifecycle_options *options,
                                     enum lifecycle_kept kept, double draw, double draw_next);

/* Events: the program starts or stops the profiler (SES-4, SES-7). */
struct lifecycle_step lifecycle_start_profiler(struct lifecycle *lifecycle);
struct lifecycle_step lifecycle_stop_profiler(struct lifecycle *lifecycle);

/* Events: a root span begins and ends. IS_SAMPLED is the same both times; with V1 options it is the result of
 * lifecycle_profiles_transaction. TRACE is a hash of its trace's id: a root of a carried trace joins its session. The
 * caller passes RET_TOKEN to lifecycle_root_ended; its highest bit is free. */
struct lifecycle_step lifecycle_root_started(struct lifecycle *lifecycle, bool is_sampled, uint64_t trace,
                                             uint32_t *ret_token);
struct lifecycle_step lifecycle_root_ended(struct lifecycle *lifecycle, uint32_t token, bool is_sampled);
/* True if V1 profiles a transaction. RATE is the answer of profiles_sampler, or profiles_sample_rate without it. */
bool lifecycle_profiles_transaction(const struct lifecycle *lifecycle, bool is_sampled, double rate, double draw);

/* Event: the chunk is full, or was finished because FINISH_CHUNK asked for it. */
struct lifecycle_step lifecycle_chunk_ended(struct lifecycle *lifecycle);

/* Events: the user leaves the program and comes back (SES-9). */
struct lifecycle_step lifecycle_background(struct lifecycle *lifecycle);
struct lifecycle_step lifecycle_foreground(struct lifecycle *lifecycle, double draw);

/* Event: a rate limit of the server for profiles begins or ends (facts §3.7). */
struct lifecycle_step lifecycle_set_limited(struct lifecycle *lifecycle, bool is_limited);

/* Event: the library ends. Every later call does nothing. */
struct lifecycle_step lifecycle_close(struct lifecycle *lifecycle);

#endif
