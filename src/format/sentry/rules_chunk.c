/* The rules for a chunk of sample format V2 (V2-1…7, FMT-1…7; facts §1.2, §1.3, §1.7): one table, in the order of the
 * real service. What the types of the values break was noted while they were read; here it gets its place and its turn.
 * SPDX-License-Identifier: MIT */
#include "base/json_place.h"
#include "format/sentry/rules_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SECONDS_MAX 66.0 /* a minute, and a tenth more */
#define COCOA_ADDRESS_BITS ((uint64_t)0xFFFFFFFFF)

enum { FRAMES_MIN = 2 /* samples with frames that a thread must have to be kept */ };

/* What is to be known of the samples that are not dropped. */
struct kept {
    size_t count;
    size_t without_stack; /* the first sample whose stack is missing; SIZE_MAX: none */
    uint64_t unsorted;    /* are earlier than the one before */
    double first, last;   /* seconds */
};

struct chunk_validation {
    struct slice payload;
    const struct rules_context *context;
    enum rules rules;
    const struct chunk_decoder *decoder;
    const struct chunk_decoder *header; /* the same, or, where that one failed, one that read the header alone */
    struct rules_result *result;
    struct chunk_thread *threads; /* by the profile's thread id; SAMPLES is set to 0 where they are dropped */
    struct kept kept;
};

static const struct profile *profile_of(const struct chunk_validation *validation)
{
    return validation->header->profile;
}

static struct slice platform_of(const struct chunk_validation *validation)
{
    return profile_slice(profile_of(validation), profile_of(validation)->platform);
}

static bool is_one_of(struct slice text, const char *const *words)
{
    for (; *words; words++) {
        if (slice_equals_text(text, *words)) return true;
    }
    return false;
}

/* --- What was noted while reading --------------------------------------------------------------------------------- */

static bool reject_note(struct chunk_validation *validation, const struct note *note)
{
    bool is_metadata = validation->rules == RULES_SPEC && note->is_metadata;
    return rules_reject_note(validation->result, validation->payload, note,
                             is_metadata ? REJECT_INVALID_PROFILE_METADATA : REJECT_INVALID_JSON);
}

static bool reject_failure(struct chunk_validation *validation, const struct chunk_decoder *decoder)
{
    return rules_reject_failure(validation->result, validation->payload, decoder);
}

/* --- The rules, each of which says whether it holds --------------------------------------------------------------- */

static bool size_is_allowed(struct chunk_validation *validation)
{
    return rules_allow_size(validation->payload, validation->rules, validation->result);
}

static bool item_is_json_alone(struct chunk_validation *validation)
{
    if (!validation->context->has_meta_length) return true;
    return rules_reject(validation->result, REJECT_INVALID_SAMPLED_PROFILE, "no meta_length with JSON", "one", "%s",
                        "item.meta_length");
}

static bool payload_is_json(struct chunk_validation *validation)
{
    return !validation->decoder->reader.failed || rules_payload_is_json(validation->result, validation->payload);
}

static bool header_is_typed(struct chunk_validation *validation)
{
    const struct note *note = &validation->header->notes[READING_HEADER][validation->rules];
    if (note->expected) return reject_note(validation, note);
    return validation->header->reader.failed ? reject_failure(validation, validation->header) : true;
}

static bool reject_platform(struct chunk_validation *validation, const char *expected)
{
    char found[RULES_TEXT_SIZE] = "nothing";
    if (validation->context->platform.data) {
        (void)snprintf(found, sizeof(found), "\"%.*s\"", SLICE_ARGUMENTS(validation->context->platform));
    }
    return rules_reject(validation->result, REJECT_INVALID_PROFILE_TYPE, expected, found, "%s", "item.platform");
}

/* V2-7. */
static bool item_names_platform(struct chunk_validation *validation)
{
    char expected[RULES_TEXT_SIZE];
    if (!validation->context->is_in_envelope || slice_equal(validation->context->platform, platform_of(validation)))
        return true;
    (void)snprintf(expected, sizeof(expected), "the payload's, \"%.*s\"", SLICE_ARGUMENTS(platform_of(validation)));
    return reject_platform(validation, expected);
}

