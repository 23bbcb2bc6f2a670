/* Reads Sample Format V1. The code of V2 reads its profile, images and measurements. Times count from the profile's
 * start, which may follow them in the payload, so that it is added at the end.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v1.h"

#include "base/rfc3339.h"
#include "base/uuid.h"
#include "format/common/format_ops.h"
#include "format/sentry/sentry_v1_private.h"

static struct string_id read_text(struct v1_decoder *decoder)
{
    return chunk_read_string(&decoder->chunk);
}

/* Any spelling. */
static struct string_id read_id(struct v1_decoder *decoder, struct v1_transaction *facts,
                                char ret_plain[UUID_TEXT_SIZE])
{
    uint64_t offset = chunk_offset(&decoder->chunk);
    struct slice text = json_string(&decoder->chunk.reader);
    size_t zeros = 0;
    if (!uuid_parse(text, ret_plain)) {
        chunk_reject_value(&decoder->chunk, &expected_uuid, offset);
        return (struct string_id){0};
    }
    while (ret_plain[zeros] == '0') zeros++;
    facts->has_nil_id |= ret_plain[zeros] == 0;
    return profile_text(decoder->chunk.profile, ret_plain);
}

/* For the documents a string. The decoder takes any text; its number is for the rules. */
static struct string_id read_active_thread(struct v1_decoder *decoder)
{
    struct chunk_decoder *chunk = &decoder->chunk;
    uint64_t offset = chunk_offset(chunk), number;
    if (json_peek(&chunk->reader) == JSON_NUMBER) chunk_note(chunk, BREAKS_SPEC, &expected_digits, offset);
    struct slice text = chunk_read_text_or_number(chunk);
    if (!chunk_parse_decimal(text, &number)) chunk_note(chunk, BREAKS_BOTH, &expected_whole, offset);
    return profile_string(chunk->profile, text);
}

static void read_transaction(struct v1_decoder *decoder, struct v1_transaction *ret_facts)
{
    enum { ID, NAME, TRACE, THREAD, START, END, CPU_START, CPU_END };
    enum { REQUIRED = 1 << ID | 1 << NAME | 1 << TRACE, CPU = 1 << CPU_START | 1 << CPU_END };
    enum { NOT_NULL = 1 << THREAD | 1 << START | 1 << END | CPU };
    static const struct member known[] = {
        MEMBER_OF("id", ID, expected_uuid),
        MEMBER_OF("name", NAME, expected_string),
        MEMBER_OF("trace_id", TRACE, expected_uuid),
        MEMBER_OF("active_thread_id", THREAD, expected_digits),
        MEMBER_OF("relative_start_ns", START, expected_whole),
        MEMBER_OF("relative_end_ns", END, expected_whole),
        MEMBER_OF("relative_cpu_start_ms", CPU_START, expected_whole),
        MEMBER_OF("relative_cpu_end_ms", CPU_END, expected_whole),
    };
    static const struct member_rules rules = {.required = {REQUIRED, REQUIRED}, .not_null = {NOT_NULL, NOT_NULL}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct sentry_transaction transaction = {0};
    struct string_id thread = {0};
    struct v1_transaction facts = {.is_there = true};
    char trace_id[UUID_TEXT_SIZE];
    if (!decoder->chunk.only_validates) members.ignored = CPU; /* the model has no place for them */
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        switch (member) {
        case ID:
            transaction.id = read_id(decoder, &facts, facts.id);
            break;
        case NAME:
            transaction.name = read_text(decoder);
            facts.has_name = transaction.name.index != 0;
            break;
        case TRACE:
            transaction.trace_id = read_id(decoder, &facts, trace_id);
            break;
        case THREAD:
            thread = read_active_thread(decoder);
            facts.has_thread = true;
            break;
        case START:
            facts.start_ns = transaction.start_ns = chunk_read_u64(&decoder->chunk);
            break;
        case END:
            facts.end_ns = transaction.end_ns = chunk_read_u64(&decoder->chunk);
            break;
        case CPU_START:
            facts.cpu_start_ms = chunk_read_u64(&decoder->chunk);
            break;
        case CPU_END:
            facts.cpu_end_ms = chunk_read_u64(&decoder->chunk);
            break;
        }
    }
    transaction.attributes = chunk_take_attributes(&decoder->chunk, &members);
    /* The object counts before the list; of the list, the first. */
    if (decoder->chunk.extension->transaction.id.index == 0) {
        decoder->chunk.extension->transaction = transaction;
        decoder->chunk.profile->active_thread = thread;
    }
    *ret_facts = facts;
}

