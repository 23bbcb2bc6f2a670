/* offbeat view: a profile in the browser, of files or of a command that runs.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/live_view.h"
#include "cli/message.h"
#include "cli/report_command.h"
#include "cli/report_page.h"

#include <limits.h>

int command_view(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_VIEW};
    struct record_request recording = {.frequency_hz = RECORD_FREQUENCY_DEFAULT};
    uint64_t port = 0;
    request.values.unit = "auto";
    const struct option options[] = {{"no-browser", 0, OPTION_SWITCH, &request.browser.no_browser,
                                      .help = "print the URL, and do not open a browser"},
                                     {"port", 0, OPTION_NUMBER, &port, .argument = "PORT",
                                      .help = "the page's port on this machine (default: a free one)", .minimum = 1,
                                      .maximum = UINT16_MAX},
                                     REPORT_OPTIONS_FILTERS(request),
                                     REPORT_OPTION_SAMPLE_INDEX(request, "show first"),
                                     REPORT_OPTIONS_NAMES(request),
                                     REPORT_OPTIONS_FRAME_NAMES(request),
                                     REPORT_OPTIONS_CODE(request),
                                     {"diff-base", 0, OPTION_TEXTS, &request.inputs.diff_base, .argument = "FILE",
                                      .help = "compare with this profile; can be given several times"},
                                     {"pid", 'p', OPTION_TEXTS, &recording.pids, .argument = "PID",
                                      .help = "instead of FILE: a process that runs, while it is recorded"},
                                     {"output", 'o', OPTION_TEXTS, &recording.outputs, .argument = "FILE",
                                      .help = "of a COMMAND: the file to write, as record does (default: NAME.pb.gz)"},
                                     {"frequency", 'F', OPTION_NUMBER, &recording.frequency_hz, .argument = "HZ",
                                      .help = "of a COMMAND: samples of each thread a second (default: 101)",
                                      .minimum = 1, .maximum = RECORD_FREQUENCY_MAX},
                                     {0}};
    const struct command_syntax syntax = {
        .name = "view",
        .usage = "[options] FILE… | [options] -p PID | [options] -- COMMAND [ARGUMENT]…",
        .example = "offbeat view xz.pb.gz",
        .about = "Shows the profiles in FILE…, merged, in a browser: flame graph, functions, callers and callees of a\n"
                 "function, call tree, and what each thread did in time. The key ? lists all keys. Only this machine\n"
                 "can reach the page, and only with the URL that is printed: it has a secret part. Ctrl-C ends it.\n"
                 "With -- COMMAND, runs and records COMMAND as offbeat record does, and updates the page while it\n"
                 "runs; Ctrl-C ends COMMAND first, its profile stays until the next Ctrl-C and is written to a file.\n"
                 "With -p PID, does this with a process that runs already, which Ctrl-C does not end.\n"
                 "FILE may be - for standard input, and of any format that offbeat reads. offbeat flame -o x.html\n"
                 "writes the same page into one file.",
        .options = options,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    request.browser.port = (uint16_t)port;
    if (!report_page_check(&request)) return EXIT_FAILED;
    bool is_recorded = recording.pids.count > 0 || files.before_dashes == 0;
    if (files.count == 0 && recording.pids.count == 0) {
        message("view needs FILE…, --pid PID or -- COMMAND; see offbeat view --help");
        return EXIT_WRONG_USE;
    }
    if (recording.pids.count > 0 && files.count > 0) {
        message("either --pid or FILE… and -- COMMAND: a page shows one of them");
        return EXIT_WRONG_USE;
    }
    if (is_recorded && request.inputs.diff_base.count > 0) {
        message("--diff-base is for FILE…: record first, then compare");
        return EXIT_WRONG_USE;
    }
    if (is_recorded) return live_view_run(&request, &recording, files.items);
    if (files.before_dashes < files.count) {
        message("either FILE… or -- COMMAND: a page shows one of them");
        return EXIT_WRONG_USE;
    }
    if (recording.outputs.count > 0) {
        message("--output is for -- COMMAND; offbeat flame FILE -o x.html writes a page");
        return EXIT_WRONG_USE;
    }
    return (int)report_run(&request, files.items, files.count);
}
