/* The results of a validation. The rules are in rules_chunk.c and rules_profile.c.  SPDX-License-Identifier: MIT */
#include "format/sentry/rules.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const reason_names[REJECT_REASONS] = {
    [REJECT_NONE] = "",
    [REJECT_EXCEED_SIZE_LIMIT] = "profiling_exceed_size_limit",
    [REJECT_INVALID_SAMPLED_PROFILE] = "profiling_invalid_sampled_profile",
    [REJECT_INVALID_BASE64_VALUE] = "profiling_invalid_base64_value",
    [REJECT_INVALID_PROTOBUF] = "profiling_invalid_protobuf",
    [REJECT_NO_PROFILE_SAMPLES_IN_TRACE] = "profiling_no_profile_samples_in_trace",
    [REJECT_INVALID_JSON] = "profiling_invalid_json",
    [REJECT_INVALID_PROFILE_TYPE] = "profiling_invalid_profile_type",
    [REJECT_PLATFORM_NOT_SUPPORTED] = "profiling_platform_not_supported",
    [REJECT_INVALID_PROFILE_METADATA] = "profiling_invalid_profile_metadata",
    [REJECT_NOT_ENOUGH_SAMPLES] = "profiling_not_enough_samples",
    [REJECT_MALFORMED_SAMPLES] = "profiling_malformed_samples",
    [REJECT_MALFORMED_STACKS] = "profiling_malformed_stacks",
    [REJECT_DURATION_IS_TOO_LONG] = "profiling_duration_is_too_long",
    [REJECT_NO_TRANSACTION_ASSOCIATED] = "profiling_no_transaction_associated",
    [REJECT_INVALID_TRANSACTION_METADATA] = "profiling_invalid_transaction_metadata",
    [REJECT_MISSING_TRANSACTION] = "missing_transaction",
    [REJECT_ENVELOPE_TOO_LARGE] = "envelope_too_large",
    [REJECT_ENVELOPE_MALFORMED] = "envelope_malformed",
};

const char *reject_reason_name(enum reject_reason reason)
{
    return reason < REJECT_REASONS ? reason_names[reason] : "";
}

enum reject_reason reject_reason_of_message(const char *message)
{
    struct slice name = slice_of(message, strcspn(message, ":"));
    for (enum reject_reason reason = REJECT_NONE + 1; reason < REJECT_REASONS; reason++) {
        if (slice_equals_text(name, reason_names[reason])) return reason;
    }
    return REJECT_NONE;
}

void rules_result_init(struct rules_result *result)
{
    *result = (struct rules_result){.accepted = true};
}

bool rules_reject(struct rules_result *result, enum reject_reason reason, const char *expected, const char *found,
                  const char *place, ...)
{
    va_list arguments;
    result->accepted = false;
    result->reason = reason;
    (void)snprintf(result->expected, sizeof(result->expected), "%s", expected);
    (void)snprintf(result->found, sizeof(result->found), "%s", found);
    va_start(arguments, place);
    (void)vsnprintf(result->place, sizeof(result->place), place, arguments);
    va_end(arguments);
    return false;
}

bool rules_reject_too_few(struct rules_result *result)
{
    return rules_reject(result, REJECT_NOT_ENOUGH_SAMPLES, "a thread with two samples that have frames", "none", "%s",
                        "profile.samples");
}

void rules_repair(struct rules_result *result, const char *what, uint64_t count)
{
    if (count == 0 || result->repairs.count == RULES_REPAIRS_MAX) return;
    result->repairs.items[result->repairs.count++] = (struct repair){.what = what, .count = count};
}

void rules_result_print(const struct rules_result *result, char *ret_text, size_t size)
{
    if (result->accepted) {
        (void)snprintf(ret_text, size, "accepted");
        return;
    }
    bool has_expected = result->expected[0] != '\0';
    (void)snprintf(ret_text, size, "%s: %s%s%s%s%s%s", reject_reason_name(result->reason), result->place,
                   result->place[0] ? ": " : "", has_expected ? "expected " : "", result->expected,
                   has_expected ? ", found " : "", result->found);
}

enum status rules_result_status(const struct rules_result *result, struct error *error)
{
    char text[sizeof(error->message)];
    if (result->accepted) return STATUS_OK;
    rules_result_print(result, text, sizeof(text));
    return error_set(error, STATUS_MALFORMED, 0, "%s", text);
}
