/* The flags of pprof's command line: one or two dashes, a value after "=" or in the next word.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PPROF_FLAGS_H
#define OFFBEAT_CLI_PPROF_FLAGS_H

#include "cli/fetch.h"
#include "cli/report_command.h"

struct pprof_flags {
    struct report_request request;
    unsigned report_count;                   /* number of wanted reports */
    unsigned order_count, granularity_count; /* number of flags among -cum and -flat, and among -functions, … */
    bool wants_help;
    struct fetch_settings fetch;
    uint64_t seconds; /* duration to ask of a server, s; 0: the server's own */
};

/* Reads ARGV from *PLACE on, up to the first word that is no flag, whose place becomes *PLACE. False after a line on
 * standard error. */
bool pprof_flags_parse(struct pprof_flags *flags, int argc, char **argv, int *place);

/* The flag of a name without its dash. */
enum pprof_word {
    PPROF_UNKNOWN,
    PPROF_REPORT,
    PPROF_REPORT_WITH_TEXT, /* -peek=REGEX */
    PPROF_SWITCH,
    PPROF_VALUE,
};
enum pprof_word pprof_flags_word(const char *name);

/* The name of flag INDEX, a constant. False after the last one. */
bool pprof_flags_name(size_t index, const char **ret_name);

#endif
