/* The commands that print or draw one report: their options, their help, and what they ask for.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/file_extension.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/report_command.h"

#include <limits.h>
#include <string.h>

static struct report_request request = {REPORT_REQUEST_INIT, .flame.form = FLAME_FORM_AUTO};

enum { GRAPH_AS_NAMED, GRAPH_AS_DOT, GRAPH_AS_CALLGRIND, GRAPH_AS_PICTURES };
static unsigned graph_format = GRAPH_AS_NAMED;

/* --- Options ------------------------------------------------------------------------------------------------------ */

/* clang-format off */
#define OPTION_JSON {"json", 0, OPTION_SWITCH, &request.output.json, .help = "one JSON object for programs, instead of text"}
#define OPTIONS_TREE                                                                                                   \
    OPTION_JSON, REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES(request), REPORT_OPTIONS_SOURCES(request),     \
    REPORT_OPTIONS_FRAME_NAMES(request), REPORT_OPTIONS_NODES(request)

static const struct option top_options[] = {
    {"json", 0, OPTION_SWITCH, &request.output.json, .help = "one JSON object for programs, instead of a table"},
    {"by-thread", 0, OPTION_SWITCH, &request.by_thread, .help = "each thread on its own"},
    {"by-process", 0, OPTION_SWITCH, &request.by_process, .help = "each process on its own, the longest first"},
    {"nodecount", 'n', OPTION_NUMBER, &request.trim.node_count, .argument = "N",
     .help = "so many functions, 0 for all (default: 30, by process 10, with --json all)", .maximum = INT_MAX},
    REPORT_OPTIONS_NODES(request), REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES(request),
    REPORT_OPTIONS_SOURCES(request), REPORT_OPTIONS_FRAME_NAMES(request), OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
};
static const struct option tree_options[] = {OPTIONS_TREE, REPORT_OPTIONS_TRIM(request), OUTPUT_OPTION_PAGER, {0}};
static const struct option peek_options[] = {OPTIONS_TREE, OUTPUT_OPTION_PAGER, {0}};
static const struct option list_options[] = {
    OPTION_JSON, REPORT_OPTIONS_CODE(request), REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES_APART(request),
    REPORT_OPTIONS_SOURCES(request),
    {"no-inlines", 0, OPTION_SWITCH, &request.frames.no_inlines, .help = "inlined functions count for their callers"},
    OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
};
static const struct option disasm_options[] = {
    OPTION_JSON,
    {"intel-syntax", 0, OPTION_SWITCH, &request.code.intel_syntax, .help = "Intel's syntax; AT&T's if not given"},
    {"debug-dir", 0, OPTION_TEXTS, &request.code.debug_folders, .argument = "DIR",
     .help = "where debug files are, as in /usr/lib/debug; may be repeated"},
    {"trust-paths", 0, OPTION_SWITCH, &request.code.trusts_paths,
     .help = "use files that the profile names without a build id, too"},
    REPORT_OPTIONS_CODE(request), REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES_APART(request),
    REPORT_OPTIONS_SOURCES(request), OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
};
static const struct option traces_options[] = {
    OPTION_JSON, REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES_APART(request),
    REPORT_OPTIONS_SOURCES(request), REPORT_OPTIONS_FRAME_NAMES(request), OUTPUT_OPTION_PAGER, {0},
};
static const struct option tags_options[] = {
    OPTION_JSON, REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES_APART(request),
    REPORT_OPTIONS_SOURCES(request), OUTPUT_OPTION_PAGER, {0},
};
static const struct option raw_options[] = {OPTION_JSON, REPORT_OPTIONS_FILTERS(request), OPEN_OPTION_NO_DEMANGLE, OPTION_TOKEN_FILE, OUTPUT_OPTION_PAGER, {0}};
static const struct option graph_options[] = {
    REPORT_OPTION_OUTPUT(request),
    {"to", 0, OPTION_CHOICE, &graph_format, .argument = "auto|dot|callgrind|svg|png|pdf|ps|gif",
     .help = "DOT for Graphviz, a file for KCachegrind, or a picture (default: by OUT's ending, else dot)"},
    {"json", 0, OPTION_SWITCH, &request.output.json, .help = "one JSON object for programs, as tree has it, instead of DOT"},
    {"call-tree", 0, OPTION_SWITCH, &request.trim.call_tree, .help = "a function once for each way that leads to it"},
    REPORT_OPTIONS_FILTERS(request), REPORT_OPTIONS_VALUES(request), REPORT_OPTIONS_SOURCES(request),
    REPORT_OPTIONS_FRAME_NAMES(request), REPORT_OPTIONS_NODES(request), REPORT_OPTIONS_TRIM(request),
    OUTPUT_OPTION_PAGER, {0},
};
static const struct option flame_options[] = {
    REPORT_OPTION_OUTPUT(request),
    {"to", 0, OPTION_CHOICE, &request.flame.form, .argument = "svg|text|html",
     .help = "a drawing, a table with bars, or a page that opens in a browser (default: by the ending of OUT; text on a "
             "terminal, else svg)"},
    {"json", 0, OPTION_SWITCH, &request.output.json, .help = "one JSON object for programs: all boxes"},
    {"time-order", 0, OPTION_SWITCH, &request.flame.time_order,
     .help = "one thread from left to right in time: a flamechart"},
    {"diff-base", 0, OPTION_TEXTS, &request.inputs.diff_base, .argument = "FILE",
     .help = "compare with this profile: red boxes have grown, blue ones have shrunk"},
    {"color-by", 0, OPTION_CHOICE, &request.flame.colour_by, .argument = "package|system",
     .help = "one colour for each package, or for application and system (default: package)"},
    {"nodecount", 'n', OPTION_NUMBER, &request.trim.node_count, .argument = "N",
     .help = "so many boxes, 0 for all (default: 5000, of text 100, with --json all)", .maximum = INT_MAX},
    {"inverted", 0, OPTION_SWITCH, &request.flame.inverted, .help = "each function above its callers"},
    REPORT_OPTIONS_FILTERS(request), REPORT_OPTION_RUNNING(request), REPORT_OPTION_SAMPLE_INDEX(request, "show"),
    {"divide-by", 0, OPTION_DECIMAL, &request.values.divide_by, .argument = "N", .help = "divide all values by N",
     .maximum = 1000000000000},
    {"unit", 0, OPTION_TEXT, &request.values.unit, .argument = "UNIT",
     .help = "ms, MB, …; auto: each value in its own (the default)"},
    REPORT_OPTIONS_NAMES(request),
    {"relative-percentages", 0, OPTION_SWITCH, &request.trim.relative, .help = "percentages of what the filters left"},
    REPORT_OPTIONS_FRAME_NAMES(request), OUTPUT_OPTION_COLOUR, OUTPUT_OPTION_PAGER, {0},
};

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static const struct report_command {
    enum report_kind kind;
    struct command_syntax syntax;
} commands[] = {
    {REPORT_TOP,
     {.name = "top", .usage = "FILE… [options]", .options = top_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat top xz.pb.gz",
      .about =
          "Prints the hottest functions of the profiles in FILE…, merged. flat is what was spent in a\n"
          "function itself, cum what was spent in it and in what it calls. FILE may be - for standard\n"
          "input, and of any format that offbeat reads. A REGEX is in the syntax of RE2 and matches a part\n"
          "of a function, file or library name."}},
    {REPORT_TREE,
     {.name = "tree", .usage = "FILE… [options]", .options = tree_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat tree xz.pb.gz --focus compress",
      .about =
          "Prints each function of the profiles in FILE…, merged, between its callers and its callees, with what\n"
          "each call cost. The hottest functions come first. FILE may be - for standard input, and of any\n"
          "format that offbeat reads. A REGEX is in the syntax of RE2 and matches a part of a function, file or\n"
          "library name."}},
    {REPORT_PEEK,
     {.name = "peek", .usage = "REGEX FILE… [options]", .options = peek_options,
      .operands_min = 2, .operands_max = INT_MAX, .example = "offbeat peek malloc xz.pb.gz",
      .about =
          "Prints the functions whose names match REGEX, each between its callers and its callees, of the\n"
          "profiles in FILE…, merged. Nothing is left out for being small. The status is 1 if no name matches.\n"
          "FILE may be - for standard input, and of any format that offbeat reads."}},
    {REPORT_LIST,
     {.name = "list", .usage = "REGEX FILE… [options]", .options = list_options,
      .operands_min = 2, .operands_max = INT_MAX, .example = "offbeat list '^compress$' xz.pb.gz --source-path ~/xz",
      .about =
          "Prints the source of the functions whose names match REGEX, with what each line cost in the profiles\n"
          "in FILE…, merged: flat in the line itself, cum also in what it calls. Inlined functions have their\n"
          "own lines. The status is 1 if no name matches. FILE may be - for standard input, and of any format\n"
          "that offbeat reads."}},
    {REPORT_DISASM,
     {.name = "disasm", .usage = "REGEX FILE… [options]", .options = disasm_options,
      .operands_min = 2, .operands_max = INT_MAX, .example = "offbeat disasm '^lzma_code$' xz.pb.gz",
      .about =
          "Prints the instructions of the functions whose names match REGEX, between the source lines that they\n"
          "come from, with what each cost in the profiles in FILE…, merged: flat in the instruction itself, cum\n"
          "also in what it calls. REGEX may be an address, 0x401136. The code is that of the files which the\n"
          "profile names, if they have its build ids. The status is 1 if no name matches. FILE may be - for\n"
          "standard input, and of any format that offbeat reads."}},
    {REPORT_TRACES,
     {.name = "traces", .usage = "FILE… [options]", .options = traces_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat traces xz.pb.gz --focus malloc | less",
      .about =
          "Prints each sample of the profiles in FILE…, merged: its labels, its value, its stack with the\n"
          "innermost function first. FILE may be - for standard input, and of any format that offbeat reads."}},
    {REPORT_TAGS,
     {.name = "tags", .usage = "FILE… [options]", .options = tags_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat tags heap.pb.gz --tag-show bytes",
      .about =
          "Prints for each label of the samples, and each of its values, what the samples with it sum up to, in\n"
          "the profiles in FILE…, merged. FILE may be - for standard input, and of any format that offbeat\n"
          "reads."}},
    {REPORT_RAW,
     {.name = "raw", .usage = "FILE… [options]", .options = raw_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat raw xz.pb.gz",
      .about =
          "Prints all that is in the profiles in FILE…, merged, as text, in the form of pprof -raw: samples as\n"
          "values and numbers of locations, leaf first, then the locations, then the mappings. Without a\n"
          "filter, nothing is dropped or summed up; on a terminal, control characters in names are shown as\n"
          "a question mark. FILE may be - for standard input, and of any format that offbeat reads."}},
    {REPORT_DOT,
     {.name = "graph", .usage = "FILE… [-o OUT] [options]", .options = graph_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat graph xz.pb.gz -o xz.svg",
      .about =
          "Draws the call graph of the profiles in FILE…, merged, as DOT or as a picture: -o OUT.svg, .png, .pdf,\n"
          ".ps, .gif (through the Graphviz library: apt install libgvc6). A box grows with the time\n"
          "in the function itself; a line is as thick, and a colour as red, as the time below it is long; a\n"
          "dotted line goes through functions that were left out. For callgrind nothing is left out, and each\n"
          "address is a node. FILE may be - for standard input, and of any format that offbeat reads."}},
    {REPORT_FLAME,
     {.name = "flame", .usage = "FILE… [-o OUT.svg|OUT.html] [options]", .options = flame_options,
      .operands_min = 1, .operands_max = INT_MAX, .example = "offbeat flame xz.pb.gz -o xz.svg",
      .about =
          "Draws the profiles in FILE…, merged, as a flame graph: on a terminal as text, else as one SVG file that a\n"
          "browser opens. A box is a function below its callers, as wide as the time in it and in its callees. In\n"
          "the browser a click zooms in, Ctrl-F searches, Escape resets, arrows and Enter move and zoom. Only the\n"
          "5000 widest boxes are drawn; the heading says what is left out. With -n 0 the narrow ones appear when a\n"
          "part is enlarged. OUT.html is a page with everything:\n"
          "tables, callers and callees, the time of each thread. With --time-order the boxes of one\n"
          "thread are in the order of time; with --diff-base colours show what has grown and shrunk. FILE may be -\n"
          "for standard input, and of any format that offbeat reads."}},
};
/* clang-format on */

