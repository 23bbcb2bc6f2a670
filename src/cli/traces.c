/* offbeat traces and offbeat tags: samples with their stacks, and what their labels sum up to.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_traces(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_TRACES};
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of text"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES_APART(request),
        REPORT_OPTIONS_SOURCES(request),
        REPORT_OPTIONS_FRAME_NAMES(request),
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "traces",
        .usage = "FILE… [options]",
        .example = "offbeat traces xz.pb.gz --focus malloc | less",
        .about = "Prints each sample of the profiles in FILE…, merged: its labels, its value, its stack with the\n"
                 "innermost function first. FILE may be - for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    return (int)report_run(&request, files.items, files.count);
}

int command_tags(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_TAGS};
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of text"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES_APART(request),
        REPORT_OPTIONS_SOURCES(request),
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "tags",
        .usage = "FILE… [options]",
        .example = "offbeat tags heap.pb.gz --tag-show bytes",
        .about =
            "Prints for each label of the samples, and each of its values, what the samples with it sum up to, in\n"
            "the profiles in FILE…, merged. FILE may be - for standard input, and of any format that offbeat\n"
            "reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    return (int)report_run(&request, files.items, files.count);
}