/* Only the first one counts, but all are checked. */
static void read_transactions(struct v1_decoder *decoder)
{
    struct json_reader *reader = &decoder->chunk.reader;
    size_t start = chunk_offset(&decoder->chunk);
    json_array_begin(reader);
    while (json_array_next(reader)) {
        struct v1_transaction facts;
        read_transaction(decoder, &facts);
        if (!decoder->transaction.is_there) decoder->transaction = facts;
        decoder->transaction_count++;
    }
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
        MEMBER_OF("architecture", ARCHITECTURE, expected_string),
        MEMBER("manufacturer", MANUFACTURER),
        MEMBER("model", MODEL),
        MEMBER("locale", LOCALE),
        MEMBER("is_emulator", IS_EMULATOR),
    };
    static const struct member_rules rules = {.required = {1 << ARCHITECTURE, 1 << ARCHITECTURE}};
    static const unsigned described[] = {[ARCHITECTURE] = 0,
                                         [MANUFACTURER] = V1_MANUFACTURER,
                                         [MODEL] = V1_MODEL,
                                         [LOCALE] = V1_LOCALE,
                                         [IS_EMULATOR] = V1_IS_EMULATOR};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct sentry_device *device = &decoder->chunk.extension->device;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        decoder->described |= described[member];
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

enum { BUILD_NUMBER = 2 }; /* of os */

/* An object of texts: MEMBERS by number into TEXTS. Returns its attributes. */
static struct string_id read_texts(struct v1_decoder *decoder, struct members *members, struct string_id *const *texts)
{
    members->keeps = true;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, members)) >= 0;) {
        *texts[member] = read_text(decoder);
        if (member == BUILD_NUMBER) decoder->described |= V1_BUILD_NUMBER;
    }
    return chunk_take_attributes(&decoder->chunk, members);
}

