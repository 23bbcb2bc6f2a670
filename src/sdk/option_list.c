/* SPDX-License-Identifier: MIT */
#include "sdk/option_list.h"

#include "base/environment.h"
#include "base/percent.h"
#include "format/recording/record_environment.h"
#include "format/sentry/chunk_envelope.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_PERCENT_MIN 0.1

#define MEMBER(member) #member, .offset = offsetof(struct offbeat_options, member)
#define TEXT(member, ...)                                                                                              \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_TEXT, .variables = { __VA_ARGS__ }                                              \
    }
#define RATE(member, variable)                                                                                         \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_RATE, .variables = {variable}, .maximum = 1                                     \
    }
#define FLAG(member, variable)                                                                                         \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_FLAG, .variables = { variable }                                                 \
    }
#define NUMBER(member, bits, variable, least, most, otherwise)                                                         \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_NUMBER##bits, .variables = {variable}, .minimum = (least), .maximum = (most),   \
                        .usual = (otherwise)                                                                           \
    }
#define CHOICE(member, variable, usual, other)                                                                         \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_CHOICE, .variables = {variable}, .words = { usual, other }                      \
    }
#define FUNCTION(member)                                                                                               \
    {                                                                                                                  \
        MEMBER(member), .kind = OPTION_FUNCTION                                                                        \
    }

static const struct option_entry entries[] = {
    TEXT(dsn, "OFFBEAT_DSN", "SENTRY_DSN"),
    TEXT(service, "OFFBEAT_SERVICE", "OTEL_SERVICE_NAME"),
    TEXT(release, "OFFBEAT_RELEASE", "SENTRY_RELEASE"),
    TEXT(environment, "OFFBEAT_ENVIRONMENT", "SENTRY_ENVIRONMENT"),
    TEXT(dist, "OFFBEAT_DIST"),
    TEXT(server_name, "OFFBEAT_SERVER_NAME"),
    RATE(profile_session_sample_rate, "OFFBEAT_PROFILE_SESSION_SAMPLE_RATE"),
    CHOICE(profile_lifecycle, "OFFBEAT_PROFILE_LIFECYCLE", "manual", "trace"),
    FLAG(start_profiler_on_app_start, "OFFBEAT_START_PROFILER_ON_APP_START"),
    FLAG(is_ui, "OFFBEAT_IS_UI"),
    RATE(traces_sample_rate, "OFFBEAT_TRACES_SAMPLE_RATE"),
    FUNCTION(traces_sampler),
    TEXT(org_id, "OFFBEAT_ORG_ID"),
    FLAG(strict_trace_continuation, "OFFBEAT_STRICT_TRACE_CONTINUATION"),
    RATE(profiles_sample_rate, "OFFBEAT_PROFILES_SAMPLE_RATE"),
    FUNCTION(profiles_sampler),
    NUMBER(frequency_hz, 32, RECORD_ENVIRONMENT_FREQUENCY, 1, 10000, 101),
    CHOICE(mode, RECORD_ENVIRONMENT_MODE, "wall", "cpu"),
    {MEMBER(cpu_max_percent), .kind = OPTION_PERCENT, .variables = {"OFFBEAT_CPU_MAX"}, .minimum = CPU_PERCENT_MIN,
     .maximum = 100},
    NUMBER(chunk_seconds, 32, "OFFBEAT_CHUNK_SECONDS", 1, 60, 60),
    CHOICE(symbols, "OFFBEAT_SYMBOLS", "local", "receiver"),
    FLAG(repeats_idle, "OFFBEAT_REPEATS_IDLE"),
    TEXT(in_app_include, "OFFBEAT_IN_APP_INCLUDE"),
    TEXT(in_app_exclude, "OFFBEAT_IN_APP_EXCLUDE"),
    {MEMBER(frame_rate_hz), .kind = OPTION_DOUBLE, .minimum = 0.001, .maximum = 1e6, .usual = 60},
    TEXT(platform, "OFFBEAT_PLATFORM"),
    TEXT(spool_directory, "OFFBEAT_SPOOL_DIRECTORY"),
    NUMBER(spool_bytes_max, 64, "OFFBEAT_SPOOL_BYTES_MAX", 1, (double)UINT64_MAX, 100 << 20),
    TEXT(proxy, "OFFBEAT_PROXY"),
    TEXT(ca_file, "OFFBEAT_CA_FILE"),
    NUMBER(shutdown_timeout_ms, 32, "OFFBEAT_SHUTDOWN_TIMEOUT_MS", 1, UINT32_MAX, 2000),
    TEXT(helper, "OFFBEAT_HELPER"),
    FUNCTION(before_send),
    FUNCTION(before_send_transaction),
    FUNCTION(before_send_span),
    FLAG(debug, "OFFBEAT_DEBUG"),
    FUNCTION(log),
};
_Static_assert(sizeof(entries) / sizeof(entries[0]) <= OPTIONS_MAX, "each option has a place");

