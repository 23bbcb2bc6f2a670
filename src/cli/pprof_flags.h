/* The flags of pprof's command line: one or two dashes, a value after "=" or in the next word.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PPROF_FLAGS_H
#define OFFBEAT_CLI_PPROF_FLAGS_H

#include "cli/fetch.h"
#include "cli/report_command.h"

struct pprof_flags {
    struct report_request request;
    unsigned report_count;                   /* how many reports were asked for */
    unsigned order_count, granularity_count; /* how many of -cum and -flat, and of -functions, … */
    bool wants_help;
    struct fetch_settings fetch;
    uint64_t seconds; /* to be asked of a server; 0: as long as it likes */
};

/* Reads ARGV from *PLACE on, up to the first word that is no flag, whose place becomes *PLACE. False after a line on
 * standard error. */
bool pprof_flags_parse(struct pprof_flags *flags, int argc, char **argv, int *place);

/* What a name without its dash is. */
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
