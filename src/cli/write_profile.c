/* Encodes and writes. The chunks of a profile are all encoded before the first file is written: a profile that cannot
 * be sent leaves no files.  SPDX-License-Identifier: MIT */
#include "cli/write_profile.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/timespec.h"
#include "cli/message.h"
#include "cli/staging.h"
#include "deliver/complete.h"
#include "format/sentry/sentry_extension.h"
#include "profile/full_names.h"
#include "profile/packages.h"
#include "profile/profile_extent.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum {
    ONE_CHUNK_SECONDS_MAX = 66,
    OUTPUT_BYTES_MAX = FORMAT_BYTES_MAX,
};

/* --- One file ------------------------------------------------------------------------------------------------------
 */

static enum status write_compressed(const char *path, struct slice bytes, struct error *error)
{
    struct buffer compressed;
    buffer_init(&compressed, OUTPUT_BYTES_MAX);
    enum status status = gzip_compress(bytes, GZIP_LEVEL_DEFAULT, &compressed, error);
    if (status == STATUS_OK) status = file_write(path, buffer_slice(&compressed), error);
    buffer_fini(&compressed);
    return status;
}

/* STATUS is that of BYTES. */
static bool write_file(const char *path, enum status status, struct slice bytes, struct error *error)
{
    if (status == STATUS_OK)
        status =
            format_path_is_compressed(path) ? write_compressed(path, bytes, error) : file_write(path, bytes, error);
    if (status == STATUS_OK) return true;
    message_error(path, error, true);
    return false;
}

static bool write_encoded(const struct profile *profile, const char *path, const struct format *format)
{
    struct buffer bytes;
    struct error error = {0};
    buffer_init(&bytes, OUTPUT_BYTES_MAX);
    enum status status = format_encode(profile, format, &bytes, &error);
    if (status == STATUS_OK && bytes.failed)
        status = error_set(&error, STATUS_TOO_LARGE, 0, "larger than %d bytes, or not enough memory", OUTPUT_BYTES_MAX);
    bool is_written = write_file(path, status, buffer_slice(&bytes), &error);
    buffer_fini(&bytes);
    return is_written;
}

/* Writes PROFILE with the full names of its functions, which a format without images completes by the name of the
 * library. PROFILE has its own names again afterwards, for the next format. */
static bool write_with_full_names(struct profile *profile, const char *path, const struct format *format)
{
    struct saved_names saved;
    if (!profile_save_names(profile, &saved)) {
        message("%s: not enough memory", message_name(path, true));
        return false;
    }
    bool shows_libraries = format->keeps & KEEPS_IMAGES;
    profile_give_full_names(profile, !shows_libraries);
    profile_distinguish_packages(profile, &(struct package_naming){.only_unmapped = shows_libraries});
    bool is_written = write_encoded(profile, path, format);
    profile_restore_names(profile, &saved);
    return is_written;
}

static bool write_whole(struct profile *profile, const char *path, const struct format *format)
{
    return format->needs_full_names ? write_with_full_names(profile, path, format)
                                    : write_encoded(profile, path, format);
}

/* --- Sentry's formats --------------------------------------------------------------------------------------------- */

/* x.envelope is followed by x.2.envelope, x.pb.gz by x.2.pb.gz. False after a line on standard error. */
static bool numbered_path(const char *path, unsigned number, char *ret_path, size_t size)
{
    const char *suffix = format_suffix_of_path(path);
    int length = number == 1 ? snprintf(ret_path, size, "%s", path)
                             : snprintf(ret_path, size, "%.*s.%u%s", (int)(suffix - path), path, number, suffix);
    if (length >= 0 && (size_t)length < size) return true;
    message("%s: the name is too long", path);
    return false;
}

struct staged_output {
    struct staging staging;
    const char *folder;
    struct error error; /* error of a chunk that could not be staged */
};

static bool stage(void *context, struct slice bytes)
{
    struct staged_output *output = context;
    return staging_add(&output->staging, output->folder, bytes, &output->error) == STATUS_OK;
}

static bool write_staged(const struct staging *staging, size_t number, const char *path)
{
    struct buffer scratch;
    struct slice bytes;
    struct error error = {0};
    buffer_init(&scratch, OUTPUT_BYTES_MAX);
    enum status status = staging_get(staging, number, &scratch, &bytes, &error);
    bool is_written = write_file(path, status, bytes, &error);
    buffer_fini(&scratch);
    return is_written;
}

