/* offbeat list: source lines with their costs.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_list(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_LIST};
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of text"},
        REPORT_OPTIONS_CODE(request),
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES_APART(request),
        REPORT_OPTIONS_SOURCES(request),
        {"no-inlines", 0, OPTION_SWITCH, &request.no_inlines, .help = "inlined functions count for their callers"},
        OUTPUT_OPTION_COLOUR,
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "list",
        .usage = "REGEX FILE… [options]",
        .example = "offbeat list '^compress$' xz.pb.gz --source-path ~/xz",
        .about =
            "Prints the source of the functions whose names match REGEX, with what each line cost in the profiles\n"
            "in FILE…, merged: flat in the line itself, cum also in what it calls. Inlined functions have their\n"
            "own lines. The status is 1 if no name matches. FILE may be - for standard input, and of any format\n"
            "that offbeat reads.",
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
