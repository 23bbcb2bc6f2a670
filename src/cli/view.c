/* offbeat view: a profile in the browser.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/report_command.h"
#include "page/page.h"

#include <limits.h>

int command_view(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_VIEW};
    request.unit = "auto";
    const struct option options[] = {
        {"no-browser", 0, OPTION_SWITCH, &request.no_browser, .help = "print the URL, and do not open a browser"},
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        {"sample-index", 0, OPTION_TEXT, &request.value_type, .argument = "NAME",
         .help = "the value to show first, one of those that info lists, or its number from 0"},
        {"all-frames", 0, OPTION_SWITCH, &request.all_frames, .help = "also those that the profile asks to drop"},
        {"short-names", 0, OPTION_SWITCH, &request.short_names,
         .help = "names without their modules, packages and template arguments"},
        REPORT_OPTIONS_FRAME_NAMES(request),
        {0}};
    const struct command_syntax syntax = {
        .name = "view",
        .usage = "FILE… [options]",
        .example = "offbeat view xz.pb.gz",
        .about = "Shows the profiles in FILE…, merged, in a browser: flame graph, functions, callers and callees of a\n"
                 "function, call tree, and what each thread did in time. The key ? lists all keys. Only this machine\n"
                 "can reach the page, and only with the URL that is printed: it has a secret part. Ctrl-C ends it.\n"
                 "FILE may be - for standard input, and of any format that offbeat reads. offbeat flame -o x.html\n"
                 "writes the same page into one file.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!page_is_built()) {
        message("this offbeat was built without its web page, because esbuild was missing; offbeat flame draws SVG");
        return EXIT_FAILED;
    }
    return (int)report_run(&request, files.items, files.count);
}
