/* offbeat disasm: instructions with their costs.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>

int command_disasm(int argc, char **argv)
{
    struct report_request request = {REPORT_REQUEST_INIT, .kind = REPORT_DISASM};
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &request.json, .help = "one JSON object for programs, instead of text"},
        {"intel-syntax", 0, OPTION_SWITCH, &request.intel_syntax, .help = "Intel's syntax; AT&T's if not given"},
        {"debug-dir", 0, OPTION_TEXTS, &request.debug_folders, .argument = "DIR",
         .help = "where debug files are, as in /usr/lib/debug; may be repeated"},
        {"trust-paths", 0, OPTION_SWITCH, &request.trusts_paths,
         .help = "use files that the profile names without a build id, too"},
        REPORT_OPTIONS_CODE(request),
        REPORT_OPTIONS_SAMPLES(request),
        REPORT_OPTIONS_SPAN(request),
        REPORT_OPTIONS_FRAMES(request),
        REPORT_OPTIONS_TAGS(request),
        REPORT_OPTIONS_VALUES_APART(request),
        REPORT_OPTIONS_SOURCES(request),
        OUTPUT_OPTION_COLOUR,
        OUTPUT_OPTION_PAGER,
        {0}};
    const struct command_syntax syntax = {
        .name = "disasm",
        .usage = "REGEX FILE… [options]",
        .example = "offbeat disasm '^lzma_code$' xz.pb.gz",
        .about =
            "Prints the instructions of the functions whose names match REGEX, between the source lines that they\n"
            "come from, with what each cost in the profiles in FILE…, merged: flat in the instruction itself, cum\n"
            "also in what it calls. REGEX may be an address, 0x401136. The code is that of the files which the\n"
            "profile names, if they have its build ids. The status is 1 if no name matches. FILE may be - for\n"
            "standard input, and of any format that offbeat reads.",
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
