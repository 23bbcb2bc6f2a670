/* offbeat diff: what has changed between two profiles.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>
#include <string.h>

/* The same as offbeat flame NEW --diff-base BASE. False after a line on standard error. */
static bool become_flame(struct report_request *request)
{
    const char *of_table = request->fail_over != UINT64_MAX ? "--fail-over"
                           : request->trim.by_cumulative    ? "--cum"
                           : request->inputs.normalize      ? "--normalize"
                                                            : NULL;
    if (of_table) {
        message("%s is for the table: leave out --as flame, whose colours compare shares of the time in each box",
                of_table);
        return false;
    }
    request->kind = REPORT_FLAME;
    request->flame.form = FLAME_FORM_AUTO;
    if (!request->values.unit || strcmp(request->values.unit, "minimum") == 0) request->values.unit = "auto";
    return true;
}

int command_diff(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_DIFF};
    enum { AS_TABLE, AS_FLAME };
    unsigned form = AS_TABLE;
    /* clang-format off */
    const struct option options[] = {
        {"as", 0, OPTION_CHOICE, &form, .argument = "table|flame",
         .help = "a table of functions, or a flame graph of NEW: red boxes have grown, blue ones have shrunk"},
        REPORT_OPTION_OUTPUT(request),
        {"json", 0, OPTION_SWITCH, &request.output.json, .help = "one JSON object for programs, instead of a table"},
        {"fail-over", 0, OPTION_PERCENT, &request.fail_over, .argument = "PERCENT",
         .help = "status 1 if a function, or the total, grew by more than this part of BASE", .maximum = 1000000},
        {"normalize", 0, OPTION_SWITCH, &request.inputs.normalize, .help = "scale NEW to the sum of BASE: compare shares"},
        {"cum", 0, OPTION_SWITCH, &request.trim.by_cumulative, .help = "compare time in the function and what it calls"},
        {"nodecount", 'n', OPTION_NUMBER, &request.trim.node_count, .argument = "N",
         .help = "so many functions, 0 for all (default: 30, with --json all)", .maximum = INT_MAX},
        REPORT_OPTION_RUNNING(request),
        REPORT_OPTION_SAMPLE_INDEX(request, "compare"),
        {"unit", 0, OPTION_TEXT, &request.values.unit, .argument = "UNIT",
         .help = "ms, MB, …; auto: each value in its own (default: one for all)"},
        REPORT_OPTIONS_NAMES(request),
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
                 "part of a function, file or library name. With --as flame -o OUT.svg a drawing shows where on the\n"
                 "way from the root the difference is.",
        .options = options,
        .operands_min = 2,
        .operands_max = 2,
    };
    struct operands files;
    enum exit_status status;
    request.fail_over = UINT64_MAX;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (form == AS_FLAME && !become_flame(&request)) return EXIT_WRONG_USE;
    request.inputs.diff_base = (struct option_texts){.items = {files.items[0]}, .count = 1};
    return (int)report_run(&request, files.items + 1, 1);
}