static bool is_of_interface(struct slice platform)
{
    return is_one_of(platform, (const char *const[]){"cocoa", "android", "javascript", NULL});
}

static bool item_is_of_one_class(struct chunk_validation *validation)
{
    struct slice said = validation->context->platform;
    bool is_ui = is_of_interface(platform_of(validation));
    if (!said.data || is_of_interface(said) == is_ui) return true;
    return reject_platform(validation, is_ui ? "one of a user interface, like the payload's"
                                             : "one of a backend, like the payload's");
}

static bool version_is_2(struct chunk_validation *validation)
{
    char found[RULES_TEXT_SIZE] = "nothing";
    const struct chunk_decoder *header = validation->header;
    if (header->is_version_2) return true;
    if (header->has_version) {
        size_t offset = (size_t)header->version_offset;
        json_describe(slice_of(validation->payload.data + offset, validation->payload.size - offset), found,
                      sizeof(found));
    }
    return rules_reject(validation->result, REJECT_PLATFORM_NOT_SUPPORTED, "\"2\"", found, "%s", "version");
}

static bool values_are_typed(struct chunk_validation *validation)
{
    const struct note *note = &validation->decoder->notes[READING_BODY][validation->rules];
    if (note->expected) return reject_note(validation, note);
    return validation->decoder->reader.failed ? reject_failure(validation, validation->decoder) : true;
}

static bool is_native(const struct chunk_validation *validation)
{
    return rules_platform_is_native(platform_of(validation));
}

/* FMT-6. */
static bool native_code_has_images(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    if (!is_native(validation)) return true;
    if (!chunk->has_images) {
        return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, "an image", "nothing", "%s",
                            "debug_meta.images");
    }
    if (!chunk->incomplete_image.member) return true;
    return reject_note(validation, &(struct note){.expected = &expected_string,
                                                  .missing = chunk->incomplete_image.member,
                                                  .offset = chunk->incomplete_image.offset,
                                                  .is_metadata = true});
}

/* FMT-3, FMT-10. A frame that has its own platform may be of another kind. */
static bool native_frames_have_addresses(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    for (size_t i = 0; is_native(validation) && i < chunk->frames.count; i++) {
        const struct chunk_frame *frame = &chunk->frames.items[i];
        if (frame->has_address || frame->code == CHUNK_CODE_OTHER) continue;
        return reject_note(
            validation,
            &(struct note){.expected = &expected_address, .missing = "instruction_addr", .offset = frame->offset});
    }
    return true;
}

static bool lists_are_filled(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    const char *empty = chunk->samples.count == 0  ? "profile.samples"
                        : chunk->stacks.count == 0 ? "profile.stacks"
                        : chunk->frames.count == 0 ? "profile.frames"
                                                   : NULL;
    enum reject_reason reason = chunk->samples.count == 0  ? REJECT_NOT_ENOUGH_SAMPLES
                                : chunk->stacks.count == 0 ? REJECT_MALFORMED_SAMPLES
                                                           : REJECT_MALFORMED_STACKS;
    if (!empty) return true;
    return rules_reject(validation->result, reason, "at least one", "none", "%s", empty);
}

/* Once through all samples: there are a hundred thousands of them in a large chunk. */
static void measure_kept(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    struct kept kept = {.without_stack = SIZE_MAX, .first = HUGE_VAL, .last = -HUGE_VAL};
    double before = -HUGE_VAL;
    for (size_t i = 0; i < chunk->samples.count; i++) {
        const struct chunk_sample *sample = &chunk->samples.items[i];
        if (!validation->threads[sample->thread.index].samples) continue;
        kept.count++;
        if (sample->stack >= chunk->stacks.count && kept.without_stack == SIZE_MAX) kept.without_stack = i;
        kept.unsorted += sample->seconds < before;
        before = sample->seconds;
        kept.first = before < kept.first ? before : kept.first;
        kept.last = before > kept.last ? before : kept.last;
    }
    validation->kept = kept;
}

static bool keep_all_threads(struct chunk_validation *validation)
{
    measure_kept(validation);
    return true;
}

