/* offbeat info: what is in a file.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "report/info_report.h"

#include <limits.h>

static const char *version_of(enum format format)
{
    return format == FORMAT_SENTRY_V2 || format == FORMAT_ENVELOPE ? "2" : "";
}

static enum exit_status report_info(const char *path, bool as_json, struct buffer *report)
{
    struct profile profile;
    struct opened_file opened;
    struct summary summary;
    struct error error;
    enum exit_status status = EXIT_FAILED;
    profile_init(&profile);
    if (!open_profile(path, &profile, &opened)) goto end;
    if (summary_compute(&profile, &summary, &error) != STATUS_OK) {
        message_error(path, &error, false);
        goto end;
    }
    struct info_file file = {.path = path,
                             .format = format_name(opened.format),
                             .version = version_of(opened.format),
                             .size_bytes = opened.size_bytes};
    if (as_json) {
        info_write_json(&file, &profile, &summary, report);
    } else {
        if (report->size > 0) buffer_append_text(report, "\n");
        info_write_text(&file, &profile, &summary, report);
    }
    summary_fini(&summary);
    status = EXIT_DONE;
end:
    profile_fini(&profile);
    return status;
}

int command_info(int argc, char **argv)
{
    bool as_json = false;
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &as_json, .help = "one JSON object a file, each on a line, for programs"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "info",
        .usage = "FILE… [--json]",
        .example = "offbeat info xz.envelope",
        .about = "Tells what is in each FILE: format, ids, time span, threads, samples, stacks, images, and what the\n"
                 "recorder knows of itself. FILE may be - for standard input.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;

    struct buffer report;
    buffer_init(&report, REPORT_BYTES_MAX);
    enum exit_status worst = EXIT_DONE; /* a file that cannot be read does not hide the others */
    for (unsigned i = 0; i < files.count; i++) {
        status = report_info(files.items[i], as_json, &report);
        if (status > worst) worst = status;
    }
    status = output_report(&report);
    buffer_fini(&report);
    return (int)(status > worst ? status : worst);
}
