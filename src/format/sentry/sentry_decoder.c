/* The walk over Sentry's JSON that both sample formats share: members, values, and notes of broken rules.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_decoder_private.h"

#include "base/hex.h"
#include "base/json_writer.h"
#include "base/uuid.h"

#include <math.h>
#include <stdlib.h>

enum { ATTRIBUTES_BYTES_MAX = 1 << 30 }; /* less than what they are read from */

#define EXPECT(name, text, kind) const struct expectation name = {text, "expected " text, kind};
/* clang-format off */
EXPECT(expected_something, "value", JSON_NOTHING)
EXPECT(expected_string, "string", JSON_STRING)
EXPECT(expected_finite, "finite number", JSON_NUMBER)
EXPECT(expected_number, "number", JSON_NUMBER)
EXPECT(expected_integer, "integer", JSON_NUMBER)
EXPECT(expected_u32, "integer from 0 to 4294967295", JSON_NUMBER)
EXPECT(expected_index, "integer from 0 to 2^64 - 1", JSON_NUMBER)
EXPECT(expected_boolean, "true or false", JSON_BOOL)
EXPECT(expected_object, "object", JSON_OBJECT)
EXPECT(expected_array, "array", JSON_ARRAY)
EXPECT(expected_uuid, "uuid", JSON_STRING)
EXPECT(expected_plain_uuid, "32 lowercase hex digits", JSON_STRING)
EXPECT(expected_random_uuid, "uuid of version 4", JSON_STRING)
EXPECT(expected_address, "string with an address", JSON_STRING)
EXPECT(expected_size, "integer from 0 to 2^64 - 1, or a string that holds one", JSON_NUMBER)
EXPECT(expected_whole, "whole number, or a string that holds one", JSON_NOTHING)
EXPECT(expected_debug_id, "uuid with or without an age", JSON_STRING)
EXPECT(expected_image_type, "macho, symbolic, sourcemap, proguard or jvm", JSON_STRING)
EXPECT(expected_unit, "nanosecond, ns, hertz, hz, byte, percent, nanojoule or nj", JSON_STRING)
EXPECT(expected_spec_unit, "nanosecond, ns, hertz, hz, byte or percent", JSON_STRING)
EXPECT(expected_measured, "number, or a string that holds one", JSON_STRING)
EXPECT(expected_later, "time after 0, which the first value has", JSON_NOTHING)
EXPECT(expected_digits, "string of an integer", JSON_STRING)
EXPECT(expected_name_of_frame, "filename, function or instruction_addr", JSON_NOTHING)
/* clang-format on */
const struct expectation expected_time = {"string with an RFC 3339 time", "expected a time of RFC 3339", JSON_STRING};
const struct expectation expected_once = {"key that comes once", "duplicate key", JSON_NOTHING};

void chunk_decoder_init(struct chunk_decoder *decoder, struct slice bytes, struct profile *profile, bool is_v1)
{
    *decoder = (struct chunk_decoder){.profile = profile, .reading = READING_BODY, .is_v1 = is_v1};
    struct sentry_extension *extension = sentry_extension_make(profile);
    decoder->extension = extension ? extension : &decoder->no_extension;
    json_reader_init(&decoder->reader, bytes);
    buffer_init(&decoder->attributes, ATTRIBUTES_BYTES_MAX);
}

void chunk_decoder_fini(struct chunk_decoder *decoder)
{
    json_reader_fini(&decoder->reader);
    buffer_fini(&decoder->attributes);
    free(decoder->chunk.frames.items);
    free(decoder->chunk.stacks.items);
    free(decoder->chunk.frame_indices.items);
    free(decoder->chunk.samples.items);
    free(decoder->chunk.images.items);
    free(decoder->chunk.described_threads.items);
}

/* --- Notes -------------------------------------------------------------------------------------------------------- */

static void add_note(struct chunk_decoder *decoder, unsigned rules, struct note note)
{
    for (unsigned i = 0; i < RULES_COUNT; i++) {
        struct note *first = &decoder->notes[decoder->reading][i];
        if ((rules & 1u << i) && !first->expected) *first = note;
    }
}

void chunk_note(struct chunk_decoder *decoder, unsigned rules, const struct expectation *expected, uint64_t offset)
{
    if (rules && !decoder->reader.failed)
        add_note(decoder, rules, (struct note){.expected = expected, .offset = offset});
}

