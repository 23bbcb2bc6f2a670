/* Reads, detects, decodes and, where a file holds bare addresses of this machine, symbolizes.
 * SPDX-License-Identifier: MIT */
#include "cli/open_profile.h"

#include "base/file.h"
#include "cli/profile_warnings.h"
#include "cli/message.h"
#include "cli/perf_file.h"
#include "cli/progress.h"
#include "demangle/demangled_names.h"
#include "format/sentry/sentry_extension.h"
#include "profile/processes.h"
#include "profile/profile_scale.h"
#include "symbolize/symbolizer.h"

enum { TYPE_NAMES_BYTES_MAX = 1 << 16 };

struct open_settings open_settings;

static void tell_losses(const char *path, const struct fetch_losses *losses)
{
    char lines[FETCH_LINES_MAX][FETCH_LINE_SIZE];
    size_t count = fetch_losses_say(losses, lines);
    for (size_t i = 0; i < count; i++) message("%s: %s", message_name(path, false), lines[i]);
}

static void add_losses(const struct fetch_losses *losses, struct profile *profile)
{
    char lines[FETCH_LINES_MAX][FETCH_LINE_SIZE];
    size_t count = fetch_losses_say(losses, lines);
    for (size_t i = 0; i < count; i++) profile_add_omission(profile, "%s", lines[i]);
}

static const char cut_line[] = "the compressed data are cut short: what came after their end is missing";

bool read_input(const char *path, struct buffer *bytes, struct opened_file *ret_file)
{
    struct error error = {0};
    uint64_t file_size = 0;
    buffer_init(bytes, FORMAT_BYTES_MAX);
    if (!fetch_is_url(path) && strcmp(path, "-") != 0 && perf_file_detect(path, &file_size)) {
        *ret_file = (struct opened_file){.format = &format_perf_data, .size_bytes = file_size};
        return true;
    }
    struct fetch_losses losses = {0};
    enum status status = fetch_is_url(path) ? fetch(path, bytes, &losses, &error) : file_read(path, bytes, &error);
    size_t size = bytes->size;
    if (status == STATUS_OK && size == 0) status = error_set(&error, STATUS_NOT_THIS_FORMAT, 0, "is empty");
    if (status == STATUS_OK) status = format_open(bytes, &ret_file->format, &ret_file->is_cut, &error);
    if (status != STATUS_OK) {
        message_error(path, &error, false);
        return false;
    }
    tell_losses(path, &losses);
    if (ret_file->is_cut) message("%s: %s", message_name(path, false), cut_line);
    ret_file->size_bytes = size;
    ret_file->losses = losses;
    return true;
}

/* The program that made a recording ran on this machine; a file of perf record may come from another one. */
static enum status name_functions(const char *path, struct profile *profile, const struct format *format,
                                  struct decoding *decoding, struct error *error)
{
    struct symbolizer_result result = {0};
    /* Nobody can name the code of a JIT compiler later. */
    unsigned sources = decoding->drops_symbols ? SYMBOLS_PERF_MAPS : SYMBOLS_OF_THIS_MACHINE;
    struct symbolizer_options options = {.sources = sources,
                                         .modules = decoding->modules,
                                         .progress = progress_step,
                                         .context = &decoding->progress,
                                         .kernel = decoding->kernel,
                                         .trusts_paths = format == &format_recording,
                                         .debug_directories = {decoding->image_directory},
                                         .debug_directory_count = decoding->image_directory != NULL,
                                         .map_directory = decoding->image_directory};
    enum status status = symbolize_profile(profile, &options, &result, error);
    if (status == STATUS_OK && result.files_unproven > 0)
        message(
            "%s: perf noted no build id of %zu file%s; another file may be at the same path by now: offbeat symbolize "
            "--trust-paths names the functions",
            message_name(path, false), result.files_unproven, result.files_unproven == 1 ? "" : "s");
    return status;
}

