/* The decoders note only the offset of what breaks a rule. Here it becomes a place, and what was found there.
 * SPDX-License-Identifier: MIT */
#include "base/json_place.h"
#include "format/sentry/rules_private.h"

#include <inttypes.h>
#include <stdio.h>

bool rules_reject_note(struct rules_result *result, struct slice payload, const struct note *note,
                       enum reject_reason reason)
{
    char place[RULES_PLACE_SIZE], found[RULES_TEXT_SIZE] = "nothing";
    struct slice value;
    json_place(payload, note->offset, place, sizeof(place), &value);
    if (note->missing) {
        return rules_reject(result, reason, note->expected->text, found, "%s%s%s", place, place[0] ? "." : "",
                            note->missing);
    }
    struct json_reader reader;
    json_reader_init(&reader, value);
    enum json_kind kind = json_peek(&reader);
    json_reader_fini(&reader);
    if (kind == note->expected->kind || note->expected->kind == JSON_NOTHING)
        json_describe(value, found, sizeof(found));
    else
        (void)snprintf(found, sizeof(found), "%s", json_kind_name(kind));
    return rules_reject(result, reason, note->expected->text, found, "%s", place);
}

/* "expected a string": the JSON reader's message about a value of another kind. */
static const char *expectation_of(const char *message)
{
    static const char *const fronts[] = {"expected an ", "expected a ", "expected "};
    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
        size_t size = strlen(fronts[i]);
        if (strncmp(message, fronts[i], size) == 0) return message + size;
    }
    return message;
}

bool rules_reject_failure(struct rules_result *result, struct slice payload, const struct chunk_decoder *decoder)
{
    const struct json_reader *reader = &decoder->reader;
    struct expectation expected = {.text = expectation_of(reader->message)};
    if (decoder->rejection.expected)
        return rules_reject_note(result, payload, &decoder->rejection, REJECT_INVALID_JSON);
    for (enum json_kind kind = JSON_OBJECT; kind <= JSON_BOOL; kind++) {
        if (strcmp(expected.text, json_kind_name(kind)) == 0) expected.kind = kind;
    }
    const struct note note = {.expected = &expected, .offset = reader->failed_offset};
    return rules_reject_note(result, payload, &note, REJECT_INVALID_JSON);
}

bool rules_reject_index(struct rules_result *result, enum reject_reason reason, size_t count, uint32_t index,
                        const char *place)
{
    char expected[RULES_TEXT_SIZE] = "nothing, since the list is empty", found[RULES_TEXT_SIZE];
    if (count) (void)snprintf(expected, sizeof(expected), "index below %zu", count);
    (void)snprintf(found, sizeof(found), "%" PRIu32 "%s", index, index == INDEX_NONE ? " or more" : "");
    return rules_reject(result, reason, expected, found, "%s", place);
}

static bool is_json(struct slice payload, struct error *failure)
{
    struct json_reader reader;
    json_reader_init(&reader, payload);
    json_skip(&reader);
    enum status status = json_reader_finish(&reader, failure);
    json_reader_fini(&reader);
    return status == STATUS_OK;
}

static bool reject_json(struct rules_result *result, struct slice payload, const struct error *failure)
{
    char place[RULES_PLACE_SIZE], found[RULES_TEXT_SIZE];
    json_place(payload, failure->offset, place, sizeof(place), NULL);
    (void)snprintf(found, sizeof(found), "%.60s at byte %" PRIu64, failure->message, failure->offset);
    return rules_reject(result, REJECT_INVALID_JSON, "valid JSON", found, "%s", place);
}

bool rules_payload_is_json(struct rules_result *result, struct slice payload)
{
    struct error failure;
    return is_json(payload, &failure) || reject_json(result, payload, &failure);
}

bool rules_reject_first_failure(struct rules_result *result, struct slice payload, const struct chunk_decoder *decoder)
{
    struct error failure;
    bool is_broken =
        !decoder->rejection.expected && !is_json(payload, &failure) && failure.offset <= decoder->reader.failed_offset;
    return is_broken ? reject_json(result, payload, &failure) : rules_reject_failure(result, payload, decoder);
}

bool rules_platform_is_native(struct slice platform)
{
    return slice_equals_text(platform, "native") || slice_equals_text(platform, "cocoa") ||
           slice_equals_text(platform, "rust");
}