static bool drop_threads_of_one_sample(struct chunk_validation *validation)
{
    size_t thread_count = validation->decoder->profile->threads.count;
    uint64_t dropped = 0;
    for (size_t i = 0; i < thread_count; i++) {
        struct chunk_thread *thread = &validation->threads[i];
        if (thread->active >= FRAMES_MIN) continue;
        dropped += thread->samples;
        thread->samples = 0;
    }
    rules_repair(validation->result, "samples dropped, of threads that have not two with frames", dropped);
    measure_kept(validation);
    return true;
}

static bool samples_are_left(struct chunk_validation *validation)
{
    if (validation->kept.count > 0) return true;
    return rules_reject_too_few(validation->result);
}

static bool samples_have_stacks(struct chunk_validation *validation)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = &validation->decoder->chunk;
    size_t sample = validation->kept.without_stack;
    if (sample == SIZE_MAX) return true;
    (void)snprintf(place, sizeof(place), "profile.samples[%zu].stack_id", sample);
    return rules_reject_index(validation->result, REJECT_MALFORMED_SAMPLES, chunk->stacks.count,
                              chunk->samples.items[sample].stack, place);
}

static bool reject_stack(struct chunk_validation *validation, size_t stack, size_t frame)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = &validation->decoder->chunk;
    (void)snprintf(place, sizeof(place), "profile.stacks[%zu][%zu]", stack, frame);
    return rules_reject_index(validation->result, REJECT_MALFORMED_STACKS, chunk->frames.count,
                              chunk->frame_indices.items[chunk->stacks.items[stack].first + frame], place);
}

/* Of all stacks, also of those that no sample has. */
static bool stacks_have_frames(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    for (size_t i = 0; i < chunk->stacks.count; i++) {
        const struct chunk_stack *stack = &chunk->stacks.items[i];
        for (size_t k = 0; k < stack->count; k++) {
            if (chunk->frame_indices.items[stack->first + k] >= chunk->frames.count)
                return reject_stack(validation, i, k);
        }
    }
    return true;
}

static bool sort_samples(struct chunk_validation *validation)
{
    rules_repair(validation->result, "samples sorted by time, that were earlier than the one before",
                 validation->kept.unsorted);
    return true;
}

static bool duration_is_allowed(struct chunk_validation *validation)
{
    char found[RULES_TEXT_SIZE];
    double seconds = validation->kept.last - validation->kept.first; /* there is one */
    if (!(seconds > SECONDS_MAX)) return true;
    (void)snprintf(found, sizeof(found), "%.6f s", seconds);
    return rules_reject(validation->result, REJECT_DURATION_IS_TOO_LONG, "at most 66 s from first to last", found, "%s",
                        "profile.samples");
}

static bool cut_addresses_of_cocoa(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    uint64_t count = 0;
    if (!slice_equals_text(platform_of(validation), "cocoa")) return true;
    for (size_t i = 0; i < chunk->frames.count; i++) count += chunk->frames.items[i].address > COCOA_ADDRESS_BITS;
    rules_repair(validation->result, "instruction addresses cut to 36 bits, as for cocoa", count);
    return true;
}

static bool drop_unused_threads(struct chunk_validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    uint64_t count = 0;
    for (size_t i = 0; i < chunk->described_threads.count; i++) {
        count += validation->threads[chunk->described_threads.items[i].index].samples == 0;
    }
    rules_repair(validation->result, "entries of thread_metadata dropped, without samples", count);
    return true;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static const struct rule {
    bool (*holds)(struct chunk_validation *validation); /* or repairs */
    unsigned rules;
} table[] = {
    {size_is_allowed, BREAKS_BOTH},
    {item_is_json_alone, BREAKS_RELAY},
    {payload_is_json, BREAKS_BOTH},
    {header_is_typed, BREAKS_BOTH},
    {item_names_platform, BREAKS_SPEC},
    {item_is_of_one_class, BREAKS_RELAY},
    {version_is_2, BREAKS_BOTH},
    {values_are_typed, BREAKS_BOTH},
    {native_code_has_images, BREAKS_SPEC},
    {native_frames_have_addresses, BREAKS_SPEC},
    {lists_are_filled, BREAKS_SPEC},
    {keep_all_threads, BREAKS_SPEC},
    {drop_threads_of_one_sample, BREAKS_RELAY},
    {samples_are_left, BREAKS_RELAY},
    {samples_have_stacks, BREAKS_BOTH},
    {stacks_have_frames, BREAKS_BOTH},
    {sort_samples, BREAKS_RELAY},
    {duration_is_allowed, BREAKS_RELAY},
    {cut_addresses_of_cocoa, BREAKS_RELAY},
    {drop_unused_threads, BREAKS_RELAY},
};

static void apply_rules(struct chunk_validation *validation)
{
    bool holds = true;
    for (size_t i = 0; holds && i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].rules & 1u << validation->rules) holds = table[i].holds(validation);
    }
}