/* Chooses what the graph is written as: by --json, --to, or the ending of OUT. False after a line on standard error. */
static bool choose_graph_format(void)
{
    static const char *const pictures[] = {"svg", "png", "pdf", "ps", "gif"};
    if (graph_format == GRAPH_AS_CALLGRIND) request.kind = REPORT_CALLGRIND;
    if (request.output.json) {
        if (graph_format != GRAPH_AS_NAMED) message("either --json or --to");
        return graph_format == GRAPH_AS_NAMED;
    }
    if (graph_format >= GRAPH_AS_PICTURES) request.output.picture = pictures[graph_format - GRAPH_AS_PICTURES];
    if (graph_format != GRAPH_AS_NAMED) return true;
    request.output.picture = file_extension_drawn(request.output.path);
    if (request.output.picture || !file_extension_of_picture(request.output.path)) return true;
    message("%s: offbeat graph does not write %s; the endings that it knows are .svg, .png, .pdf, .ps, .gif and .dot",
            request.output.path, file_extension_of_picture(request.output.path));
    return false;
}

int command_report(int argc, char **argv)
{
    const struct report_command *command = commands, *last = &commands[sizeof(commands) / sizeof(commands[0]) - 1];
    struct operands words;
    enum exit_status status;
    while (command < last && strcmp(command->syntax.name, argv[0]) != 0) command++;
    request.kind = command->kind;
    request.names.keeps_names = command->kind == REPORT_RAW;
    if (command->kind == REPORT_FLAME) request.values.unit = "auto";
    if (!options_parse(&command->syntax, argc, argv, &words, &status)) return (int)status;
    if (request.by_thread && request.by_process) {
        message("--by-thread and --by-process exclude each other");
        return EXIT_WRONG_USE;
    }
    if (command->kind == REPORT_DOT && !choose_graph_format()) return EXIT_WRONG_USE;
    unsigned first = command->syntax.operands_min - 1; /* 1: an expression is before the files */
    if (first > 0) request.peek = words.items[0];
    return (int)report_run(&request, words.items + first, words.count - first);
}
