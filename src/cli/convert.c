/* offbeat convert: a profile in another format.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"
#include "cli/write_profile.h"
#include "profile/time_labels.h"

#include <string.h>
#include <time.h>

#define NANOSECONDS ((uint64_t)1000000000)

/* In the order of the choices of --to. */
static const enum format targets[] = {FORMAT_PPROF,       FORMAT_SENTRY_V2, FORMAT_ENVELOPE,   FORMAT_SENTRY_V1,
                                      FORMAT_ENVELOPE_V1, FORMAT_COLLAPSED, FORMAT_SPEEDSCOPE, FORMAT_FIREFOX};
static const char target_names[] = "pprof|sentry-v2|envelope|sentry-v1|envelope-v1|collapsed|speedscope|firefox";

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

/* Sentry wants to know the day. A clock that began anywhere, such as perf's or a browser's, is set so that the profile
 * ends now. */
static void give_day(struct profile *profile, const char *path)
{
    struct timespec now;
    uint64_t last_ns = 0;
    if (!profile->has_times || profile->time_ns != 0 || profile->samples.count == 0) return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec;
    uint64_t *times = profile->samples.time_ns;
    for (size_t i = 0; i < profile->samples.count; i++) last_ns = times[i] > last_ns ? times[i] : last_ns;
    if (last_ns > now_ns) return;
    for (size_t i = 0; i < profile->samples.count; i++) times[i] += now_ns - last_ns;
    profile->time_ns = times[0];
    message("%s: the day is made up: the times of samples are those of a clock that began anywhere",
            message_name(path, true));
}

static bool is_sentry(enum format format)
{
    return format == FORMAT_SENTRY_V2 || format == FORMAT_ENVELOPE || format == FORMAT_SENTRY_V1 ||
           format == FORMAT_ENVELOPE_V1;
}

static bool is_chunk(enum format format)
{
    return format == FORMAT_SENTRY_V2 || format == FORMAT_ENVELOPE;
}

static bool convert(struct profile *profile, const char *path, enum format format, bool drops_times)
{
    unsigned number = 1;
    if (drops_times) profile->has_times = false;
    tell_losses(profile, path, format);
    if (is_sentry(format)) give_day(profile, path);
    if (format == FORMAT_PPROF) time_labels_put(profile);
    return write_profile(profile, path, format, &number) && (number > 1 || !is_chunk(format));
}

int command_convert(int argc, char **argv)
{
    const char *output = NULL;
    bool drops_times = false;
    unsigned choice = TARGET_COUNT;
    const struct option options[] = {
        {"output", 'o', OPTION_TEXT, &output, .argument = "OUT", .help = "the file to write, - for standard output"},
        {"no-times", 0, OPTION_SWITCH, &drops_times,
         .help = "forget when samples were taken: pprof then sums equal ones and is smaller"},
        {"to", 0, OPTION_CHOICE, &choice, .argument = target_names, .help = "the format, where OUT does not tell it"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "convert",
        .usage = "FILE -o OUT [--to FORMAT] [--no-times]",
        .example = "offbeat convert xz.envelope -o xz.pb.gz",
        .about = "Writes the profile in FILE in another format. The name of OUT tells which: x.pb.gz pprof, x.json\n"
                 "sentry-v2, x.envelope envelope, x.collapsed collapsed, x.speedscope.json speedscope, x.firefox.json\n"
                 "firefox; with .gz behind it, compressed. What the format has no place for is told on standard\n"
                 "error. A profile of over 60 s becomes several chunks: x.envelope, x.2.envelope, …",
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
    profile_init(&profile);
    bool is_done = open_profile(files.items[0], &profile, NULL);
    if (is_done) is_done = convert(&profile, output, format, drops_times);
    profile_fini(&profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}
