/* Typed reading, as strict as the receiver's: facts §1.3.  SPDX-License-Identifier: MIT */
#include "format/sentry/rules_private.h"

#include "base/json_place.h"
#include "base/rfc3339.h"
#include "base/uuid.h"
#include "format/sentry/sentry_decoder_private.h"

#include <stdio.h>
#include <strings.h>

void rules_reader_init(struct rules_reader *reader, struct slice bytes)
{
    *reader = (struct rules_reader){.bytes = bytes};
    json_reader_init(&reader->json, bytes);
}

void rules_reader_fini(struct rules_reader *reader)
{
    json_reader_fini(&reader->json);
}

void rules_violate(struct rules_reader *reader, uint64_t offset, const char *expected)
{
    if (reader->json.failed) return;
    reader->violation_offset = offset;
    reader->expected = expected;
    json_reader_refuse(&reader->json, STATUS_MALFORMED, expected);
}

uint64_t rules_next_offset(struct rules_reader *reader)
{
    (void)json_peek(&reader->json);
    return json_reader_taken(&reader->json);
}

/* True if the next value is of KIND; else a violation, unless JSON itself ends or breaks there. */
static bool expect(struct rules_reader *reader, enum json_kind kind, const char *expected)
{
    enum json_kind found = json_peek(&reader->json);
    if (found == kind) return true;
    rules_violate(reader, json_reader_taken(&reader->json), expected);
    return false;
}

/* --- Containers --------------------------------------------------------------------------------------------------- */

/* The place of KEY among MEMBERS, MEMBER_COUNT if it is none of them. */
static uint32_t find_member(const struct rules_member *members, uint32_t member_count, struct slice key)
{
    uint32_t i = 0;
    while (i < member_count && !slice_equals_text(key, members[i].name) &&
           !(members[i].alias && slice_equals_text(key, members[i].alias)))
        i++;
    return i;
}

static void take_member(struct rules_reader *reader, const struct rules_member *member)
{
    if (member->presence == RULES_OPTIONAL && json_null(&reader->json)) return;
    if (member->take) {
        member->take(reader);
    } else {
        json_skip(&reader->json);
    }
}

void rules_take_object(struct rules_reader *reader, const struct rules_member *members, uint32_t member_count)
{
    uint64_t start = rules_next_offset(reader);
    uint32_t seen = 0;
    struct slice key;
    if (!expect(reader, JSON_OBJECT, "object")) return;
    json_object_begin(&reader->json);
    while (json_object_next(&reader->json, &key)) {
        uint32_t i = find_member(members, member_count, key);
        if (i == member_count) {
            json_skip(&reader->json);
            continue;
        }
        if (seen & 1u << i) rules_violate(reader, rules_next_offset(reader), "each member once");
        seen |= 1u << i;
        take_member(reader, &members[i]);
    }
    for (uint32_t i = 0; i < member_count && !reader->json.failed; i++) {
        if (members[i].presence != RULES_REQUIRED || seen & 1u << i) continue;
        reader->missing = members[i].name;
        rules_violate(reader, start, members[i].expected);
    }
}

void rules_take_array(struct rules_reader *reader, rules_take *take)
{
    if (!expect(reader, JSON_ARRAY, "array")) return;
    json_array_begin(&reader->json);
    while (json_array_next(&reader->json)) take(reader);
}

