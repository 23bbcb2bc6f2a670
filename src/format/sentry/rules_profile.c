/* The rules for a profile of sample format V1 (V1-1…4; facts §1.4), in the order of the real service. The decoder notes
 * which types of values break a rule; here a note gets its place, and the rules for samples, stacks and metadata
 * follow. SPDX-License-Identifier: MIT */
#include "base/json_place.h"
#include "format/sentry/rules_private.h"
#include "format/sentry/sentry_v1_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DURATION_NS_MAX ((uint64_t)30 * 1000000000)

struct v1_validation {
    struct slice payload;
    const struct rules_context *context; /* may be NULL */
    enum rules rules;
    const struct v1_decoder *decoder;
    const struct v1_decoder *header; /* the same, or, if that failed, one that read only the header */
    struct rules_result *result;
    uint32_t *kept; /* the samples that are not dropped */
    size_t kept_count;
};

static const struct chunk *chunk_of(const struct v1_validation *validation)
{
    return &validation->decoder->chunk.chunk;
}

static struct slice platform_of(const struct v1_validation *validation)
{
    const struct profile *profile = validation->decoder->chunk.profile;
    return profile_slice(profile, profile->platform);
}

/* --- What was noted while reading --------------------------------------------------------------------------------- */

/* The first note counts: the service stops there. DECODER stops only at what it cannot understand. */
static bool check_types(struct v1_validation *validation, const struct v1_decoder *decoder, enum reading reading)
{
    const struct note *note = &decoder->chunk.notes[reading][validation->rules];
    if (note->expected) return rules_reject_note(validation->result, validation->payload, note, REJECT_INVALID_JSON);
    return !decoder->chunk.reader.failed ||
           rules_reject_first_failure(validation->result, validation->payload, &decoder->chunk);
}

static bool check_version(struct v1_validation *validation)
{
    char found[RULES_TEXT_SIZE] = "nothing";
    const struct v1_decoder *header = validation->header;
    if (header->is_version_1) return true;
    if (header->has_version) {
        size_t offset = (size_t)header->version_offset;
        json_describe(slice_of(validation->payload.data + offset, validation->payload.size - offset), found,
                      sizeof(found));
    }
    return rules_reject(validation->result, REJECT_PLATFORM_NOT_SUPPORTED, "\"1\"", found, "version");
}

/* --- The transaction, and what cocoa has -------------------------------------------------------------------------- */

static bool check_cocoa(struct v1_validation *validation)
{
    static const struct {
        unsigned fact;
        const char *expected, *place;
    } facts[] = {{V1_BUILD_NUMBER, "string", "os.build_number"},
                 {V1_IS_EMULATOR, "boolean", "device.is_emulator"},
                 {V1_LOCALE, "string", "device.locale"},
                 {V1_MANUFACTURER, "string", "device.manufacturer"},
                 {V1_MODEL, "string", "device.model"}};
    if (!slice_equals_text(platform_of(validation), "cocoa")) return true;
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (validation->decoder->described & facts[i].fact) continue;
        return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, facts[i].expected, "nothing", "%s",
                            facts[i].place);
    }
    return true;
}

static bool check_transaction(struct v1_validation *validation)
{
    const enum reject_reason reason = REJECT_INVALID_TRANSACTION_METADATA;
    const struct v1_transaction *transaction = &validation->decoder->transaction;
    struct rules_result *result = validation->result;
    char found[RULES_TEXT_SIZE];
    if (!transaction->is_there)
        return rules_reject(result, REJECT_NO_TRANSACTION_ASSOCIATED, "object", "nothing", "transaction");
    if (transaction->has_nil_id)
        return rules_reject(result, reason, "an id and a trace_id other than 0", "0", "transaction");
    if (!transaction->has_name) return rules_reject(result, reason, "a name", "\"\"", "transaction.name");
    if (validation->rules == RULES_SPEC && !transaction->has_thread)
        return rules_reject(result, reason, "string of an integer", "nothing", "transaction.active_thread_id");
    if (transaction->start_ns <= transaction->end_ns && transaction->cpu_start_ms <= transaction->cpu_end_ms)
        return true;
    (void)snprintf(found, sizeof(found), "%" PRIu64 " to %" PRIu64, transaction->start_ns, transaction->end_ns);
    return rules_reject(result, reason, "a start that is not after the end", found, "transaction.relative_start_ns");
}

