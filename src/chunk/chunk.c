/* SPDX-License-Identifier: MIT */
#include "chunk/chunk.h"

#include "base/file.h"
#include "chunk/in_app.h"
#include "format/recording/recording.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_v2.h"
#include "profile/time_line.h"

#include <sys/utsname.h>

#define SECOND_NS ((uint64_t)1000000000)

enum { V1_SECONDS_MAX = 30 };

struct making {
    const struct chunk_request *request;
    struct profile profile;
    chunk_receiver receive;
    void *context;
    struct error *error;
};

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static enum status read_recording(const char *path, struct profile *profile, struct error *error)
{
    struct buffer bytes;
    buffer_init(&bytes, CHUNK_RECORDING_BYTES_MAX);
    enum status status = file_read(path, &bytes, error);
    if (status == STATUS_OK) status = recording_decode(buffer_slice(&bytes), profile, error);
    buffer_fini(&bytes);
    return status;
}

static enum status add_recording(struct making *making, const char *path)
{
    struct profile profile;
    profile_init(&profile);
    enum status status = read_recording(path, &profile, making->error);
    if (status == STATUS_OK) status = profile_merge(&making->profile, &profile, NULL, making->error);
    profile_fini(&profile);
    return status;
}

static enum status read_all(struct making *making)
{
    const struct chunk_request *request = making->request;
    if (request->recording_count == 1) return read_recording(request->recordings[0], &making->profile, making->error);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < request->recording_count; i++) {
        status = add_recording(making, request->recordings[i]);
    }
    return status;
}

/* --- What is known besides ---------------------------------------------------------------------------------------- */

static void set_text(struct profile *profile, struct string_id *text, const char *value)
{
    if (value && *value) *text = profile_text(profile, value);
}

static void add_measurements(struct profile *profile, const struct chunk_request *request)
{
    for (size_t i = 0; i < request->measurement_count; i++) {
        const struct chunk_measurement *value = &request->measurements[i];
        struct measurement *measurement = profile_measurement(profile, value->name, value->unit);
        if (measurement) profile_measure(profile, measurement, value->time_ns, value->value);
    }
}

/* The library's own threads are none of the program's. The names are those of sdk/: worker.c, sdk.c, at_exit.c. */
static void drop_own_threads(struct profile *profile)
{
    static const char *const names[] = {"offbeat-chunks", "offbeat-send", "offbeat-end", NULL};
    profile_drop_threads(profile, names);
}

static void complete(struct profile *profile, const struct chunk_request *request)
{
    drop_own_threads(profile);
    set_text(profile, &profile->release, request->release);
    set_text(profile, &profile->environment, request->environment);
    set_text(profile, &profile->dist, request->dist);
    if (request->platform && *request->platform) set_text(profile, &profile->platform, request->platform);
    add_measurements(profile, request);
}

/* --- V2 ----------------------------------------------------------------------------------------------------------- */

static enum status refuse_verdict(const struct verdict *verdict, struct error *error)
{
    char text[400];
    verdict_print(verdict, text, sizeof(text));
    return error_set(error, STATUS_MALFORMED, 0, "%.220s", text);
}

static enum status give(struct making *making, struct slice payload)
{
    if (making->receive(making->context, payload)) return STATUS_OK;
    return error_set(making->error, STATUS_IO, 0, "the chunk could not be handed on");
}

static enum status judge_chunk(struct making *making, struct slice payload)
{
    struct verdict verdict;
    struct rules_context context = {.is_in_envelope = true,
                                    .platform = slice_of_text(sentry_v2_platform(&making->profile))};
    enum status status = rules_judge_chunk(payload, &context, RULES_RELAY, &verdict, making->error);
    if (status == STATUS_OK && !verdict.accepted) status = refuse_verdict(&verdict, making->error);
    return status;
}

static enum status encode_chunk(struct making *making, const struct sentry_v2_options *options)
{
    struct buffer payload;
    buffer_init(&payload, CHUNK_PAYLOAD_BYTES_MAX);
    enum status status = sentry_v2_encode(&making->profile, options, &payload, making->error);
    if (status == STATUS_OK && payload.failed) {
        status = error_set(making->error, STATUS_NO_MEMORY, 0, "not enough memory for the chunk");
    }
    if (status == STATUS_OK) status = judge_chunk(making, buffer_slice(&payload));
    if (status == STATUS_OK) status = give(making, buffer_slice(&payload));
    buffer_fini(&payload);
    return status;
}

static bool is_too_large(enum status status, const struct error *error)
{
    static const char reason[] = "profiling_exceed_size_limit";
    return status != STATUS_OK && strncmp(error->message, reason, sizeof(reason) - 1) == 0;
}

