/* Profiles in another format than they came in, the same way for every command that writes one.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_CONVERT_PROFILE_H
#define OFFBEAT_CLI_CONVERT_PROFILE_H

#include "format/format.h"

/* What --to may be: the choices of an option of kind OPTION_CHOICE. */
#define CONVERT_TARGETS "pprof|sentry-v2|envelope|sentry-v1|envelope-v1|collapsed|speedscope|firefox"
enum { CONVERT_TARGET_COUNT = 8 };

/* The format that --to names, the CHOICE-th, or else that the name PATH tells; CHOICE is CONVERT_TARGET_COUNT where it
 * was not given. FORMAT_UNKNOWN after a line on standard error. */
enum format convert_choose_format(unsigned choice, const char *path);

/* Writes PROFILE to PATH as FORMAT, and says on standard error what that does not keep and what was made up for it.
 * Times of samples become labels in pprof, unless DROPS_TIMES. False after a line that says why. */
bool convert_profile(struct profile *profile, const char *path, enum format format, bool drops_times);

#endif
