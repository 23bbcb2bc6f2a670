/* offbeat merge: many profiles into one, a file at a time: memory holds the sum and the file at hand, however many
 * there are.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/convert_profile.h"
#include "cli/profile_warnings.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"
#include "profile/drop_labels.h"

#include <limits.h>
#include <string.h>

enum { SAMPLES_SUMMED_MIN = 1 << 16 };

struct sum {
    struct profile *profile;
    size_t summed_count; /* samples at the last time that equal ones were summed */
    bool drops_times;
    const char *dropped_labels; /* keys with commas between them; "" = none */
};

/* Sums equal samples without times before they pile up: when there are twice as many as at the last time, so that each
 * is visited a few times in all. */
static enum status sum_up(struct sum *sum, struct error *error)
{
    size_t count = sum->profile->samples.count;
    if (sum->profile->has_times || count < SAMPLES_SUMMED_MIN || count / 2 < sum->summed_count) return STATUS_OK;
    enum status status = profile_aggregate(sum->profile, error);
    sum->summed_count = sum->profile->samples.count;
    return status;
}

static const char *times_of(const struct profile *profile)
{
    if (!profile->has_times) return "no times of samples";
    return profile->time_ns ? "times of samples" : "times of a clock that began anywhere";
}

/* Keeps times only if all files have times of the same kind. A file without samples changes nothing. */
static void fit_times(const char *path, struct sum *sum, struct profile *profile)
{
    struct profile *before = sum->profile;
    const char *times = times_of(profile), *times_before = times_of(before);
    if (before->samples.count == 0) {
        before->has_times = profile->has_times;
    } else if (profile->samples.count == 0) {
        profile->has_times = before->has_times;
    } else if (!sum->drops_times && strcmp(times, times_before) != 0) {
        message("%s: has %s, and the files before have %s: the sum has none", message_name(path, false), times,
                times_before);
        sum->drops_times = true;
    }
    if (sum->drops_times) before->has_times = profile->has_times = false;
}

static bool merge_file(const char *path, struct sum *sum)
{
    struct error error = {0};
    struct profile profile;
    profile_init(&profile);
    bool is_opened = open_for_merge(path, &profile);
    if (is_opened && sum->dropped_labels[0]) profile_drop_labels(&profile, sum->dropped_labels);
    if (is_opened) fit_times(path, sum, &profile);
    enum status status = is_opened ? merge_opened(path, sum->profile, &profile, NULL, &error) : STATUS_OK;
    profile_fini(&profile);
    if (status == STATUS_OK) status = sum_up(sum, &error);
    if (status != STATUS_OK) message_error(path, &error, false);
    return is_opened && status == STATUS_OK;
}

/* Gives a sum of many inputs the form that conversion gives one: samples in the order of their times, and without times
 * no empty ones. */
static bool finish_sum(struct profile *sum, const char *output)
{
    struct error error = {0};
    enum status status = STATUS_OK;
    if (sum->has_times) {
        status = profile_sort_by_time(sum, &error);
    } else {
        status = profile_aggregate(sum, &error);
        profile_drop_zero_samples(sum);
    }
    if (status != STATUS_OK) message_error(output, &error, true);
    warn_of_profile(sum);
    return status == STATUS_OK;
}

/* The first file is read into the sum itself. */
static bool merge_files(const struct operands *files, struct sum *sum)
{
    bool is_done = open_for_merge(files->items[0], sum->profile);
    if (is_done && sum->dropped_labels[0]) profile_drop_labels(sum->profile, sum->dropped_labels);
    if (sum->drops_times) sum->profile->has_times = false;
    for (unsigned i = 1; i < files->count && is_done; i++) is_done = merge_file(files->items[i], sum);
    return is_done;
}

int command_merge(int argc, char **argv)
{
    struct convert_target target = CONVERT_TARGET_INIT;
    struct sum sum = {.dropped_labels = ""};
    const struct option options[] = {
        CONVERT_OPTION_OUTPUT(target),
        {"drop-labels", 0, OPTION_TEXT, &sum.dropped_labels, .argument = "KEYS",
         .help = "without these labels, which have commas between them: pid,thread_id,thread"},
        {"no-times", 0, OPTION_SWITCH, &target.drops_times,
         .help = "forget when samples were taken: equal ones are summed"},
        OPEN_OPTION_NO_DEMANGLE,
        OPTION_TOKEN_FILE,
        CONVERT_OPTION_TO(target),
        {0},
    };
    const struct command_syntax syntax = {
        .name = "merge",
        .usage = "FILE… -o OUT [--to FORMAT] [--no-times] [--no-demangle] [--drop-labels KEYS]",
        .example = "offbeat merge monday.pb.gz tuesday.pb.gz -o both.pb.gz",
        .about =
            "Writes one profile of all that is in the FILEs, which may be of different formats. Sample types that\n"
            "not all have are left out. Equal samples are summed, unless they have times; those that sum to\n"
            "nothing are left out. A binary at different addresses is one. The name of OUT chooses the\n"
            "format, as in offbeat convert. Files are read one after the other: memory does not grow with their\n"
            "number.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!convert_choose_format(&syntax, &target)) return EXIT_WRONG_USE;

    struct profile profile;
    profile_init(&profile);
    sum.profile = &profile;
    sum.drops_times = target.drops_times;
    bool is_done = merge_files(&files, &sum);
    is_done = is_done && finish_sum(&profile, target.path) && convert_profile(&profile, &target);
    profile_fini(&profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}
