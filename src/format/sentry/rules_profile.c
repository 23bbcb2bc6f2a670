/* The rules for a profile of sample format V1 (V1-1…4; facts §1.4), in the order of the real service. The decoder notes
 * which types of values break a rule; here a note gets its place, and the rules for samples, stacks and metadata
 * follow. SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "format/common/json_members.h"
#include "format/sentry/rules_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define DURATION_NS_MAX (30 * SECOND_NS)

static const struct chunk *chunk_of(const struct validation *validation)
{
    return &validation->decoder->chunk;
}

/* --- The transaction, and what cocoa has -------------------------------------------------------------------------- */

static bool check_cocoa(struct validation *validation)
{
    static const struct {
        unsigned described;
        const char *expected, *place;
    } required[] = {{V1_BUILD_NUMBER, "string", "os.build_number"},
                    {V1_IS_EMULATOR, "boolean", "device.is_emulator"},
                    {V1_LOCALE, "string", "device.locale"},
                    {V1_MANUFACTURER, "string", "device.manufacturer"},
                    {V1_MODEL, "string", "device.model"}};
    if (!slice_equals_text(rules_platform(validation), "cocoa")) return true;
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        if (validation->decoder->v1.described & required[i].described) continue;
        return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, required[i].expected, "nothing", "%s",
                            required[i].place);
    }
    return true;
}

bool rules_v1_platform_is_listed(struct slice platform)
{
    static const char *const platforms[] = {"cocoa", "node", "python", "rust", "native", "other"};
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        if (slice_equals_text(platform, platforms[i])) return true;
    }
    return false;
}

/* V1-1, V1-6. */
static bool check_platform(struct validation *validation)
{
    struct slice platform = rules_platform(validation);
    char found[RULES_TEXT_SIZE];
    if (!rules_v1_platform_is_listed(platform)) {
        (void)snprintf(found, sizeof(found), "\"%.*s\"", SLICE_ARGUMENTS(platform));
        return rules_reject(validation->result, REJECT_PLATFORM_NOT_SUPPORTED,
                            "cocoa, node, python, rust, native or other", found, "platform");
    }
    if (!(validation->decoder->v1.described & V1_BUILD_NUMBER) || slice_equals_text(platform, "cocoa")) return true;
    return rules_reject(validation->result, REJECT_INVALID_PROFILE_METADATA, "nothing, as the platform is not cocoa",
                        "string", "os.build_number");
}

static bool check_transaction(struct validation *validation)
{
    const enum reject_reason reason = REJECT_INVALID_TRANSACTION_METADATA;
    const struct v1_transaction *transaction = &validation->decoder->v1.transaction;
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

static struct thread_range *range_of(const struct validation *validation, size_t place)
{
    return &validation->v1.ranges[chunk_of(validation)->samples.items[validation->v1.kept[place]].thread.index];
}

static bool is_active(const struct chunk *chunk, uint32_t sample)
{
    uint32_t stack = chunk->samples.items[sample].stack;
    return stack < chunk->stacks.count && chunk->stacks.items[stack].count > 0;
}

static void drop_outside(struct validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    const struct v1_transaction *transaction = &validation->decoder->v1.transaction;
    for (uint32_t i = 0; i < chunk->samples.count; i++) {
        uint64_t elapsed_ns = chunk->samples.items[i].time_ns;
        bool is_inside = elapsed_ns >= transaction->start_ns && elapsed_ns <= transaction->end_ns;
        if (transaction->end_ns == 0 || is_inside) validation->v1.kept[validation->v1.kept_count++] = i;
    }
    rules_repair(validation->result, "samples outside of the transaction dropped",
                 chunk->samples.count - validation->v1.kept_count);
}

/* Drops of each thread the idle samples before its first and after its last active one. */
static void drop_idle_edges(struct validation *validation)
{
    size_t count = validation->v1.kept_count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct thread_range *range = range_of(validation, i);
        if (!is_active(chunk_of(validation), validation->v1.kept[i])) continue;
        if (!range->first_active) range->first_active = i + 1;
        range->last_active = i + 1;
    }
    for (size_t i = 0; i < count; i++) {
        struct thread_range *range = range_of(validation, i);
        if (!range->first_active || i + 1 < range->first_active || i + 1 > range->last_active) continue;
        range->count++;
        validation->v1.kept[kept++] = validation->v1.kept[i];
    }
    rules_repair(validation->result, "idle samples at the edges of a thread dropped", count - kept);
    validation->v1.kept_count = kept;
}

