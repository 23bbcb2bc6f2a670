/* What the files of the library's front share: one library a process.
 *
 * LOCK is taken for a moment only, never while something may take long or while a function of the program runs; it may
 * be taken by threads of the program. The worker alone starts and stops the sampler, by what WANTED says.
 *
 * Locks are initialised statically, so that any function may be called at any time. Their order: TURN (sdk.c), LOCK,
 * then those of trace/ and transport/; CALLING_LOCK is taken with none of them held, or for reading by a thread that
 * holds TURN. A fork handler takes none of them, for the thread that forks may hold one: the child begins with new
 * ones, and takes over only what is atomic (process.h notices a fork also where no fork handler ran).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SDK_PRIVATE_H
#define OFFBEAT_SDK_SDK_PRIVATE_H

#include "base/process.h"
#include "base/uuid.h"
#include "sdk/orphans.h"
#include "sdk/measurements.h"
#include "sdk/settings.h"
#include "trace/trace.h"
#include "transport/transport.h"

#include <limits.h>
#include <stdatomic.h>

enum {
    SDK_TRANSACTIONS_WAITING_MAX = 8, /* of V1, for their profiles */
    SDK_PROFILED_OPEN_MAX = 64,
    SDK_LINES_WAITING_MAX = 4,
    SDK_LINE_SIZE = 1024,
};

/* A V1 transaction that is complete and waits for its profile. */
struct waiting_transaction {
    struct trace_transaction *transaction;
    uint64_t end_ns; /* CLOCK_MONOTONIC */
};

struct sdk {
    atomic_uint process; /* process_number() of the process that the rest belongs to; 0: nobody has called yet */
    _Atomic pid_t pid;   /* of the same, as the kernel has it */
    pthread_mutex_t lock;
    pthread_cond_t changed;         /* of the worker's members below, and of FLUSHER_COUNT */
    atomic_bool is_on;              /* between init and shutdown; written under LOCK */
    atomic_bool is_running;         /* a profiler is wanted: what a forked child begins with */
    atomic_bool is_without_threads; /* it ended because the kernel refused threads; a forked child may have some */
    atomic_bool is_confined;        /* it ended because of a seccomp filter: it never begins again */
    /* Never changed once it is here. Replaced by init alone, when nobody is between sdk_begin_call and sdk_end_call and
     * no worker runs. */
    _Atomic(struct settings *) settings;
    /* Of SETTINGS: threads of the program ask for them at any time. */
    atomic_bool is_debug;
    _Atomic double frame_rate_hz;
    _Atomic uint32_t shutdown_timeout_ms;
    struct lifecycle lifecycle;
    struct transport *transport;    /* started with the first thing to send */
    struct transport_counts counts; /* of the transport that was before: all zero from init on */
    struct measurements measurements;

    /* Whoever calls a function of the program (log, before_send) holds this for reading. */
    pthread_rwlock_t calling_lock;
    atomic_bool may_call;                             /* from init until the end of the shutdown */
    char lines[SDK_LINES_WAITING_MAX][SDK_LINE_SIZE]; /* said under LOCK, for when it is given up */
    size_t line_count;

