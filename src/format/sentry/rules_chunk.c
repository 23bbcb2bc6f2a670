/* The rules for a chunk of sample format V2 (V2-1…7, FMT-1…7; facts §1.2, §1.3, §1.7): one table, in the order of the
 * real service. What the types of the values break was noted while they were read; here it gets its place and its turn.
 * SPDX-License-Identifier: MIT */
#include "base/protobuf.h"
#include "format/sentry/rules_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SECONDS_MAX 66.0 /* a minute, and a tenth more */
#define COCOA_ADDRESS_BITS ((uint64_t)0xFFFFFFFFF)

enum { FRAMES_MIN = 2 /* samples with frames that a thread must have to be kept */ };

/* Each rule returns whether it holds. */

static bool item_is_json_alone(struct validation *validation)
{
    const struct rules_context *context = validation->context;
    if (context->is_perfetto) {
        if (context->has_meta_length && validation->payload.size) return true;
        return rules_reject(validation->result, REJECT_INVALID_SAMPLED_PROFILE,
                            "a number of bytes from 1, less than the payload's", "another", "%s", "item.meta_length");
    }
    if (!context->has_meta_length) return true;
    return rules_reject(validation->result, REJECT_INVALID_SAMPLED_PROFILE, "no meta_length with JSON", "one", "%s",
                        "item.meta_length");
}

static bool reject_platform(struct validation *validation, const char *expected)
{
    char found[RULES_TEXT_SIZE] = "nothing";
    if (validation->context->platform.data) {
        (void)snprintf(found, sizeof(found), "\"%.*s\"", SLICE_ARGUMENTS(validation->context->platform));
    }
    return rules_reject(validation->result, REJECT_INVALID_PROFILE_TYPE, expected, found, "%s", "item.platform");
}

/* V2-7. */
static bool item_names_platform(struct validation *validation)
{
    char expected[RULES_TEXT_SIZE];
    if (!validation->context->is_in_envelope || slice_equal(validation->context->platform, rules_platform(validation)))
        return true;
    (void)snprintf(expected, sizeof(expected), "the payload's, \"%.*s\"", SLICE_ARGUMENTS(rules_platform(validation)));
    return reject_platform(validation, expected);
}

static bool is_of_interface(struct slice platform)
{
    return slice_equals_text(platform, "cocoa") || slice_equals_text(platform, "android") ||
           slice_equals_text(platform, "javascript");
}

static bool item_is_of_one_class(struct validation *validation)
{
    struct slice said = validation->context->platform;
    bool is_ui = is_of_interface(rules_platform(validation));
    if (!said.data || is_of_interface(said) == is_ui) return true;
    return reject_platform(validation, is_ui ? "one of a user interface, like the payload's"
                                             : "one of a backend, like the payload's");
}

static bool lists_are_filled(struct validation *validation)
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

/* Reads all samples once: a large chunk has a hundred thousand of them. */
static void measure_kept(struct validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    struct kept_samples kept = {.without_stack = SIZE_MAX, .first = HUGE_VAL, .last = -HUGE_VAL};
    double before = -HUGE_VAL;
    for (size_t i = 0; i < chunk->samples.count; i++) {
        const struct chunk_sample *sample = &chunk->samples.items[i];
        if (!validation->v2.threads[sample->thread.index].samples) continue;
        kept.count++;
        if (sample->stack >= chunk->stacks.count && kept.without_stack == SIZE_MAX) kept.without_stack = i;
        kept.unsorted += sample->seconds < before;
        before = sample->seconds;
        kept.first = before < kept.first ? before : kept.first;
        kept.last = before > kept.last ? before : kept.last;
    }
    validation->v2.kept = kept;
}

static bool keep_all_threads(struct validation *validation)
{
    measure_kept(validation);
    return true;
}

static bool drop_threads_of_one_sample(struct validation *validation)
{
    size_t thread_count = validation->decoder->profile->threads.count;
    uint64_t dropped = 0;
    for (size_t i = 0; i < thread_count; i++) {
        struct chunk_thread *thread = &validation->v2.threads[i];
        if (thread->active >= FRAMES_MIN) continue;
        dropped += thread->samples;
        thread->samples = 0;
    }
    rules_repair(validation->result, "samples dropped, of threads that have not two with frames", dropped);
    measure_kept(validation);
    return true;
}

static bool samples_are_left(struct validation *validation)
{
    if (validation->v2.kept.count > 0) return true;
    return rules_reject_too_few(validation->result);
}

static bool samples_have_stacks(struct validation *validation)
{
    size_t sample = validation->v2.kept.without_stack;
    return sample == SIZE_MAX || rules_reject_stack(validation, sample);
}

static bool sort_samples(struct validation *validation)
{
    rules_repair(validation->result, "samples sorted by time, that were earlier than the one before",
                 validation->v2.kept.unsorted);
    return true;
}

static bool duration_is_allowed(struct validation *validation)
{
    char found[RULES_TEXT_SIZE];
    double seconds = validation->v2.kept.last - validation->v2.kept.first; /* there is one */
    if (!(seconds > SECONDS_MAX)) return true;
    (void)snprintf(found, sizeof(found), "%.6f s", seconds);
    return rules_reject(validation->result, REJECT_DURATION_IS_TOO_LONG, "at most 66 s from first to last", found, "%s",
                        "profile.samples");
}