void chunk_note_absent(struct chunk_decoder *decoder, unsigned rules, const struct expectation *expected,
                       const char *member, uint64_t offset)
{
    if (decoder->reader.failed) return;
    add_note(decoder, rules, (struct note){.expected = expected, .missing = member, .offset = offset});
}

void chunk_reject_value(struct chunk_decoder *decoder, const struct expectation *expected, uint64_t offset)
{
    if (decoder->reader.failed) return;
    decoder->rejection = (struct note){.expected = expected, .offset = offset};
    json_reader_reject(&decoder->reader, STATUS_MALFORMED, expected->message);
}

/* --- Members of objects ------------------------------------------------------------------------------------------- */

static unsigned rules_with(const uint32_t masks[RULES_COUNT], uint32_t bit)
{
    unsigned rules = 0;
    for (unsigned i = 0; i < RULES_COUNT; i++) rules |= (masks[i] & bit ? 1u : 0u) << i;
    return rules;
}

/* Other notes about the object do not matter: the service finds missing members at its end. */
void chunk_note_missing(struct chunk_decoder *decoder, const struct members *members)
{
    const struct member_rules *rules = members->rules;
    uint32_t required = rules->required[RULES_SPEC] | rules->required[RULES_RELAY];
    if (decoder->reader.failed) return;
    for (uint32_t i = 0; i < members->known_count; i++) {
        const struct member *member = &members->known[i];
        uint32_t bit = 1u << member->number;
        if ((members->seen & bit) || !(required & bit)) continue;
        if (rules->header) decoder->reading = rules->header & bit ? READING_HEADER : READING_BODY;
        add_note(decoder, rules_with(rules->required, bit),
                 (struct note){.expected = member->expected,
                               .missing = member->name,
                               .offset = members->offset,
                               .is_metadata = rules->is_metadata});
    }
}

static void note_null(struct chunk_decoder *decoder, const struct members *members, const struct member *member,
                      uint64_t offset)
{
    const struct member_rules *rules = members->rules;
    uint32_t bit = 1u << member->number;
    unsigned broken = rules_with(rules->required, bit) | rules_with(rules->not_null, bit);
    if (decoder->reader.failed || !broken) return;
    add_note(decoder, broken,
             (struct note){.expected = member->expected, .offset = offset, .is_metadata = rules->is_metadata});
}

/* Members tend to come in the same order in every object, which is that of the table unless another one was seen. */
static const struct member *find_member(const struct members *members, struct slice key)
{
    uint32_t place = members->place;
    for (uint32_t tried = 0; tried < members->known_count; tried++, place++) {
        if (place == members->known_count) place = 0;
        const struct member *member = &members->known[place];
        if (slice_equal(key, slice_of(member->name, member->name_size))) return member;
    }
    return NULL;
}

int chunk_find_next_member(struct chunk_decoder *decoder, struct members *members)
{
    struct json_reader *reader = &decoder->reader;
    while (json_object_next(reader, &members->key)) {
        const struct member *member = find_member(members, members->key);
        if (!member || (members->ignored & 1u << member->number)) {
            members->number = -1;
            if (members->keeps)
                chunk_keep_value(decoder, members, "");
            else
                json_skip(reader);
            continue;
        }
        uint32_t bit = 1u << member->number;
        if (members->rules && members->rules->header) {
            decoder->reading = members->rules->header & bit ? READING_HEADER : READING_BODY;
        }
        uint64_t offset = json_reader_taken(reader);
        if (members->seen & bit) chunk_reject_value(decoder, &expected_once, offset);
        if (members->order) members->order->next[members->place] = (uint8_t)(member - members->known);
        chunk_take_member(members, member); /* its key may have been written with escapes */
        if (!json_null(reader)) return member->number;
        if (members->rules) note_null(decoder, members, member, offset);
    }
    return chunk_end_members(decoder, members);
}

/* --- Attributes --------------------------------------------------------------------------------------------------- */

/* A member is kept by the first of its names, so that it cannot meet itself under another. */
static struct slice first_name(const struct members *members)
{
    for (uint32_t i = 0; members->number >= 0 && i < members->known_count; i++) {
        const struct member *member = &members->known[i];
        if (member->number == members->number) return slice_of(member->name, member->name_size);
    }
    return members->key;
}

