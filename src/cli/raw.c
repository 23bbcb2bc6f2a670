/* offbeat raw: all that is in a profile, as text.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_raw(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_RAW, .keeps_names = true};
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of text"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "raw",
        .usage = "FILE… [options]",
        .example = "offbeat raw xz.pb.gz",
        .about = "Prints all that is in the profiles in FILE…, merged, as text, in the form of pprof -raw: samples as\n"
                 "values and numbers of locations, leaf first, then the locations, then the mappings. Without a\n"
                 "filter, nothing is dropped or summed up; on a terminal, control characters in names are shown as\n"
                 "a question mark. FILE may be - for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    return (int)report_run(&request, files.items, files.count);
}
