/* offbeat convert: a profile in another format.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"
#include "cli/write_profile.h"

#include <string.h>

/* In the order of the choices of --to. */
static const enum format targets[] = {FORMAT_PPROF,     FORMAT_SENTRY_V2,   FORMAT_ENVELOPE,
                                      FORMAT_SENTRY_V1, FORMAT_ENVELOPE_V1, FORMAT_COLLAPSED};
static const char target_names[] = "pprof|sentry-v2|envelope|sentry-v1|envelope-v1|collapsed";

enum { TARGET_COUNT = sizeof(targets) / sizeof(targets[0]) };

/* FORMAT_UNKNOWN after a line on standard error. CHOICE is TARGET_COUNT where --to was not given. */
static enum format choose_format(unsigned choice, const char *path)
{
    if (choice < TARGET_COUNT) return targets[choice];
    enum format format = format_of_path(path);
    if (format != FORMAT_UNKNOWN) return format;
    if (strcmp(path, "-") == 0) {
        message("standard output has no name that tells the format; say --to %s", target_names);
    } else {
        message("the name %s does not tell the format; say --to %s", path, target_names);
    }
    return FORMAT_UNKNOWN;
}

static bool is_chunk(enum format format)
{
    return format == FORMAT_SENTRY_V2 || format == FORMAT_ENVELOPE;
}

static void tell_loss(const char *path, enum format format, bool is_lost, const char *what)
{
    if (is_lost) message("%s: %s keeps no %s", message_name(path, true), format_name(format), what);
}

/* What PROFILE has and FORMAT has no place for. */
static void tell_losses(const struct profile *profile, const char *path, enum format format)
{
    bool has_threads = profile->threads.count > 1, has_addresses = profile->mappings.count > 1;
    tell_loss(path, format, profile->has_times && !is_chunk(format), "times of samples");
    tell_loss(path, format, profile->measurements.count > 0 && !is_chunk(format), "measurements");
    tell_loss(path, format, profile->label_sets.count > 1 && format != FORMAT_PPROF, "labels");
    tell_loss(path, format, profile->comments.count > 0 && format != FORMAT_PPROF, "comments");
    tell_loss(path, format, has_threads && format == FORMAT_COLLAPSED, "threads");
    tell_loss(path, format, has_addresses && format == FORMAT_COLLAPSED, "addresses, files and images");
    if (format == FORMAT_COLLAPSED && profile->value_type_count > 1) {
        int column = profile_value_index(profile, "");
        message("%s: %s keeps no values but %s", message_name(path, true), format_name(format),
                profile_c_string(profile, profile->value_types[column].type));
    }
    tell_loss(path, format, is_chunk(format) && profile->value_type_count > 2, "values but the time between samples");
}

int command_convert(int argc, char **argv)
{
    const char *output = NULL;
    unsigned choice = TARGET_COUNT;
    const struct option options[] = {
        {"output", 'o', OPTION_TEXT, &output, .argument = "OUT", .help = "the file to write, - for standard output"},
        {"to", 0, OPTION_CHOICE, &choice, .argument = target_names, .help = "the format, where OUT does not tell it"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "convert",
        .usage = "FILE -o OUT [--to FORMAT]",
        .example = "offbeat convert xz.envelope -o xz.pb.gz",
        .about = "Writes the profile in FILE in another format. The name of OUT tells which: x.pb.gz pprof, x.json\n"
                 "sentry-v2, x.envelope envelope, x.collapsed collapsed. What the format has no place for is told on\n"
                 "standard error. A profile of over 60 s becomes several chunks: x.envelope, x.2.envelope, …",
        .options = options,
        .operands_min = 1,
        .operands_max = 1,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!output) {
        message("convert needs -o OUT; usage: offbeat convert %s", syntax.usage);
        return EXIT_WRONG_USE;
    }
    enum format format = choose_format(choice, output);
    if (format == FORMAT_UNKNOWN) return EXIT_WRONG_USE;

    struct profile profile;
    unsigned number = 1;
    profile_init(&profile);
    bool is_done = open_profile(files.items[0], &profile, NULL);
    if (is_done) {
        tell_losses(&profile, output, format);
        is_done = write_profile(&profile, output, format, &number) && (number > 1 || !is_chunk(format));
    }
    profile_fini(&profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}