/* --- Repairs of the service --------------------------------------------------------------------------------------- */

/* Of one thread, places in KEPT plus one; 0 = none. */
struct thread_range {
    size_t first_active, last_active;
    size_t count;
};

static struct thread_range *range_of(const struct v1_validation *validation, struct thread_range *ranges, size_t place)
{
    return &ranges[chunk_of(validation)->samples.items[validation->kept[place]].thread.index];
}

static bool is_active(const struct chunk *chunk, uint32_t sample)
{
    uint32_t stack = chunk->samples.items[sample].stack;
    return stack < chunk->stacks.count && chunk->stacks.items[stack].count > 0;
}

static void drop_outside(struct v1_validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    const struct v1_transaction *transaction = &validation->decoder->transaction;
    for (uint32_t i = 0; i < chunk->samples.count; i++) {
        uint64_t elapsed_ns = chunk->samples.items[i].time_ns;
        bool is_inside = elapsed_ns >= transaction->start_ns && elapsed_ns <= transaction->end_ns;
        if (transaction->end_ns == 0 || is_inside) validation->kept[validation->kept_count++] = i;
    }
    rules_repair(validation->result, "samples outside of the transaction dropped",
                 chunk->samples.count - validation->kept_count);
}

/* Drops of each thread the idle samples before its first and after its last active one. */
static void drop_idle_edges(struct v1_validation *validation, struct thread_range *ranges)
{
    size_t count = validation->kept_count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct thread_range *range = range_of(validation, ranges, i);
        if (!is_active(chunk_of(validation), validation->kept[i])) continue;
        if (!range->first_active) range->first_active = i + 1;
        range->last_active = i + 1;
    }
    for (size_t i = 0; i < count; i++) {
        struct thread_range *range = range_of(validation, ranges, i);
        if (!range->first_active || i + 1 < range->first_active || i + 1 > range->last_active) continue;
        range->count++;
        validation->kept[kept++] = validation->kept[i];
    }
    rules_repair(validation->result, "idle samples at the edges of a thread dropped", count - kept);
    validation->kept_count = kept;
}

static void drop_single_samples(struct v1_validation *validation, struct thread_range *ranges)
{
    size_t count = validation->kept_count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (range_of(validation, ranges, i)->count > 1) validation->kept[kept++] = validation->kept[i];
    }
    rules_repair(validation->result, "samples of threads with a single one dropped", count - kept);
    validation->kept_count = kept;
}

static void drop_metadata(const struct v1_validation *validation, const struct thread_range *ranges)
{
    const struct chunk *chunk = chunk_of(validation);
    uint64_t dropped = 0;
    for (size_t i = 0; i < chunk->described_threads.count; i++) {
        dropped += ranges[chunk->described_threads.items[i].index].count < 2;
    }
    rules_repair(validation->result, "thread_metadata of threads without samples dropped", dropped);
}

static void repair_samples(struct v1_validation *validation, struct thread_range *ranges)
{
    drop_outside(validation);
    drop_idle_edges(validation, ranges);
    drop_single_samples(validation, ranges);
    if (validation->kept_count > 0) drop_metadata(validation, ranges);
}

/* --- Samples and stacks ------------------------------------------------------------------------------------------- */

static bool reject_number(struct rules_result *result, enum reject_reason reason, const char *expected, uint64_t found,
                          const char *place)
{
    char text[RULES_TEXT_SIZE];
    (void)snprintf(text, sizeof(text), "%" PRIu64, found);
    return rules_reject(result, reason, expected, text, "%s", place);
}

/* Of the samples that are left. */
static bool check_stack_ids(struct v1_validation *validation)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = chunk_of(validation);
    for (size_t i = 0; i < validation->kept_count; i++) {
        uint32_t sample = validation->kept[i], stack = chunk->samples.items[sample].stack;
        if (stack < chunk->stacks.count) continue;
        (void)snprintf(place, sizeof(place), "profile.samples[%" PRIu32 "].stack_id", sample);
        return rules_reject_index(validation->result, REJECT_MALFORMED_SAMPLES, chunk->stacks.count, stack, place);
    }
    return true;
}

