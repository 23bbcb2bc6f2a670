/* offbeat info: what is in a file.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/envelope_items.h"
#include "cli/profile_warnings.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "cli/secrets.h"
#include "format/sentry/envelope.h"
#include "format/sentry/sentry_extension.h"
#include "report/info_report.h"

#include <limits.h>

static const char *version_of(const struct profile *profile)
{
    return sentry_extension(profile)->sample_format == 2   ? "2"
           : sentry_extension(profile)->sample_format == 1 ? "1"
                                                           : "";
}

/* The contents of one file. */
struct contents {
    struct profile profile;
    struct opened_file opened;
    struct envelope_items items;
};

/* Reads the items of BYTES, if they are an envelope. False after a line on standard error. */
static bool read_items(const char *path, struct slice bytes, struct contents *contents)
{
    struct error error;
    if (contents->opened.format != &format_envelope) return true;
    if (envelope_items_read(bytes, &contents->profile, &contents->items, &error) == STATUS_OK) return true;
    message_error(path, &error, false);
    return false;
}

static bool read_contents(const char *path, struct contents *contents)
{
    struct buffer bytes;
    bool is_read = read_input(path, &bytes, &contents->opened) && read_items(path, buffer_slice(&bytes), contents);
    bool is_without_profile = contents->opened.format == &format_envelope && contents->items.profile_count == 0;
    if (is_read && !is_without_profile) {
        is_read = decode_input(path, &contents->opened, &bytes, &contents->profile);
        /* Sets the environment that servers read where it is missing (V2-11). */
        if (sentry_extension(&contents->profile)->sample_format != 0 && contents->profile.environment.index == 0)
            contents->profile.environment = profile_text(&contents->profile, "production");
    }
    buffer_fini(&bytes);
    return is_read;
}

static bool write_report(const char *path, const struct contents *contents, bool as_json, struct buffer *report)
{
    struct summary summary;
    struct error error;
    const struct profile *profile = &contents->profile;
    const struct envelope_items *items = &contents->items;
    if (summary_compute(profile, &summary, &error) != STATUS_OK) {
        message_error(path, &error, false);
        return false;
    }
    struct info_file file = {.path = without_secrets(path),
                             .format = format_name(contents->opened.format),
                             .version = version_of(profile),
                             .size_bytes = contents->opened.size_bytes,
                             .items = items->items,
                             .item_count = items->count,
                             .has_profile = contents->opened.format != &format_envelope || items->profile_count > 0};
    if (completeness_compute(profile, &file.completeness, &error) != STATUS_OK) {
        message_error(path, &error, false);
        summary_fini(&summary);
        return false;
    }
    warn_of_profile(profile);
    if (!as_json && report->size > 0) buffer_append_text(report, "\n");
    (as_json ? info_write_json : info_write_text)(&file, profile, &summary, report);
    summary_fini(&summary);
    return true;
}

static enum exit_status report_info(const char *path, bool as_json, struct buffer *report)
{
    struct contents contents = {0};
    profile_init(&contents.profile);
    bool is_done = read_contents(path, &contents) && write_report(path, &contents, as_json, report);
    envelope_items_fini(&contents.items);
    profile_fini(&contents.profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}

int command_info(int argc, char **argv)
{
    bool as_json = false;
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &as_json, .help = "one JSON object a file, each on a line, for programs"},
        OPTION_TOKEN_FILE,
        OUTPUT_OPTION_PAGER,
        {0},
    };
    const struct command_syntax syntax = {
        .name = "info",
        .usage = "FILE… [--json]",
        .example = "offbeat info xz.envelope",
        .about =
            "Prints what is in each FILE: format, items of an envelope, ids, time span, threads, samples, stacks,\n"
            "images, and metadata of the recorder. FILE may be - for standard input.",
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
