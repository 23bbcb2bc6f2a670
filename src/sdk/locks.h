/* The locks of the library's front, and their order.
 *
 * A thread takes locks only in the order of enum sdk_lock, top to bottom. The locks of measurements, trace/ and
 * transport/ come after all of them. Each lock_take checks that (base/invariant.h); a lock that is waited for with a
 * deadline may come out of order, because it cannot deadlock.
 *
 * The last three are held for a moment only: never while something may take long or while a function of the program
 * runs. Threads of the program take them.
 *
 * The mutexes are initialised statically, so that any function may be called at any time. A fork handler takes none of
 * them, because the forking thread may hold one: the child starts with new ones. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_LOCKS_H
#define OFFBEAT_SDK_LOCKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum sdk_lock {
    LOCK_TURN,     /* sdk.c: init, shutdown and stepping aside run one at a time */
    LOCK_CALLS,    /* callbacks.c: shared while a function of the program runs; a thread may take it again */
    LOCK_PROFILER, /* profiler.c, and the states of the worker (worker.c) and of the thread of a forked child (sdk.c) */
    LOCK_SENDER,   /* sender.c */
    LOCK_LINES,    /* callbacks.c: lines that wait until no lock is held */
    LOCK_COUNT
};

void lock_take(enum sdk_lock lock); /* here and below: any but LOCK_CALLS */
/* Takes LOCK. False if another thread holds it until DEADLINE_NS. */
bool lock_take_until(enum sdk_lock lock, uint64_t deadline_ns);
void lock_give(enum sdk_lock lock);
/* Gives LOCK, which this thread holds, waits for CHANGED, and takes LOCK again. False after DEADLINE_NS. */
bool lock_wait(enum sdk_lock lock, pthread_cond_t *changed, uint64_t deadline_ns);

/* True if this thread holds LOCK, or, in a signal handler, is just taking or giving it. */
bool lock_is_held(enum sdk_lock lock);
bool lock_any_is_held(void); /* one of the last three */

/* Checks that the calling thread holds LOCK. A failed check is no fault in a child that was forked by a signal handler
 * while its thread held a lock, and that returns from the handler. */
bool lock_check_held(enum sdk_lock lock);

/* Notes the use of LOCK_CALLS, whose lock callbacks.c has: a check of the order, taken, given. */
void lock_check_order(enum sdk_lock lock);
void lock_note_taken(enum sdk_lock lock);
void lock_note_given(enum sdk_lock lock);

/* Frees all locks in a forked child. */
void locks_forget(void);

#endif
