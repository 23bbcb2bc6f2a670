/* SPDX-License-Identifier: MIT */
#include "format/common/json_kind.h"

#include "base/json_reader.h"

/* Members that several formats have ("name", "version", "samples", "timestamp") decide nothing. */
static const struct {
    const char *name;
    enum json_kind_of_profile kind;
} members[] = {
    {"resourceProfiles", JSON_PROFILE_OTLP},
    {"dictionary", JSON_PROFILE_OTLP},
    {"meta", JSON_PROFILE_FIREFOX},
    {"libs", JSON_PROFILE_FIREFOX},
    {"threads", JSON_PROFILE_FIREFOX},
    {"shared", JSON_PROFILE_SPEEDSCOPE}, /* Firefox has one too, after the others */
    {"profiles", JSON_PROFILE_SPEEDSCOPE},
    {"activeProfileIndex", JSON_PROFILE_SPEEDSCOPE},
    {"exporter", JSON_PROFILE_SPEEDSCOPE},
    {"nodes", JSON_PROFILE_CHROME},
    {"head", JSON_PROFILE_CHROME},
    {"startTime", JSON_PROFILE_CHROME},
    {"endTime", JSON_PROFILE_CHROME},
    {"timeDeltas", JSON_PROFILE_CHROME},
    {"traceEvents", JSON_PROFILE_CHROME_TRACE},
    {"profile", JSON_PROFILE_SENTRY},
    {"profiler_id", JSON_PROFILE_SENTRY},
    {"chunk_id", JSON_PROFILE_SENTRY},
    {"event_id", JSON_PROFILE_SENTRY},
    {"debug_meta", JSON_PROFILE_SENTRY},
    {"platform", JSON_PROFILE_SENTRY},
    {"release", JSON_PROFILE_SENTRY},
};

static enum json_kind_of_profile kind_of_member(struct json_reader *reader, struct slice name)
{
    if (slice_equals_text(name, "$schema") && json_peek(reader) == JSON_STRING) {
        struct slice schema = json_string(reader);
        bool is_speedscope = schema.size > 0 && memmem(schema.data, schema.size, "speedscope", 10) != NULL;
        return is_speedscope ? JSON_PROFILE_SPEEDSCOPE : JSON_PROFILE_UNKNOWN;
    }
    /* Crash reports of macOS have a number there. */
    bool is_other = slice_equals_text(name, "platform") && json_peek(reader) != JSON_STRING;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !is_other; i++) {
        if (slice_equals_text(name, members[i].name)) return members[i].kind;
    }
    json_skip(reader);
    return JSON_PROFILE_UNKNOWN;
}

/* A list whose first event has a phase is a trace without the object around it. */
static enum json_kind_of_profile kind_of_list(struct json_reader *reader)
{
    struct slice name;
    json_array_begin(reader);
    if (!json_array_next(reader) || json_peek(reader) != JSON_OBJECT) return JSON_PROFILE_UNKNOWN;
    json_object_begin(reader);
    while (json_object_next(reader, &name)) {
        if (slice_equals_text(name, "ph")) return JSON_PROFILE_CHROME_TRACE;
        json_skip(reader);
    }
    return JSON_PROFILE_UNKNOWN;
}

enum json_kind_of_profile json_kind_of_profile(struct slice bytes)
{
    struct json_reader reader;
    struct slice name;
    enum json_kind_of_profile kind = JSON_PROFILE_UNKNOWN;
    if (bytes.size > JSON_KIND_BYTES_MAX) bytes.size = JSON_KIND_BYTES_MAX;
    json_reader_init(&reader, bytes);
    if (json_peek(&reader) == JSON_OBJECT) {
        json_object_begin(&reader);
        while (kind == JSON_PROFILE_UNKNOWN && json_object_next(&reader, &name)) kind = kind_of_member(&reader, name);
    } else if (json_peek(&reader) == JSON_ARRAY) {
        kind = kind_of_list(&reader);
    }
    json_reader_fini(&reader);
    return kind;
}