const struct option_entry *option_entry_at(size_t index)
{
    return index < sizeof(entries) / sizeof(entries[0]) ? &entries[index] : NULL;
}

/* --- Members ------------------------------------------------------------------------------------------------------ */

_Static_assert(sizeof(enum offbeat_mode) == sizeof(unsigned) && sizeof(enum offbeat_symbols) == sizeof(unsigned) &&
                   sizeof(enum offbeat_lifecycle) == sizeof(unsigned),
               "choices are read as unsigned numbers");

static size_t member_size(enum option_kind kind)
{
    switch (kind) {
    case OPTION_FLAG:
        return sizeof(offbeat_flag);
    case OPTION_NUMBER32:
    case OPTION_CHOICE:
        return sizeof(uint32_t);
    case OPTION_TEXT:
    case OPTION_RATE:
    case OPTION_NUMBER64:
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
    case OPTION_FUNCTION:
        break;
    }
    return sizeof(uint64_t);
}

/* The bytes of one member, in the type that its kind says. */
union member {
    const char *text;
    double number;
    offbeat_flag flag;
    uint32_t number32;
    uint64_t number64;
};

static union member get_member(const struct option_entry *entry, const struct offbeat_options *options)
{
    union member member = {.number64 = 0};
    memcpy(&member, (const char *)options + entry->offset, member_size(entry->kind));
    return member;
}

static void set_member(const struct option_entry *entry, struct offbeat_options *options, union member member)
{
    memcpy((char *)options + entry->offset, &member, member_size(entry->kind));
}

bool option_is_set(const struct option_entry *entry, const struct offbeat_options *options)
{
    union member member = get_member(entry, options);
    /* Every kind is not set if all bits are 0; OFFBEAT_RATE_ZERO has its sign bit set. */
    return member.number64 != 0;
}

void option_set_default(const struct option_entry *entry, struct offbeat_options *options)
{
    union member member = get_member(entry, options);
    if (entry->kind == OPTION_FLAG) {
        member.flag = member.flag != 0 && member.flag != OFFBEAT_FALSE;
    } else if (option_is_set(entry, options) || entry->usual == 0) {
        return;
    } else if (entry->kind == OPTION_NUMBER32) {
        member.number32 = (uint32_t)entry->usual;
    } else if (entry->kind == OPTION_NUMBER64) {
        member.number64 = (uint64_t)entry->usual;
    } else {
        member.number = entry->usual;
    }
    set_member(entry, options, member);
}

/* --- Variables ---------------------------------------------------------------------------------------------------- */

static bool read_choice(const struct option_entry *entry, const char *text, uint32_t *ret_choice)
{
    *ret_choice = strcmp(text, entry->words[1]) == 0;
    return *ret_choice || strcmp(text, entry->words[0]) == 0;
}

static bool read_flag(const char *text, offbeat_flag *ret_flag)
{
    *ret_flag = strcmp(text, "1") == 0 || strcmp(text, "true") == 0 ? 1 : OFFBEAT_FALSE;
    return *ret_flag == 1 || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
}

static bool read_double(const struct option_entry *entry, const char *text, double *ret_number)
{
    char *end = NULL;
    *ret_number = strtod(text, &end);
    return *end == '\0' && *ret_number >= entry->minimum && *ret_number <= entry->maximum;
}

static bool read_percent(const struct option_entry *entry, const char *text, double *ret_number)
{
    uint32_t ppm = 0;
    if (!percent_parse(text, &ppm)) return false;
    *ret_number = (double)ppm / PERCENT_PPM;
    return *ret_number >= entry->minimum;
}

static bool read_number(const struct option_entry *entry, const char *text, union member *ret_member)
{
    char *end = NULL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (entry->kind == OPTION_NUMBER64)
        ret_member->number64 = number;
    else
        ret_member->number32 = (uint32_t)number;
    return *end == '\0' && text[0] != '-' && errno == 0 && (double)number >= entry->minimum &&
           (double)number <= entry->maximum;
}

static bool read_member(const struct option_entry *entry, const char *text, union member *ret_member)
{
    switch (entry->kind) {
    case OPTION_TEXT:
    case OPTION_FUNCTION:
        ret_member->text = text;
        return true;
    case OPTION_RATE:
    case OPTION_DOUBLE:
        return read_double(entry, text, &ret_member->number);
    case OPTION_PERCENT:
        return read_percent(entry, text, &ret_member->number);
    case OPTION_FLAG:
        return read_flag(text, &ret_member->flag);
    case OPTION_CHOICE:
        return read_choice(entry, text, &ret_member->number32);
    case OPTION_NUMBER32:
    case OPTION_NUMBER64:
        break;
    }
    return read_number(entry, text, ret_member);
}

