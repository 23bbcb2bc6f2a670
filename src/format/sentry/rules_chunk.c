/* The rules for a chunk of sample format V2 (V2-1…7, FMT-1…7; facts §1.2, §1.3, §1.7): one table, in the order of the
 * real service. What the types of the values break was noted while they were read; here it gets its place and its turn.
 * SPDX-License-Identifier: MIT */
#include "base/json_place.h"
#include "format/sentry/sentry_decoder_private.h"

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
    size_t without_stack; /* the first one whose stack is not there; SIZE_MAX: none */
    uint64_t unsorted;    /* are earlier than the one before */
    double first, last;   /* seconds */
};

struct judge {
    struct slice payload;
    const struct rules_context *context;
    enum rules rules;
    const struct chunk_decoder *decoder;
    const struct chunk_decoder *header; /* the same, or, where that one failed, one that read the header alone */
    struct verdict *verdict;
    struct chunk_thread *threads; /* by the profile's thread id; SAMPLES is set to 0 where they are dropped */
    struct kept kept;
};

static const struct profile *profile_of(const struct judge *judge)
{
    return judge->header->profile;
}

static struct slice platform_of(const struct judge *judge)
{
    return profile_slice(profile_of(judge), profile_of(judge)->platform);
}

static bool is_one_of(struct slice text, const char *const *words)
{
    for (; *words; words++) {
        if (slice_equals_text(text, *words)) return true;
    }
    return false;
}

/* --- What was noted while reading --------------------------------------------------------------------------------- */

