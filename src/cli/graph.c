/* offbeat graph: the call graph for other programs.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/report_command.h"

#include <limits.h>

/* By the ending of OUT: a picture, or DOT. False after a line on standard error. */
static bool choose_format(struct report_request *request)
{
    request->picture = picture_drawn(request->output);
    if (request->picture || !picture_ending(request->output)) return true;
    message("%s: offbeat graph does not write %s; the endings that it knows are .svg, .png, .pdf, .ps, .gif and .dot",
            request->output, picture_ending(request->output));
    return false;
}

int command_graph(int argc, char **argv)
{
    enum { AS_NAMED, AS_DOT, AS_CALLGRIND, AS_PICTURES };
    static const char *const pictures[] = {"svg", "png", "pdf", "ps", "gif"};
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_DOT};
    unsigned format = AS_NAMED;
    const struct option options[] = {
        {"output", 'o', OPTION_OUTPUT, &request.output, .argument = "OUT",
         .help = "the file to write; standard output if not given"},
        {"to", 0, OPTION_CHOICE, &format, .argument = "auto|dot|callgrind|svg|png|pdf|ps|gif",
         .help = "DOT for Graphviz, a file for KCachegrind, or a picture (default: by OUT's ending, else dot)"},
        {"json", 0, OPTION_SWITCH, &request.json,
         .help = "one JSON object for programs, as tree has it, instead of DOT"},
        {"call-tree", 0, OPTION_SWITCH, &request.call_tree, .help = "a function once for each way that leads to it"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES(request),
        REPORT_OPTIONS_SOURCES(request),
        REPORT_OPTIONS_FRAME_NAMES(request),
        REPORT_OPTIONS_NODES(request),
        REPORT_OPTIONS_TRIM(request),
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "graph",
        .usage = "FILE… [-o OUT] [options]",
        .example = "offbeat graph xz.pb.gz -o xz.svg",
        .about =
            "Draws the call graph of the profiles in FILE…, merged, as DOT or as a picture: -o OUT.svg, .png, .pdf,\n"
            ".ps, .gif (through the Graphviz library: apt install libgvc6). A box grows with the time\n"
            "in the function itself; a line is as thick, and a colour as red, as the time below it is long; a\n"
            "dotted line goes through functions that were left out. For callgrind nothing is left out, and each\n"
            "address is a node. FILE may be - for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (format == AS_CALLGRIND) request.kind = REPORT_CALLGRIND;
    if (request.json && format != AS_NAMED) {
        message("either --json or --to");
        return EXIT_WRONG_USE;
    }
    if (request.json) return (int)report_run(&request, files.items, files.count);
    if (format == AS_NAMED && !choose_format(&request)) return EXIT_WRONG_USE;
    if (format >= AS_PICTURES) request.picture = pictures[format - AS_PICTURES];
    return (int)report_run(&request, files.items, files.count);
}
