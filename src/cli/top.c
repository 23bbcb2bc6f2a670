/* offbeat top: the hottest functions.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "cli/value_types.h"
#include "profile/full_names.h"
#include "profile/packages.h"
#include "profile/profile_prune.h"
#include "profile/short_names.h"
#include "report/completeness_text.h"
#include "report/top_report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_FUNCTIONS = 30, PROCESS_FUNCTIONS = 10 }; /* shown unless asked otherwise */

struct top_arguments {
    bool json, by_thread, by_process, by_cumulative, all_frames, short_names, running;
    const char *value_type;
    uint64_t function_max;
};

/* Pruned functions may be those that say so, hence it is asked before. */
static void append_completeness(const struct completeness *completeness, struct buffer *report)
{
    struct buffer line;
    buffer_init(&line, 1024);
    if (completeness_append_short(completeness, &line)) {
        buffer_append_format(report, "Incomplete profile: %.*s; offbeat info says why\n",
                             SLICE_ARGUMENTS(buffer_slice(&line)));
    }
    buffer_fini(&line);
}

static enum exit_status report_top(struct profile *profile, const struct top_arguments *arguments)
{
    int column = choose_value_type(profile, arguments->value_type);
    if (column < 0) return EXIT_WRONG_USE;
    struct top_options options = {
        .value_index = (size_t)column,
        .grouping = arguments->by_thread    ? TOP_BY_THREAD
                    : arguments->by_process ? TOP_BY_PROCESS
                                            : TOP_OF_ALL,
        .by_cumulative = arguments->by_cumulative,
    };
    struct top top;
    struct error error;
    struct completeness completeness = {0};
    if (!arguments->json && completeness_compute(profile, &completeness, &error) != STATUS_OK)
        message("cannot tell how complete the profile is: %s", error.message);
    if (!arguments->all_frames && profile_prune(profile, &error) != STATUS_OK)
        message("all frames are shown: %s", error.message);
    if (arguments->short_names) {
        profile_give_short_names(profile);
    } else {
        profile_give_full_names(profile, true);
        profile_tell_packages_apart(profile, false);
    }
    if (top_compute(profile, &options, &top, &error) != STATUS_OK) {
        message("%s", error.message);
        return EXIT_FAILED;
    }
    struct buffer report;
    buffer_init(&report, REPORT_BYTES_MAX);
    struct top_report_options report_options = {
        .function_max = arguments->function_max, .has_colour = output_has_colour(), .width = output_width()};
    void (*write)(const struct profile *, const struct top *, const struct top_report_options *, struct buffer *) =
        arguments->json ? top_write_json : top_write_table;
    write(profile, &top, &report_options, &report);
    append_completeness(&completeness, &report);
    enum exit_status status = output_report(&report);
    buffer_fini(&report);
    top_fini(&top);
    return status;
}

static uint64_t default_function_max(const struct top_arguments *arguments)
{
    if (arguments->json) return 0;
    return arguments->by_process ? PROCESS_FUNCTIONS : TABLE_FUNCTIONS;
}

int command_top(int argc, char **argv)
{
    struct top_arguments arguments = {.value_type = "", .function_max = UINT64_MAX};
    /* clang-format off */
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &arguments.json, .help = "one JSON object for programs, instead of a table"},
        {"by-thread", 0, OPTION_SWITCH, &arguments.by_thread, .help = "each thread on its own"},
        {"by-process", 0, OPTION_SWITCH, &arguments.by_process,
         .help = "each process on its own, the longest first"},
        {"cum", 0, OPTION_SWITCH, &arguments.by_cumulative, .help = "order by time in the function and what it calls"},
        {"all-frames", 0, OPTION_SWITCH, &arguments.all_frames,
         .help = "also those that the profile asks to drop"},
        {"short-names", 0, OPTION_SWITCH, &arguments.short_names,
         .help = "names without modules, packages and template arguments; equal ones are one row"},
        {"running", 0, OPTION_SWITCH, &arguments.running, .help = "CPU time only, without waiting: --sample-index cpu"},
        {"sample-index", 0, OPTION_TEXT, &arguments.value_type, .argument = "NAME",
         .help = "the value to show, one of those that info lists, or its number from 0"},
        {"nodecount", 'n', OPTION_NUMBER, &arguments.function_max, .argument = "N",
         .help = "so many functions, 0 for all (default: 30, by process 10, with --json all)", .maximum = INT_MAX},
        {0},
    };
    /* clang-format on */
    const struct command_syntax syntax = {
        .name = "top",
        .usage = "FILE… [options]",
        .example = "offbeat top xz.pb.gz",
        .about = "Prints the hottest functions of the profiles in FILE…, merged. flat is what was spent in a\n"
                 "function itself, cum what was spent in it and in what it calls. FILE may be - for standard\n"
                 "input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (arguments.running) arguments.value_type = "cpu";
    if (arguments.by_thread && arguments.by_process) {
        message("--by-thread and --by-process exclude each other");
        return EXIT_WRONG_USE;
    }
    if (arguments.function_max == UINT64_MAX) arguments.function_max = default_function_max(&arguments);

    struct profile profile;
    profile_init(&profile);
    status =
        open_profiles(files.items, files.count,
                      (struct open_options){.fills_idle = true, .labels_processes = arguments.by_process}, &profile)
            ? report_top(&profile, &arguments)
            : EXIT_FAILED;
    profile_fini(&profile);
    return (int)status;
}