static void drop_single_samples(struct validation *validation)
{
    size_t count = validation->v1.kept_count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (range_of(validation, i)->count > 1) validation->v1.kept[kept++] = validation->v1.kept[i];
    }
    rules_repair(validation->result, "samples of threads with a single one dropped", count - kept);
    validation->v1.kept_count = kept;
}

static void drop_metadata(const struct validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    uint64_t dropped = 0;
    for (size_t i = 0; i < chunk->described_threads.count; i++) {
        dropped += validation->v1.ranges[chunk->described_threads.items[i].index].count < 2;
    }
    rules_repair(validation->result, "thread_metadata of threads without samples dropped", dropped);
}

static bool repair_samples(struct validation *validation)
{
    drop_outside(validation);
    drop_idle_edges(validation);
    drop_single_samples(validation);
    if (validation->v1.kept_count > 0) drop_metadata(validation);
    return true;
}

static bool keep_all_samples(struct validation *validation)
{
    for (uint32_t i = 0; i < chunk_of(validation)->samples.count; i++)
        validation->v1.kept[validation->v1.kept_count++] = i;
    return true;
}

/* --- Samples and stacks ------------------------------------------------------------------------------------------- */

static bool reject_number(struct rules_result *result, enum reject_reason reason, const char *expected, uint64_t found,
                          const char *place)
{
    char text[RULES_TEXT_SIZE];
    (void)snprintf(text, sizeof(text), "%" PRIu64, found);
    return rules_reject(result, reason, expected, text, "%s", place);
}

static bool samples_are_left(struct validation *validation)
{
    if (validation->v1.kept_count > 0) return true;
    return reject_number(validation->result, REJECT_NOT_ENOUGH_SAMPLES, "a thread with two samples, its edges not idle",
                         0, "profile.samples");
}

/* Checks the samples that are left. */
static bool samples_have_stacks(struct validation *validation)
{
    const struct chunk *chunk = chunk_of(validation);
    for (size_t i = 0; i < validation->v1.kept_count; i++) {
        uint32_t sample = validation->v1.kept[i];
        if (chunk->samples.items[sample].stack >= chunk->stacks.count) return rules_reject_stack(validation, sample);
    }
    return true;
}

/* Checks the time from the start to the last sample, not from the first. */
static bool check_duration_of_relay(struct validation *validation)
{
    char place[RULES_PLACE_SIZE];
    uint32_t last = validation->v1.kept[validation->v1.kept_count - 1];
    uint64_t elapsed_ns = chunk_of(validation)->samples.items[last].time_ns;
    if (elapsed_ns <= DURATION_NS_MAX) return true;
    (void)snprintf(place, sizeof(place), "profile.samples[%" PRIu32 "].elapsed_since_start_ns", last);
    return reject_number(validation->result, REJECT_DURATION_IS_TOO_LONG, "at most 30000000000", elapsed_ns, place);
}

/* --- The documents' rules ----------------------------------------------------------------------------------------- */

/* Checks the time between the earliest and the latest sample. */
static bool check_duration_of_spec(struct validation *validation)
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
static bool is_of_transaction(struct validation *validation)
{
    char wanted[64];
    const char *expected = validation->context->transaction_id;
    const char *found = validation->decoder->v1.transaction.id;
    if (!*expected || !*found || strcmp(expected, found) == 0) return true;
    (void)snprintf(wanted, sizeof(wanted), "%s, the id in the envelope", expected);
    return rules_reject(validation->result, REJECT_INVALID_TRANSACTION_METADATA, wanted, found, "transaction.id");
}