    struct tracer *tracer;  /* a reference */
    unsigned flusher_count; /* threads that use TRANSPORT without LOCK */

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

/* False in a child that was made without fork handlers: there every function does nothing. */
bool sdk_is_ours(void);

void sdk_lock(void);
void sdk_unlock(void);
bool sdk_holds_lock(void); /* this thread; true as well in a signal handler that interrupted it then */

/* Init, shutdown and stepping aside, one at a time. False if another thread has the turn until DEADLINE_NS. */
bool sdk_take_turn(uint64_t deadline_ns);
void sdk_give_turn(void);
/* Waits for CHANGED until DEADLINE_NS. Under LOCK. False once that is over. */
bool sdk_wait_until(uint64_t deadline_ns);

/* Those of the last init. Only for the worker, the tracer's listener and between sdk_begin_call and sdk_end_call. */
const struct settings *sdk_settings(void);
const struct offbeat_options *sdk_options(void);

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

/* Ends everything within the shutdown timeout, for a process that exits: nothing is freed. Not on the thread that
 * exits.
 */
void sdk_end_at_exit(void);

uint64_t sdk_monotonic_ns(void);
uint64_t sdk_utc_ns(void);
double sdk_random(void); /* from 0 to below 1 */

/* A detached thread with a small stack, which blocks all signals. It calls own_threads_begin first and
 * own_threads_end_one last. */
bool thread_start(void *(*run)(void *context), void *context);

/* Whether `offbeat record` has the sampler (preload.c). */
bool preload_is_recording(void);

/* For a program that the library was preloaded into (preload.c). */
void sdk_init_preloaded(void);

/* --- at_exit.c: the thread that ends the library when the process exits
 * ----------------------------------------------- */

/* Makes that thread, unless it is there. Before the first thing that would have to be ended. False if it cannot be
 * made. Under LOCK. */
bool at_exit_prepare(void);
bool at_exit_is_there(void);
/* The thread ends: there is nothing left to end. */
void at_exit_leave(void);
/* In a forked child: the thread is the parent's. */
void at_exit_forget(void);
/* By exit, on whatever thread calls it, perhaps in a signal handler that interrupted malloc or ourselves. */
void at_exit_run(void);

/* --- worker.c: the thread that has the sampler and makes chunks of what it recorded ------------------------------- */

/* Starts the worker if there is none, and wakes it up. Under LOCK. */
void worker_wake(void);
/* Whether one runs that has not stepped aside. Under LOCK. */
bool worker_is_there(void);
/* Starts one that continues where the last one stepped aside; true if none did. Under LOCK. */
bool worker_come_back(void);
void worker_forget(void); /* in a forked child */

/* --- sdk.c: the thread that begins again in a forked child; the same of it ---------------------------------------- */

void rebirth_wake(void);
bool rebirth_is_there(void);
bool rebirth_come_back(void);

/* --- aside.c: the threads that the library has made, which can step aside (aside.h) ------------------------------- */

void own_threads_expect(void); /* before one is made */
void own_threads_begin(const char *name);
void own_threads_end_one(void);                   /* last of all, or if it could not be made */
bool own_threads_await_end(uint64_t deadline_ns); /* until the kernel has none of them any more */
void own_threads_forget(void);                    /* in a forked child */
/* A thread that sees this leaves soon, and says so under LOCK, or under that of the transport. */
bool own_threads_shall_leave(void);

/* --- spans.c ------------------------------------------------------------------------------------------------------ */

struct tracer *spans_tracer_new(const struct settings *settings);
/* The envelope of a transaction that is complete, with its V1 profile or without (empty), is sent. Frees it. */
void spans_send(struct trace_transaction *transaction, struct slice profile);

/* --- folder.c: where recordings and decisions are kept ------------------------------------------------------------ */

/* The folder of recordings, made if it was not there; false if there is no place for one. */
bool folder_of_recordings(const struct settings *settings, char ret_path[PATH_MAX]);
/* The same, if it is there already. */
bool folder_of_orphans(const struct settings *settings, char ret_path[PATH_MAX]);
/* Two cases in which the user cannot help that no recording can be written: the program has changed its user or its
 * rights, so that the folder at PATH is out of reach; or it was started with the settings of another user. */
bool folder_has_become_anothers(const char *path);
bool folder_is_another_users(const struct settings *settings);
/* The one that was made in the folder for what is temporary, if there was none better. */
void folder_remove_temporary(void);
/* False if there is no folder that could keep a decision for the next launch. */
bool folder_keeps_decisions(const struct settings *settings);
enum lifecycle_kept folder_read_decision(const struct settings *settings);
void folder_keep_decision(const struct settings *settings, enum lifecycle_kept decision);

#endif