static void keep_attribute(struct chunk_decoder *decoder, struct members *members, const char *prefix, struct slice key,
                           struct slice json)
{
    if (decoder->only_validates) return;
    struct json_writer writer = json_writer_of(&decoder->attributes);
    writer.needs_comma = decoder->attributes.size > members->kept_from;
    if (!writer.needs_comma) buffer_append_byte(&decoder->attributes, '{');
    if (prefix[0]) {
        char name[128];
        size_t prefix_size = strlen(prefix);
        if (key.size + prefix_size > sizeof(name)) return; /* the names of known members are short */
        memcpy(name, prefix, prefix_size);
        memcpy(name + prefix_size, key.data, key.size);
        json_write_key_slice(&writer, slice_of(name, prefix_size + key.size));
    } else {
        json_write_key_slice(&writer, key);
    }
    json_write_raw(&writer, json);
}

void chunk_keep_json(struct chunk_decoder *decoder, struct members *members, const char *prefix, struct slice json)
{
    if (members->keeps) keep_attribute(decoder, members, prefix, first_name(members), json);
}

void chunk_keep_as(struct chunk_decoder *decoder, struct members *members, const char *name, struct slice json)
{
    if (members->keeps) keep_attribute(decoder, members, "", slice_of_text(name), json);
}

void chunk_keep_value(struct chunk_decoder *decoder, struct members *members, const char *prefix)
{
    if (decoder->only_validates) {
        json_skip(&decoder->reader);
        return;
    }
    /* A key with escapes is in memory that the value's strings may overwrite: its name is written first. */
    size_t size_before = decoder->attributes.size;
    keep_attribute(decoder, members, prefix, first_name(members), slice_of(NULL, 0));
    (void)json_peek(&decoder->reader);
    const uint8_t *start = decoder->reader.position;
    json_skip(&decoder->reader);
    if (decoder->reader.failed)
        decoder->attributes.size = size_before;
    else
        buffer_append(&decoder->attributes, start, (size_t)(decoder->reader.position - start));
}

struct slice chunk_keep_and_show(struct chunk_decoder *decoder, struct members *members)
{
    (void)json_peek(&decoder->reader);
    const uint8_t *start = decoder->reader.position;
    chunk_keep_value(decoder, members, "");
    return slice_of(start, decoder->reader.failed ? 0 : (size_t)(decoder->reader.position - start));
}

void chunk_keep_text(struct chunk_decoder *decoder, struct members *members, const char *name, struct string_id text)
{
    if (!members->keeps || decoder->only_validates) return;
    keep_attribute(decoder, members, "", slice_of_text(name), slice_of(NULL, 0));
    struct json_writer writer = json_writer_of(&decoder->attributes);
    json_write_string(&writer, profile_slice(decoder->profile, text));
}

