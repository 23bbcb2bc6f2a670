/* Converts profiles to another format, in the same way for every command that writes profiles.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_CONVERT_PROFILE_H
#define OFFBEAT_CLI_CONVERT_PROFILE_H

#include "cli/options.h"
#include "format/format.h"

/* The values of --to. */
#define CONVERT_TARGETS                                                                                                \
    "pprof|sentry-v2|envelope|sentry-v1|envelope-v1|collapsed|speedscope|firefox|chrome-trace|otlp|otlp-json|"         \
    "callgrind"
enum { CONVERT_TARGET_PPROF = 0, CONVERT_TARGET_COUNT = 12 };

/* Where a profile goes, and as what. */
struct convert_target {
    const char *path;     /* NULL: not given yet */
    unsigned choice;      /* index in CONVERT_TARGETS; CONVERT_TARGET_COUNT: chosen by the path */
    const char *platform; /* platform in Sentry's formats; NULL = the profile's */
    bool drops_times, drops_symbols;
    const struct format *format; /* set by convert_choose_format */
};
#define CONVERT_TARGET_INIT                                                                                            \
    {                                                                                                                  \
        .choice = CONVERT_TARGET_COUNT                                                                                 \
    }

/* The options of a command that set a target. */
#define CONVERT_OPTION_OUTPUT(target)                                                                                  \
    {                                                                                                                  \
        "output", 'o', OPTION_OUTPUT, &(target).path, .argument = "OUT",                                               \
                                                      .help = "the file to write, - for standard output"               \
    }
#define CONVERT_OPTION_TO(target)                                                                                      \
    {                                                                                                                  \
        "to", 0, OPTION_CHOICE, &(target).choice, .argument = CONVERT_TARGETS,                                         \
                                                  .help = "the format, if the name of OUT does not choose it"          \
    }

/* Returns the format for PATH: CHOICE, or chosen by the name if CHOICE is CONVERT_TARGET_COUNT. NULL after a line on
 * standard error. */
const struct format *convert_format_for(const char *path, unsigned choice);

/* False, after a line on standard error, if binary data would be written to a terminal. */
bool convert_check_terminal(const char *path, const struct format *format);

/* Sets the format of TARGET, which the command of SYNTAX got from its options. False after a line on standard error. */
bool convert_choose_format(const struct command_syntax *syntax, struct convert_target *target);

/* Writes PROFILE to TARGET, and reports on standard error what its format cannot store and what was assigned for it.
 * Times of samples become labels in pprof, unless they are dropped. False after a line that says why. */
bool convert_profile(struct profile *profile, const struct convert_target *target);

#endif
