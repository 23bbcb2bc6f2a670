/* offbeat symbolize: names for the places of a stored profile (PPF-5, REL-3).  SPDX-License-Identifier: MIT */
#include "symbolize/symbolizer.h"

#include "cli/commands.h"
#include "cli/convert_profile.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "demangle/demangled_names.h"
#include "profile/placeholder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert((int)OPTION_TEXTS_MAX <= (int)SYMBOLIZER_DEBUG_DIRECTORIES_MAX, "all that can be given can be searched");

/* --- Placeholder names -------------------------------------------------------------------------------------------- */

/* "libx.so.1+0x1234": only the start of the function was known when it was named. It is symbolized again. */
struct placeholder {
    struct location_id location;
    struct line line;
};

struct placeholders {
    struct placeholder *items;
    size_t count;
};

/* False if memory is short. */
static bool take_placeholders(struct profile *profile, struct placeholders *ret_taken)
{
    struct placeholders taken = {.items = calloc(profile->locations.count, sizeof(*taken.items))};
    for (uint32_t i = 1; taken.items && i < profile->locations.count; i++) {
        struct location *location = &profile->locations.items[i];
        if (!location_has_placeholder(profile, location)) continue;
        taken.items[taken.count++] = (struct placeholder){.location = {i}, .line = *profile_lines(profile, location)};
        location->line_count = 0;
    }
    *ret_taken = taken;
    return taken.items != NULL;
}

/* Restores the placeholders that still have no name. */
static void put_placeholders_back(struct profile *profile, struct placeholders *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        bool is_named = profile_location(profile, taken->items[i].location)->line_count > 0;
        if (!is_named) profile_set_lines(profile, taken->items[i].location, &taken->items[i].line, 1);
    }
    free(taken->items);
}

/* --- The command -------------------------------------------------------------------------------------------------- */

struct symbolize_arguments {
    struct option_texts directories;
    bool trusts_paths, is_quiet;
};

static void print_result(const char *path, const struct symbolizer_result *result, bool is_quiet)
{
    bool is_complete = result->named == result->locations && result->by_boundary == 0;
    if (is_quiet && is_complete) return;
    message("%s: named %zu of %zu places without a name", message_name(path, false), result->named, result->locations);
    if (result->by_boundary) {
        message(
            "%s: %zu more place%s only a function's start as a name, as libx.so+0x1234: the file has no symbol there",
            message_name(path, false), result->by_boundary, result->by_boundary == 1 ? " has" : "s have");
    }
    if (result->files_unproven) {
        message("%s: the profile has no build id of %zu file%s, which may be another one here; --trust-paths uses %s",
                message_name(path, false), result->files_unproven, result->files_unproven == 1 ? "" : "s",
                result->files_unproven == 1 ? "it" : "them");
    }
    if (result->files_missing || result->files_changed) {
        message("%s: %zu file%s not here and %zu of another build; use --debug-dir to name another folder",
                message_name(path, false), result->files_missing, result->files_missing == 1 ? " is" : "s are",
                result->files_changed);
    }
}

/* One that was mistyped would only be missed by the names that do not come. */
static bool check_folders(const struct option_texts *directories)
{
    for (size_t i = 0; i < directories->count; i++) {
        struct stat status;
        bool exists = stat(directories->items[i], &status) == 0;
        if (exists && S_ISDIR(status.st_mode)) continue;
        message("--debug-dir %s: %s", message_name(directories->items[i], false), strerror(exists ? ENOTDIR : errno));
        return false;
    }
    return true;
}

/* One line for each file that takes long. */
static void report_fetch(void *context, size_t done, size_t all)
{
    struct progress *naming = context;
    const char *what = naming->what;
    naming->what = "fetching debug information";
    progress_step(naming, done, all ? all : SIZE_MAX);
    naming->what = what;
}

static bool name_places(struct profile *profile, const char *path, const struct symbolize_arguments *arguments)
{
    const struct option_texts *directories = &arguments->directories;
    struct progress progress = progress_begin("naming functions");
    struct symbolizer_options options = {.sources = SYMBOLS_OF_THIS_MACHINE | SYMBOLS_DEBUGINFOD,
                                         .progress = progress_step,
                                         .fetch_progress = report_fetch,
                                         .context = &progress,
                                         .debug_directory_count = directories->count,
                                         .trusts_paths = arguments->trusts_paths};
    struct symbolizer_result result = {0};
    struct error error = {0};
    struct placeholders placeholders;
    for (size_t i = 0; i < directories->count; i++) options.debug_directories[i] = directories->items[i];
    enum status status = take_placeholders(profile, &placeholders)
                             ? symbolize_profile(profile, &options, &result, &error)
                             : error_set(&error, STATUS_NO_MEMORY, 0, "no memory");
    put_placeholders_back(profile, &placeholders);
    progress_end(&progress);
    if (open_settings.no_demangle) profile_mangle(profile);
    if (status == STATUS_OK) status = profile_failed(profile, &error);
    if (status == STATUS_OK)
        print_result(path, &result, arguments->is_quiet);
    else
        message_error(path, &error, false);
    return status == STATUS_OK;
}

static bool read_unnamed(const char *path, struct profile *profile, const struct format **ret_format)
{
    struct buffer bytes;
    struct error error = {0};
    struct opened_file file = {0};
    bool is_read = read_input(path, &bytes, &file);
    bool is_decoded = is_read && decode_unnamed(path, file.format, &bytes, profile, &error) == STATUS_OK;
    buffer_fini(&bytes);
    if (is_read && !is_decoded) message_error(path, &error, false);
    *ret_format = file.format;
    return is_decoded;
}

int command_symbolize(int argc, char **argv)
{
    struct convert_target target = CONVERT_TARGET_INIT;
    struct symbolize_arguments arguments = {0};
    const struct format *format = NULL;
    const struct option options[] = {
        CONVERT_OPTION_OUTPUT(target),
        {"debug-dir", 0, OPTION_TEXTS, &arguments.directories, .argument = "DIR",
         .help = "where debug files are, as in /usr/lib/debug; may be repeated"},
        {"trust-paths", 0, OPTION_SWITCH, &arguments.trusts_paths,
         .help = "use files that the profile names without a build id, too"},
        OPEN_OPTION_NO_DEMANGLE,
        OPTION_TOKEN_FILE,
        CONVERT_OPTION_TO(target),
        {"quiet", 'q', OPTION_SWITCH, &arguments.is_quiet, .help = "say only what went wrong"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "symbolize",
        .usage = "FILE -o OUT [--debug-dir DIR]… [--trust-paths] [--no-demangle] [--to FORMAT] [-q]",
        .example = "offbeat symbolize server.pb.gz -o named.pb.gz --debug-dir ./debug",
        .about =
            "Adds names to the addresses of a stored profile that have none, from the files that it names\n"
            "for them, and from debug files: DIR/.build-id/ab/cdef.debug, or what .gnu_debuglink names. A file is\n"
            "used if its build id is the profile's. Existing names are kept, mangled ones become\n"
            "readable. FILE may be "
            "of any format; OUT is written as convert does.",
        .options = options,
        .operands_min = 1,
        .operands_max = 1,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!convert_choose_format(&syntax, &target)) return EXIT_WRONG_USE;
    if (!check_folders(&arguments.directories)) return EXIT_FAILED;

    struct profile profile;
    profile_init(&profile);
    bool is_read = read_unnamed(files.items[0], &profile, &format);
    arguments.trusts_paths |= format == &format_recording;
    bool is_done = is_read && name_places(&profile, files.items[0], &arguments) && convert_profile(&profile, &target);
    profile_fini(&profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}
