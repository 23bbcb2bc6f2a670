/* Reads Sample Format V1. The code of V2 reads its profile, images and measurements. Times count from the profile's
 * start, which may follow them in the payload, so that it is added at the end.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_v1.h"

#include "base/rfc3339.h"
#include "base/uuid.h"
#include "format/common/format_ops.h"
#include "format/sentry/sentry_decoder_private.h"

/* Reads an id in any spelling, and notes in VALUES whether it is all zeros. */
static struct string_id read_id(struct chunk_decoder *decoder, struct v1_transaction *values,
                                char ret_plain[UUID_TEXT_SIZE])
{
    uint64_t offset = chunk_offset(decoder);
    if (!uuid_parse(json_string(&decoder->reader), ret_plain)) {
        chunk_reject_value(decoder, &expected_uuid, offset);
        return (struct string_id){0};
    }
    values->has_nil_id |= strspn(ret_plain, "0") == UUID_TEXT_SIZE - 1;
    return profile_text(decoder->profile, ret_plain);
}

/* Takes any text. The documents require a string, and the rules its number. */
static struct string_id read_active_thread(struct chunk_decoder *decoder)
{
    uint64_t offset = chunk_offset(decoder), number;
    if (json_peek(&decoder->reader) == JSON_NUMBER) chunk_note(decoder, BREAKS_SPEC, &expected_digits, offset);
    struct slice text = chunk_read_text_or_number(decoder);
    if (!text_number(text, &number)) chunk_note(decoder, BREAKS_BOTH, &expected_whole, offset);
    return profile_string(decoder->profile, text);
}

static struct v1_transaction read_transaction(struct chunk_decoder *decoder)
{
    enum { START, END, CPU_START, CPU_END, ID, NAME, TRACE, THREAD };
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
    struct v1_transaction values = {.is_there = true};
    uint64_t *const numbers[] = {&values.start_ns, &values.end_ns, &values.cpu_start_ms, &values.cpu_end_ms};
    char trace_id[UUID_TEXT_SIZE];
    if (!decoder->only_validates) members.ignored = CPU; /* the model has no place for them */
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case ID:
            transaction.id = read_id(decoder, &values, values.id);
            break;
        case NAME:
            transaction.name = chunk_read_string(decoder);
            values.has_name = transaction.name.index != 0;
            break;
        case TRACE:
            transaction.trace_id = read_id(decoder, &values, trace_id);
            break;
        case THREAD:
            thread = read_active_thread(decoder);
            values.has_thread = true;
            break;
        default:
            *numbers[member] = chunk_read_u64(decoder);
        }
    }
    transaction.start_ns = values.start_ns;
    transaction.end_ns = values.end_ns;
    transaction.attributes = chunk_take_attributes(decoder, &members);
    /* The object counts before the list; of the list, the first. */
    if (decoder->extension->transaction.id.index == 0) {
        decoder->extension->transaction = transaction;
        decoder->profile->active_thread = thread;
    }
    return values;
}

static void read_only_transaction(struct chunk_decoder *decoder)
{
    decoder->extension->transaction = (struct sentry_transaction){0};
    decoder->v1.transaction = read_transaction(decoder);
    decoder->v1.has_transaction = true;
}

/* Reads all transactions; only the first one counts. */
static void read_transactions(struct chunk_decoder *decoder)
{
    struct json_reader *reader = &decoder->reader;
    size_t start = chunk_offset(decoder);
    json_array_begin(reader);
    while (json_array_next(reader)) {
        struct v1_transaction values = read_transaction(decoder);
        if (!decoder->v1.transaction.is_there) decoder->v1.transaction = values;
        decoder->v1.transaction_count++;
    }
    decoder->v1.transactions = slice_of(reader->start + start, json_reader_taken(reader) - start);
}

/* A text of an object, and its bit in v1.described; TEXT is NULL for is_emulator. */
struct v1_text {
    struct string_id *text;
    unsigned described;
};

/* Reads an object of texts: the member of number N into TEXTS[N]. Returns its attributes. */
static struct string_id read_texts(struct chunk_decoder *decoder, struct members *members, const struct v1_text *texts)
{
    members->keeps = true;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, members)) >= 0;) {
        decoder->v1.described |= texts[member].described;
        if (texts[member].text) {
            *texts[member].text = chunk_read_string(decoder);
        } else {
            decoder->extension->device.is_emulator = json_bool(&decoder->reader);
            decoder->extension->device.has_is_emulator = true;
        }
    }
    return chunk_take_attributes(decoder, members);
}

