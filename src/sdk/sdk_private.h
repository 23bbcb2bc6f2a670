/* What the files of the library's front share: one library a process.
 *
 * LOCK is taken for a moment only, never while something may take long; it may be taken by threads of the program. The
 * worker alone starts and stops the sampler, by what WANTED says. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SDK_PRIVATE_H
#define OFFBEAT_SDK_SDK_PRIVATE_H

#include "base/uuid.h"
#include "sdk/leftovers.h"
#include "sdk/measurements.h"
#include "sdk/settings.h"
#include "trace/trace.h"
#include "transport/transport.h"

#include <limits.h>
#include <stdatomic.h>

enum {
    SDK_TRANSACTIONS_WAITING_MAX = 8, /* of V1, for their profiles */
    SDK_PROFILED_OPEN_MAX = 64,
};

/* A V1 transaction that is complete and waits for its profile. */
struct waiting_transaction {
    struct trace_transaction *transaction;
    uint64_t end_ns; /* CLOCK_MONOTONIC */
};

struct sdk {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* of the worker's members below */
    bool is_on;             /* between init and shutdown */
    struct settings settings;
    struct lifecycle lifecycle;
    struct transport *transport;    /* started with the first thing to send */
    struct transport_counts counts; /* of the transport that was before: all zero from init on */
    struct measurements measurements;

    /* Who calls a function of the program (log, before_send) holds this for reading. */
    pthread_rwlock_t calling_lock;
    atomic_bool may_call; /* from init until the end of the shutdown */

    /* Under this one alone, because a tracer that closes waits for calls that take LOCK. */
    pthread_rwlock_t tracer_lock;
    struct tracer *tracer;

    /* What the worker shall do; the id is empty if no profiler shall run. */
    struct {
        char profiler_id[UUID_TEXT_SIZE];
        bool is_ending, is_flushing;
        struct waiting_transaction transactions[SDK_TRANSACTIONS_WAITING_MAX];
        size_t transaction_count;
    } wanted;
    bool has_worker;
    struct session session;                   /* the worker's */
    uint64_t flushes;                         /* that the worker has done */
    uint64_t profiled[SDK_PROFILED_OPEN_MAX]; /* V1: when the open profiled transactions began; 0: a free place */
};

extern struct sdk sdk;

void sdk_lock(void);
void sdk_unlock(void);

/* Around each call of a function of the program. False if none may be called any more. */
bool sdk_begin_call(void);
void sdk_end_call(void);

/* A line for people: always, or only where DEBUG is set. */
void sdk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sdk_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Does what the lifecycle says, and says what it says. Under LOCK. */
void sdk_follow(struct lifecycle_step step);

/* The transport, started if it was not. NULL: it cannot be. Under LOCK. */
struct transport *sdk_transport(void);
/* Wraps and sends, unless before_send objects; counts what is not sent. Not under LOCK. */
bool sdk_may_send(const char *type, enum category category, struct slice payload);
void sdk_send(struct buffer *envelope);
void sdk_discard(enum discard_reason reason, enum category category, uint64_t quantity);

uint64_t sdk_monotonic_ns(void);
uint64_t sdk_utc_ns(void);
double sdk_random(void); /* from 0 to below 1 */

/* A detached thread with a small stack, which blocks all signals. */
bool thread_start(void *(*run)(void *context), void *context);

/* Whether `offbeat record` has the sampler (preload.c). */
bool preload_is_recording(void);

/* For a program that the library was preloaded into (preload.c). */
void sdk_init_preloaded(void);

/* --- worker.c: the thread that has the sampler and makes chunks of what it recorded ------------------------------- */

/* Starts the worker if there is none, and wakes it up. Under LOCK. */
void worker_wake(void);

/* --- spans.c ------------------------------------------------------------------------------------------------------ */

struct tracer *spans_tracer_new(const struct settings *settings);
/* The envelope of a transaction that is complete, with its V1 profile or without (empty), is sent. Frees it. */
void spans_send(struct trace_transaction *transaction, struct slice profile);

/* --- folder.c: where recordings and decisions are kept ------------------------------------------------------------ */

/* The folder of recordings, made if it was not there; false if there is no place for one. */
bool folder_of_recordings(const struct settings *settings, char ret_path[PATH_MAX]);
/* The same, if it is there already. */
bool folder_of_leftovers(const struct settings *settings, char ret_path[PATH_MAX]);
/* The one that was made in the folder for what is temporary, if there was none better. */
void folder_remove_temporary(void);
enum lifecycle_kept folder_read_decision(const struct settings *settings);
void folder_keep_decision(const struct settings *settings, enum lifecycle_kept decision);

#endif
