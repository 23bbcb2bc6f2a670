/* offbeat top: the hottest functions.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_top(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_TOP};
    /* clang-format off */
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of a table"},
        {"by-thread", 0, OPTION_SWITCH, &request.by_thread, .help = "each thread on its own"},
        {"by-process", 0, OPTION_SWITCH, &request.by_process, .help = "each process on its own, the longest first"},
        {"nodecount", 'n', OPTION_NUMBER, &request.node_count, .argument = "N",
         .help = "so many functions, 0 for all (default: 30, by process 10, with --json all)", .maximum = INT_MAX},
        REPORT_OPTIONS_NODES(request),
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES(request),
        REPORT_OPTIONS_SOURCES(request),
        REPORT_OPTIONS_FRAME_NAMES(request),
        OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
    };
    /* clang-format on */
    const struct command_syntax syntax = {
        .name = "top",
        .usage = "FILE… [options]",
        .example = "offbeat top xz.pb.gz",
        .about = "Prints the hottest functions of the profiles in FILE…, merged. flat is what was spent in a\n"
                 "function itself, cum what was spent in it and in what it calls. FILE may be - for standard\n"
                 "input, and of any format that offbeat reads. A REGEX is in the syntax of RE2 and matches a part\n"
                 "of a function, file or library name.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (request.by_thread && request.by_process) {
        message("--by-thread and --by-process exclude each other");
        return EXIT_WRONG_USE;
    }
    return (int)report_run(&request, files.items, files.count);
}
