/* The settings, and calls of the program's functions that they name: log, before_send, samplers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_CALLBACKS_H
#define OFFBEAT_SDK_CALLBACKS_H

#include "sdk/settings.h"

/* The settings of the last init; NULL before it. They do not change once they are published, and are replaced by init
 * alone. Only for the worker, the tracer's listener, and between callback_begin and callback_end. */
const struct settings *sdk_settings(void);
const struct offbeat_options *sdk_options(void); /* never NULL */

/* Around each call of a function of the program, which LOCK_CALLS is shared for. False if no function may be called. */
bool callback_begin(void);
void callback_end(void);

/* A line for people: always, or only with the option debug. If this thread holds a lock, the line waits until it
 * gives up the last one: the program's log may wait for a lock of the program, and the owner of that lock for ours.
 * */
void sdk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sdk_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the lines that wait, unless this thread holds a lock. After each lock_give. */
void callbacks_write_lines(void);
/* Writes LINE at once, as OPTIONS want it. */
void callbacks_write_line(const struct offbeat_options *options, const char *line);

/* Publishes SETTINGS, frees the earlier ones, and allows calls. No worker may run. */
void callbacks_begin(struct settings *settings);
/* Allows calls with the settings of the parent, in a forked child. */
void callbacks_continue(void);
/* Forbids new calls. Takes no lock. */
void callbacks_forbid(void);
/* The same, and waits for those that run until DEADLINE_NS. */
void callbacks_end(uint64_t deadline_ns);

/* In a forked child: no call runs, and none may begin. The settings stay. */
void callbacks_forget(void);

#endif
