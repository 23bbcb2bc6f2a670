/* Encodes and writes; cuts what is to become Sentry chunks into parts that a receiver accepts.
 *
 * The parts are planned first, all checked by the rules of the receiver, and written then: a profile that needs
 * several files is told from one that needs a single one before anything is on disk.
 * SPDX-License-Identifier: MIT */
#include "cli/write_profile.h"

#include "base/array.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/uuid.h"
#include "binary/debug_id.h"
#include "cli/message.h"
#include "format/sentry/envelope_profile.h"
#include "format/sentry/sentry_v2.h"
#include "profile/full_names.h"
#include "profile/packages.h"
#include "profile/profile_extent.h"
#include "profile/time_line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define SECOND_NS ((uint64_t)1000000000)

enum {
    CHUNK_SECONDS = 60,
    V1_SECONDS_MAX = 30,
    CHUNK_SECONDS_MAX = 65, /* receivers reject what is over 66 s */
    CHUNKS_MAX = 10000,     /* of one profile: a week */
    OUTPUT_BYTES_MAX = FORMAT_BYTES_MAX,
};

struct chunk {
    uint64_t from_ns, to_ns;
    bool is_first, is_last; /* of those written */
};

struct plan {
    struct chunk *chunks;
    size_t count, capacity;
    uint64_t length_ns; /* of the next part: 60 s, halved where that many samples are too large for a receiver */
};