static void tell_omissions(const char *path, const struct profile *profile)
{
    for (size_t i = 0; i < profile->omissions.count; i++)
        message("%s: %s", message_name(path, false), profile_c_string(profile, profile->omissions.items[i]));
}

/* Sets the system name of each function that has none to its name (PPF-6): profile.proto wants both, and `go tool
 * pprof` prints "()" after a function without one. */
static void give_system_names(struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        if (function->system_name.index == 0) function->system_name = function->name;
    }
}

static void choose_names(struct profile *profile)
{
    (open_settings.no_demangle ? profile_mangle : profile_demangle)(profile);
}

enum status decode_unnamed(const char *path, const struct format *format, struct buffer *bytes, struct profile *profile,
                           struct error *error)
{
    enum status status = format == &format_perf_data ? perf_file_decode(path, bytes, profile, NULL, error)
                                                     : format_decode_opened(format, bytes, profile, error);
    if (status != STATUS_OK) return status;
    tell_omissions(path, profile);
    choose_names(profile);
    return STATUS_OK;
}

bool decode_one_of_many(const char *path, const struct format *format, struct buffer *bytes, struct decoding *decoding,
                        struct profile *profile)
{
    struct error error = {0};
    enum status status = format == &format_perf_data ? perf_file_decode(path, bytes, profile, &decoding->kernel, &error)
                                                     : format_decode_opened(format, bytes, profile, &error);
    bool has_addresses = format == &format_recording || format == &format_perf_data;
    if (status == STATUS_OK && has_addresses) status = name_functions(path, profile, format, decoding, &error);
    kernel_symbols_end(decoding->kernel);
    decoding->kernel = NULL;
    if (status != STATUS_OK) {
        message_error(path, &error, false);
        return false;
    }
    tell_omissions(path, profile);
    choose_names(profile);
    if (format != &format_pprof) give_system_names(profile);
    return true;
}

bool decode_input(const char *path, const struct opened_file *file, struct buffer *bytes, struct profile *profile)
{
    struct decoding decoding = {.progress = progress_begin("naming functions")};
    bool is_decoded = decode_one_of_many(path, file->format, bytes, &decoding, profile);
    add_losses(&file->losses, profile);
    if (file->is_cut) profile_add_omission(profile, "%s", cut_line);
    progress_end(&decoding.progress);
    return is_decoded;
}

bool open_profile(const char *path, struct profile *profile, struct opened_file *ret_file)
{
    struct buffer bytes;
    struct opened_file file = {0};
    bool is_open = read_input(path, &bytes, &file) && decode_input(path, &file, &bytes, profile);
    buffer_fini(&bytes);
    if (is_open && ret_file) *ret_file = file;
    return is_open;
}

static bool open_for_sums(const char *path, struct profile *profile)
{
    struct error error = {0};
    if (!open_profile(path, profile, NULL)) return false;
    if (sentry_extension(profile)->sample_format != 1 || profile_fill_idle(profile, &error) == STATUS_OK) return true;
    message_error(path, &error, false);
    return false;
}

/* The facts of PROFILE name its process. */
enum status label_process(struct profile *labelled, const struct profile *profile, struct error *error)
{
    struct processes processes;
    enum status status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the processes");
    if (processes_find(&processes, profile)) {
        struct profile_extra_labels labels = processes_labels_of_one(&processes, profile);
        status = profile_merge(labelled, profile, &labels, error);
    }
    processes_fini(&processes);
    return status;
}

static bool open_labelled(const char *path, const struct open_options *options, struct profile *profile)
{
    struct error error = {0};
    struct profile unlabelled;
    profile_init(&unlabelled);
    bool is_open = options->fills_idle ? open_for_sums(path, &unlabelled) : open_profile(path, &unlabelled, NULL);
    bool is_labelled = is_open && label_process(profile, &unlabelled, &error) == STATUS_OK;
    if (is_open && !is_labelled) message_error(path, &error, false);
    profile_fini(&unlabelled);
    return is_labelled;
}