static enum status validate_by(const struct chunk_decoder *decoder, const struct chunk_decoder *header,
                               struct slice payload, const struct rules_context *context, enum rules rules,
                               struct rules_result *ret_result, struct error *error)
{
    static const struct rules_context alone;
    struct chunk_validation validation = {.payload = payload,
                                          .context = context ? context : &alone,
                                          .rules = rules,
                                          .decoder = decoder,
                                          .header = header,
                                          .result = ret_result};
    bool has_memory = decoder->reader.status != STATUS_NO_MEMORY && header->reader.status != STATUS_NO_MEMORY &&
                      !header->profile->failed;
    enum status status = profile_failed(decoder->profile, error);
    rules_result_init(ret_result);
    if (status != STATUS_OK) return status;
    validation.threads = chunk_count_samples(&decoder->chunk, decoder->profile->threads.count);
    has_memory = has_memory && validation.threads;
    if (has_memory) apply_rules(&validation);
    free(validation.threads);
    if (has_memory) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to validate the payload");
}

/* A payload that could not be read to its end still has a header, which counts first. */
static enum status validate(const struct chunk_decoder *decoder, struct slice payload,
                            const struct rules_context *context, enum rules rules, struct rules_result *ret_result,
                            struct error *error)
{
    struct profile profile;
    struct chunk_decoder header;
    if (!decoder->reader.failed) return validate_by(decoder, decoder, payload, context, rules, ret_result, error);
    profile_init(&profile);
    chunk_decoder_init(&header, payload, &profile);
    header.only_validates = true;
    chunk_read_header(&header);
    enum status status = validate_by(decoder, &header, payload, context, rules, ret_result, error);
    chunk_decoder_fini(&header);
    profile_fini(&profile);
    return status;
}

enum status sentry_v2_decode_and_validate(struct slice bytes, const struct rules_context *context, enum rules rules,
                                          struct profile *profile, struct rules_result *ret_result, struct error *error)
{
    struct chunk_decoder decoder;
    chunk_decoder_init(&decoder, bytes, profile);
    chunk_read_payload(&decoder);
    enum status status = validate(&decoder, bytes, context, rules, ret_result, error);
    if (status == STATUS_OK) status = chunk_build(&decoder, bytes, error);
    chunk_decoder_fini(&decoder);
    return status;
}

enum status rules_validate_chunk_by(struct slice payload, const struct rules_context *context, unsigned sets,
                                    struct rules_result *ret_result, struct error *error)
{
    static const enum rules order[] = {RULES_RELAY, RULES_SPEC};
    struct profile profile;
    struct chunk_decoder decoder;
    enum status status = STATUS_OK;
    bool is_read = false;
    profile_init(&profile);
    chunk_decoder_init(&decoder, payload, &profile);
    decoder.only_validates = true;
    rules_result_init(ret_result);
    for (size_t i = 0; i < RULES_COUNT && status == STATUS_OK && ret_result->accepted; i++) {
        if (!(sets & 1u << order[i])) continue;
        /* Nothing else is asked of a payload that is too large. */
        if (!is_read && rules_allow_size(payload, order[i], ret_result)) {
            chunk_read_payload(&decoder);
            is_read = true;
        }
        status = validate(&decoder, payload, context, order[i], ret_result, error);
    }
    chunk_decoder_fini(&decoder);
    profile_fini(&profile);
    return status;
}

enum status rules_validate_chunk(struct slice payload, const struct rules_context *context, enum rules rules,
                                 struct rules_result *ret_result, struct error *error)
{
    return rules_validate_chunk_by(payload, context, 1u << rules, ret_result, error);
}
