/* Messages on standard error: one line each, "offbeat: …".  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_MESSAGE_H
#define OFFBEAT_CLI_MESSAGE_H

#include "base/status.h"

#include <stdbool.h>

/* "offbeat: " and the text; replaces a line of progress. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether standard error shows a line of progress, which the next message must replace. */
void message_set_progress_shown(bool is_shown);

/* Returns the name of PATH in messages and reports: "-" is that of the stream, and a URL has no secrets. */
const char *message_name(const char *path, bool is_output);

/* "offbeat: PATH: what is wrong (offset 12)". */
void message_error(const char *path, const struct error *error, bool is_output);

#endif
