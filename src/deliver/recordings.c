/* SPDX-License-Identifier: MIT */
#include "deliver/recordings.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/invariant.h"
#include "deliver/chunks.h"
#include "deliver/complete.h"
#include "deliver/in_app.h"
#include "format/recording/recording.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/sentry_v1.h"
#include "profile/sample_times.h"

#include <sys/utsname.h>

struct making {
    const struct chunk_request *request;
    struct profile profile;
    deliver_sink receive;
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
    if (!INVARIANT(request->recording_count <= CHUNK_RECORDINGS_MAX))
        return error_set(making->error, STATUS_TOO_LARGE, 0, "a request names too many recordings");
    if (request->recording_count == 1) return read_recording(request->recordings[0], &making->profile, making->error);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < request->recording_count; i++) {
        status = add_recording(making, request->recordings[i]);
    }
    return status;
}

/* --- What the request knows ----------------------------------------------------------------------------------------
 */

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

static void complete_profile(struct profile *profile, const struct chunk_request *request)
{
    /* The program does not know the library's own threads. worker.c and sdk.c of sdk/ name them. */
    static const char *const own_threads[] = {"offbeat-chunks", "offbeat-begin", NULL};
    profile_drop_threads(profile, own_threads);
    set_text(profile, &profile->release, request->release);
    set_text(profile, &profile->environment, request->environment);
    set_text(profile, &profile->dist, request->dist);
    set_text(profile, &profile->platform, request->platform);
    add_measurements(profile, request);
}

/* --- V2 ----------------------------------------------------------------------------------------------------------- */

/* A recording of which no chunk is accepted is rejected. */
static enum status deliver_v2(struct making *making)
{
    const struct deliver_options options = {
        .tries_one_chunk = true, .thins_idle = !making->request->repeats_idle, .may_thin_idle = true};
    struct deliver_summary summary = {0};
    enum status status =
        deliver_chunks(&making->profile, &options, making->receive, making->context, &summary, making->error);
    if (status != STATUS_OK || summary.chunk_count > 0) return status;
    return rules_result_status(&summary.reject, making->error);
}

/* --- V1 ----------------------------------------------------------------------------------------------------------- */

/* V1-1. */
static void describe_machine(struct profile *profile, struct sentry_extension *extension)
{
    struct utsname system;
    if (uname(&system) != 0) return;
    extension->os.name = profile_text(profile, system.sysname);
    extension->os.version = profile_text(profile, system.release);
    extension->os.build_number = profile_text(profile, system.version);
    extension->device.architecture = profile_text(profile, system.machine);
}

/* Drops measurements outside of the transaction, such as those of earlier ones that the recordings hold. */
static void keep_measurements(struct profile *profile, uint64_t start_ns, uint64_t end_ns)
{
    for (size_t i = 0; i < profile->measurements.count; i++) {
        struct measurement *measurement = &profile->measurements.items[i];
        size_t kept = 0;
        for (size_t j = 0; j < measurement->count; j++) {
            const struct measurement_value value = measurement->values[j];
            if (value.time_ns >= start_ns && value.time_ns <= end_ns) measurement->values[kept++] = value;
        }
        measurement->count = kept;
    }
}

static void describe_transaction(struct profile *profile, struct sentry_extension *extension,
                                 const struct chunk_transaction *transaction)
{
    profile->chunk_id = profile_text(profile, transaction->profile_id);
    profile->active_thread = profile_text(profile, transaction->thread_id);
    extension->transaction = (struct sentry_transaction){
        .id = profile_text(profile, transaction->event_id),
        .trace_id = profile_text(profile, transaction->trace_id),
        .name = profile_text(profile, transaction->name),
    };
    profile->time_ns = profile_start_at(transaction->start_ns);
    profile->duration_ns = transaction->end_ns - transaction->start_ns;
}

static enum status deliver_v1(struct making *making)
{
    const struct chunk_transaction *transaction = &making->request->transaction;
    struct buffer payload;
    /* Servers reject a longer profile: a longer transaction has the profile of its first 30 s. */
    uint64_t limit_ns = transaction->start_ns + DELIVER_V1_SECONDS_MAX * SECOND_NS;
    uint64_t end_ns = transaction->end_ns < limit_ns ? transaction->end_ns : limit_ns;
    sample_times_keep(&making->profile, transaction->start_ns, end_ns);
    keep_measurements(&making->profile, transaction->start_ns, end_ns);
    struct sentry_extension *extension = sentry_extension_make(&making->profile);
    if (!extension) return profile_failed(&making->profile, making->error);
    describe_machine(&making->profile, extension);
    describe_transaction(&making->profile, extension, transaction);
    buffer_init(&payload, CHUNK_PAYLOAD_BYTES_MAX);
    enum status status = sentry_v1_encode(&making->profile, &payload, making->error);
    if (status == STATUS_OK && payload.failed) {
        status = error_set(making->error, STATUS_NO_MEMORY, 0, "not enough memory for the profile");
    }
    if (status == STATUS_OK && !making->receive(making->context, buffer_slice(&payload)))
        status = error_set(making->error, STATUS_IO, 0, "the profile could not be handed on");
    buffer_fini(&payload);
    return status;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static enum status make_payloads(struct making *making, deliver_namer name)
{
    const struct chunk_request *request = making->request;
    enum status status = read_all(making);
    if (status != STATUS_OK) return status;
    complete_profile(&making->profile, request);
    if (name && request->has_names) name(&making->profile);
    in_app_mark(&making->profile, request->in_app_include, request->in_app_exclude);
    status = profile_failed(&making->profile, making->error);
    if (status != STATUS_OK) return status;
    return request->transaction.event_id ? deliver_v1(making) : deliver_v2(making);
}

bool deliver_append_line(void *context, struct slice payload)
{
    struct buffer *payloads = context;
    buffer_append(payloads, payload.data, payload.size);
    buffer_append_byte(payloads, '\n');
    return !payloads->failed;
}

enum status deliver_recordings(const struct chunk_request *request, deliver_namer name, deliver_sink receive,
                               void *context, struct error *error)
{
    struct making making = {.request = request, .receive = receive, .context = context, .error = error};
    profile_init(&making.profile);
    enum status status = make_payloads(&making, name);
    profile_fini(&making.profile);
    return status;
}
