/* Reads a Sample Format V2 chunk.
 *
 * One pass over the bytes puts frames, stacks, samples and images into arrays as they come (sentry_parts.c), and notes
 * what breaks a rule; a second step over the arrays makes the model of what the samples use (sentry_v2_build.c),
 * another validates them (rules_chunk.c). The decoder accepts what the server accepts (facts §1.7), and more: any image
 * type, numbers as thread ids or addresses, negative priorities. SPDX-License-Identifier: MIT */
#include "format/common/format_ops.h"
#include "format/sentry/sentry_decoder_private.h"

enum { PART_PROFILER = PARTS_SHARED, PART_DIST, PART_TRACE, PART_SCRIPT, PART_TIME, PARTS };
enum {
    HEADER = 1 << PART_VERSION | 1 << PART_ID | 1 << PART_PLATFORM | 1 << PART_RELEASE,
    ALL = (1 << PARTS) - 1,
};

/* Keeps the value, too, as that of a chunk that has a profile is an attribute. */
static void read_time(struct chunk_decoder *decoder, struct members *members)
{
    struct json_reader reader;
    json_reader_init(&reader, chunk_keep_and_show(decoder, members));
    double seconds = json_peek(&reader) == JSON_NUMBER ? json_double(&reader) : 0;
    if (!reader.failed && seconds > 0 && seconds < (double)INT64_MAX / 1e9)
        decoder->trace_start_ns = (uint64_t)(seconds * 1e6) * 1000;
    json_reader_fini(&reader);
}

static void read_members(struct chunk_decoder *decoder, uint32_t chosen)
{
    static const struct member known[] = {
        MEMBER_OF("version", PART_VERSION, expected_string),
        MEMBER_OF("profiler_id", PART_PROFILER, expected_uuid),
        MEMBER_OF("chunk_id", PART_ID, expected_uuid),
        MEMBER_OF("platform", PART_PLATFORM, expected_string),
        MEMBER_OF("release", PART_RELEASE, expected_string),
        MEMBER("environment", PART_ENVIRONMENT),
        MEMBER("dist", PART_DIST),
        MEMBER_OF("client_sdk", PART_SDK, expected_object),
        MEMBER_OF("debug_meta", PART_IMAGES, expected_object),
        MEMBER_OF("measurements", PART_MEASUREMENTS, expected_object),
        MEMBER_OF("profile", PART_PROFILE, expected_object),
        MEMBER("offbeat", PART_OFFBEAT),
        MEMBER_OF("profile_id", PART_ID, expected_uuid),
        MEMBER_OF("event_id", PART_ID, expected_uuid),
        MEMBER("sampled_profile", PART_TRACE),
        MEMBER("js_profile", PART_SCRIPT),
        MEMBER_OF("timestamp", PART_TIME, expected_finite),
    };
    enum { REQUIRED = 1 << PART_PROFILER | 1 << PART_ID | 1 << PART_PLATFORM | 1 << PART_SDK | 1 << PART_PROFILE };
    static const struct member_rules rules = {
        .required = {[RULES_SPEC] = REQUIRED | 1 << PART_RELEASE, [RULES_RELAY] = REQUIRED},
        .not_null = {[RULES_SPEC] = 1 << PART_VERSION,
                     [RULES_RELAY] = 1 << PART_VERSION | 1 << PART_IMAGES | 1 << PART_MEASUREMENTS},
        .header = HEADER,
        .is_metadata = true,
    };
    /* A trace of Android stands for the profile. */
    enum { OF_TRACE = (REQUIRED & ~(1 << PART_PROFILE)) | 1 << PART_RELEASE | 1 << PART_TIME };
    static const struct member_rules rules_of_android = {
        .required = {[RULES_SPEC] = REQUIRED | 1 << PART_RELEASE, [RULES_RELAY] = OF_TRACE},
        .header = HEADER,
        .is_metadata = true,
    };
    static const struct member_rules rules_of_perfetto = {
        .required = {[RULES_SPEC] = REQUIRED | 1 << PART_RELEASE, [RULES_RELAY] = REQUIRED & ~(1 << PART_PROFILE)},
        .header = HEADER,
        .is_metadata = true,
    };
    struct members members = MEMBERS_VALIDATED(known, rules);
    if (decoder->is_perfetto) members.rules = &rules_of_perfetto;
    members.ignored = ALL & ~chosen;
    json_object_begin(&decoder->reader);
    for (int part; (part = chunk_next_member(decoder, &members)) >= 0;) {
        if (part < PARTS_SHARED)
            chunk_read_part(decoder, part);
        else if (part == PART_PROFILER)
            decoder->profile->profiler_id = chunk_read_uuid(decoder);
        else if (part == PART_TRACE)
            chunk_read_trace(decoder, &members);
        else if (part == PART_SCRIPT)
            chunk_read_script(decoder, &members);
        else if (part == PART_TIME)
            read_time(decoder, &members);
        else if (part == PART_DIST && json_peek(&decoder->reader) == JSON_STRING)
            decoder->profile->dist = chunk_read_string(decoder);
        else
            chunk_keep_value(decoder, &members, ""); /* servers ignore DIST, whatever it is */
        if (members.rules == &rules && members.seen & 1 << PART_TRACE &&
            slice_equals_text(profile_slice(decoder->profile, decoder->profile->platform), "android")) {
            decoder->has_trace = true;
            members.rules = &rules_of_android;
        }
    }
    decoder->extension->attributes.chunk = chunk_take_attributes(decoder, &members);
}