static void read_device(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER_OF("architecture", 0, expected_string), MEMBER("manufacturer", 1),
                                          MEMBER("model", 2), MEMBER("locale", 3), MEMBER("is_emulator", 4)};
    static const struct member_rules rules = {.required = {1, 1}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct sentry_device *device = &decoder->extension->device;
    const struct v1_text texts[] = {{&device->architecture, 0},
                                    {&device->manufacturer, V1_MANUFACTURER},
                                    {&device->model, V1_MODEL},
                                    {&device->locale, V1_LOCALE},
                                    {NULL, V1_IS_EMULATOR}};
    device->attributes = read_texts(decoder, &members, texts);
}

static void read_os(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER_OF("name", 0, expected_string),
                                          MEMBER_OF("version", 1, expected_string), MEMBER("build_number", 2)};
    static const struct member_rules rules = {.required = {3, 3}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct sentry_os *os = &decoder->extension->os;
    const struct v1_text texts[] = {{&os->name, 0}, {&os->version, 0}, {&os->build_number, V1_BUILD_NUMBER}};
    os->attributes = read_texts(decoder, &members, texts);
}

static void read_runtime(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER("name", 0), MEMBER("version", 1)};
    struct members members = MEMBERS(known);
    struct sentry_runtime *runtime = &decoder->extension->runtime;
    const struct v1_text texts[] = {{&runtime->name, 0}, {&runtime->version, 0}};
    runtime->attributes = read_texts(decoder, &members, texts);
}

static void read_timestamp(struct chunk_decoder *decoder)
{
    uint64_t offset = chunk_offset(decoder);
    struct slice text = json_string(&decoder->reader);
    if (!rfc3339_parse(text, &decoder->v1.start_ns)) chunk_reject_value(decoder, &expected_time, offset);
}

static void read_dist(struct chunk_decoder *decoder)
{
    decoder->profile->dist = chunk_read_string(decoder);
}

/* Parts that V2 has not. */
enum {
    PART_DIST = PARTS_SHARED,
    PART_TIMESTAMP,
    PART_TRANSACTION,
    PART_TRANSACTIONS,
    PART_DEVICE,
    PART_OS,
    PART_RUNTIME,
    PART_TRACE,
    PART_SCRIPT,
    PARTS,
};
static void (*const own_parts[])(struct chunk_decoder *) = {
    read_dist, read_timestamp, read_only_transaction, read_transactions, read_device, read_os, read_runtime};

enum {
    HEADER = 1 << PART_VERSION | 1 << PART_ID | 1 << PART_PLATFORM | 1 << PART_RELEASE,
    ALL = (1 << PARTS) - 1,
    NOT_OF_V1 = 1 << PART_SDK | 1 << PART_OFFBEAT, /* its rules ask nothing of them */
};

/* The sets of rules require different members, and the documents do not know the alias of event_id. */
static void note_absent(struct chunk_decoder *decoder, const struct members *members, bool has_event_id)
{
    decoder->reading = READING_BODY;
    if (!has_event_id) chunk_note_absent(decoder, BREAKS_SPEC, &expected_uuid, "event_id", members->offset);
    if (!(members->seen & 1 << PART_RELEASE))
        chunk_note_absent(decoder, BREAKS_SPEC, &expected_string, "release", members->offset);
    if (!(members->seen & 1 << PART_TIMESTAMP))
        chunk_note_absent(decoder, BREAKS_RELAY, &expected_time, "timestamp", members->offset);
}

