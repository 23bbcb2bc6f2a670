/* offbeat flame: a flame graph as one SVG or HTML file, or as text.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_flame(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_FLAME, .flame_form = FLAME_FORM_AUTO};
    request.unit = "auto";
    const struct option options[] = {
        {"output", 'o', OPTION_OUTPUT, &request.output, .argument = "OUT",
         .help = "the file to write; standard output if not given"},
        {"to", 0, OPTION_CHOICE, &request.flame_form, .argument = "svg|text|html",
         .help = "a drawing, a table with bars, or a page that opens in a browser (default: by the ending of OUT; text "
                 "on a "
                 "terminal, else svg)"},
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs: all boxes"},
        {"time-order", 0, OPTION_SWITCH, &request.time_order,
         .help = "one thread from left to right in time: a flamechart"},
        {"diff-base", 0, OPTION_TEXTS, &request.diff_base, .argument = "FILE",
         .help = "compare with this profile: red boxes have grown, blue ones have shrunk"},
        {"color-by", 0, OPTION_CHOICE, &request.colour_by, .argument = "package|system",
         .help = "one colour for each package, or for application and system (default: package)"},
        {"nodecount", 'n', OPTION_NUMBER, &request.node_count, .argument = "N",
         .help = "so many boxes, 0 for all (default: 5000, of text 100, with --json all)", .maximum = INT_MAX},
        {"inverted", 0, OPTION_SWITCH, &request.inverted, .help = "each function above its callers"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTION_RUNNING(request),
        {"sample-index", 0, OPTION_TEXT, &request.value_type, .argument = "NAME",
         .help = "the value to show, one of those that info lists, or its number from 0"},
        {"divide-by", 0, OPTION_DECIMAL, &request.divide_by, .argument = "N", .help = "divide all values by N",
         .maximum = 1000000000000},
        {"unit", 0, OPTION_TEXT, &request.unit, .argument = "UNIT",
         .help = "ms, MB, …; auto: each value in its own (the default)"},
        {"all-frames", 0, OPTION_SWITCH, &request.all_frames, .help = "also those that the profile asks to drop"},
        {"short-names", 0, OPTION_SWITCH, &request.short_names,
         .help = "names without their modules, packages and template arguments"},
        {"relative-percentages", 0, OPTION_SWITCH, &request.relative, .help = "percentages of what the filters left"},
        REPORT_OPTIONS_FRAME_NAMES(request),
        OUTPUT_OPTION_COLOUR,
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "flame",
        .usage = "FILE… [-o OUT.svg|OUT.html] [options]",
        .example = "offbeat flame xz.pb.gz -o xz.svg",
        .about =
            "Draws the profiles in FILE…, merged, as a flame graph: on a terminal as text, else as one SVG file that "
            "a\n"
            "browser opens. A box is a function below its callers, as wide as the time in it and in its callees. In\n"
            "the browser a click zooms in, Ctrl-F searches, Escape resets, arrows and Enter move and zoom. Only the\n"
            "5000 widest boxes are drawn; the heading says what is left out. With -n 0 the narrow ones appear when a\n"
            "part is enlarged. OUT.html is a page with everything:\n"
            "tables, callers and callees, the time of each thread. With --time-order the boxes of one\n"
            "thread are in the order of time; with --diff-base colours show what has grown and shrunk. FILE may be -\n"
            "for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    return (int)report_run(&request, files.items, files.count);
}
