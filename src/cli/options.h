/* The options of a command, described once: parsing and `--help` come from the same table.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_OPTIONS_H
#define OFFBEAT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_NO = 1,        /* the answer is "no": rejected, differs */
    EXIT_WRONG_USE = 2, /* the command line is wrong */
    EXIT_FAILED = 3,    /* it could not be done */
};

enum { OPTION_TEXTS_MAX = 16 };

/* The values of an option that may be given several times. */
struct option_texts {
    const char *items[OPTION_TEXTS_MAX];
    size_t count;
};

enum option_kind {
    OPTION_SWITCH,  /* value: bool, becomes true */
    OPTION_TEXT,    /* value: const char * */
    OPTION_OUTPUT,  /* value: const char *, NULL until it is given, at most once */
    OPTION_TEXTS,   /* value: struct option_texts */
    OPTION_NUMBER,  /* value: uint64_t within minimum and maximum */
    OPTION_SECONDS, /* value: uint64_t nanoseconds; "1.5"; minimum and maximum are nanoseconds */
    OPTION_PERCENT, /* value: uint64_t millionths; "0.5%" or "0.5"; minimum and maximum are millionths */
    OPTION_DECIMAL, /* value: double, not negative; "0.005"; minimum and maximum are whole numbers */
    OPTION_CHOICE,  /* value: unsigned, the place of the word in ARGUMENT: "wall|cpu" */
};

struct option {
    const char *name; /* name without dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum option_kind kind;
    void *value;          /* unchanged if the option is not given */
    const char *argument; /* name of the value in help; unused for switches */
    const char *help;
    uint64_t minimum, maximum;
    const char *origin; /* text before the name in messages; NULL: "--" */
};

struct command_syntax {
    const char *name;    /* "top" */
    const char *usage;   /* "FILE… [options]" */
    const char *example; /* a complete example command; shown first */
    const char *about;   /* whole sentences, lines ready to print */
    const struct option *options;
    unsigned operands_min, operands_max;
    bool stops_at_operand; /* words after the first operand are no options of ours */
    const char *variables; /* beginning of the variables that set options, as "OFFBEAT_SERVE_"; NULL: none */
    const char **file;     /* path of a file that sets options, when they are parsed; NULL: none */
};

/* The words that are no options, in order; ITEMS[COUNT] is NULL. */
struct operands {
    char **items;
    unsigned count;
    unsigned before_dashes; /* number of operands before "--"; COUNT: there was none */
};

/* Reads ARGV (ARGV[0] is the command's name), and reorders its words. Options may be before and after operands, unless
 * STOPS_AT_OPERAND; "--" ends them. False: help was printed, or one line that says what is wrong, and the
 * program ends with *RET_STATUS. */
bool options_parse(const struct command_syntax *syntax, int argc, char **argv, struct operands *ret_operands,
                   enum exit_status *ret_status);

/* Sets the value of OPTION; false after a message. A switch takes yes or no. */
bool option_set(const struct option *option, const char *text);

/* Parses a finite number, "-1.5e3" and nothing else; the program runs in the C locale. */
bool parse_decimal(const char *text, double *ret_value);

/* Returns the name in NAMES (COUNT of them; NULLs are skipped) that WRONG may be a slip of, or NULL. */
const char *nearest_name(const char *wrong, const char *const *names, size_t count);

#endif
