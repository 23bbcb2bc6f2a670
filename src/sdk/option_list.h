/* The options of <offbeat.h> one by one: the environment variables, the range and the text of each.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_OPTION_LIST_H
#define OFFBEAT_SDK_OPTION_LIST_H

#include "base/buffer.h"
#include "base/status.h"

#include <offbeat.h>

enum { OPTIONS_MAX = 64, OPTION_VARIABLES_MAX = 2 };

enum option_kind {
    OPTION_TEXT,
    OPTION_RATE, /* a double from 0 to 1; -0.0 is set */
    OPTION_FLAG, /* an offbeat_flag */
    OPTION_NUMBER32,
    OPTION_NUMBER64,
    OPTION_DOUBLE,  /* from MINIMUM to MAXIMUM */
    OPTION_PERCENT, /* a double */
    OPTION_CHOICE,  /* an enum with the values 0 and 1 */
    OPTION_FUNCTION,
};

struct option_entry {
    const char *name;                            /* the member of struct offbeat_options */
    enum option_kind kind;                       /* the type of the member */
    size_t offset;                               /* offset of the member, bytes */
    const char *variables[OPTION_VARIABLES_MAX]; /* the first one that is set counts */
    double minimum, maximum, usual;              /* range and default of a number; 0: no default */
    const char *words[2];                        /* values of a choice; the first one is the default */
};

/* Returns entry number INDEX; NULL after the last one. */
const struct option_entry *option_entry_at(size_t index);

/* True if the program has set the option in OPTIONS. */
bool option_is_set(const struct option_entry *entry, const struct offbeat_options *options);

/* Takes an option that the program has not set from its variable. RET_VARIABLE: the name of that variable; NULL: none
 * is set. A text points into the environment. STATUS_MALFORMED: ERROR names the variable and what it must be. */
enum status option_read_variable(const struct option_entry *entry, struct offbeat_options *options,
                                 const char **ret_variable, struct error *error);

/* Checks a value that is set. */
enum status option_check(const struct option_entry *entry, const struct offbeat_options *options, struct error *error);

/* Gives an option that is not set its default, if that is a number, and makes a flag 0 or 1. */
void option_set_default(const struct option_entry *entry, struct offbeat_options *options);

/* Appends the value in OPTIONS as a text for people. */
void option_describe(const struct option_entry *entry, const struct offbeat_options *options, struct buffer *out);

#endif
