/* The settings, and the calls of the functions in them, which belong to the program: log, before_send, samplers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_CALLBACKS_H
#define OFFBEAT_SDK_CALLBACKS_H

#include "sdk/locks.h"
#include "sdk/settings.h"

/* Returns the settings of the last init; NULL before it. They never change after they are published; only init replaces
 * them. Valid for the worker, the tracer's listener, and between callback_begin and callback_end. */
const struct settings *sdk_settings(void);
const struct offbeat_options *sdk_options(void); /* never NULL */

/* Takes and gives LOCK_CALLS, shared, around each call of a function of the program. False if no call is allowed. */
bool callback_begin(void);
void callback_end(void);

/* Prints a line for people. If this thread holds a lock, the line is queued until the thread releases its last lock.
 * Otherwise the program's log function could wait for a lock of the program, whose owner waits for ours. */
void sdk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line in the same way, only with the option debug. */
void sdk_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes LINE immediately, to the log that OPTIONS names. */
void callbacks_write_line(const struct offbeat_options *options, const char *line);

/* Takes LOCK until the end of the block. */
#define HOLD_LOCK(lock)                                                                                                \
    __attribute__((cleanup(callbacks_give_held), unused)) const enum sdk_lock held_lock = callbacks_take_lock(lock)

/* Queue the lines of this thread, which has a lock of trace/ that the program's log function may wait for, and write
 * them. The second does nothing without the first. */
void callbacks_hold_lines(void);
void callbacks_release_lines(void);

/* Gives LOCK and then writes the queued lines. */
void callbacks_give_lock(enum sdk_lock lock);

static inline enum sdk_lock callbacks_take_lock(enum sdk_lock lock)
{
    lock_take(lock);
    return lock;
}

static inline void callbacks_give_held(const enum sdk_lock *lock)
{
    callbacks_give_lock(*lock);
}

/* Publishes SETTINGS, frees the earlier ones, and allows calls. No worker may run. */
void callbacks_begin(struct settings *settings);
/* Allows calls with the settings of the parent, in a forked child. */
void callbacks_continue(void);
/* Forbids new calls. Takes no lock. */
void callbacks_forbid(void);
/* Forbids new calls and waits for running ones until DEADLINE_NS. */
void callbacks_end(uint64_t deadline_ns);

/* Resets the state in a forked child: no call is running, and none may begin. Keeps the settings. */
void callbacks_forget(void);

#endif
