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
static pthread_mutex_t mutexes[] = ALL_FREE; /* that of LOCK_CALLS is not used */
_Static_assert(sizeof(mutexes) / sizeof(mutexes[0]) == LOCK_COUNT, "a mutex for each lock");

/* How often this thread holds each lock. Initial-exec: see trace/thread.c. */
static __thread uint8_t held[LOCK_COUNT] __attribute__((tls_model("initial-exec")));

static atomic_bool was_forked_while_held;

static bool is_in_order(enum sdk_lock lock)
{
    for (unsigned i = lock; i < LOCK_COUNT; i++) {
        if (held[i] > 0 && !(i == lock && lock == LOCK_CALLS)) return false;
    }
    return true;
}

/* In the field the lock is taken nevertheless: a wrong order may deadlock, but seldom does. */
void lock_check_order(enum sdk_lock lock)
{
    (void)INVARIANT(is_in_order(lock));
}

void lock_note_taken(enum sdk_lock lock)
{
    held[lock]++;
}

/* In a child that was forked between taking and giving, nothing is held. */
void lock_note_given(enum sdk_lock lock)
{
    if (held[lock] > 0) held[lock]--;
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
    if (pthread_mutex_clocklock(&mutexes[lock], CLOCK_MONOTONIC, &deadline) != 0) return false;
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
    return held[lock] > 0;
}

bool lock_check_held(enum sdk_lock lock)
{
    return INVARIANT(lock_is_held(lock) || atomic_load(&was_forked_while_held));
}

bool lock_any_is_held(void)
{
    return held[LOCK_PROFILER] > 0 || held[LOCK_SENDER] > 0 || held[LOCK_LINES] > 0;
}

void locks_forget(void)
{
    static const pthread_mutex_t all_free[LOCK_COUNT] = ALL_FREE;
    bool has_held = false;
    for (unsigned i = 0; i < LOCK_COUNT; i++) has_held = has_held || held[i] > 0;
    if (has_held) atomic_store(&was_forked_while_held, true);
    memcpy(mutexes, all_free, sizeof(mutexes));
    memset(held, 0, sizeof(held));
}