/* Writes what a value of ENTRY must be. */
static void describe_range(const struct option_entry *entry, char *text, size_t size)
{
    switch (entry->kind) {
    case OPTION_FLAG:
        (void)snprintf(text, size, "1, true, 0 or false");
        return;
    case OPTION_CHOICE:
        (void)snprintf(text, size, "%s or %s", entry->words[0], entry->words[1]);
        return;
    case OPTION_NUMBER32:
    case OPTION_NUMBER64:
        (void)snprintf(text, size, "a whole number from %.0f to %.0f", entry->minimum, entry->maximum);
        return;
    case OPTION_TEXT:
    case OPTION_RATE:
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
    case OPTION_FUNCTION:
        break;
    }
    (void)snprintf(text, size, "a number from %g to %g", entry->minimum, entry->maximum);
}

enum status option_read_variable(const struct option_entry *entry, struct offbeat_options *options,
                                 const char **ret_variable, struct error *error)
{
    const char *text = NULL;
    char range[80];
    size_t i = 0;
    *ret_variable = NULL;
    while (i < OPTION_VARIABLES_MAX && entry->variables[i] && !(text = environment_get(entry->variables[i]))) i++;
    if (!text || (!*text && entry->kind != OPTION_TEXT)) return STATUS_OK;
    union member member = {.number64 = 0};
    if (!read_member(entry, text, &member)) {
        describe_range(entry, range, sizeof(range));
        return error_set(error, STATUS_MALFORMED, 0, "%s must be %s, not \"%.60s\"", entry->variables[i], range, text);
    }
    set_member(entry, options, member);
    *ret_variable = entry->variables[i];
    return STATUS_OK;
}

/* --- Values of the program ---------------------------------------------------------------------------------------- */

enum status option_check(const struct option_entry *entry, const struct offbeat_options *options, struct error *error)
{
    union member member = get_member(entry, options);
    char range[80];
    double number = member.number; /* NaN is in no range */
    switch (entry->kind) {
    case OPTION_TEXT:
        if (strcmp(entry->name, "platform") != 0 || strlen(member.text) < SENTRY_PLATFORM_SIZE) return STATUS_OK;
        return error_set(error, STATUS_MALFORMED, 0, "platform must be shorter than %d bytes", SENTRY_PLATFORM_SIZE);
    case OPTION_FLAG:
    case OPTION_FUNCTION:
        return STATUS_OK;
    case OPTION_CHOICE:
        if (member.number32 <= 1) return STATUS_OK;
        return error_set(error, STATUS_MALFORMED, 0, "%s is not a value of its enum", entry->name);
    case OPTION_NUMBER32:
        number = member.number32;
        break;
    case OPTION_NUMBER64:
        number = (double)member.number64;
        break;
    case OPTION_RATE:
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
        break;
    }
    if (number >= entry->minimum && number <= entry->maximum) return STATUS_OK;
    describe_range(entry, range, sizeof(range));
    return error_set(error, STATUS_MALFORMED, 0, "%s must be %s, not %g", entry->name, range, number);
}

/* Appends TEXT in quotes, without the password of a URL. */
static void describe_text(const char *text, struct buffer *out)
{
    const char *host = strstr(text, "://");
    const char *end = host ? strchr(host, '@') : NULL;
    const char *password = end ? memchr(host + 3, ':', (size_t)(end - host - 3)) : NULL;
    if (password)
        buffer_append_format(out, "\"%.*s:***%.400s\"", (int)(password - text), text, end);
    else
        buffer_append_format(out, "\"%.400s\"", text);
}

void option_describe(const struct option_entry *entry, const struct offbeat_options *options, struct buffer *out)
{
    union member member = get_member(entry, options);
    switch (entry->kind) {
    case OPTION_TEXT:
        if (member.text)
            describe_text(member.text, out);
        else
            buffer_append_text(out, "not set");
        break;
    case OPTION_FLAG:
        buffer_append_text(out, member.flag == 1 ? "true" : "false");
        break;
    case OPTION_CHOICE:
        buffer_append_text(out, entry->words[member.number32 & 1]);
        break;
    case OPTION_NUMBER32:
        buffer_append_format(out, "%u", (unsigned)member.number32);
        break;
    case OPTION_NUMBER64:
        buffer_append_format(out, "%llu", (unsigned long long)member.number64);
        break;
    case OPTION_RATE:
    case OPTION_DOUBLE:
    case OPTION_PERCENT:
        if (option_is_set(entry, options))
            buffer_append_format(out, "%g", member.number == 0 ? 0 : member.number); /* -0.0 is 0 */
        else
            buffer_append_text(out, "not set");
        break;
    case OPTION_FUNCTION:
        buffer_append_text(out, member.text ? "a function of the program" : "not set");
        break;
    }
}