static bool lists_are_filled(struct validation *validation)
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

/* --- Profiles with Android's own trace, which have no version -------------------------------------------------------
 */

enum { NAME_OF_TRANSACTION, ANDROID_MEMBERS = 13 };

static bool android_is_described(struct validation *validation)
{
    struct json_member members[ANDROID_MEMBERS] = {{.name = "transaction_name"},
                                                   {.name = "android_api_level"},
                                                   {.name = "device_cpu_frequencies"},
                                                   {.name = "device_is_emulator"},
                                                   {.name = "device_locale"},
                                                   {.name = "device_manufacturer"},
                                                   {.name = "device_model"},
                                                   {.name = "device_os_name"},
                                                   {.name = "device_os_version"},
                                                   {.name = "device_physical_memory_bytes"},
                                                   {.name = "profile_id"},
                                                   {.name = "version_code"},
                                                   {.name = "version_name"}};
    struct json_reader reader;
    json_reader_init(&reader, validation->payload);
    json_members_note(&reader, members, ANDROID_MEMBERS);
    json_reader_fini(&reader);
    for (size_t i = NAME_OF_TRANSACTION + 1; i < ANDROID_MEMBERS; i++) {
        if (members[i].value.size > 0) continue;
        return rules_reject(validation->result, REJECT_INVALID_JSON, "a value", "nothing", "%s", members[i].name);
    }
    bool is_named = members[NAME_OF_TRANSACTION].value.size > strlen("\"\"");
    return (is_named && !validation->decoder->v1.transaction.is_there) || check_transaction(validation);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

bool rules_apply_v1(struct validation *validation)
{
    static const struct rule rules[] = {
        {rules_size_is_allowed, BREAKS_BOTH},
        {rules_transaction_is_there, BREAKS_BOTH},
        {rules_header_is_typed, BREAKS_BOTH},
        {rules_version_is_own, BREAKS_BOTH},
        {rules_values_are_typed, BREAKS_BOTH},
        {check_platform, BREAKS_SPEC},
        {check_cocoa, BREAKS_RELAY},
        {check_transaction, BREAKS_BOTH},
        {is_of_transaction, BREAKS_SPEC},
        {lists_are_filled, BREAKS_SPEC},
        {rules_native_code_has_images, BREAKS_SPEC},
        {rules_native_frames_have_addresses, BREAKS_SPEC},
        {keep_all_samples, BREAKS_SPEC},
        {repair_samples, BREAKS_RELAY},
        {samples_are_left, BREAKS_RELAY},
        {samples_have_stacks, BREAKS_BOTH},
        {rules_stacks_have_frames, BREAKS_BOTH},
        {rules_threads_are_described, BREAKS_SPEC},
        {check_duration_of_spec, BREAKS_SPEC},
        {check_duration_of_relay, BREAKS_RELAY},
    };
    static const struct rule rules_of_trace[] = {
        {rules_size_is_allowed, BREAKS_BOTH}, {rules_transaction_is_there, BREAKS_BOTH},
        {rules_header_is_typed, BREAKS_BOTH}, {rules_version_is_own, BREAKS_SPEC},
        {android_is_described, BREAKS_RELAY}, {rules_trace_is_valid, BREAKS_RELAY},
    };
    const struct chunk_decoder *decoder = validation->decoder;
    if (decoder->has_trace) {
        rules_apply(validation, rules_of_trace, sizeof(rules_of_trace) / sizeof(rules_of_trace[0]));
        return true;
    }
    validation->v1.ranges = calloc(decoder->profile->threads.count + 1, sizeof(*validation->v1.ranges));
    validation->v1.kept = calloc(decoder->chunk.samples.count + 1, sizeof(*validation->v1.kept));
    validation->v1.kept_count = 0;
    bool has_memory = validation->v1.ranges && validation->v1.kept;
    if (has_memory) rules_apply(validation, rules, sizeof(rules) / sizeof(rules[0]));
    free(validation->v1.kept);
    free(validation->v1.ranges);
    return has_memory;
}