/* --- Whether it is one -------------------------------------------------------------------------------------------- */

/* Whether BYTES name another version than 2, whatever else is wrong with them. */
static bool is_another_version(struct slice bytes)
{
    struct json_reader reader;
    struct slice key;
    bool is_another = false;
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    while (!is_another && json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "version") && json_peek(&reader) == JSON_STRING) {
            is_another = !slice_equals_text(json_string(&reader), "2") && !reader.failed;
        } else {
            json_skip(&reader);
        }
    }
    json_reader_fini(&reader);
    return is_another;
}

enum status v2_build(struct chunk_decoder *decoder, struct slice bytes, struct error *error)
{
    enum status status = json_reader_status(&decoder->reader, error);
    if (!decoder->is_own_version && is_another_version(bytes)) {
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s: only version 2 of the sample format is read",
                         reject_reason_name(REJECT_PLATFORM_NOT_SUPPORTED));
    }
    if (status != STATUS_OK) return status;
    if (decoder->has_trace)
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s",
                         decoder->is_perfetto ? "a Perfetto trace" : "an Android trace that is empty or no base64");
    if (!decoder->has_version && !decoder->has_profile) {
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no version and no profile in the object");
    }
    if (!decoder->is_own_version || !decoder->has_profile)
        return chunk_reject(error, REJECT_INVALID_JSON, decoder->has_profile ? "no version" : "no profile");
    decoder->extension->sample_format = 2;
    decoder->profile->has_ticks = true;
    return chunk_to_profile(&decoder->chunk, decoder->profile, error);
}

void v2_read_payload(struct chunk_decoder *decoder)
{
    read_members(decoder, ALL);
    (void)json_reader_finish(&decoder->reader, NULL);
}

void v2_read_header(struct chunk_decoder *decoder)
{
    read_members(decoder, HEADER);
}

enum status sentry_v2_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct chunk_decoder decoder;
    chunk_decoder_init(&decoder, bytes, profile, false);
    bool is_object = json_peek(&decoder.reader) == JSON_OBJECT;
    if (is_object) v2_read_payload(&decoder);
    enum status status;
    if (!is_object)
        status = error_set(error, STATUS_NOT_THIS_FORMAT, 0, "no JSON object");
    else if (!decoder.reader.failed && decoder.has_trace && decoder.trace.size > 0)
        status = chunk_decode_trace(&decoder, decoder.trace_start_ns, error);
    else
        status = v2_build(&decoder, bytes, error);
    chunk_decoder_fini(&decoder);
    return status;
}

/* --- The format --------------------------------------------------------------------------------------------------- */

static bool is_object(struct slice bytes)
{
    size_t i = 0;
    while (i < bytes.size && memchr(" \t\r\n", bytes.data[i], 4)) i++;
    return i < bytes.size && bytes.data[i] == '{';
}

static enum status encode_all(const struct profile *profile, struct buffer *out, struct error *error)
{
    return sentry_v2_encode(profile, NULL, out, error);
}

const struct format format_sentry_v2 = {
    .name = "sentry-v2",
    .suffixes = {".json"},
    .detect = is_object,
    .decode = sentry_v2_decode,
    .encode = encode_all,
    .keeps = KEEPS_SENTRY_V2,
    .sentry_version = 2,
};