static void read_members(struct chunk_decoder *decoder, uint32_t chosen)
{
    static const struct member known[] = {
        MEMBER("version", PART_VERSION),
        MEMBER_OF("platform", PART_PLATFORM, expected_string),
        MEMBER_OF("event_id", PART_ID, expected_uuid),
        MEMBER_OF("profile_id", PART_ID, expected_uuid),
        MEMBER_OF("release", PART_RELEASE, expected_string),
        MEMBER("environment", PART_ENVIRONMENT),
        MEMBER("dist", PART_DIST),
        MEMBER_OF("timestamp", PART_TIMESTAMP, expected_time),
        MEMBER("transaction", PART_TRANSACTION),
        MEMBER_OF("device", PART_DEVICE, expected_object),
        MEMBER_OF("transactions", PART_TRANSACTIONS, expected_array),
        MEMBER_OF("os", PART_OS, expected_object),
        MEMBER("runtime", PART_RUNTIME),
        MEMBER("client_sdk", PART_SDK),
        MEMBER_OF("debug_meta", PART_IMAGES, expected_object),
        MEMBER_OF("measurements", PART_MEASUREMENTS, expected_object),
        MEMBER_OF("profile", PART_PROFILE, expected_object),
        MEMBER("offbeat", PART_OFFBEAT),
        MEMBER("sampled_profile", PART_TRACE),
        MEMBER("js_profile", PART_SCRIPT),
    };
    enum { REQUIRED = 1 << PART_PLATFORM | 1 << PART_ID | 1 << PART_DEVICE | 1 << PART_OS | 1 << PART_PROFILE };
    enum { NOT_NULL = 1 << PART_IMAGES | 1 << PART_MEASUREMENTS | 1 << PART_TRANSACTIONS };
    static const struct member_rules rules = {
        .required = {REQUIRED, REQUIRED},
        .not_null = {[RULES_SPEC] = NOT_NULL | 1 << PART_RELEASE, [RULES_RELAY] = NOT_NULL | 1 << PART_TIMESTAMP},
        .header = 1 << PART_PLATFORM | 1 << PART_ID,
    };
    struct members members = MEMBERS_VALIDATED(known, rules);
    bool has_event_id = false;
    members.ignored = ALL & ~chosen;
    json_object_begin(&decoder->reader);
    for (int part; (part = chunk_next_member(decoder, &members)) >= 0;) {
        if (part == PART_ID) has_event_id = slice_equals_text(members.key, "event_id");
        if (part < PARTS_SHARED)
            chunk_read_part(decoder, part);
        else if (part == PART_TRACE)
            chunk_read_trace(decoder, &members);
        else if (part == PART_SCRIPT)
            chunk_read_script(decoder, &members);
        else
            own_parts[part - PARTS_SHARED](decoder);
    }
    note_absent(decoder, &members, has_event_id);
    decoder->has_trace = members.seen & 1 << PART_TRACE && !decoder->has_version &&
                         slice_equals_text(profile_slice(decoder->profile, decoder->profile->platform), "android");
    /* The model has one transaction. A list that has others becomes an attribute. */
    if (decoder->v1.transaction_count + decoder->v1.has_transaction >= 2 && !decoder->reader.failed)
        chunk_keep_as(decoder, &members, "transactions", decoder->v1.transactions);
    decoder->extension->attributes.chunk = chunk_take_attributes(decoder, &members);
    (void)json_reader_finish(&decoder->reader, NULL);
}

void v1_read_payload(struct chunk_decoder *decoder)
{
    read_members(decoder, decoder->only_validates ? ALL & ~NOT_OF_V1 : ALL);
}

void v1_read_header(struct chunk_decoder *decoder)
{
    read_members(decoder, HEADER);
}

static uint64_t add_limited(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void v1_add_start(struct chunk_decoder *decoder, uint64_t start_ns)
{
    struct profile *profile = decoder->profile;
    for (size_t i = 0; i < decoder->chunk.samples.count; i++) {
        uint64_t *time_ns = &decoder->chunk.samples.items[i].time_ns;
        *time_ns = add_limited(*time_ns, start_ns);
    }
    for (size_t i = 0; i < profile->measurements.count; i++) {
        struct measurement *measurement = &profile->measurements.items[i];
        for (size_t k = 0; k < measurement->count; k++)
            measurement->values[k].time_ns = add_limited(measurement->values[k].time_ns, start_ns);
    }
}

static enum status decode(struct chunk_decoder *decoder, struct error *error)
{
    struct profile *profile = decoder->profile;
    if (json_peek(&decoder->reader) != JSON_OBJECT)
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no JSON object");
    v1_read_payload(decoder);
    enum status status = json_reader_status(&decoder->reader, error);
    if (status != STATUS_OK) return status;
    if (decoder->has_version && !decoder->is_own_version) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s: not version 1 of the sample format",
                         reject_reason_name(REJECT_PLATFORM_NOT_SUPPORTED));
    }
    if (decoder->has_trace) return chunk_decode_trace(decoder, decoder->v1.start_ns, error);
    if (!decoder->has_version || !decoder->has_profile)
        return chunk_reject(error, REJECT_INVALID_JSON, decoder->has_version ? "no profile" : "no version");
    v1_add_start(decoder, decoder->v1.start_ns);
    decoder->extension->sample_format = 1;
    profile->has_ticks = true;
    status = chunk_to_profile(&decoder->chunk, profile, error);
    if (status != STATUS_OK) return status;
    uint64_t start_ns = decoder->v1.start_ns;
    uint64_t end_ns = profile->samples.count ? add_limited(profile_start_ns(profile), profile->duration_ns) : start_ns;
    profile->time_ns = profile_start_at(start_ns);
    profile->duration_ns = end_ns - start_ns;
    return STATUS_OK;
}

enum status sentry_v1_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct chunk_decoder decoder;
    chunk_decoder_init(&decoder, bytes, profile, true);
    enum status status = decode(&decoder, error);
    chunk_decoder_fini(&decoder);
    return status;
}

/* --- Detection ---------------------------------------------------------------------------------------------------- */

/* Decides by the first member that only one version has: some clients write the version after the profile. */
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