static void read_os(struct v1_decoder *decoder)
{
    static const struct member known[] = {MEMBER_OF("name", 0, expected_string),
                                          MEMBER_OF("version", 1, expected_string),
                                          MEMBER("build_number", BUILD_NUMBER)};
    static const struct member_rules rules = {.required = {3, 3}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct sentry_os *os = &decoder->chunk.extension->os;
    os->attributes =
        read_texts(decoder, &members, (struct string_id *const[]){&os->name, &os->version, &os->build_number});
}

static void read_runtime(struct v1_decoder *decoder)
{
    static const struct member known[] = {MEMBER("name", 0), MEMBER("version", 1)};
    struct members members = MEMBERS(known);
    struct sentry_runtime *runtime = &decoder->chunk.extension->runtime;
    runtime->attributes = read_texts(decoder, &members, (struct string_id *const[]){&runtime->name, &runtime->version});
}

static void read_timestamp(struct v1_decoder *decoder)
{
    uint64_t offset = chunk_offset(&decoder->chunk);
    struct slice text = json_string(&decoder->chunk.reader);
    if (!rfc3339_parse(text, &decoder->start_ns)) chunk_reject_value(&decoder->chunk, &expected_time, offset);
}

static void read_version(struct v1_decoder *decoder)
{
    decoder->version_offset = chunk_offset(&decoder->chunk);
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
        chunk->reading = READING_BODY; /* the documents' spelling is asked for after the version */
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
        chunk->extension->transaction = (struct sentry_transaction){0};
        read_transaction(decoder, &decoder->transaction);
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

enum {
    HEADER = 1 << VERSION | 1 << EVENT | 1 << PLATFORM | 1 << RELEASE,
    ALL = (1 << (OFFBEAT + 1)) - 1,
    NOT_OF_V1 = 1 << SDK | 1 << OFFBEAT, /* its rules ask nothing of them */
};

/* What the sets of rules require differs, and the alias of event_id is unknown to the documents. */
static void note_absent(struct chunk_decoder *chunk, const struct members *members, bool has_event_id)
{
    chunk->reading = READING_BODY;
    if (!has_event_id) chunk_note_absent(chunk, BREAKS_SPEC, &expected_uuid, "event_id", members->offset);
    if (!(members->seen & 1 << RELEASE))
        chunk_note_absent(chunk, BREAKS_SPEC, &expected_string, "release", members->offset);
    if (!(members->seen & 1 << TIMESTAMP))
        chunk_note_absent(chunk, BREAKS_RELAY, &expected_time, "timestamp", members->offset);
}

static void read_members(struct v1_decoder *decoder, uint32_t chosen)
{
    static const struct member known[] = {
        MEMBER("version", VERSION),
        MEMBER_OF("platform", PLATFORM, expected_string),
        MEMBER_OF("event_id", EVENT, expected_uuid),
        MEMBER_OF("profile_id", EVENT, expected_uuid),
        MEMBER_OF("release", RELEASE, expected_string),
        MEMBER("environment", ENVIRONMENT),
        MEMBER("dist", DIST),
        MEMBER_OF("timestamp", TIMESTAMP, expected_time),
        MEMBER("transaction", TRANSACTION),
        MEMBER_OF("device", DEVICE, expected_object),
        MEMBER_OF("transactions", TRANSACTIONS, expected_array),
        MEMBER_OF("os", OS, expected_object),
        MEMBER("runtime", RUNTIME),
        MEMBER("client_sdk", SDK),
        MEMBER_OF("debug_meta", IMAGES, expected_object),
        MEMBER_OF("measurements", MEASUREMENTS, expected_object),
        MEMBER_OF("profile", PROFILE, expected_object),
        MEMBER("offbeat", OFFBEAT),
    };
    enum { REQUIRED = 1 << PLATFORM | 1 << EVENT | 1 << DEVICE | 1 << OS | 1 << PROFILE };
    enum { NOT_NULL = 1 << IMAGES | 1 << MEASUREMENTS | 1 << TRANSACTIONS };
    static const struct member_rules rules = {
        .required = {REQUIRED, REQUIRED},
        .not_null = {[RULES_SPEC] = NOT_NULL | 1 << RELEASE, [RULES_RELAY] = NOT_NULL | 1 << TIMESTAMP},
        .header = 1 << PLATFORM | 1 << EVENT,
    };
    struct members members = MEMBERS_VALIDATED(known, rules);
    bool has_event_id = false;
    members.ignored = ALL & ~chosen;
    json_object_begin(&decoder->chunk.reader);
    for (int member; (member = chunk_next_member(&decoder->chunk, &members)) >= 0;) {
        if (member == EVENT) has_event_id = slice_equals_text(members.key, "event_id");
        read_part(decoder, (enum part)member);
    }
    note_absent(&decoder->chunk, &members, has_event_id);
    keep_transactions(decoder, &members);
    decoder->chunk.extension->attributes.chunk = chunk_take_attributes(&decoder->chunk, &members);
}

void v1_read_payload(struct v1_decoder *decoder)
{
    read_members(decoder, decoder->chunk.only_validates ? ALL & ~NOT_OF_V1 : ALL);
    (void)json_reader_finish(&decoder->chunk.reader, NULL);
}

void v1_read_header(struct v1_decoder *decoder)
{
    read_members(decoder, HEADER);
    (void)json_reader_finish(&decoder->chunk.reader, NULL);
}

void v1_decoder_init(struct v1_decoder *decoder, struct slice bytes, struct profile *profile)
{
    *decoder = (struct v1_decoder){0};
    chunk_decoder_init(&decoder->chunk, bytes, profile);
    decoder->chunk.is_relative = true;
}

void v1_decoder_fini(struct v1_decoder *decoder)
{
    chunk_decoder_fini(&decoder->chunk);
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
    v1_read_payload(decoder);
    enum status status = json_reader_status(reader, error);
    if (status != STATUS_OK) return status;
    if (decoder->has_version && !decoder->is_version_1) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s: not version 1 of the sample format",
                         reject_reason_name(REJECT_PLATFORM_NOT_SUPPORTED));
    }
    if (!decoder->has_version || !decoder->chunk.has_profile) {
        return error_set(error, STATUS_MALFORMED, 0, "%s: no %s", reject_reason_name(REJECT_INVALID_JSON),
                         decoder->has_version ? "profile" : "version");
    }
    add_start(decoder);
    decoder->chunk.extension->sample_format = 1;
    profile->has_ticks = true;
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
    struct v1_decoder decoder;
    v1_decoder_init(&decoder, bytes, profile);
    enum status status = decode(&decoder, error);
    v1_decoder_fini(&decoder);
    return status;
}

/* --- Detection ---------------------------------------------------------------------------------------------------- */

/* By the first member that only one version has: some clients write the version after the profile. */
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