static bool cut_addresses_of_cocoa(struct validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    uint64_t count = 0;
    if (!slice_equals_text(rules_platform(validation), "cocoa")) return true;
    for (size_t i = 0; i < chunk->frames.count; i++) count += chunk->frames.items[i].address > COCOA_ADDRESS_BITS;
    rules_repair(validation->result, "instruction addresses cut to 36 bits, as for cocoa", count);
    return true;
}

static bool drop_unused_threads(struct validation *validation)
{
    const struct chunk *chunk = &validation->decoder->chunk;
    uint64_t count = 0;
    for (size_t i = 0; i < chunk->described_threads.count; i++) {
        count += validation->v2.threads[chunk->described_threads.items[i].index].samples == 0;
    }
    rules_repair(validation->result, "entries of thread_metadata dropped, without samples", count);
    return true;
}

static bool has_samples(struct slice packet)
{
    enum { STREAMING_PROFILE_PACKET = 54, PERF_SAMPLE = 66 };
    struct cursor cursor = cursor_of(packet);
    struct protobuf_field field;
    bool found = false;
    while (protobuf_next(&cursor, &field))
        found |= field.number == STREAMING_PROFILE_PACKET || field.number == PERF_SAMPLE;
    return found;
}

/* A Perfetto trace is not read: only that it is a list of packets, and that one has samples. */
static bool perfetto_is_valid(struct validation *validation)
{
    enum { TRACE_PACKET = 1 };
    struct cursor cursor = cursor_of(validation->trace);
    struct protobuf_field field;
    bool found = false;
    while (protobuf_next(&cursor, &field))
        found |= field.number == TRACE_PACKET && field.wire_type == PROTOBUF_BYTES && has_samples(field.bytes);
    if (cursor.failed)
        return rules_reject(validation->result, REJECT_INVALID_PROTOBUF, "a Perfetto trace", "broken protobuf", "%s",
                            "trace");
    if (found) return true;
    return rules_reject(validation->result, REJECT_NO_PROFILE_SAMPLES_IN_TRACE, "a packet with samples", "none", "%s",
                        "trace");
}

bool rules_trace_is_valid(struct validation *validation)
{
    const struct chunk_decoder *decoder = validation->decoder;
    if (validation->context->is_perfetto) return perfetto_is_valid(validation);
    if (decoder->trace_is_empty)
        return rules_reject(validation->result, REJECT_NOT_ENOUGH_SAMPLES, "an Android trace", "none", "%s",
                            "sampled_profile");
    if (decoder->trace_is_base64) return true;
    return rules_reject(validation->result, REJECT_INVALID_BASE64_VALUE, "base64 without padding", "something else",
                        "%s", "sampled_profile");
}

static bool item_names_perfetto_platform(struct validation *validation)
{
    return !validation->context->is_perfetto || item_names_platform(validation);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

bool rules_apply_v2(struct validation *validation)
{
    static const struct rule rules[] = {
        {rules_size_is_allowed, BREAKS_BOTH},
        {item_is_json_alone, BREAKS_RELAY},
        {rules_payload_is_json, BREAKS_BOTH},
        {rules_header_is_typed, BREAKS_BOTH},
        {item_names_platform, BREAKS_SPEC},
        {item_is_of_one_class, BREAKS_RELAY},
        {rules_version_is_own, BREAKS_BOTH},
        {rules_values_are_typed, BREAKS_BOTH},
        {rules_native_code_has_images, BREAKS_SPEC},
        {rules_native_frames_have_addresses, BREAKS_SPEC},
        {lists_are_filled, BREAKS_SPEC},
        {keep_all_threads, BREAKS_SPEC},
        {drop_threads_of_one_sample, BREAKS_RELAY},
        {samples_are_left, BREAKS_RELAY},
        {samples_have_stacks, BREAKS_BOTH},
        {rules_stacks_have_frames, BREAKS_BOTH},
        {rules_threads_are_described, BREAKS_SPEC},
        {sort_samples, BREAKS_RELAY},
        {duration_is_allowed, BREAKS_RELAY},
        {cut_addresses_of_cocoa, BREAKS_RELAY},
        {drop_unused_threads, BREAKS_RELAY},
    };
    /* Chunks with a trace of Android or Perfetto, which have no profile. */
    static const struct rule rules_of_trace[] = {
        {rules_size_is_allowed, BREAKS_BOTH},  {item_is_json_alone, BREAKS_RELAY},
        {rules_payload_is_json, BREAKS_BOTH},  {rules_header_is_typed, BREAKS_BOTH},
        {item_is_of_one_class, BREAKS_RELAY},  {rules_version_is_own, BREAKS_BOTH},
        {rules_values_are_typed, BREAKS_BOTH}, {item_names_perfetto_platform, BREAKS_RELAY},
        {rules_trace_is_valid, BREAKS_RELAY},
    };
    const struct chunk_decoder *decoder = validation->decoder;
    if (decoder->has_trace) {
        rules_apply(validation, rules_of_trace, sizeof(rules_of_trace) / sizeof(rules_of_trace[0]));
        return true;
    }
    validation->v2.threads = chunk_count_samples(&decoder->chunk, decoder->profile->threads.count);
    if (!validation->v2.threads) return false;
    rules_apply(validation, rules, sizeof(rules) / sizeof(rules[0]));
    free(validation->v2.threads);
    return true;
}