static bool write_all_staged(const struct staging *staging, const char *path, struct chunk_series *series)
{
    for (size_t i = 0; i < staging->count; i++) {
        char numbered[PATH_MAX];
        if (!numbered_path(path, series->number, numbered, sizeof(numbered))) return false;
        if (!write_staged(staging, i, numbered)) return false;
        series->number++;
    }
    return true;
}

static void report_times(const char *path, bool were_assigned)
{
    if (were_assigned)
        message("%s: the profile has no timestamps; its samples were put in sequence", message_name(path, true));
}

/* Writes a profile that came as one chunk as one, although it may be somewhat longer than the chunks that we split. */
static bool may_be_one_chunk(const struct profile *profile)
{
    return sentry_extension(profile)->sample_format == 2 && profile->duration_ns <= ONE_CHUNK_SECONDS_MAX * SECOND_NS;
}

static enum status stage_chunks(const struct profile *profile, const char *path, const struct format *format,
                                struct chunk_series *series, struct staged_output *output, struct error *error)
{
    bool is_stdout = strcmp(path, "-") == 0;
    const struct deliver_options options = {
        .tries_one_chunk = may_be_one_chunk(profile),
        .thins_idle = series->thins_idle,
        .wraps = format == &format_envelope,
        .carries_items = series->number == 1,
        .chunks_before = is_stdout ? series->number - 1 : 0,
        .chunks_max = is_stdout ? 1 : 0,
    };
    enum status status = profile_failed(profile, error);
    if (status == STATUS_OK) status = deliver_chunks(profile, &options, stage, output, &series->summary, error);
    if (status == STATUS_IO && output->error.status != STATUS_OK) *error = output->error;
    return status;
}

bool write_chunk_series(struct profile *profile, const char *path, const struct format *format,
                        struct chunk_series *series)
{
    char folder[PATH_MAX];
    struct error error = {0};
    struct staged_output output = {.folder = folder};
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
    report_times(path, deliver_complete_v2(profile));
    staging_init(&output.staging);
    bool is_staged = stage_chunks(profile, path, format, series, &output, &error) == STATUS_OK;
    if (!is_staged) message_error(path, &error, true);
    bool is_written = is_staged && write_all_staged(&output.staging, path, series);
    staging_fini(&output.staging);
    return is_written;
}

static bool write_v1(struct profile *profile, const char *path, const struct format *format)
{
    struct error error;
    report_times(path, deliver_complete_v1(profile));
    if (deliver_cut_v1(profile))
        message("%s: only the first %d s are written, which is all that V1 holds; V2 holds the rest",
                message_name(path, true), DELIVER_V1_SECONDS_MAX);
    if (profile_failed(profile, &error) == STATUS_OK) return write_whole(profile, path, format);
    message_error(path, &error, true);
    return false;
}

void report_left_out(const char *path, const struct chunk_series *series)
{
    char reason[sizeof(((struct error *)NULL)->message)];
    const struct deliver_summary *summary = &series->summary;
    if (summary->samples_left_out == 0) return;
    rules_result_print(&summary->reject, reason, sizeof(reason));
    message("%s: %" PRIu64 " sample%s left out: %s", message_name(path, true), summary->samples_left_out,
            summary->samples_left_out == 1 ? "" : "s", reason);
}

/* All formats but Firefox's write each stack in full. */
static bool check_extent(const struct profile *profile, const char *path, const struct format *format)
{
    struct error error = {0};
    bool stacks_once = format != &format_speedscope && format != &format_pprof;
    if (format == &format_firefox || profile_check_flat(profile, stacks_once, &error) == STATUS_OK) return true;
    message_error(path, &error, true);
    return false;
}

bool write_profile(struct profile *profile, const char *path, const struct format *format, unsigned *number)
{
    if (!check_extent(profile, path, format)) return false;
    if (format->sentry_version == 1) return write_v1(profile, path, format);
    if (format->sentry_version != 2) return write_whole(profile, path, format);
    struct chunk_series series = {.number = *number};
    bool is_written = write_chunk_series(profile, path, format, &series);
    report_left_out(path, &series);
    *number = series.number;
    return is_written;
}

bool write_one_of_series(struct profile *profile, const char *path, const struct format *format,
                         struct chunk_series *series)
{
    char numbered[PATH_MAX];
    unsigned number = 1; /* number for this profile: only formats of chunks count it up */
    if (!numbered_path(path, series->number, numbered, sizeof(numbered))) return false;
    series->number++;
    return write_profile(profile, numbered, format, &number);
}
