/* Rules of both versions, and the order in which payloads are read and validated. The decoders note only the offset of
 * a value that breaks a rule; here it becomes a place, and what was found there. SPDX-License-Identifier: MIT */
#include "base/json_place.h"
#include "format/sentry/rules_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- Notes -------------------------------------------------------------------------------------------------------- */

static bool reject_note(struct validation *validation, const struct note *note)
{
    struct slice payload = validation->payload;
    bool is_metadata = validation->rules == RULES_SPEC && note->is_metadata;
    enum reject_reason reason = is_metadata ? REJECT_INVALID_PROFILE_METADATA : REJECT_INVALID_JSON;
    char place[RULES_PLACE_SIZE], found[RULES_TEXT_SIZE] = "nothing";
    struct slice value;
    json_place(payload, note->offset, place, sizeof(place), &value);
    if (note->missing) {
        return rules_reject(validation->result, reason, note->expected->text, found, "%s%s%s", place,
                            place[0] ? "." : "", note->missing);
    }
    struct json_reader reader;
    json_reader_init(&reader, value);
    enum json_kind kind = json_peek(&reader);
    json_reader_fini(&reader);
    if (kind == note->expected->kind || note->expected->kind == JSON_NOTHING)
        json_describe(value, found, sizeof(found));
    else
        (void)snprintf(found, sizeof(found), "%s", json_kind_name(kind));
    return rules_reject(validation->result, reason, note->expected->text, found, "%s", place);
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

/* Returns true if PAYLOAD is valid JSON. */
static bool is_json(struct slice payload, struct error *failure)
{
    struct json_reader reader;
    json_reader_init(&reader, payload);
    json_skip(&reader);
    enum status status = json_reader_finish(&reader, failure);
    json_reader_fini(&reader);
    return status == STATUS_OK;
}

static bool reject_json(struct validation *validation, const struct error *failure)
{
    char place[RULES_PLACE_SIZE], found[RULES_TEXT_SIZE];
    const char *expectation = expectation_of(failure->message);
    bool names_expectation = expectation != failure->message; /* "expected a value", else "input ends early" */
    json_place(validation->payload, failure->offset, place, sizeof(place), NULL);
    (void)snprintf(found, sizeof(found), "%.60s at byte %" PRIu64,
                   names_expectation ? "something else" : failure->message, failure->offset);
    return rules_reject(validation->result, REJECT_INVALID_JSON, names_expectation ? expectation : "valid JSON", found,
                        "%s", place);
}

bool rules_payload_is_json(struct validation *validation)
{
    struct error failure;
    bool is_valid = !validation->decoder->reader.failed || is_json(validation->payload, &failure);
    return is_valid || reject_json(validation, &failure);
}

/* Rejects for the reason for which DECODER stopped. In V1, JSON may be broken there, or later. */
static bool reject_failure(struct validation *validation, const struct chunk_decoder *decoder)
{
    const struct json_reader *reader = &decoder->reader;
    struct expectation expected = {.text = expectation_of(reader->message)};
    struct error failure;
    if (decoder->rejection.expected) return reject_note(validation, &decoder->rejection);
    if (decoder->is_v1 && !is_json(validation->payload, &failure) && failure.offset <= reader->failed_offset)
        return reject_json(validation, &failure);
    for (enum json_kind kind = JSON_OBJECT; kind <= JSON_BOOL; kind++) {
        if (strcmp(expected.text, json_kind_name(kind)) == 0) expected.kind = kind;
    }
    return reject_note(validation, &(struct note){.expected = &expected, .offset = reader->failed_offset});
}

/* The first note counts: the service stops there. DECODER stops only at what it cannot understand. */
static bool check_types(struct validation *validation, const struct chunk_decoder *decoder, enum reading reading)
{
    const struct note *note = &decoder->notes[reading][validation->rules];
    if (note->expected) return reject_note(validation, note);
    return !decoder->reader.failed || reject_failure(validation, decoder);
}

/* --- Rules -------------------------------------------------------------------------------------------------------- */

bool rules_size_is_allowed(struct validation *validation)
{
    char found[RULES_TEXT_SIZE], expected[RULES_TEXT_SIZE];
    size_t maximum = validation->rules == RULES_SPEC ? RULES_SPEC_BYTES_MAX : RULES_RELAY_BYTES_MAX;
    if (validation->payload.size <= maximum) return true;
    (void)snprintf(expected, sizeof(expected), "at most %zu bytes", maximum);
    (void)snprintf(found, sizeof(found), "%zu bytes", validation->payload.size);
    return rules_reject(validation->result, REJECT_EXCEED_SIZE_LIMIT, expected, found, "%s", "");
}

bool rules_transaction_is_there(struct validation *validation)
{
    const struct rules_context *context = validation->context;
    if (!validation->decoder->is_v1 || !context->is_in_envelope || context->has_transaction) return true;
    return rules_reject(validation->result, REJECT_MISSING_TRANSACTION, "a transaction in the envelope", "nothing",
                        "%s", "");
}

bool rules_header_is_typed(struct validation *validation)
{
    return check_types(validation, validation->header, READING_HEADER);
}

bool rules_values_are_typed(struct validation *validation)
{
    return check_types(validation, validation->decoder, READING_BODY);
}

bool rules_version_is_own(struct validation *validation)
{
    char found[RULES_TEXT_SIZE] = "nothing";
    const struct chunk_decoder *header = validation->header;
    if (header->is_own_version) return true;
    if (header->has_version) {
        size_t offset = (size_t)header->version_offset;
        json_describe(slice_of(validation->payload.data + offset, validation->payload.size - offset), found,
                      sizeof(found));
    }
    return rules_reject(validation->result, REJECT_PLATFORM_NOT_SUPPORTED, header->is_v1 ? "\"1\"" : "\"2\"", found,
                        "version");
}

static bool is_native(const struct validation *validation)
{
    struct slice platform = rules_platform(validation);
    return slice_equals_text(platform, "native") || slice_equals_text(platform, "cocoa") ||
           slice_equals_text(platform, "rust");
}

/* FMT-6. */
bool rules_native_code_has_images(struct validation *validation)
{
    const struct chunk_decoder *decoder = validation->decoder;
    const struct chunk *chunk = &decoder->chunk;
    if (!is_native(validation)) return true;
    if (decoder->is_v1 ? chunk->image_count == 0 : !chunk->has_images) {
        return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, "an image", "nothing",
                            "debug_meta.images");
    }
    if (decoder->is_v1 || !chunk->incomplete_image.member) return true;
    return reject_note(validation, &(struct note){.expected = &expected_string,
                                                  .missing = chunk->incomplete_image.member,
                                                  .offset = chunk->incomplete_image.offset,
                                                  .is_metadata = true});
}