void rules_take_map(struct rules_reader *reader, rules_take *take)
{
    if (!expect(reader, JSON_OBJECT, "object")) return;
    json_object_begin(&reader->json);
    while (json_object_next(&reader->json, &reader->key)) take(reader);
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

struct slice rules_string(struct rules_reader *reader)
{
    return expect(reader, JSON_STRING, "string") ? json_string(&reader->json) : slice_of(NULL, 0);
}

void rules_take_string(struct rules_reader *reader)
{
    (void)rules_string(reader);
}

void rules_take_bool(struct rules_reader *reader)
{
    if (expect(reader, JSON_BOOL, "boolean")) (void)json_bool(&reader->json);
}

static uint64_t take_u64(struct rules_reader *reader, uint64_t maximum, bool or_text, const char *expected)
{
    uint64_t offset = rules_next_offset(reader), value = 0;
    struct slice text;
    if (or_text && json_peek(&reader->json) == JSON_STRING) {
        text = json_string(&reader->json);
    } else if (expect(reader, JSON_NUMBER, expected)) {
        text = json_number(&reader->json).text;
    } else {
        return 0;
    }
    if (!chunk_parse_decimal(text, &value) || value > maximum) rules_violate(reader, offset, expected);
    return value;
}

uint64_t rules_u64(struct rules_reader *reader, uint64_t maximum)
{
    return take_u64(reader, maximum, false,
                    maximum == UINT32_MAX ? "integer from 0 to 4294967295" : "integer from 0 to 18446744073709551615");
}

void rules_take_u32(struct rules_reader *reader)
{
    (void)rules_u64(reader, UINT32_MAX);
}

uint64_t rules_u64_or_text(struct rules_reader *reader)
{
    return take_u64(reader, UINT64_MAX, true, "integer from 0 to 18446744073709551615, or a string of one");
}

void rules_take_u64_or_text(struct rules_reader *reader)
{
    (void)rules_u64_or_text(reader);
}

double rules_double(struct rules_reader *reader)
{
    uint64_t offset = rules_next_offset(reader);
    if (!expect(reader, JSON_NUMBER, "finite number")) return 0;
    struct json_number number = json_number(&reader->json);
    double value = json_number_to_double(&number);
    if (!__builtin_isfinite(value)) rules_violate(reader, offset, "finite number");
    return value;
}

static size_t skip_digits(struct slice text, size_t at)
{
    while (at < text.size && text.data[at] >= '0' && text.data[at] <= '9') at++;
    return at;
}

static bool is_word(struct slice text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

/* As the receiver's own parser takes one: digits on one side of the point at least, or infinity, or not a number. */
static bool is_float(struct slice text)
{
    size_t sign = text.size > 0 && (text.data[0] == '+' || text.data[0] == '-');
    text = slice_of(text.data + sign, text.size - sign);
    if (is_word(text, "inf") || is_word(text, "infinity") || is_word(text, "nan")) return true;
    size_t at = skip_digits(text, 0), digits = at;
    if (at < text.size && text.data[at] == '.') {
        size_t first = ++at;
        at = skip_digits(text, at);
        digits += at - first;
    }
    if (digits == 0) return false;
    if (at < text.size && (text.data[at] | 0x20) == 'e') {
        at++;
        at += at < text.size && (text.data[at] == '+' || text.data[at] == '-');
        size_t first = at;
        at = skip_digits(text, at);
        if (at == first) return false;
    }
    return at == text.size;
}

void rules_take_double_or_text(struct rules_reader *reader)
{
    static const char expected[] = "finite number, or a string of one";
    uint64_t offset = rules_next_offset(reader);
    if (json_peek(&reader->json) != JSON_STRING) {
        (void)rules_double(reader);
    } else if (!is_float(json_string(&reader->json))) {
        rules_violate(reader, offset, expected);
    }
}

void rules_take_uuid(struct rules_reader *reader)
{
    char uuid[UUID_TEXT_SIZE];
    uint64_t offset = rules_next_offset(reader);
    struct slice text = rules_string(reader);
    if (!uuid_parse(text, uuid)) rules_violate(reader, offset, "uuid");
}

void rules_take_address(struct rules_reader *reader)
{
    bool is_hex;
    uint64_t offset = rules_next_offset(reader), address;
    if (!chunk_parse_address(rules_string(reader), &address, &is_hex))
        rules_violate(reader, offset, "string with an address");
}

void rules_take_time(struct rules_reader *reader)
{
    uint64_t offset = rules_next_offset(reader), time_ns;
    if (!rfc3339_parse(rules_string(reader), &time_ns)) rules_violate(reader, offset, "string with an RFC 3339 time");
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

enum status rules_finish(struct rules_reader *reader, const char *reason, struct verdict *verdict, struct error *error)
{
    char place[VERDICT_PLACE_SIZE], found[VERDICT_TEXT_SIZE] = "nothing";
    struct error failure;
    struct slice value;
    enum status status = json_reader_finish(&reader->json, &failure);
    if (status == STATUS_OK) return STATUS_OK;
    if (status == STATUS_NO_MEMORY) return error_set(error, status, 0, "not enough memory to judge the payload");
    uint64_t offset = reader->expected ? reader->violation_offset : failure.offset;
    json_place(reader->bytes, offset, place, sizeof(place), &value);
    if (!reader->expected) {
        (void)snprintf(found, sizeof(found), "%.60s at byte %llu", failure.message, (unsigned long long)offset);
        (void)verdict_refuse(verdict, reason, "valid JSON", found, "%s", place);
    } else if (reader->missing) {
        (void)verdict_refuse(verdict, reason, reader->expected, found, "%s%s%s", place, place[0] ? "." : "",
                             reader->missing);
    } else {
        json_describe(value, found, sizeof(found));
        (void)verdict_refuse(verdict, reason, reader->expected, found, "%s", place);
    }
    return STATUS_OK;
}
