/* The settings, and the calls of the functions in them, which belong to the program: log, before_send, samplers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_CALLBACKS_H
#define OFFBEAT_SDK_CALLBACKS_H

#include "sdk/settings.h"

/* The settings of the last init; NULL before it. They never change after they are published; only init replaces them.
 * Only for the worker, the tracer's listener, and between callback_begin and callback_end. */
const struct settings *sdk_settings(void);
const struct offbeat_options *sdk_options(void); /* never NULL */

/* Before and after each call of a function of the program; holds LOCK_CALLS shared. False if no call is allowed. */
bool callback_begin(void);
void callback_end(void);

/* Prints a line for people: always, or only with the option debug. If this thread holds a lock, the line is queued
 * until the thread releases its last lock. Otherwise the program's log function could wait for a lock of the program,
 * whose owner waits for ours. */
void sdk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sdk_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the queued lines, unless this thread holds a lock. Called after each lock_give. */
void callbacks_write_lines(void);
/* Writes LINE immediately, to the log that OPTIONS names. */
void callbacks_write_line(const struct offbeat_options *options, const char *line);

/* Publishes SETTINGS, frees the earlier ones, and allows calls. No worker may run. */
void callbacks_begin(struct settings *settings);
/* Allows calls with the settings of the parent, in a forked child. */
void callbacks_continue(void);
/* Forbids new calls. Takes no lock. */
void callbacks_forbid(void);
/* The same, and waits for running calls until DEADLINE_NS. */
void callbacks_end(uint64_t deadline_ns);

/* In a forked child: no call is running, and none may begin. Keeps the settings. */
void callbacks_forget(void);

#endif