/* FMT-3, FMT-10. A frame that has its own platform may be of another kind. */
bool rules_native_frames_have_addresses(struct validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    for (size_t i = 0; is_native(validation) && i < chunk->frames.count; i++) {
        if (chunk->frames.items[i].has_address || chunk->frames.items[i].code == CHUNK_CODE_OTHER) continue;
        return rules_reject(validation->result, REJECT_INVALID_JSON, expected_address.text, "nothing",
                            "profile.frames[%zu].instruction_addr", i);
    }
    return true;
}

/* FMT-5. Each thread that has samples needs an entry in thread_metadata. */
bool rules_threads_are_described(struct validation *validation)
{
    const struct chunk_decoder *decoder = validation->decoder;
    const struct chunk *chunk = &decoder->chunk;
    bool *is_described = calloc(decoder->profile->threads.count + 1, sizeof(*is_described));
    const struct chunk_sample *missing = NULL;
    for (size_t i = 0; is_described && i < chunk->described_threads.count; i++)
        is_described[chunk->described_threads.items[i].index] = true;
    for (size_t i = 0; is_described && !missing && i < chunk->samples.count; i++) {
        if (!is_described[chunk->samples.items[i].thread.index]) missing = &chunk->samples.items[i];
    }
    free(is_described);
    if (!missing) return true;
    struct slice id = profile_slice(decoder->profile, profile_thread(decoder->profile, missing->thread)->id);
    return rules_reject(validation->result, REJECT_INVALID_JSON, expected_object.text, "nothing",
                        "profile.thread_metadata.%.*s", SLICE_ARGUMENTS(id));
}

/* Rejects INDEX at PLACE, an index of a list with COUNT items. */
static bool reject_index(struct validation *validation, enum reject_reason reason, size_t count, uint32_t index,
                         const char *place)
{
    char expected[RULES_TEXT_SIZE] = "nothing, since the list is empty", found[RULES_TEXT_SIZE];
    if (count) (void)snprintf(expected, sizeof(expected), "index below %zu", count);
    (void)snprintf(found, sizeof(found), "%" PRIu32 "%s", index, index == INDEX_NONE ? " or more" : "");
    return rules_reject(validation->result, reason, expected, found, "%s", place);
}

bool rules_reject_stack(struct validation *validation, size_t sample)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = &validation->decoder->chunk;
    (void)snprintf(place, sizeof(place), "profile.samples[%zu].stack_id", sample);
    return reject_index(validation, REJECT_MALFORMED_SAMPLES, chunk->stacks.count, chunk->samples.items[sample].stack,
                        place);
}

/* Checks all stacks, also stacks that no sample has. */
bool rules_stacks_have_frames(struct validation *validation)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = &validation->decoder->chunk;
    for (size_t i = 0; i < chunk->stacks.count; i++) {
        const struct chunk_stack *stack = &chunk->stacks.items[i];
        for (size_t k = 0; k < stack->count; k++) {
            uint32_t frame = chunk->frame_indices.items[stack->first + k];
            if (frame < chunk->frames.count) continue;
            (void)snprintf(place, sizeof(place), "profile.stacks[%zu][%zu]", i, k);
            return reject_index(validation, REJECT_MALFORMED_STACKS, chunk->frames.count, frame, place);
        }
    }
    return true;
}