struct string_id chunk_take_attributes(struct chunk_decoder *decoder, struct members *members)
{
    struct buffer *attributes = &decoder->attributes;
    if (attributes->failed) json_reader_reject(&decoder->reader, STATUS_NO_MEMORY, "no memory for the chunk");
    if (attributes->size <= members->kept_from || decoder->reader.failed) return (struct string_id){0};
    buffer_append_byte(attributes, '}');
    struct slice kept = slice_of(attributes->data + members->kept_from, attributes->size - members->kept_from);
    attributes->size = members->kept_from;
    return profile_string(decoder->profile, kept);
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

struct string_id chunk_string(struct chunk_decoder *decoder, struct slice text)
{
    if (decoder->only_validates && text.size > PROFILE_STRING_BYTES_MAX) text.size = PROFILE_STRING_BYTES_MAX;
    return profile_string(decoder->profile, text);
}

struct string_id chunk_read_string(struct chunk_decoder *decoder)
{
    return chunk_string(decoder, json_string(&decoder->reader));
}

struct slice chunk_read_text_or_number(struct chunk_decoder *decoder)
{
    if (json_peek(&decoder->reader) == JSON_NUMBER) return json_number(&decoder->reader).text;
    return json_string(&decoder->reader);
}

/* "0x1f", or "31". */
static bool chunk_parse_address(struct slice text, uint64_t *ret_value, bool *ret_is_hex)
{
    *ret_is_hex = text.size > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x';
    return *ret_is_hex ? hex_parse(slice_of(text.data + 2, text.size - 2), ret_value) : text_number(text, ret_value);
}

/* "0x1f", "31" or 31. */
static uint64_t read_any_address(struct chunk_decoder *decoder, const struct expectation *expected, bool *ret_is_hex)
{
    uint64_t value = 0, offset = chunk_offset(decoder);
    bool is_valid = chunk_parse_address(chunk_read_text_or_number(decoder), &value, ret_is_hex);
    if (!is_valid) chunk_reject_value(decoder, expected, offset);
    return is_valid ? value : 0;
}

uint64_t chunk_read_address(struct chunk_decoder *decoder)
{
    bool is_hex;
    if (json_peek(&decoder->reader) == JSON_NUMBER) {
        chunk_note(decoder, BREAKS_BOTH, &expected_address, chunk_offset(decoder));
    }
    return read_any_address(decoder, &expected_address, &is_hex);
}

uint64_t chunk_read_size(struct chunk_decoder *decoder)
{
    bool is_hex;
    uint64_t offset = chunk_offset(decoder);
    uint64_t value = read_any_address(decoder, &expected_size, &is_hex);
    if (is_hex) chunk_note(decoder, decoder->is_v1 ? BREAKS_BOTH : BREAKS_RELAY, &expected_size, offset);
    return value;
}

uint64_t chunk_read_u64(struct chunk_decoder *decoder)
{
    uint64_t value = 0, offset = chunk_offset(decoder);
    if (!text_number(chunk_read_text_or_number(decoder), &value)) {
        chunk_reject_value(decoder, &expected_whole, offset);
    }
    return value;
}

struct string_id chunk_read_uuid(struct chunk_decoder *decoder)
{
    char plain[UUID_TEXT_SIZE];
    uint64_t offset = chunk_offset(decoder);
    struct slice text = json_string(&decoder->reader);
    if (!uuid_parse(text, plain)) {
        chunk_reject_value(decoder, &expected_uuid, offset);
        return (struct string_id){0};
    }
    if (!slice_equals_text(text, plain)) chunk_note(decoder, BREAKS_SPEC, &expected_plain_uuid, offset);
    if (!uuid_is_random(plain)) chunk_note(decoder, BREAKS_SPEC, &expected_random_uuid, offset);
    return profile_text(decoder->profile, plain);
}

/* "1e3", "+Infinity", ".5", "1.": what the server's parser of floats accepts is changed to what ours accepts. */
static bool parse_float(struct slice text, double *ret_value)
{
    char canonical[512] = "";
    size_t used = 0, at = 0;
    if (text.size == 0) return false;
    bool is_negative = text.data[0] == '-';
    if (is_negative || text.data[0] == '+') at++;
    struct slice rest = slice_of(text.data + at, text.size - at);
    static const struct {
        const char *name;
        double value;
    } words[] = {{"inf", HUGE_VAL}, {"infinity", HUGE_VAL}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (rest.size != strlen(words[i].name) || strncasecmp((const char *)rest.data, words[i].name, rest.size) != 0)
            continue;
        *ret_value = is_negative ? -words[i].value : words[i].value;
        return true;
    }
    struct json_number number;
    if (json_number_of_text(rest, &number)) {
        *ret_value = is_negative ? -json_number_to_double(&number) : json_number_to_double(&number);
        return !number.is_negative;
    }
    /* Digits may be missing on one side of the point, and there may be zeros before them. */
    size_t digits = 0;
    for (at = 0; at < rest.size && rest.data[at] == '0'; at++) digits++;
    if (at == rest.size || rest.data[at] < '0' || rest.data[at] > '9') canonical[used++] = '0';
    for (; at < rest.size && used + 2 < sizeof(canonical); at++) {
        uint8_t byte = rest.data[at];
        bool is_digit = byte >= '0' && byte <= '9';
        digits += is_digit;
        canonical[used++] = (char)byte;
        bool ends_point = byte == '.' && (at + 1 == rest.size || rest.data[at + 1] < '0' || rest.data[at + 1] > '9');
        if (ends_point) canonical[used++] = '0';
    }
    if (at < rest.size || digits == 0 || !json_number_of_text(slice_of(canonical, used), &number)) return false;
    *ret_value = is_negative ? -json_number_to_double(&number) : json_number_to_double(&number);
    return true;
}

double chunk_read_finite(struct chunk_decoder *decoder)
{
    uint64_t offset = chunk_offset(decoder);
    double value = json_double_or_infinity(&decoder->reader);
    if (isfinite(value)) return value;
    chunk_reject_value(decoder, &expected_finite, offset);
    return 0;
}

double chunk_read_measured(struct chunk_decoder *decoder)
{
    double value = 0;
    uint64_t offset = chunk_offset(decoder);
    if (json_peek(&decoder->reader) == JSON_NUMBER) return chunk_read_finite(decoder);
    if (!parse_float(json_string(&decoder->reader), &value)) chunk_reject_value(decoder, &expected_measured, offset);
    return value;
}
