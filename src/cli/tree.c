/* offbeat tree and offbeat peek: callers and callees of functions.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

#define TREE_OPTIONS(r)                                                                                                \
    {"json", 0, OPTION_SWITCH, &(r).json, .help = "one JSON object for programs, instead of text"},                    \
        REPORT_OPTIONS_SAMPLES(r), REPORT_OPTIONS_SPAN(r), REPORT_OPTIONS_FRAMES(r), REPORT_OPTIONS_TAGS(r),           \
        REPORT_OPTIONS_VALUES(r), REPORT_OPTIONS_SOURCES(r), REPORT_OPTIONS_FRAME_NAMES(r), REPORT_OPTIONS_NODES(r)

int command_tree(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_TREE};
    const struct option options[] = {TREE_OPTIONS(request), REPORT_OPTIONS_TRIM(request), OUTPUT_OPTION_PAGER, {0}};
    const struct command_syntax syntax = {
        .name = "tree",
        .usage = "FILE… [options]",
        .example = "offbeat tree xz.pb.gz --focus compress",
        .about =
            "Prints each function of the profiles in FILE…, merged, between its callers and its callees, with what\n"
            "each call cost. The hottest functions come first. FILE may be - for standard input, and of any\n"
            "format that offbeat reads. A REGEX is in the syntax of RE2 and matches a part of a function, file or\n"
            "library name.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    return (int)report_run(&request, files.items, files.count);
}

int command_peek(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_PEEK};
    const struct option options[] = {TREE_OPTIONS(request), OUTPUT_OPTION_PAGER, {0}};
    const struct command_syntax syntax = {
        .name = "peek",
        .usage = "REGEX FILE… [options]",
        .example = "offbeat peek malloc xz.pb.gz",
        .about = "Prints the functions whose names match REGEX, each between its callers and its callees, of the\n"
                 "profiles in FILE…, merged. Nothing is left out for being small. The status is 1 if no name matches.\n"
                 "FILE may be - for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 2,
        .operands_max = INT_MAX,
    };
    struct operands words;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &words, &status)) return (int)status;
    request.peek = words.items[0];
    return (int)report_run(&request, words.items + 1, words.count - 1);
}
