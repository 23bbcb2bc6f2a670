/* The format of a file to write, and the changes that a profile needs to become one of it.
 * SPDX-License-Identifier: MIT */
#include "cli/convert_profile.h"

#include "base/clocks.h"
#include "cli/conversion_loss.h"
#include "cli/message.h"
#include "cli/write_profile.h"
#include "profile/drop_symbols.h"
#include "profile/full_names.h"
#include "profile/profile_prune.h"
#include "profile/profile_scale.h"
#include "profile/tick_counts.h"
#include "profile/time_labels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the format of number CHOICE in CONVERT_TARGETS. */
static const struct format *target_format(unsigned choice)
{
    static const char targets[] = CONVERT_TARGETS;
    const char *start = targets;
    char name[sizeof(targets)];
    for (; choice > 0; choice--) start = strchr(start, '|') + 1;
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, "|"), start);
    return format_of_name(name);
}

const struct format *convert_format_for(const char *path, unsigned choice)
{
    const struct format *format = choice < CONVERT_TARGET_COUNT ? target_format(choice) : format_of_path(path);
    if (format_is_written(format)) return format;
    if (format != NULL) {
        message("offbeat only reads the format %s, which the name %s asks for; say --to " CONVERT_TARGETS,
                format_name(format), path);
    } else if (strcmp(path, "-") == 0) {
        message("standard output has no name to choose a format by; use --to " CONVERT_TARGETS);
    } else {
        message("cannot choose a format by the name %s; use --to " CONVERT_TARGETS, message_name(path, true));
    }
    return NULL;
}

bool convert_check_terminal(const char *path, const struct format *format)
{
    if (strcmp(path, "-") != 0 || !format->is_gzip || !isatty(STDOUT_FILENO)) return true;
    message(
        "standard output is a terminal, and pprof is a binary format; name a file or choose a text format with --to");
    return false;
}

bool convert_choose_format(const struct command_syntax *syntax, struct convert_target *target)
{
    if (!target->path) {
        message("%s needs -o OUT; usage: offbeat %s %s", syntax->name, syntax->name, syntax->usage);
        return false;
    }
    target->format = convert_format_for(target->path, target->choice);
    if (target->format == NULL || !convert_check_terminal(target->path, target->format)) return false;
    if (!target->platform || target->format->sentry_version) return true;
    message("--platform: %s has no platform; sentry-v2, envelope, sentry-v1 and envelope-v1 have one",
            format_name(target->format));
    return false;
}

/* Sets the day, which Sentry wants to know. A clock that began anywhere, such as perf's or a browser's, is set so that
 * the profile ends now. */
static void give_day(struct profile *profile, const char *path)
{
    uint64_t last_ns = 0, now_ns = clock_utc_ns();
    if (!profile->has_times || profile->time_ns != 0 || profile->samples.count == 0) return;
    uint64_t *times = profile->samples.time_ns;
    for (size_t i = 0; i < profile->samples.count; i++) last_ns = times[i] > last_ns ? times[i] : last_ns;
    if (last_ns > now_ns) return;
    for (size_t i = 0; i < profile->samples.count; i++) times[i] += now_ns - last_ns;
    profile->time_ns = profile_start_at(times[0]);
    message("%s: the date is not real: the timestamps come from a clock that started at an unknown time",
            message_name(path, true));
}

/* Warns every time: the samples have the order of the file, which means nothing. */
static void warn_sequence(const struct profile *profile, const struct convert_target *target)
{
    if (!target->format->needs_timestamps || profile->has_times || profile->samples.count == 0) return;
    message("%s: the profile has no timestamps; its samples were put in sequence", message_name(target->path, true));
}

/* Drops frames, unless the format keeps the expressions: pprof leaves the dropping to the program that shows the
 * profile (PPF-9). */
static void drop_frames(struct profile *profile, const struct convert_target *target)
{
    struct error error = {0};
    if (target->format->keeps & KEEPS_RULES) return;
    if (profile_prune(profile, &error) == STATUS_OK)
        profile->drop_frames = profile->keep_frames = (struct string_id){0};
    else
        message("%s: all frames are kept: %s", message_name(target->path, true), error.message);
}

bool convert_profile(struct profile *profile, const struct convert_target *target)
{
    unsigned number = 1;
    if (target->format != &format_pprof && !profile_scale_times_to_nanoseconds(profile)) {
        message("%s: a value is over 292 years, too many nanoseconds for 64 bits; pprof holds it in its unit",
                message_name(target->path, true));
        return false;
    }
    if (!check_values(profile, target->path, target->format)) return false;
    drop_frames(profile, target);
    if (target->drops_times) profile->has_times = false;
    if (target->format->sentry_version) profile_count_ticks(profile);
    if (target->drops_symbols) profile_drop_symbols(profile);
    if (target->platform) profile->platform = profile_text(profile, target->platform);
    warn_conversion_loss(profile, target->path, target->format);
    warn_sequence(profile, target);
    if (target->format->sentry_version) give_day(profile, target->path);
    if (target->format == &format_pprof) {
        time_labels_put(profile);
        profile_give_full_names(profile, false);
    }
    return write_profile(profile, target->path, target->format, &number) &&
           (number > 1 || target->format->sentry_version != 2);
}
