/* SPDX-License-Identifier: MIT */
#include "sdk/locks.h"

#include "base/invariant.h"
#include "base/timespec.h"

#include <stdatomic.h>
#include <string.h>

/* See other_libc.c. */
#pragma weak pthread_mutex_clocklock
#pragma weak pthread_cond_clockwait

#define ALL_FREE                                                                                                       \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,    \
            PTHREAD_MUTEX_INITIALIZER                                                                                  \
    }
static pthread_mutex_t mutexes[] = ALL_FREE; /* the mutex of LOCK_CALLS is not used */
_Static_assert(sizeof(mutexes) / sizeof(mutexes[0]) == LOCK_COUNT, "a mutex for each lock");

/* Number of times that this thread holds each lock, eight bits each, so that the order is one comparison.
 * Initial-exec: see trace/current_thread.c. */
static __thread uint64_t held __attribute__((tls_model("initial-exec")));

enum { BITS = 8, COUNT_MAX = 255 };
_Static_assert(LOCK_COUNT *BITS <= 64, "a count for each lock");

static uint64_t count_of(enum sdk_lock lock)
{
    return held >> lock * BITS & COUNT_MAX;
}

static atomic_bool was_forked_while_held;

void lock_check_order(enum sdk_lock lock)
{
    unsigned first = lock == LOCK_CALLS ? lock + 1 : lock; /* LOCK_CALLS may be taken again */
    /* In the field the lock is taken nevertheless: a wrong order may deadlock, but seldom does. */
    (void)INVARIANT(held >> first * BITS == 0);
}

void lock_note_taken(enum sdk_lock lock)
{
    if (count_of(lock) < COUNT_MAX) held += UINT64_C(1) << lock * BITS;
}

void lock_note_given(enum sdk_lock lock)
{
    /* A child that was forked between taking and giving holds nothing. */
    if (count_of(lock) > 0) held -= UINT64_C(1) << lock * BITS;
}

void lock_take(enum sdk_lock lock)
{
    lock_check_order(lock);
    (void)pthread_mutex_lock(&mutexes[lock]);
    lock_note_taken(lock);
}

bool lock_take_until(enum sdk_lock lock, uint64_t deadline_ns)
{
    const struct timespec deadline = timespec_of(deadline_ns);
    /* TSan knows only the first of the two calls. */
    if (pthread_mutex_trylock(&mutexes[lock]) != 0 &&
        pthread_mutex_clocklock(&mutexes[lock], CLOCK_MONOTONIC, &deadline) != 0)
        return false;
    lock_note_taken(lock);
    return true;
}

void lock_give(enum sdk_lock lock)
{
    lock_note_given(lock);
    (void)pthread_mutex_unlock(&mutexes[lock]);
}

bool lock_wait(enum sdk_lock lock, pthread_cond_t *changed, uint64_t deadline_ns)
{
    const struct timespec deadline = timespec_of(deadline_ns);
    if (!lock_check_held(lock)) return false;
    lock_note_given(lock);
    bool is_woken = pthread_cond_clockwait(changed, &mutexes[lock], CLOCK_MONOTONIC, &deadline) == 0;
    lock_note_taken(lock);
    return is_woken;
}

bool lock_is_held(enum sdk_lock lock)
{
    return count_of(lock) > 0;
}

bool lock_check_held(enum sdk_lock lock)
{
    return INVARIANT(lock_is_held(lock) || atomic_load(&was_forked_while_held));
}

bool lock_any_is_held(void)
{
    return held >> LOCK_PROFILER * BITS != 0;
}

void locks_forget(void)
{
    static const pthread_mutex_t all_free[LOCK_COUNT] = ALL_FREE;
    if (held != 0) atomic_store(&was_forked_while_held, true);
    memcpy(mutexes, all_free, sizeof(mutexes));
    held = 0;
}
