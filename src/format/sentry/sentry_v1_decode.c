/* Reads Sample Format V1. Its profile, images and measurements are those of V2, read by the same code; times are
 * counted from the profile's start, which may stand behind them, so that it is added at the end.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v1.h"

#include "base/rfc3339.h"
#include "format/common/descriptor.h"
#include "format/sentry/sentry_decoder_private.h"

struct v1_decoder {
    struct chunk_decoder chunk;
    uint64_t start_ns;
    struct slice transactions; /* the list as it stands there */
    size_t transaction_count;  /* in it */
    bool has_transaction;      /* beside it */
    bool has_version, is_version_1;
};

static struct string_id read_text(struct v1_decoder *decoder)
{
    return chunk_read_string(&decoder->chunk);
}

static struct string_id read_number_text(struct v1_decoder *decoder)
{
    return profile_string(decoder->chunk.profile, chunk_read_text_or_number(&decoder->chunk));
}

static void read_transaction(struct v1_decoder *decoder)
{
    enum { ID, NAME, TRACE, THREAD, START, END };
    static const struct member known[] = {
        MEMBER("id", ID),
        MEMBER("name", NAME),
        MEMBER("trace_id", TRACE),
        MEMBER("active_thread_id", THREAD),
        MEMBER("relative_start_ns", START),
        MEMBER("relative_end_ns", END),
    };
    struct members members = MEMBERS(known);
    struct profile_transaction transaction = {0};
    members.keeps = true;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        switch (member) {
        case ID:
            transaction.id = chunk_read_uuid(&decoder->chunk);
            break;
        case NAME:
            transaction.name = read_text(decoder);
            break;
        case TRACE:
            transaction.trace_id = chunk_read_uuid(&decoder->chunk);
            break;
        case THREAD:
            transaction.active_thread = read_number_text(decoder);
            break;
        case START:
            transaction.start_ns = chunk_read_u64(&decoder->chunk);
            break;
        case END:
            transaction.end_ns = chunk_read_u64(&decoder->chunk);
            break;
        }
    }
    transaction.attributes = chunk_take_attributes(&decoder->chunk, &members);
    /* The object counts before the list; of the list, the first. */
    if (decoder->chunk.profile->transaction.id.index == 0) decoder->chunk.profile->transaction = transaction;
}

/* Only the first one counts, but all are checked. */
static void read_transactions(struct v1_decoder *decoder)
{
    struct profile *profile = decoder->chunk.profile;
    struct profile_transaction first = profile->transaction;
    struct json_reader *reader = &decoder->chunk.reader;
    size_t start = chunk_offset(&decoder->chunk);
    json_array_begin(reader);
    while (json_array_next(reader)) {
        read_transaction(decoder);
        if (first.id.index == 0) first = profile->transaction;
        decoder->transaction_count++;
    }
    profile->transaction = first;
    decoder->transactions = slice_of(reader->start + start, json_reader_taken(reader) - start);
}

/* The model holds one transaction. A list that has others stays beside it, where it does not count. */
static void keep_transactions(struct v1_decoder *decoder, struct members *members)
{
    if (decoder->transaction_count + decoder->has_transaction < 2 || decoder->chunk.reader.failed) return;
    chunk_keep_as(&decoder->chunk, members, "transactions", decoder->transactions);
}

static void read_device(struct v1_decoder *decoder)
{
    enum { ARCHITECTURE, MANUFACTURER, MODEL, LOCALE, IS_EMULATOR };
    static const struct member known[] = {
        MEMBER("architecture", ARCHITECTURE),
        MEMBER("manufacturer", MANUFACTURER),
        MEMBER("model", MODEL),
        MEMBER("locale", LOCALE),
        MEMBER("is_emulator", IS_EMULATOR),
    };
    struct members members = MEMBERS(known);
    struct profile_device *device = &decoder->chunk.profile->device;
    members.keeps = true;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        switch (member) {
        case ARCHITECTURE:
            device->architecture = read_text(decoder);
            break;
        case MANUFACTURER:
            device->manufacturer = read_text(decoder);
            break;
        case MODEL:
            device->model = read_text(decoder);
            break;
        case LOCALE:
            device->locale = read_text(decoder);
            break;
        case IS_EMULATOR:
            device->is_emulator = json_bool(&decoder->chunk.reader);
            device->has_is_emulator = true;
            break;
        }
    }
    device->attributes = chunk_take_attributes(&decoder->chunk, &members);
}

