/* The state of the library, one per process, that all files of this folder share. Its parts are profiler.h, sender.h
 * and callbacks.h, each with its own lock; locks.h has the order of the locks.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SDK_PRIVATE_H
#define OFFBEAT_SDK_SDK_PRIVATE_H

#include "base/clocks.h"
#include "base/process.h"
#include "sdk/memory_sanitizer.h"
#include "sdk/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <time.h>

/* --- errno: programs do not expect our functions to change it ---------------------------------------------------- */

static inline int errno_keep(void)
{
    memory_sanitizer_enter();
    return errno;
}

static inline void errno_restore(const int *kept)
{
    memory_sanitizer_leave();
    errno = *kept;
}

/* Begins a part of the library, which ends with the block and restores errno. */
#define KEEP_ERRNO __attribute__((cleanup(errno_restore), unused)) const int kept_errno = errno_keep()

/* --- State -------------------------------------------------------------------------------------------------------- */

/* Has no lock, because signal handlers, forked children and exiting threads read it, too. */
struct library {
    atomic_uint process; /* process_number() of the process that the rest belongs to; 0: no function was called yet */
    _Atomic pid_t pid;   /* id of that process in the kernel */
    atomic_bool is_on;   /* init was called, not shutdown; written under LOCK_PROFILER, or without a lock by the end */
    atomic_bool is_running; /* a profiler is wanted: a forked child starts with that */
    atomic_bool
        is_without_threads;  /* the library ended because the kernel denied threads; a forked child may have some */
    atomic_bool is_confined; /* a seccomp filter ended the library: it never begins again */
    /* Copies from the settings, for threads that read them at any time. */
    _Atomic double frame_rate_hz;
    _Atomic uint32_t shutdown_timeout_ms;
    atomic_bool calls_program; /* true if LOG or BEFORE_SEND is set */
};

extern struct library library;

/* False in a child that was made without fork handlers: every function does nothing there. */
bool sdk_is_ours(void);

double sdk_random(void); /* from 0 to below 1 */

/* Starts a detached thread with a small stack, which blocks all signals. RUN calls own_threads_begin first and
 * own_threads_end_one last. */
bool thread_start(void *(*run)(void *context), void *context);

/* True if `offbeat record` uses the sampler (preload.c). */
bool preload_is_recording(void);

/* Initialises the library in a program that does not know it (preload.c). */
void sdk_init_preloaded(void);

/* --- sdk.c: the end of the process, which the worker does: the thread that exits may hold any lock ---------------- */

/* True if the process exits. */
bool end_at_exit_is_wanted(void);
/* Closes the tracer and stops profiling, by DEADLINE_NS. */
void end_at_exit_begin(uint64_t deadline_ns);
/* The last call of the worker then. */
void end_at_exit_finish(void);

/* --- sdk.c: the thread that starts the library again in a forked child; called under LOCK_PROFILER ---------------- */

void rebirth_wake(void);
bool rebirth_is_there(void);
bool rebirth_come_back(void);

/* --- aside.c: the library's threads, which can step aside (aside.h) ----------------------------------------------- */

void own_threads_expect(void); /* called ahead of starting a thread */
void own_threads_begin(const char *name);
bool own_threads_are_calling(void); /* true on a thread of the library */
void own_threads_end_one(void);     /* the last call of a thread, or of the caller if the thread could not be started */
/* Gives the calling thread of the library its own table of descriptors, unless it may call functions of the program,
 * which may use a descriptor. */
void own_threads_take_descriptors(void);
/* Returns standard error, also on a thread with its own table; -1: the program has none. The caller owns a descriptor
 * other than STDERR_FILENO. */
int own_threads_open_standard_error(void);
bool own_threads_have_descriptors(void);          /* true if the calling thread has its own table */
bool own_threads_await_end(uint64_t deadline_ns); /* waits until the kernel has none of the threads */
void own_threads_forget(void);                    /* resets the state in a forked child */
/* True if the threads must step aside: the calling thread leaves soon, and reports it under LOCK_PROFILER. */
bool own_threads_shall_leave(void);

/* --- spool_folder.c: where recordings, envelopes and decisions are kept ------------------------------------------- */

struct spool_folder {
    char root[PATH_MAX];   /* the spool folder, with the helper's lock (spool/exchange.h) */
    char server[PATH_MAX]; /* the server's folder in it */
};

/* Finds the folder, and makes it if it did not exist. False if there is no place for one: ERROR says why the first
 * place cannot be used. */
bool spool_folder_choose(const struct settings *settings, struct spool_folder *ret_folder, struct error *error);
/* True if an earlier launch, or another process, has left something to send. */
bool spool_folder_has_rest(const struct settings *settings);
/* True if the folder at PATH is out of reach, because the program has changed its user or its rights. */
bool folder_has_become_anothers(const char *path);
/* Removes the folder that was made for a program that wants none to stay. */
void folder_remove_temporary(void);
/* False if no folder could keep a decision for the next launch. */
bool folder_keeps_decisions(const struct settings *settings);
enum lifecycle_kept folder_read_decision(const struct settings *settings);
void folder_keep_decision(const struct settings *settings, enum lifecycle_kept decision);

#endif