void rules_apply(struct validation *validation, const struct rule *rules, size_t count)
{
    bool holds = true;
    for (size_t i = 0; holds && i < count; i++) {
        if (rules[i].rules & 1u << validation->rules) holds = rules[i].holds(validation);
    }
}

/* --- Payloads ----------------------------------------------------------------------------------------------------- */

static enum status validate_with(struct validation *validation, const struct chunk_decoder *header, struct error *error)
{
    const struct chunk_decoder *decoder = validation->decoder;
    bool has_memory = decoder->reader.status != STATUS_NO_MEMORY && header->reader.status != STATUS_NO_MEMORY &&
                      !header->profile->failed;
    validation->header = header;
    if (has_memory) has_memory = decoder->is_v1 ? rules_apply_v1(validation) : rules_apply_v2(validation);
    validation->header = NULL;
    if (has_memory) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to validate the payload");
}

/* Sets the payload, and of a chunk with a Perfetto trace, the JSON and the trace; both are empty if its length is
 * wrong. */
static void set_payload(struct validation *validation, struct slice payload)
{
    const struct rules_context *context = validation->context;
    validation->payload = payload;
    if (!context->is_perfetto) return;
    size_t size = context->meta_length < payload.size ? (size_t)context->meta_length : 0;
    validation->payload = slice_of(payload.data, size);
    validation->trace = slice_of(payload.data + size, size ? payload.size - size : 0);
}

/* A payload that could not be read to its end still has a header, which counts first. */
static enum status validate(struct validation *validation, struct error *error)
{
    const struct chunk_decoder *decoder = validation->decoder;
    struct profile profile;
    struct chunk_decoder header;
    enum status status = profile_failed(decoder->profile, error);
    rules_result_init(validation->result);
    if (status != STATUS_OK) return status;
    if (!decoder->reader.failed) return validate_with(validation, decoder, error);
    profile_init(&profile);
    chunk_decoder_init(&header, validation->payload, &profile, decoder->is_v1);
    header.only_validates = true;
    if (header.is_v1)
        v1_read_header(&header);
    else
        v2_read_header(&header);
    status = validate_with(validation, &header, error);
    chunk_decoder_fini(&header);
    profile_fini(&profile);
    return status;
}

static const struct rules_context no_context;

enum status sentry_v2_decode_and_validate(struct slice bytes, const struct rules_context *context, enum rules rules,
                                          struct profile *profile, struct rules_result *ret_result, struct error *error)
{
    struct chunk_decoder decoder;
    struct validation validation = {
        .context = context ? context : &no_context, .rules = rules, .decoder = &decoder, .result = ret_result};
    set_payload(&validation, bytes);
    chunk_decoder_init(&decoder, validation.payload, profile, false);
    decoder.has_trace = decoder.is_perfetto = validation.context->is_perfetto;
    v2_read_payload(&decoder);
    enum status status = validate(&validation, error);
    if (status == STATUS_OK) status = v2_build(&decoder, bytes, error);
    chunk_decoder_fini(&decoder);
    return status;
}

enum status rules_validate_by(struct slice payload, bool is_v1, const struct rules_context *context, unsigned sets,
                              struct rules_result *ret_result, struct error *error)
{
    static const enum rules order[] = {RULES_RELAY, RULES_SPEC};
    struct profile profile;
    struct chunk_decoder decoder;
    struct validation validation = {
        .context = context ? context : &no_context, .decoder = &decoder, .result = ret_result};
    enum status status = STATUS_OK;
    bool is_read = false;
    profile_init(&profile);
    set_payload(&validation, payload);
    chunk_decoder_init(&decoder, validation.payload, &profile, is_v1);
    decoder.only_validates = true;
    decoder.has_trace = decoder.is_perfetto = validation.context->is_perfetto;
    rules_result_init(ret_result);
    for (size_t i = 0; i < RULES_COUNT && status == STATUS_OK && ret_result->accepted; i++) {
        validation.rules = order[i];
        if (!(sets & 1u << order[i])) continue;
        /* Nothing else is asked of a payload that is too large. */
        if (!is_read && rules_size_is_allowed(&validation) && rules_transaction_is_there(&validation)) {
            if (is_v1)
                v1_read_payload(&decoder);
            else
                v2_read_payload(&decoder);
            is_read = true;
        }
        status = validate(&validation, error);
    }
    chunk_decoder_fini(&decoder);
    profile_fini(&profile);
    return status;
}

enum status rules_validate_chunk(struct slice payload, const struct rules_context *context, enum rules rules,
                                 struct rules_result *ret_result, struct error *error)
{
    return rules_validate_by(payload, false, context, 1u << rules, ret_result, error);
}

enum status rules_validate_profile(struct slice payload, const struct rules_context *context, enum rules rules,
                                   struct rules_result *ret_result, struct error *error)
{
    return rules_validate_by(payload, true, context, 1u << rules, ret_result, error);
}
