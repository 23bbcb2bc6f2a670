/* offbeat raw: all that is in a profile, as text.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "report/raw_report.h"
#include "report/text.h"

#include <limits.h>
#include <unistd.h>

int command_raw(int argc, char **argv)
{
    const struct option options[] = {{0}};
    const struct command_syntax syntax = {
        .name = "raw",
        .usage = "FILE…",
        .example = "offbeat raw xz.pb.gz",
        .about = "Prints all that is in the profiles in FILE…, merged, as text, in the form of pprof -raw: samples as\n"
                 "values and numbers of locations, leaf first, then the locations, then the mappings. Nothing is\n"
                 "dropped or summed up; on a terminal, control characters in names are shown as a question mark.\n"
                 "FILE may be - for standard input, and of any format that offbeat reads.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;

    struct profile profile;
    profile_init(&profile);
    status = EXIT_FAILED;
    if (open_profiles(files.items, files.count, (struct open_options){0}, &profile)) {
        struct buffer report;
        buffer_init(&report, REPORT_BYTES_MAX);
        raw_write_text(&profile, &report);
        if (isatty(STDOUT_FILENO)) make_printable(&report); /* in a file or a pipe, all is as it is */
        status = output_report(&report);
        buffer_fini(&report);
    }
    profile_fini(&profile);
    return (int)status;
}