/* An object of texts: MEMBERS by number into TEXTS. Returns its attributes. */
static struct string_id read_texts(struct v1_decoder *decoder, struct members members, struct string_id *const *texts)
{
    members.keeps = true;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        *texts[member] = read_text(decoder);
    }
    return chunk_take_attributes(&decoder->chunk, &members);
}

static void read_os(struct v1_decoder *decoder)
{
    static const struct member known[] = {MEMBER("name", 0), MEMBER("version", 1), MEMBER("build_number", 2)};
    struct profile_os *os = &decoder->chunk.profile->os;
    os->attributes = read_texts(decoder, (struct members)MEMBERS(known),
                                (struct string_id *const[]){&os->name, &os->version, &os->build_number});
}

static void read_runtime(struct v1_decoder *decoder)
{
    static const struct member known[] = {MEMBER("name", 0), MEMBER("version", 1)};
    struct profile_runtime *runtime = &decoder->chunk.profile->runtime;
    runtime->attributes = read_texts(decoder, (struct members)MEMBERS(known),
                                     (struct string_id *const[]){&runtime->name, &runtime->version});
}

static void read_timestamp(struct v1_decoder *decoder)
{
    struct slice text = json_string(&decoder->chunk.reader);
    if (!rfc3339_parse(text, &decoder->start_ns)) {
        json_reader_refuse(&decoder->chunk.reader, STATUS_MALFORMED, "expected a time of RFC 3339");
    }
}

static void read_version(struct v1_decoder *decoder)
{
    decoder->has_version = true;
    decoder->is_version_1 = slice_equals_text(json_string(&decoder->chunk.reader), "1");
}

enum part {
    VERSION,
    EVENT,
    PLATFORM,
    RELEASE,
    ENVIRONMENT,
    DIST,
    TIMESTAMP,
    TRANSACTION,
    TRANSACTIONS,
    DEVICE,
    OS,
    RUNTIME,
    SDK,
    IMAGES,
    MEASUREMENTS,
    PROFILE,
    OFFBEAT,
};

static void read_part(struct v1_decoder *decoder, enum part part)
{
    struct chunk_decoder *chunk = &decoder->chunk;
    struct profile *profile = chunk->profile;
    switch (part) {
    case VERSION:
        read_version(decoder);
        break;
    case EVENT:
        profile->chunk_id = chunk_read_uuid(chunk);
        break;
    case PLATFORM:
        profile->platform = read_text(decoder);
        break;
    case RELEASE:
        profile->release = read_text(decoder);
        break;
    case ENVIRONMENT:
        profile->environment = read_text(decoder);
        break;
    case DIST:
        profile->dist = read_text(decoder);
        break;
    case TIMESTAMP:
        read_timestamp(decoder);
        break;
    case TRANSACTION:
        profile->transaction = (struct profile_transaction){0};
        read_transaction(decoder);
        decoder->has_transaction = true;
        break;
    case TRANSACTIONS:
        read_transactions(decoder);
        break;
    case DEVICE:
        read_device(decoder);
        break;
    case OS:
        read_os(decoder);
        break;
    case RUNTIME:
        read_runtime(decoder);
        break;
    case SDK:
        chunk_read_client_sdk(chunk);
        break;
    case IMAGES:
        chunk_read_debug_meta(chunk);
        break;
    case MEASUREMENTS:
        chunk_read_measurements(chunk);
        break;
    case PROFILE:
        chunk_read_profile(chunk);
        break;
    case OFFBEAT:
        chunk_read_offbeat(chunk);
        break;
    }
}

static void read_all(struct v1_decoder *decoder)
{
    static const struct member known[] = {
        MEMBER("version", VERSION),
        MEMBER("event_id", EVENT),
        MEMBER("profile_id", EVENT),
        MEMBER("platform", PLATFORM),
        MEMBER("release", RELEASE),
        MEMBER("environment", ENVIRONMENT),
        MEMBER("dist", DIST),
        MEMBER("timestamp", TIMESTAMP),
        MEMBER("transaction", TRANSACTION),
        MEMBER("device", DEVICE),
        MEMBER("transactions", TRANSACTIONS),
        MEMBER("os", OS),
        MEMBER("runtime", RUNTIME),
        MEMBER("client_sdk", SDK),
        MEMBER("debug_meta", IMAGES),
        MEMBER("measurements", MEASUREMENTS),
        MEMBER("profile", PROFILE),
        MEMBER("offbeat", OFFBEAT),
    };
    struct members members = MEMBERS(known);
    members.keeps = true;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;)
        read_part(decoder, (enum part)member);
    keep_transactions(decoder, &members);
    decoder->chunk.profile->attributes.chunk = chunk_take_attributes(&decoder->chunk, &members);
}