struct output {
    const struct profile *profile;
    const char *path;
    const struct format *format;
    struct chunk_series *series;
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

static bool write_file(const char *path, enum status encoded, const struct buffer *bytes, struct error *error)
{
    if (encoded == STATUS_OK && bytes->failed) {
        encoded = error_set(error, STATUS_TOO_LARGE, 0, "larger than %d bytes, or not enough memory", OUTPUT_BYTES_MAX);
    }
    if (encoded == STATUS_OK) {
        encoded = format_path_is_compressed(path) ? write_compressed(path, buffer_slice(bytes), error)
                                                  : file_write(path, buffer_slice(bytes), error);
    }
    if (encoded == STATUS_OK) return true;
    message_error(path, error, true);
    return false;
}

static bool write_encoded(const struct profile *profile, const char *path, const struct format *format)
{
    struct buffer bytes;
    struct error error = {0};
    buffer_init(&bytes, OUTPUT_BYTES_MAX);
    bool is_written = write_file(path, format_encode(profile, format, &bytes, &error), &bytes, &error);
    buffer_fini(&bytes);
    return is_written;
}

/* The Firefox Profiler shows libraries, too. PROFILE may be written in another format afterwards, and has its own names
 * again then. */
static bool write_with_full_names(struct profile *profile, const char *path, const struct format *format)
{
    struct saved_names saved;
    if (!profile_save_names(profile, &saved)) {
        message("%s: not enough memory", message_name(path, true));
        return false;
    }
    profile_give_full_names(profile, format != &format_firefox);
    profile_distinguish_packages(profile, format == &format_firefox);
    bool is_written = write_encoded(profile, path, format);
    profile_restore_names(profile, &saved);
    return is_written;
}

static bool write_whole(struct profile *profile, const char *path, const struct format *format)
{
    return format->needs_full_names ? write_with_full_names(profile, path, format)
                                    : write_encoded(profile, path, format);
}

/* --- Chunks --------------------------------------------------------------------------------------------------------
 */

static struct sentry_v2_options options_of(const struct output *output, struct chunk chunk)
{
    return (struct sentry_v2_options){
        .from_ns = chunk.from_ns,
        .to_ns = chunk.to_ns,
        .is_first = chunk.is_first,
        .is_last = chunk.is_last,
        .thins_idle = output->series->thins_idle,
    };
}

static enum status check_chunk(const struct output *output, struct chunk chunk, struct error *error)
{
    struct sentry_v2_options options = options_of(output, chunk);
    return sentry_v2_check(output->profile, &options, error);
}

/* The receiver's name for what is wrong stands first in the message. */
static bool has_reason(const struct error *error, const char *reason)
{
    return strncmp(error->message, reason, strlen(reason)) == 0;
}

/* Makes PART, which is no chunk of its own, the end of the chunk before it. False if that would not be accepted. */
static bool join_previous(const struct output *output, struct plan *plan, struct chunk part, uint64_t last_ns)
{
    if (plan->count == 0) return false;
    struct chunk *previous = &plan->chunks[plan->count - 1];
    struct chunk joined = {.from_ns = previous->from_ns, .to_ns = part.to_ns};
    if (last_ns - joined.from_ns > CHUNK_SECONDS_MAX * SECOND_NS) return false;
    if (check_chunk(output, joined, NULL) != STATUS_OK) return false;
    *previous = joined;
    return true;
}

static enum status refuse_length(struct error *error)
{
    return error_set(error, STATUS_TOO_LARGE, 0, "needs more than %d chunks", CHUNKS_MAX);
}

static enum status add_chunk(struct plan *plan, struct chunk chunk, struct error *error)
{
    if (!array_reserve(&plan->chunks, &plan->capacity, plan->count + 1, sizeof(*plan->chunks), CHUNKS_MAX)) {
        return refuse_length(error);
    }
    plan->chunks[plan->count++] = chunk;
    return STATUS_OK;
}

/* Plans what begins at FROM_NS. *RET_NEXT_NS is where the next part begins; UINT64_MAX: nowhere. */
static enum status plan_part(const struct output *output, struct plan *plan, uint64_t from_ns, uint64_t *ret_next_ns,
                             struct error *error)
{
    const struct profile *profile = output->profile;
    struct chunk part = {.from_ns = from_ns, .to_ns = from_ns + plan->length_ns};
    if (part.to_ns < part.from_ns) return error_set(error, STATUS_TOO_LARGE, 0, "has samples after the year 2500");
    enum status status = check_chunk(output, part, error);
    while (status != STATUS_OK && has_reason(error, "profiling_exceed_size_limit") && plan->length_ns > SECOND_NS) {
        plan->length_ns /= 2;
        part.to_ns = from_ns + plan->length_ns;
        status = check_chunk(output, part, error);
    }
    struct time_line_part facts = time_line_part(profile, part.from_ns, part.to_ns);
    *ret_next_ns = facts.next_ns;
    if (status == STATUS_OK) return add_chunk(plan, part, error);
    if (!has_reason(error, "profiling_not_enough_samples")) return status;
    if (join_previous(output, plan, part, facts.last_ns)) return STATUS_OK;
    if (output->series->samples_left_out == 0) output->series->refusal = *error;
    output->series->samples_left_out += facts.tick_count;
    return STATUS_OK;
}

/* Seen from the number of ticks alone, so that a small file with huge counts is refused at once. */
static bool is_too_long(const struct profile *profile)
{
    double ticks = (double)time_line_part(profile, 0, UINT64_MAX).tick_count / (double)profile->threads.count;
    return ticks * (double)time_line_period_ns(profile) > (double)CHUNKS_MAX * CHUNK_SECONDS * (double)SECOND_NS;
}

/* What came as one chunk, which may be somewhat longer than those that we cut, goes as one. */
static bool is_one_chunk(const struct output *output)
{
    const struct profile *profile = output->profile;
    return profile->sample_format == 2 && profile->duration_ns <= (CHUNK_SECONDS_MAX + 1) * SECOND_NS &&
           check_chunk(output, (struct chunk){0}, NULL) == STATUS_OK;
}

static enum status plan_chunks(const struct output *output, struct plan *plan, struct error *error)
{
    uint64_t from_ns = time_line_part(output->profile, 0, 0).next_ns;
    plan->length_ns = CHUNK_SECONDS * SECOND_NS;
    /* The refusal of having no samples at all. */
    if (from_ns == UINT64_MAX) return check_chunk(output, (struct chunk){0}, error);
    if (is_one_chunk(output)) return add_chunk(plan, (struct chunk){0}, error);
    if (is_too_long(output->profile)) return refuse_length(error);
    for (unsigned parts = 0; from_ns != UINT64_MAX; parts++) {
        if (parts == CHUNKS_MAX) return refuse_length(error);
        enum status status = plan_part(output, plan, from_ns, &from_ns, error);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

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

/* Appends the file of one chunk to OUT. */
static enum status encode_chunk(const struct output *output, struct chunk chunk, const char *chunk_id,
                                struct buffer *out, struct error *error)
{
    struct sentry_v2_options options = options_of(output, chunk);
    options.chunk_id = chunk_id;
    if (output->format == &format_sentry_v2) return sentry_v2_encode(output->profile, &options, out, error);
    struct buffer payload;
    buffer_init(&payload, OUTPUT_BYTES_MAX);
    enum status status = sentry_v2_encode(output->profile, &options, &payload, error);
    if (status == STATUS_OK) {
        envelope_profile_wrap(output->profile, buffer_slice(&payload), output->series->number == 1, out);
        status = envelope_profile_check(output->profile, out, 0, error);
    }
    buffer_fini(&payload);
    return status;
}

/* CHUNK_ID NULL: the profile's own. */
static bool write_chunk(const struct output *output, struct chunk chunk, const char *chunk_id)
{
    struct buffer bytes;
    struct error error = {0};
    char path[PATH_MAX];
    if (!numbered_path(output->path, output->series->number, path, sizeof(path))) return false;
    buffer_init(&bytes, OUTPUT_BYTES_MAX);
    enum status status = encode_chunk(output, chunk, chunk_id, &bytes, &error);
    bool is_written = write_file(path, status, &bytes, &error);
    buffer_fini(&bytes);
    output->series->number += is_written;
    return is_written;
}

static bool write_planned(const struct output *output, struct plan *plan)
{
    if (strcmp(output->path, "-") == 0 && plan->count + output->series->number > 2) {
        message("standard output: holds one chunk, and this profile needs %zu; name a file",
                plan->count + output->series->number - 1);
        return false;
    }
    for (size_t i = 0; i < plan->count; i++) {
        char chunk_id[UUID_TEXT_SIZE];
        if (plan->count > 1 && !uuid_new(chunk_id)) {
            message("the system gives no random numbers");
            return false;
        }
        plan->chunks[i].is_first = i == 0;
        plan->chunks[i].is_last = i + 1 == plan->count;
        if (!write_chunk(output, plan->chunks[i], plan->count > 1 ? chunk_id : NULL)) return false;
    }
    return true;
}

static bool write_chunks(const struct output *output)
{
    struct plan plan = {0};
    struct error error = {0};
    bool is_written = false;
    if (plan_chunks(output, &plan, &error) == STATUS_OK) {
        is_written = write_planned(output, &plan);
    } else {
        message_error(output->path, &error, true);
    }
    free(plan.chunks);
    return is_written;
}

static void give_times(struct profile *profile, const char *path)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    time_line_lay_out(profile, (uint64_t)now.tv_sec * SECOND_NS);
    message("%s: the profile has no timestamps; its samples were put in sequence", message_name(path, true));
}

/* A server wants to know which version of which program it was: the program's name tells, and its build id, or the
 * debug id that was made of its code (V2-12). */
static void give_release(struct profile *profile)
{
    char release[512];
    const struct mapping *program = &profile->mappings.items[profile->mappings.count > 1 ? 1 : 0];
    const char *path = profile_c_string(profile, program->file_name);
    char made[BUILD_ID_START_SIZE] = "";
    (void)debug_id_to_build_id(profile_slice(profile, program->debug_id), made);
    const char *build_id = program->build_id.index ? profile_c_string(profile, program->build_id) : made;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    (void)snprintf(release, sizeof(release), "%.400s%s%.80s", name[0] ? name : "unknown", build_id[0] ? "@" : "",
                   build_id);
    profile->release = profile_text(profile, release);
}

static void give_id(struct profile *profile, struct string_id *id)
{
    char text[UUID_TEXT_SIZE];
    if (id->index == 0 && uuid_new(text)) *id = profile_text(profile, text);
}

/* A profile of V1 belongs to a transaction: without one, to one of its own, that ran on the thread of the first sample
 * for as long as there are samples. */
static void give_transaction(struct profile *profile)
{
    struct profile_transaction *transaction = &profile->transaction;
    const struct sample_columns *samples = &profile->samples;
    if (transaction->id.index || samples->count == 0) return;
    give_id(profile, &transaction->id);
    give_id(profile, &transaction->trace_id);
    if (transaction->name.index == 0) transaction->name = profile->release;
    struct string_id thread = profile_thread(profile, samples->thread[0])->id;
    transaction->active_thread = thread.index ? thread : profile_text(profile, "0");
}

/* What Sentry wants to know of every profile. */
static void complete(struct profile *profile, const char *path)
{
    if (!profile->has_times) give_times(profile, path);
    if (profile->release.index == 0) give_release(profile);
}

/* V1 holds 30 s from the profile's start: a server rejects a longer one. */
static void cut_to_v1(struct profile *profile, const char *path)
{
    struct time_line_part all = time_line_part(profile, 0, UINT64_MAX);
    uint64_t start_ns = profile_start_ns(profile), end_ns;
    if (start_ns == 0 || start_ns > all.first_ns) start_ns = all.first_ns;
    if (all.tick_count == 0 || __builtin_add_overflow(start_ns, V1_SECONDS_MAX * SECOND_NS, &end_ns)) return;
    if (all.last_ns <= end_ns) return;
    time_line_keep(profile, 0, end_ns);
    message("%s: only the first %d s are written, which is all that V1 holds; V2 holds the rest",
            message_name(path, true), V1_SECONDS_MAX);
}

static bool write_v1(struct profile *profile, const char *path, const struct format *format)
{
    struct error error;
    complete(profile, path);
    give_transaction(profile);
    give_id(profile, &profile->chunk_id);
    cut_to_v1(profile, path);
    if (profile_failed(profile, &error) == STATUS_OK) return write_whole(profile, path, format);
    message_error(path, &error, true);
    return false;
}

bool write_chunk_series(struct profile *profile, const char *path, const struct format *format,
                        struct chunk_series *series)
{
    complete(profile, path);
    give_id(profile, &profile->profiler_id); /* all chunks of one profile bear the same */
    struct error error;
    if (profile_failed(profile, &error) != STATUS_OK) {
        message_error(path, &error, true);
        return false;
    }
    struct output output = {.profile = profile, .path = path, .format = format, .series = series};
    return write_chunks(&output);
}

void tell_left_out(const char *path, const struct chunk_series *series)
{
    if (series->samples_left_out == 0) return;
    message("%s: %" PRIu64 " sample%s left out: %s", message_name(path, true), series->samples_left_out,
            series->samples_left_out == 1 ? "" : "s", series->refusal.message);
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
    tell_left_out(path, &series);
    *number = series.number;
    return is_written;
}

bool write_one_of_series(struct profile *profile, const char *path, const struct format *format,
                         struct chunk_series *series)
{
    char numbered[PATH_MAX];
    unsigned number = 1; /* of this profile: no format but those of chunks counts it up */
    if (!numbered_path(path, series->number, numbered, sizeof(numbered))) return false;
    series->number++;
    return write_profile(profile, numbered, format, &number);
}