static bool refuse_note(struct judge *judge, const struct note *note)
{
    char place[VERDICT_PLACE_SIZE], found[VERDICT_TEXT_SIZE] = "nothing";
    const char *reason = judge->rules == RULES_SPEC && note->is_metadata ? "profiling_invalid_profile_metadata"
                                                                         : "profiling_invalid_json";
    struct slice value;
    json_place(judge->payload, note->offset, place, sizeof(place), &value);
    if (note->missing) {
        return verdict_refuse(judge->verdict, reason, note->expected->text, found, "%s%s%s", place, place[0] ? "." : "",
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
    return verdict_refuse(judge->verdict, reason, note->expected->text, found, "%s", place);
}

/* "expected a string": what the JSON reader says of a value of another kind. */
static const char *expectation_of(const char *message)
{
    static const char *const fronts[] = {"expected an ", "expected a ", "expected "};
    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
        size_t size = strlen(fronts[i]);
        if (strncmp(message, fronts[i], size) == 0) return message + size;
    }
    return message;
}

/* Why DECODER, which read valid JSON, could not go on. */
static bool refuse_failure(struct judge *judge, const struct chunk_decoder *decoder)
{
    const struct json_reader *reader = &decoder->reader;
    struct expectation expected = {.text = expectation_of(reader->message)};
    if (decoder->refusal.expected) return refuse_note(judge, &decoder->refusal);
    for (enum json_kind kind = JSON_OBJECT; kind <= JSON_BOOL; kind++) {
        if (strcmp(expected.text, json_kind_name(kind)) == 0) expected.kind = kind;
    }
    return refuse_note(judge, &(struct note){.expected = &expected, .offset = reader->failed_offset});
}

/* --- The rules, each of which says whether it holds --------------------------------------------------------------- */

static bool size_is_allowed(struct judge *judge)
{
    return rules_allow_size(judge->payload, judge->rules, judge->verdict);
}

static bool item_is_json_alone(struct judge *judge)
{
    if (!judge->context->has_meta_length) return true;
    return verdict_refuse(judge->verdict, "profiling_invalid_sampled_profile", "no meta_length with JSON", "one", "%s",
                          "item.meta_length");
}

static bool payload_is_json(struct judge *judge)
{
    char place[VERDICT_PLACE_SIZE], found[VERDICT_TEXT_SIZE];
    struct json_reader reader;
    struct error failure;
    if (!judge->decoder->reader.failed) return true;
    json_reader_init(&reader, judge->payload);
    json_skip(&reader);
    enum status status = json_reader_finish(&reader, &failure);
    json_reader_fini(&reader);
    if (status == STATUS_OK) return true;
    json_place(judge->payload, failure.offset, place, sizeof(place), NULL);
    (void)snprintf(found, sizeof(found), "%.60s at byte %" PRIu64, failure.message, failure.offset);
    return verdict_refuse(judge->verdict, "profiling_invalid_json", "valid JSON", found, "%s", place);
}

static bool header_is_typed(struct judge *judge)
{
    const struct note *note = &judge->header->notes[READING_HEADER][judge->rules];
    if (note->expected) return refuse_note(judge, note);
    return judge->header->reader.failed ? refuse_failure(judge, judge->header) : true;
}

static bool refuse_platform(struct judge *judge, const char *expected)
{
    char found[VERDICT_TEXT_SIZE] = "nothing";
    if (judge->context->platform.data) {
        (void)snprintf(found, sizeof(found), "\"%.*s\"", SLICE_ARGUMENTS(judge->context->platform));
    }
    return verdict_refuse(judge->verdict, "profiling_invalid_profile_type", expected, found, "%s", "item.platform");
}

/* V2-7. */
static bool item_names_platform(struct judge *judge)
{
    char expected[VERDICT_TEXT_SIZE];
    if (!judge->context->is_in_envelope || slice_equal(judge->context->platform, platform_of(judge))) return true;
    (void)snprintf(expected, sizeof(expected), "the payload's, \"%.*s\"", SLICE_ARGUMENTS(platform_of(judge)));
    return refuse_platform(judge, expected);
}

static bool is_of_interface(struct slice platform)
{
    return is_one_of(platform, (const char *const[]){"cocoa", "android", "javascript", NULL});
}

static bool item_is_of_one_class(struct judge *judge)
{
    struct slice said = judge->context->platform;
    bool is_ui = is_of_interface(platform_of(judge));
    if (!said.data || is_of_interface(said) == is_ui) return true;
    return refuse_platform(judge, is_ui ? "one of a user interface, like the payload's"
                                        : "one of a backend, like the payload's");
}

static bool version_is_2(struct judge *judge)
{
    char found[VERDICT_TEXT_SIZE] = "nothing";
    const struct chunk_decoder *header = judge->header;
    if (header->is_version_2) return true;
    if (header->has_version) {
        size_t offset = (size_t)header->version_offset;
        json_describe(slice_of(judge->payload.data + offset, judge->payload.size - offset), found, sizeof(found));
    }
    return verdict_refuse(judge->verdict, "profiling_platform_not_supported", "\"2\"", found, "%s", "version");
}

static bool values_are_typed(struct judge *judge)
{
    const struct note *note = &judge->decoder->notes[READING_BODY][judge->rules];
    if (note->expected) return refuse_note(judge, note);
    return judge->decoder->reader.failed ? refuse_failure(judge, judge->decoder) : true;
}

static bool is_native(const struct judge *judge)
{
    return is_one_of(platform_of(judge), (const char *const[]){"native", "cocoa", "rust", NULL});
}

/* FMT-6. */
static bool native_code_has_images(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    if (!is_native(judge)) return true;
    if (!chunk->has_images) {
        return verdict_refuse(judge->verdict, "profiling_invalid_profile_metadata", "an image", "nothing", "%s",
                              "debug_meta.images");
    }
    if (!chunk->incomplete_image.member) return true;
    return refuse_note(judge, &(struct note){.expected = &expected_string,
                                             .missing = chunk->incomplete_image.member,
                                             .offset = chunk->incomplete_image.offset,
                                             .is_metadata = true});
}

/* FMT-3, FMT-10. A frame with a platform of its own may be of another kind. */
static bool native_frames_have_addresses(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    for (size_t i = 0; is_native(judge) && i < chunk->frames.count; i++) {
        const struct chunk_frame *frame = &chunk->frames.items[i];
        if (frame->has_address || frame->code == CHUNK_CODE_OTHER) continue;
        return refuse_note(
            judge,
            &(struct note){.expected = &expected_address, .missing = "instruction_addr", .offset = frame->offset});
    }
    return true;
}

static bool lists_are_filled(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    const char *empty = chunk->samples.count == 0  ? "profile.samples"
                        : chunk->stacks.count == 0 ? "profile.stacks"
                        : chunk->frames.count == 0 ? "profile.frames"
                                                   : NULL;
    const char *reason = chunk->samples.count == 0  ? "profiling_not_enough_samples"
                         : chunk->stacks.count == 0 ? "profiling_malformed_samples"
                                                    : "profiling_malformed_stacks";
    if (!empty) return true;
    return verdict_refuse(judge->verdict, reason, "at least one", "none", "%s", empty);
}

/* Once through all samples: there are a hundred thousands of them in a large chunk. */
static void look_at_kept(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    struct kept kept = {.without_stack = SIZE_MAX, .first = HUGE_VAL, .last = -HUGE_VAL};
    double before = -HUGE_VAL;
    for (size_t i = 0; i < chunk->samples.count; i++) {
        const struct chunk_sample *sample = &chunk->samples.items[i];
        if (!judge->threads[sample->thread.index].samples) continue;
        kept.count++;
        if (sample->stack >= chunk->stacks.count && kept.without_stack == SIZE_MAX) kept.without_stack = i;
        kept.unsorted += sample->seconds < before;
        before = sample->seconds;
        kept.first = before < kept.first ? before : kept.first;
        kept.last = before > kept.last ? before : kept.last;
    }
    judge->kept = kept;
}

static bool keep_all_threads(struct judge *judge)
{
    look_at_kept(judge);
    return true;
}

static bool drop_threads_of_one_sample(struct judge *judge)
{
    size_t thread_count = judge->decoder->profile->threads.count;
    uint64_t dropped = 0;
    for (size_t i = 0; i < thread_count; i++) {
        struct chunk_thread *thread = &judge->threads[i];
        if (thread->active >= FRAMES_MIN) continue;
        dropped += thread->samples;
        thread->samples = 0;
    }
    verdict_repair(judge->verdict, "samples dropped, of threads that have not two with frames", dropped);
    look_at_kept(judge);
    return true;
}

static bool samples_are_left(struct judge *judge)
{
    if (judge->kept.count > 0) return true;
    return verdict_refuse(judge->verdict, "profiling_not_enough_samples", "a thread with two samples that have frames",
                          "none", "%s", "profile.samples");
}

/* An index of a list of COUNT is expected. */
static void print_index(char expected[VERDICT_TEXT_SIZE], size_t count)
{
    if (count)
        (void)snprintf(expected, VERDICT_TEXT_SIZE, "index below %zu", count);
    else
        (void)snprintf(expected, VERDICT_TEXT_SIZE, "nothing, since the list is empty");
}

static void print_found(char found[VERDICT_TEXT_SIZE], uint32_t index)
{
    (void)snprintf(found, VERDICT_TEXT_SIZE, "%" PRIu32 "%s", index, index == INDEX_NONE ? " or more" : "");
}

static bool samples_have_stacks(struct judge *judge)
{
    char expected[VERDICT_TEXT_SIZE], found[VERDICT_TEXT_SIZE];
    const struct chunk *chunk = &judge->decoder->chunk;
    size_t sample = judge->kept.without_stack;
    if (sample == SIZE_MAX) return true;
    print_index(expected, chunk->stacks.count);
    print_found(found, chunk->samples.items[sample].stack);
    return verdict_refuse(judge->verdict, "profiling_malformed_samples", expected, found,
                          "profile.samples[%zu].stack_id", sample);
}

static bool refuse_stack(struct judge *judge, size_t stack, size_t frame)
{
    char expected[VERDICT_TEXT_SIZE], found[VERDICT_TEXT_SIZE];
    const struct chunk *chunk = &judge->decoder->chunk;
    print_index(expected, chunk->frames.count);
    print_found(found, chunk->frame_indices.items[chunk->stacks.items[stack].first + frame]);
    return verdict_refuse(judge->verdict, "profiling_malformed_stacks", expected, found, "profile.stacks[%zu][%zu]",
                          stack, frame);
}

/* Of all stacks, also of those that no sample has. */
static bool stacks_have_frames(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    for (size_t i = 0; i < chunk->stacks.count; i++) {
        const struct chunk_stack *stack = &chunk->stacks.items[i];
        for (size_t k = 0; k < stack->count; k++) {
            if (chunk->frame_indices.items[stack->first + k] >= chunk->frames.count) return refuse_stack(judge, i, k);
        }
    }
    return true;
}

static bool sort_samples(struct judge *judge)
{
    verdict_repair(judge->verdict, "samples sorted by time, that were earlier than the one before",
                   judge->kept.unsorted);
    return true;
}

static bool duration_is_allowed(struct judge *judge)
{
    char found[VERDICT_TEXT_SIZE];
    double seconds = judge->kept.last - judge->kept.first; /* there is one */
    if (!(seconds > SECONDS_MAX)) return true;
    (void)snprintf(found, sizeof(found), "%.6f s", seconds);
    return verdict_refuse(judge->verdict, "profiling_duration_is_too_long", "at most 66 s from first to last", found,
                          "%s", "profile.samples");
}

static bool cut_addresses_of_cocoa(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    uint64_t count = 0;
    if (!slice_equals_text(platform_of(judge), "cocoa")) return true;
    for (size_t i = 0; i < chunk->frames.count; i++) count += chunk->frames.items[i].address > COCOA_ADDRESS_BITS;
    verdict_repair(judge->verdict, "instruction addresses cut to 36 bits, as for cocoa", count);
    return true;
}

static bool drop_unused_threads(struct judge *judge)
{
    const struct chunk *chunk = &judge->decoder->chunk;
    uint64_t count = 0;
    for (size_t i = 0; i < chunk->described_threads.count; i++) {
        count += judge->threads[chunk->described_threads.items[i].index].samples == 0;
    }
    verdict_repair(judge->verdict, "entries of thread_metadata dropped, without samples", count);
    return true;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static const struct rule {
    bool (*holds)(struct judge *judge); /* or repairs */
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

static void judge_by_table(struct judge *judge)
{
    bool holds = true;
    for (size_t i = 0; holds && i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].rules & 1u << judge->rules) holds = table[i].holds(judge);
    }
}

enum status chunk_judge(const struct chunk_decoder *decoder, const struct chunk_decoder *header, struct slice payload,
                        const struct rules_context *context, enum rules rules, struct verdict *ret_verdict,
                        struct error *error)
{
    static const struct rules_context alone;
    struct judge judge = {.payload = payload,
                          .context = context ? context : &alone,
                          .rules = rules,
                          .decoder = decoder,
                          .header = header,
                          .verdict = ret_verdict};
    bool has_memory = decoder->reader.status != STATUS_NO_MEMORY && header->reader.status != STATUS_NO_MEMORY &&
                      !header->profile->failed;
    enum status status = profile_failed(decoder->profile, error);
    verdict_init(ret_verdict);
    if (status != STATUS_OK) return status;
    judge.threads = chunk_count_samples(&decoder->chunk, decoder->profile->threads.count);
    has_memory = has_memory && judge.threads;
    if (has_memory) judge_by_table(&judge);
    free(judge.threads);
    if (has_memory) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to judge the payload");
}
