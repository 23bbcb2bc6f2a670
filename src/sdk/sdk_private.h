/* What the files of the library's front share: one library a process. Its parts are profiler.h, sender.h and
 * callbacks.h, each with its own lock; locks.h has the order of the locks.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SDK_PRIVATE_H
#define OFFBEAT_SDK_SDK_PRIVATE_H

#include "base/process.h"
#include "sdk/settings.h"

#include <limits.h>
#include <stdatomic.h>
#include <time.h>

/* Without a lock, because also signal handlers, forked children and threads that exit read it. */
struct library {
    atomic_uint process; /* process_number() of the process that the rest belongs to; 0: no function was called yet */
    _Atomic pid_t pid;   /* of the same, as the kernel has it */
    atomic_bool is_on;   /* between init and shutdown; written under LOCK_PROFILER, or without a lock by the end */
    atomic_bool is_running;         /* a profiler is wanted: a forked child starts with that */
    atomic_bool is_without_threads; /* it ended because the kernel denied threads; a forked child may have some */
    atomic_bool is_confined;        /* it ended because of a seccomp filter: it never begins again */
    /* Of the settings: threads of the program ask for them at any time. */
    _Atomic double frame_rate_hz;
    _Atomic uint32_t shutdown_timeout_ms;
};

extern struct library library;

/* False in a child that was made without fork handlers: there every function does nothing. */
bool sdk_is_ours(void);

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
 * made. Any lock may be held. */
bool at_exit_prepare(void);
bool at_exit_is_there(void);
/* The thread ends: there is nothing left to end. */
void at_exit_leave(void);
/* In a forked child: the thread is the parent's. */
void at_exit_forget(void);
/* By exit, on whatever thread calls it, perhaps in a signal handler that interrupted malloc or ourselves. */
void at_exit_run(void);

/* --- sdk.c: the thread that begins again in a forked child; likewise under LOCK_PROFILER -------------------------- */

void rebirth_wake(void);
bool rebirth_is_there(void);
bool rebirth_come_back(void);

/* --- aside.c: the threads that the library has made, which can step aside (aside.h) ------------------------------- */

void own_threads_expect(void); /* before one is made */
void own_threads_begin(const char *name);
void own_threads_end_one(void); /* last of all, or if it could not be made */
/* Gives the calling thread of the library its own table of descriptors, if it may: it must call nothing of the
 * program's, which may use a descriptor. */
void own_threads_take_descriptors(void);
/* Standard error, also on such a thread; -1: the program has none. What is not STDERR_FILENO is the caller's. */
int own_threads_open_standard_error(void);
bool own_threads_have_descriptors(void);          /* whether the calling thread has its own table */
bool own_threads_await_end(uint64_t deadline_ns); /* until the kernel has none of them any more */
void own_threads_forget(void);                    /* in a forked child */
/* A thread that sees this leaves soon, and says so under LOCK_PROFILER, or under the lock of the
 * transport. */
bool own_threads_shall_leave(void);

/* --- recording_folder.c: where recordings and decisions are kept -------------------------------------------------- */

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