/* Of all stacks, also of those that no sample has. */
static bool check_frame_indices(struct v1_validation *validation)
{
    char place[RULES_PLACE_SIZE];
    const struct chunk *chunk = chunk_of(validation);
    for (size_t i = 0; i < chunk->stacks.count; i++) {
        const struct chunk_stack *stack = &chunk->stacks.items[i];
        for (size_t k = 0; k < stack->count; k++) {
            uint32_t frame = chunk->frame_indices.items[stack->first + k];
            if (frame < chunk->frames.count) continue;
            (void)snprintf(place, sizeof(place), "profile.stacks[%zu][%zu]", i, k);
            return rules_reject_index(validation->result, REJECT_MALFORMED_STACKS, chunk->frames.count, frame, place);
        }
    }
    return true;
}

/* The time from the start to the last sample, not from the first. */
static bool check_duration_of_relay(struct v1_validation *validation)
{
    char place[RULES_PLACE_SIZE];
    uint32_t last = validation->kept[validation->kept_count - 1];
    uint64_t elapsed_ns = chunk_of(validation)->samples.items[last].time_ns;
    if (elapsed_ns <= DURATION_NS_MAX) return true;
    (void)snprintf(place, sizeof(place), "profile.samples[%" PRIu32 "].elapsed_since_start_ns", last);
    return reject_number(validation->result, REJECT_DURATION_IS_TOO_LONG, "at most 30000000000", elapsed_ns, place);
}

static void validate_by_relay(struct v1_validation *validation, struct thread_range *ranges)
{
    if (!check_cocoa(validation) || !check_transaction(validation)) return;
    repair_samples(validation, ranges);
    if (validation->kept_count == 0)
        (void)reject_number(validation->result, REJECT_NOT_ENOUGH_SAMPLES,
                            "a thread with two samples, its edges not idle", 0, "profile.samples");
    else
        (void)(check_stack_ids(validation) && check_frame_indices(validation) && check_duration_of_relay(validation));
}

/* --- The documents' rules ----------------------------------------------------------------------------------------- */

/* Between the first and the last sample, whatever their order. */
static bool check_duration_of_spec(struct v1_validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (size_t i = 0; i < chunk->samples.count; i++) {
        uint64_t elapsed_ns = chunk->samples.items[i].time_ns;
        if (elapsed_ns < first_ns) first_ns = elapsed_ns;
        if (elapsed_ns > last_ns) last_ns = elapsed_ns;
    }
    if (last_ns - first_ns <= DURATION_NS_MAX) return true;
    return reject_number(validation->result, REJECT_DURATION_IS_TOO_LONG,
                         "at most 30000000000 ns between first and last sample", last_ns - first_ns, "profile.samples");
}

/* V1-5: a profile is sent with its own transaction. The service does not compare the ids. */
static bool is_of_transaction(struct v1_validation *validation)
{
    char wanted[64];
    const char *expected = validation->context ? validation->context->transaction_id : "";
    const char *found = validation->decoder->transaction.id;
    if (!*expected || !*found || strcmp(expected, found) == 0) return true;
    (void)snprintf(wanted, sizeof(wanted), "%s, the id in the envelope", expected);
    return rules_reject(validation->result, REJECT_INVALID_TRANSACTION_METADATA, wanted, found, "transaction.id");
}

static bool lists_are_filled(struct v1_validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    struct rules_result *result = validation->result;
    if (chunk->samples.count < 2)
        return reject_number(result, REJECT_NOT_ENOUGH_SAMPLES, "at least 2", chunk->samples.count, "profile.samples");
    if (chunk->frames.count == 0)
        return reject_number(result, REJECT_MALFORMED_STACKS, "at least 1", 0, "profile.frames");
    if (chunk->stacks.count > 0) return true;
    return reject_number(result, REJECT_MALFORMED_SAMPLES, "at least 1", 0, "profile.stacks");
}

/* FMT-6, FMT-10. */
static bool check_native_code(struct v1_validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    if (!rules_platform_is_native(platform_of(validation))) return true;
    if (chunk->image_count == 0)
        return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, "an image", "nothing",
                            "debug_meta.images");
    for (size_t i = 0; i < chunk->frames.count; i++) {
        if (chunk->frames.items[i].has_address || chunk->frames.items[i].code == CHUNK_CODE_OTHER) continue;
        return rules_reject(validation->result, REJECT_INVALID_JSON, "string with an address", "nothing",
                            "profile.frames[%zu].instruction_addr", i);
    }
    return true;
}

