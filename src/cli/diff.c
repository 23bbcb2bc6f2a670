/* offbeat diff: what has changed between two profiles.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_diff(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_DIFF};
    /* clang-format off */
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of a table"},
        {"fail-over", 0, OPTION_PERCENT, &request.fail_over, .argument = "PERCENT",
         .help = "status 1 if a function, or the total, grew by more than this part of BASE", .maximum = 1000000},
        {"normalize", 0, OPTION_SWITCH, &request.normalize, .help = "scale NEW to the sum of BASE: compare shares"},
        {"cum", 0, OPTION_SWITCH, &request.by_cumulative, .help = "compare time in the function and what it calls"},
        {"nodecount", 'n', OPTION_NUMBER, &request.node_count, .argument = "N",
         .help = "so many functions, 0 for all (default: 30, with --json all)", .maximum = INT_MAX},
        REPORT_OPTION_RUNNING(request),
        {"sample-index", 0, OPTION_TEXT, &request.value_type, .argument = "NAME",
         .help = "the value to compare, one of those that info lists, or its number from 0"},
        {"unit", 0, OPTION_TEXT, &request.unit, .argument = "UNIT",
         .help = "ms, MB, …; auto: each value in its own (default: one for all)"},
        {"all-frames", 0, OPTION_SWITCH, &request.all_frames, .help = "also those that the profile asks to drop"},
        {"short-names", 0, OPTION_SWITCH, &request.short_names,
         .help = "names without their modules, packages and template arguments"},
        REPORT_OPTIONS_THREADS(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_FRAME_NAMES(request),
        OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
    };
    /* clang-format on */
    const struct command_syntax syntax = {
        .name = "diff",
        .usage = "BASE NEW [options]",
        .example = "offbeat diff before.pb.gz after.pb.gz",
        .about = "Prints which functions were added, removed, have grown or have shrunk from BASE to NEW, and whether\n"
                 "each difference exceeds sampling noise. diff% is of BASE, change is of the function itself. BASE\n"
                 "and NEW may be of any format that offbeat reads. A REGEX is in the syntax of RE2 and matches a\n"
                 "part of a function, file or library name.",
        .options = options,
        .operands_min = 2,
        .operands_max = 2,
    };
    struct operands files;
    enum exit_status status;
    request.fail_over = UINT64_MAX;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    request.diff_base = (struct option_texts){.items = {files.items[0]}, .count = 1};
    return (int)report_run(&request, files.items + 1, 1);
}