static uint64_t add_limited(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* From nanoseconds since the start to nanoseconds since 1970. */
static void add_start(struct v1_decoder *decoder)
{
    struct chunk *chunk = &decoder->chunk.chunk;
    struct profile *profile = decoder->chunk.profile;
    for (size_t i = 0; i < chunk->samples.count; i++) {
        chunk->samples.items[i].time_ns = add_limited(chunk->samples.items[i].time_ns, decoder->start_ns);
    }
    for (size_t i = 0; i < profile->measurements.count; i++) {
        struct measurement *measurement = &profile->measurements.items[i];
        for (size_t k = 0; k < measurement->count; k++) {
            measurement->values[k].time_ns = add_limited(measurement->values[k].time_ns, decoder->start_ns);
        }
    }
}

static enum status decode(struct v1_decoder *decoder, struct error *error)
{
    struct json_reader *reader = &decoder->chunk.reader;
    struct profile *profile = decoder->chunk.profile;
    if (json_peek(reader) != JSON_OBJECT) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no JSON object");
    read_all(decoder);
    enum status status = json_reader_finish(reader, error);
    if (status != STATUS_OK) return status;
    if (decoder->has_version && !decoder->is_version_1) {
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "profiling_platform_not_supported: not version 1 of the sample format");
    }
    if (!decoder->has_version || !decoder->chunk.has_profile) {
        return error_set(error, STATUS_MALFORMED, 0, "profiling_invalid_json: no %s",
                         decoder->has_version ? "profile" : "version");
    }
    add_start(decoder);
    profile->sample_format = 1;
    status = chunk_to_profile(&decoder->chunk.chunk, profile, error);
    if (status != STATUS_OK) return status;
    uint64_t end_ns =
        profile->samples.count ? add_limited(profile_start_ns(profile), profile->duration_ns) : decoder->start_ns;
    profile->time_ns = profile_start_at(decoder->start_ns);
    profile->duration_ns = end_ns - decoder->start_ns;
    return STATUS_OK;
}

enum status sentry_v1_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct v1_decoder decoder = {0};
    chunk_decoder_init(&decoder.chunk, bytes, profile);
    decoder.chunk.is_relative = true;
    enum status status = decode(&decoder, error);
    chunk_decoder_fini(&decoder.chunk);
    return status;
}

/* --- Detection ---------------------------------------------------------------------------------------------------- */

/* By the first member that only one version has: some clients write the version itself behind the profile. */
bool sentry_v1_detect(struct slice bytes)
{
    static const char *const of_v1[] = {"transaction", "transactions", "device"};
    struct json_reader reader;
    struct slice key;
    int version = 0;
    json_reader_init(&reader, bytes);
    if (json_peek(&reader) == JSON_OBJECT) json_object_begin(&reader);
    while (version == 0 && json_object_next(&reader, &key)) {
        for (size_t i = 0; i < sizeof(of_v1) / sizeof(of_v1[0]); i++) {
            if (slice_equals_text(key, of_v1[i])) version = 1;
        }
        if (slice_equals_text(key, "profiler_id") || slice_equals_text(key, "chunk_id")) version = 2;
        if (version == 0 && slice_equals_text(key, "version") && json_peek(&reader) == JSON_STRING) {
            version = slice_equals_text(json_string(&reader), "1") ? 1 : 2;
        } else if (version == 0) {
            json_skip(&reader);
        }
    }
    json_reader_fini(&reader);
    return version == 1;
}

const struct format format_sentry_v1 = {
    .name = "sentry-v1",
    .written_suffix = ".json",
    .detect = sentry_v1_detect,
    .decode = sentry_v1_decode,
    .encode = sentry_v1_encode,
    .keeps = KEEPS_SENTRY_V1,
    .sentry_version = 1,
};