static void validate_by_spec(struct v1_validation *validation)
{
    bool holds = check_transaction(validation) && is_of_transaction(validation) && lists_are_filled(validation) &&
                 check_native_code(validation);
    if (!holds) return;
    for (uint32_t i = 0; i < chunk_of(validation)->samples.count; i++) validation->kept[validation->kept_count++] = i;
    (void)(check_stack_ids(validation) && check_frame_indices(validation) && check_duration_of_spec(validation));
}

/* --- The payload -------------------------------------------------------------------------------------------------- */

static enum status without_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to validate the payload");
}

static enum status apply_rules(struct v1_validation *validation, struct error *error)
{
    const struct chunk_decoder *decoder = &validation->decoder->chunk, *header = &validation->header->chunk;
    if (decoder->reader.status == STATUS_NO_MEMORY || header->reader.status == STATUS_NO_MEMORY ||
        header->profile->failed)
        return without_memory(error);
    if (!check_types(validation, validation->header, READING_HEADER) || !check_version(validation) ||
        !check_types(validation, validation->decoder, READING_BODY))
        return STATUS_OK;
    struct thread_range *ranges = calloc(decoder->profile->threads.count + 1, sizeof(*ranges));
    validation->kept = calloc(decoder->chunk.samples.count + 1, sizeof(*validation->kept));
    bool has_memory = ranges && validation->kept;
    if (has_memory && validation->rules == RULES_RELAY)
        validate_by_relay(validation, ranges);
    else if (has_memory)
        validate_by_spec(validation);
    free(validation->kept);
    free(ranges);
    return has_memory ? STATUS_OK : without_memory(error);
}

/* A payload that could not be read to its end still has a header, which counts first. */
static enum status validate(struct v1_validation *validation, struct error *error)
{
    struct profile profile;
    struct v1_decoder header;
    enum status status = profile_failed(validation->decoder->chunk.profile, error);
    if (status != STATUS_OK) return status;
    validation->header = validation->decoder;
    if (!validation->decoder->chunk.reader.failed) return apply_rules(validation, error);
    profile_init(&profile);
    v1_decoder_init(&header, validation->payload, &profile);
    header.chunk.only_validates = true;
    v1_read_header(&header);
    validation->header = &header;
    status = apply_rules(validation, error);
    validation->header = NULL;
    v1_decoder_fini(&header);
    profile_fini(&profile);
    return status;
}

/* What is asked before the payload is read. */
static bool may_read(const struct v1_validation *validation)
{
    const struct rules_context *context = validation->context;
    if (!rules_allow_size(validation->payload, validation->rules, validation->result)) return false;
    if (!context || !context->is_in_envelope || context->has_transaction) return true;
    return rules_reject(validation->result, REJECT_MISSING_TRANSACTION, "a transaction in the envelope", "nothing",
                        "%s", "");
}

enum status rules_validate_profile_by(struct slice payload, const struct rules_context *context, unsigned sets,
                                      struct rules_result *ret_result, struct error *error)
{
    static const enum rules order[] = {RULES_RELAY, RULES_SPEC};
    struct profile profile;
    struct v1_decoder decoder;
    enum status status = STATUS_OK;
    bool is_read = false;
    profile_init(&profile);
    v1_decoder_init(&decoder, payload, &profile);
    decoder.chunk.only_validates = true;
    rules_result_init(ret_result);
    for (size_t i = 0; i < RULES_COUNT && status == STATUS_OK && ret_result->accepted; i++) {
        struct v1_validation validation = {
            .payload = payload, .context = context, .rules = order[i], .decoder = &decoder, .result = ret_result};
        if (!(sets & 1u << order[i]) || !may_read(&validation)) continue;
        if (!is_read) v1_read_payload(&decoder);
        is_read = true;
        status = validate(&validation, error);
    }
    v1_decoder_fini(&decoder);
    profile_fini(&profile);
    return status;
}

enum status rules_validate_profile(struct slice payload, const struct rules_context *context, enum rules rules,
                                   struct rules_result *ret_result, struct error *error)
{
    return rules_validate_profile_by(payload, context, 1u << rules, ret_result, error);
}