bool open_for_merge(const char *path, struct profile *profile)
{
    struct error error = {0};
    struct profile opened;
    struct opened_file file = {0};
    profile_init(&opened);
    bool is_open = open_profile(path, &opened, &file);
    /* In other formats, samples have the processes that their file names. */
    enum status status = STATUS_OK;
    if (is_open && file.format == &format_recording) status = label_process(profile, &opened, &error);
    if (is_open && status != STATUS_OK) message_error(path, &error, false);
    if (is_open && file.format != &format_recording) {
        struct profile empty = *profile;
        *profile = opened;
        opened = empty;
    }
    profile_fini(&opened);
    return is_open && status == STATUS_OK;
}

static bool open_one(const char *path, const struct open_options *options, struct profile *profile)
{
    if (options->labels_processes) return open_labelled(path, options, profile);
    return options->fills_idle ? open_for_sums(path, profile) : open_profile(path, profile, NULL);
}

static bool has_sample_type(const struct profile *profile, struct slice type)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        if (slice_equal(profile_slice(profile, profile->value_types[i].type), type)) return true;
    }
    return false;
}

/* Appends the sample types of PROFILE that OTHER has not; gives out how many. */
static size_t name_missing_types(const struct profile *profile, const struct profile *other, struct buffer *names)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->value_type_count; i++) {
        struct slice type = profile_slice(profile, profile->value_types[i].type);
        if (has_sample_type(other, type)) continue;
        if (names->size > 0) buffer_append_text(names, ", ");
        buffer_append(names, type.data, type.size);
        count++;
    }
    return count;
}

/* Keeps the value types that both have. If there is none, changes nothing: the error of profile_merge names the types
 * of both. */
static enum status keep_common_types(const char *path, struct profile *into, struct profile *from, struct error *error)
{
    struct buffer names;
    enum status status = STATUS_OK;
    if (into->value_type_count == 0) return STATUS_OK;
    buffer_init(&names, TYPE_NAMES_BYTES_MAX);
    if (name_missing_types(into, from, &names) < into->value_type_count) {
        (void)name_missing_types(from, into, &names);
        status = profile_make_compatible(into, from, error);
        if (status == STATUS_OK && names.size > 0) {
            message("%s: sample types that not all files have are left out: %.*s", message_name(path, false),
                    SLICE_ARGUMENTS(buffer_slice(&names)));
        }
    }
    buffer_fini(&names);
    return status;
}

enum status merge_opened(const char *path, struct profile *into, struct profile *from,
                         const struct profile_extra_labels *labels, struct error *error)
{
    enum status status = keep_common_types(path, into, from, error);
    bool has_both = into->samples.count > 0 && from->samples.count > 0;
    if (status == STATUS_OK && has_both && !into->stated != !from->stated)
        message("%s: one of the files states the costs of calls, and the other one has stacks: the costs of calls are "
                "estimated",
                message_name(path, false));
    return status == STATUS_OK ? profile_merge(into, from, labels, error) : status;
}

static bool open_and_merge(const char *path, const struct open_options *options, struct profile *into)
{
    struct error error = {0};
    struct profile profile;
    profile_init(&profile);
    bool is_opened = open_one(path, options, &profile);
    uint64_t durations_ns = into->duration_ns + profile.duration_ns;
    bool is_merged = is_opened && merge_opened(path, into, &profile, NULL, &error) == STATUS_OK;
    if (options->adds_durations) into->duration_ns = durations_ns;
    if (is_opened && !is_merged) message_error(path, &error, false);
    profile_fini(&profile);
    return is_merged;
}

bool open_profiles(char *const *paths, size_t count, struct open_options options, struct profile *profile)
{
    options.labels_processes &= count > 1; /* the facts of one file are enough */
    if (!open_one(paths[0], &options, profile)) return false;
    for (size_t i = 1; i < count; i++) {
        if (!open_and_merge(paths[i], &options, profile)) return false;
    }
    warn_of_profile(profile);
    return true;
}