/* What is too large goes with fewer samples of threads that wait, and then in halves. */
static enum status encode_part(struct making *making, struct sentry_v2_options options)
{
    struct error error = {0};
    enum status status = sentry_v2_check(&making->profile, &options, &error);
    if (is_too_large(status, &error) && !options.thins_idle) {
        options.thins_idle = true;
        status = sentry_v2_check(&making->profile, &options, &error);
    }
    if (status == STATUS_OK) return encode_chunk(making, &options);
    struct time_line_part part =
        time_line_part(&making->profile, options.from_ns, options.to_ns ? options.to_ns : UINT64_MAX);
    if (!is_too_large(status, &error) || part.last_ns < part.first_ns + SECOND_NS) {
        if (making->error) *making->error = error;
        return status;
    }
    struct sentry_v2_options first = options, second = options;
    first.from_ns = part.first_ns;
    first.to_ns = second.from_ns = part.first_ns + (part.last_ns - part.first_ns) / 2;
    second.to_ns = part.last_ns + 1;
    first.is_last = second.is_first = false;
    status = encode_part(making, first);
    return status == STATUS_OK ? encode_part(making, second) : status;
}

/* --- V1 ----------------------------------------------------------------------------------------------------------- */

/* As V1-1 asks. */
static void describe_machine(struct profile *profile)
{
    struct utsname system;
    if (uname(&system) != 0) return;
    profile->os.name = profile_text(profile, system.sysname);
    profile->os.version = profile_text(profile, system.release);
    profile->os.build_number = profile_text(profile, system.version);
    profile->device.architecture = profile_text(profile, system.machine);
}

static void describe_transaction(struct profile *profile, const struct chunk_transaction *transaction)
{
    profile->chunk_id = profile_text(profile, transaction->profile_id);
    profile->transaction = (struct profile_transaction){
        .id = profile_text(profile, transaction->event_id),
        .trace_id = profile_text(profile, transaction->trace_id),
        .name = profile_text(profile, transaction->name),
        .active_thread = profile_text(profile, transaction->thread_id),
    };
    profile->time_ns = profile_start_at(transaction->start_ns);
    profile->duration_ns = transaction->end_ns - transaction->start_ns;
}

static enum status encode_v1(struct making *making)
{
    const struct chunk_transaction *transaction = &making->request->transaction;
    struct buffer payload;
    struct verdict verdict;
    struct rules_context context = {.is_in_envelope = true, .has_transaction = true};
    /* A longer transaction has the profile of its first 30 s: a longer one would be rejected. */
    uint64_t limit_ns = transaction->start_ns + V1_SECONDS_MAX * SECOND_NS;
    uint64_t end_ns = transaction->end_ns < limit_ns ? transaction->end_ns : limit_ns;
    time_line_keep(&making->profile, transaction->start_ns, end_ns);
    describe_machine(&making->profile);
    describe_transaction(&making->profile, transaction);
    buffer_init(&payload, CHUNK_PAYLOAD_BYTES_MAX);
    enum status status = sentry_v1_encode(&making->profile, &payload, making->error);
    if (status == STATUS_OK && payload.failed) {
        status = error_set(making->error, STATUS_NO_MEMORY, 0, "not enough memory for the profile");
    }
    if (status == STATUS_OK)
        status = rules_judge_profile(buffer_slice(&payload), &context, RULES_RELAY, &verdict, making->error);
    if (status == STATUS_OK && !verdict.accepted) status = refuse_verdict(&verdict, making->error);
    if (status == STATUS_OK) status = give(making, buffer_slice(&payload));
    buffer_fini(&payload);
    return status;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

static enum status make(struct making *making, chunk_namer name)
{
    const struct chunk_request *request = making->request;
    enum status status = read_all(making);
    if (status != STATUS_OK) return status;
    complete(&making->profile, request);
    if (name && request->has_names) name(&making->profile);
    in_app_mark(&making->profile, request->in_app_include, request->in_app_exclude);
    status = profile_failed(&making->profile, making->error);
    if (status != STATUS_OK) return status;
    if (request->transaction.event_id) return encode_v1(making);
    return encode_part(
        making, (struct sentry_v2_options){.is_first = true, .is_last = true, .thins_idle = !request->repeats_idle});
}

bool chunk_append_line(void *context, struct slice payload)
{
    struct buffer *payloads = context;
    buffer_append(payloads, payload.data, payload.size);
    buffer_append_byte(payloads, '\n');
    return !payloads->failed;
}

enum status chunk_make(const struct chunk_request *request, chunk_namer name, chunk_receiver receive, void *context,
                       struct error *error)
{
    struct making making = {.request = request, .receive = receive, .context = context, .error = error};
    profile_init(&making.profile);
    enum status status = make(&making, name);
    profile_fini(&making.profile);
    return status;
}
