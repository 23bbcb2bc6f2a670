/* Writes Sample Format V1: its own metadata around the parts that it shares with V2. SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v1.h"

#include "format/sentry/sentry_encoder_private.h"
#include "format/sentry/sentry_extension.h"

static void write_text_or(struct json_writer *writer, const struct profile *profile, const char *key,
                          struct string_id text, const char *otherwise)
{
    json_member_text(writer, key, text.index ? profile_c_string(profile, text) : otherwise);
}

static void write_device(struct json_writer *writer, const struct profile *profile)
{
    const struct sentry_device *device = &sentry_extension(profile)->device;
    json_begin_object_member(writer, "device");
    write_text_or(writer, profile, "architecture", device->architecture, "unknown");
    chunk_write_member(writer, profile, "manufacturer", device->manufacturer);
    chunk_write_member(writer, profile, "model", device->model);
    chunk_write_member(writer, profile, "locale", device->locale);
    if (device->has_is_emulator) json_member_bool(writer, "is_emulator", device->is_emulator);
    chunk_write_attributes(writer, profile, device->attributes);
    json_end_object(writer);
}

static void write_os(struct json_writer *writer, const struct profile *profile)
{
    const struct sentry_os *os = &sentry_extension(profile)->os;
    json_begin_object_member(writer, "os");
    write_text_or(writer, profile, "name", os->name, "unknown");
    /* Some clients know a name and no version: then the version is an empty string. */
    write_text_or(writer, profile, "version", os->version, os->name.index ? "" : "unknown");
    /* V1-6: for cocoa only. What another client wrote stays. */
    bool is_cocoa = strcmp(sentry_v2_platform(profile), "cocoa") == 0;
    if (is_cocoa || sentry_extension(profile)->sample_format != 0)
        chunk_write_member(writer, profile, "build_number", os->build_number);
    chunk_write_attributes(writer, profile, os->attributes);
    json_end_object(writer);
}

static void write_runtime(struct json_writer *writer, const struct profile *profile)
{
    const struct sentry_runtime *runtime = &sentry_extension(profile)->runtime;
    if (runtime->name.index == 0 && runtime->version.index == 0 && runtime->attributes.index == 0) return;
    json_begin_object_member(writer, "runtime");
    chunk_write_member(writer, profile, "name", runtime->name);
    chunk_write_member(writer, profile, "version", runtime->version);
    chunk_write_attributes(writer, profile, runtime->attributes);
    json_end_object(writer);
}

/* Returns the thread of the first sample; a transaction that names none is assumed to have run on it. */
static const char *first_thread(const struct profile *profile)
{
    if (profile->samples.count == 0) return "0";
    const char *id = profile_c_string(profile, profile_thread(profile, profile->samples.thread[0])->id);
    return id[0] ? id : "0";
}

static void write_transaction(struct json_writer *writer, const struct profile *profile)
{
    const struct sentry_transaction *transaction = &sentry_extension(profile)->transaction;
    json_begin_object_member(writer, "transaction");
    chunk_write_uuid(writer, "id", profile_slice(profile, transaction->id));
    write_text_or(writer, profile, "name", transaction->name, "unknown");
    chunk_write_uuid(writer, "trace_id", profile_slice(profile, transaction->trace_id));
    write_text_or(writer, profile, "active_thread_id", profile->active_thread, first_thread(profile));
    if (transaction->start_ns || transaction->end_ns) {
        chunk_write_decimal(writer, "relative_start_ns", transaction->start_ns);
        chunk_write_decimal(writer, "relative_end_ns", transaction->end_ns);
    }
    chunk_write_attributes(writer, profile, transaction->attributes);
    json_end_object(writer);
}

static void write_metadata(struct json_writer *writer, const struct chunk_plan *plan)
{
    const struct profile *profile = plan->profile;
    json_member_text(writer, "version", "1");
    chunk_write_uuid(writer, "event_id", profile_slice(profile, profile->chunk_id));
    json_member_text(writer, "platform", sentry_v2_platform(profile));
    json_member_time(writer, "timestamp", plan->start_ns);
    chunk_write_member(writer, profile, "release", profile->release);
    chunk_write_member(writer, profile, "dist", profile->dist);
    write_text_or(writer, profile, "environment", profile->environment, "production");
    if (profile->sdk_name.index) chunk_write_client_sdk(writer, profile);
    write_device(writer, profile);
    write_os(writer, profile);
    write_runtime(writer, profile);
    write_transaction(writer, profile);
}

/* Returns the time where times begin: the profile's start or, if it has none or a later one, its first sample. */
static uint64_t find_start(const struct profile *profile)
{
    uint64_t start_ns = profile->time_ns ? profile_start_ns(profile) : UINT64_MAX;
    for (size_t i = 0; profile->has_times && i < profile->samples.count; i++) {
        if (profile->samples.time_ns[i] < start_ns) start_ns = profile->samples.time_ns[i];
    }
    return start_ns == UINT64_MAX ? 0 : start_ns;
}

enum status sentry_v1_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    struct chunk_plan plan = {.is_v1 = true, .start_ns = find_start(profile)};
    struct rules_result result;
    if (sentry_extension(profile)->transaction.id.index == 0) {
        return chunk_reject(error, REJECT_NO_TRANSACTION_ASSOCIATED, "the profile belongs to no transaction");
    }
    return chunk_encode(&plan, profile, NULL, write_metadata, out, &result, error);
}
