/* From a profile to chunks that a server accepts (V2-5 V2-6 V1-5 FMT-7). The layout of a chunk, which each encoding
 * begins with, and the reading of its bytes, which each validation begins with, are wrapped and counted.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "deliver/chunks.h"
#include "deliver/complete.h"
#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"
#include "format/sentry/sentry_v1.h"
#include "format/sentry/sentry_decoder_private.h"
#include "format/sentry/sentry_v2.h"

#define SECOND ((uint64_t)1000000000)
#define START_NS (1700000000 * SECOND)

static unsigned encodings, validations;

bool __real_chunk_plan_make(struct chunk_plan *plan, const struct profile *profile,
                            const struct sentry_v2_options *options);
bool __wrap_chunk_plan_make(struct chunk_plan *plan, const struct profile *profile,
                            const struct sentry_v2_options *options);
void __real_v2_read_payload(struct chunk_decoder *decoder);
void __wrap_v2_read_payload(struct chunk_decoder *decoder);
void __real_v1_read_payload(struct chunk_decoder *decoder);
void __wrap_v1_read_payload(struct chunk_decoder *decoder);

bool __wrap_chunk_plan_make(struct chunk_plan *plan, const struct profile *profile,
                            const struct sentry_v2_options *options)
{
    encodings++;
    return __real_chunk_plan_make(plan, profile, options);
}

void __wrap_v2_read_payload(struct chunk_decoder *decoder)
{
    validations++;
    __real_v2_read_payload(decoder);
}

void __wrap_v1_read_payload(struct chunk_decoder *decoder)
{
    validations++;
    __real_v1_read_payload(decoder);
}

/* --- Profiles ----------------------------------------------------------------------------------------------------- */

static void begin_profile(struct profile *profile)
{
    profile_init(profile);
    encodings = validations = 0;
    profile->release = profile_text(profile, "service@1.2.3");
    profile->profiler_id = profile_text(profile, "41fed0925670468bb0457f61a74688ec");
    profile->has_times = true;
    profile->period = 10000000;
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->period_type = profile->value_types[1];
}

/* A sample of one frame, NAME, on thread THREAD. */
static void add_sample(struct profile *profile, const char *thread, const char *name, uint64_t time_ns)
{
    int64_t values[] = {1, 10000000};
    struct function_id function =
        profile_add_function(profile, &(struct function){.name = profile_text(profile, name)});
    struct line lines[] = {{.function = function, .line = 1}};
    struct location_id location = profile_add_location(profile, &(struct location){0}, lines, 1);
    struct stack_id stack = profile_add_stack(profile, (struct stack_id){0}, location);
    struct thread_id id = profile_add_thread(profile, &(struct thread){.id = profile_text(profile, thread)});
    profile_add_sample(profile, &(struct sample){.stack = stack, .thread = id, .time_ns = time_ns}, values);
}

/* A sample each second, SECONDS long. */
static void make_profile(struct profile *profile, unsigned seconds)
{
    begin_profile(profile);
    for (unsigned i = 0; i < seconds; i++) add_sample(profile, "1", "work", START_NS + i * SECOND);
}

struct received {
    struct buffer files[64];
    size_t count, maximum;
};

static bool receive(void *context, struct slice bytes)
{
    struct received *received = context;
    if (received->count == received->maximum) return false;
    buffer_init(&received->files[received->count], 1 << 27);
    buffer_append(&received->files[received->count++], bytes.data, bytes.size);
    return true;
}

static void received_fini(struct received *received)
{
    for (size_t i = 0; i < received->count; i++) buffer_fini(&received->files[i]);
    received->count = 0;
}

static bool contains(const struct received *received, size_t number, const char *text)
{
    const struct buffer *file = &received->files[number];
    return memmem(file->data, file->size, text, strlen(text)) != NULL;
}

/* --- Costs -------------------------------------------------------------------------------------------------------- */

TEST(each_chunk_is_encoded_once_and_validated_once_V2_6)
{
    static const struct {
        struct deliver_options options;
        unsigned seconds;
        size_t chunks;
    } cases[] = {
        {{.tries_one_chunk = true}, 50, 1},
        {{.tries_one_chunk = true, .wraps = true}, 50, 1},
        {{0}, 50, 1},
        {{.wraps = true}, 600, 10},
        {{.wraps = true}, 601, 10}, /* the last sample joins the chunk before it */
        {{.thins_idle = true}, 3600, 60},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct received received = {.maximum = 64};
        struct deliver_summary summary = {0};
        struct profile profile;
        make_profile(&profile, cases[i].seconds);
        CHECK_UINT(deliver_chunks(&profile, &cases[i].options, receive, &received, &summary, NULL), STATUS_OK);
        CHECK_UINT(received.count, cases[i].chunks);
        CHECK_UINT(summary.chunk_count, cases[i].chunks);
        CHECK_UINT(summary.encoding_count, cases[i].chunks);
        CHECK_UINT(summary.samples_left_out, 0);
        CHECK_UINT(encodings, cases[i].chunks);
        CHECK_UINT(validations, cases[i].chunks);
        received_fini(&received);
        profile_fini(&profile);
    }
}

TEST(a_profile_of_v1_is_encoded_once_and_validated_once_V1_5)
{
    struct profile profile;
    struct buffer out;
    make_profile(&profile, 20);
    profile.time_ns = profile_start_at(START_NS);
    CHECK(!deliver_complete_v1(&profile));
    buffer_init(&out, 1 << 24);
    CHECK_UINT(envelope_profile_encode_v1(&profile, &out, NULL), STATUS_OK);
    CHECK_UINT(encodings, 1);
    CHECK_UINT(validations, 1);
    buffer_fini(&out);
    profile_fini(&profile);
}

/* Each sample has a function with a name of 1 MB, so that 40 fit into a chunk. */
TEST(encodes_a_chunk_that_is_too_large_again_in_parts_V2_5)
{
    enum { SAMPLES = 60, NAME_BYTES = 1 << 20 };
    struct received received = {.maximum = 64};
    struct deliver_summary summary = {0};
    const struct deliver_options options = {.tries_one_chunk = true, .may_thin_idle = false};
    struct profile profile;
    char *name = malloc(NAME_BYTES);
    begin_profile(&profile);
    memset(name, 'x', NAME_BYTES);
    name[NAME_BYTES - 1] = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        name[0] = (char)('A' + i);
        if (name[0] == '\\') name[0] = '!';
        add_sample(&profile, "1", name, START_NS + i * SECOND);
    }
    CHECK_UINT(deliver_chunks(&profile, &options, receive, &received, &summary, NULL), STATUS_OK);
    CHECK_UINT(received.count, 2);
    CHECK_UINT(summary.encoding_count, 3);
    CHECK_UINT(encodings, 3);
    CHECK_UINT(validations, 2); /* the one that was too large has no bytes to validate */
    received_fini(&received);
    profile_fini(&profile);
    free(name);
}

/* --- Splitting ---------------------------------------------------------------------------------------------------- */

TEST(a_part_with_too_few_samples_is_left_out_and_reported_V2_5)
{
    struct received received = {.maximum = 64};
    struct deliver_summary summary = {0};
    const struct deliver_options options = {0};
    struct profile profile;
    make_profile(&profile, 30);
    add_sample(&profile, "1", "work", START_NS + 100 * SECOND);
    add_sample(&profile, "1", "work", START_NS + 300 * SECOND);
    add_sample(&profile, "1", "work", START_NS + 301 * SECOND);
    CHECK_UINT(deliver_chunks(&profile, &options, receive, &received, &summary, NULL), STATUS_OK);
    CHECK_UINT(received.count, 2);
    CHECK_UINT(summary.samples_left_out, 1);
    CHECK_UINT(summary.reject.reason, REJECT_NOT_ENOUGH_SAMPLES);
    CHECK_UINT(encodings, 2);
    received_fini(&received);
    profile_fini(&profile);
}

TEST(the_first_and_the_last_chunk_have_the_measurements_around_them_FMT_7)
{
    struct received received = {.maximum = 64};
    struct deliver_summary summary = {0};
    const struct deliver_options options = {0};
    struct profile profile;
    make_profile(&profile, 180);
    struct measurement *measurement = profile_measurement(&profile, "cpu_usage", "percent");
    profile_measure(&profile, measurement, START_NS - SECOND, 11.5);
    profile_measure(&profile, measurement, START_NS + 90 * SECOND, 22.5);
    profile_measure(&profile, measurement, START_NS + 500 * SECOND, 33.5);
    CHECK_UINT(deliver_chunks(&profile, &options, receive, &received, &summary, NULL), STATUS_OK);
    CHECK_UINT(received.count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_UINT(contains(&received, i, "11.5"), i == 0);
        CHECK_UINT(contains(&received, i, "22.5"), i == 1);
        CHECK_UINT(contains(&received, i, "33.5"), i == 2);
    }
    received_fini(&received);
    profile_fini(&profile);
}

TEST(a_profile_without_samples_is_rejected_by_the_services_reason_V2_5)
{
    struct received received = {.maximum = 64};
    struct deliver_summary summary = {0};
    struct error error = {0};
    const struct deliver_options options = {.tries_one_chunk = true};
    struct profile profile;
    make_profile(&profile, 0);
    CHECK_UINT(deliver_chunks(&profile, &options, receive, &received, &summary, &error), STATUS_MALFORMED);
    CHECK_UINT(reject_reason_of_message(error.message), REJECT_NOT_ENOUGH_SAMPLES);
    CHECK_UINT(received.count, 0);
    profile_fini(&profile);
}

TEST(a_sink_that_gives_up_ends_the_delivery)
{
    struct received received = {.maximum = 1};
    struct deliver_summary summary = {0};
    const struct deliver_options options = {0}, one = {.chunks_max = 1};
    struct profile profile;
    make_profile(&profile, 300);
    CHECK_UINT(deliver_chunks(&profile, &one, receive, &received, &summary, NULL), STATUS_TOO_LARGE);
    CHECK_UINT(received.count, 0);
    CHECK_UINT(encodings, 0);
    CHECK_UINT(deliver_chunks(&profile, &options, receive, &received, &summary, NULL), STATUS_IO);
    CHECK_UINT(received.count, 1);
    received_fini(&received);
    profile_fini(&profile);
}

/* The planning must agree with the rules: no chunk is rejected for having too few samples. */
TEST(the_plan_and_the_rules_agree_about_enough_samples_V2_5)
{
    uint64_t state = 1;
    for (int round = 0; round < 500; round++) {
        struct profile profile;
        struct buffer out;
        struct rules_result result;
        begin_profile(&profile);
        for (int i = 0; i < 6; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            char thread[2] = {(char)('1' + (state >> 33) % 4), 0};
            add_sample(&profile, thread, "work", START_NS + (state >> 40) % 40 * SECOND);
            if ((state >> 50) % 3 == 0) profile.samples.stack[i] = (struct stack_id){0};
        }
        for (uint64_t from = 0; from < 40; from += 10) {
            const struct sentry_v2_options options = {.from_ns = START_NS + from * SECOND,
                                                      .to_ns = START_NS + (from + 13) * SECOND};
            buffer_init(&out, 1 << 20);
            (void)sentry_v2_encode_and_validate(&profile, &options, &out, &result, NULL);
            CHECK_UINT(sentry_v2_has_enough_samples(&profile, options.from_ns, options.to_ns), result.accepted);
            CHECK(result.accepted || result.reason == REJECT_NOT_ENOUGH_SAMPLES);
            buffer_fini(&out);
        }
        profile_fini(&profile);
    }
}

TEST(the_service_is_the_name_that_was_started_not_the_file_of_a_link)
{
    static const char *const cases[][3] = {
        {"/usr/bin/redis-check-rdb", "redis-server", "redis-server"},
        {"/opt/a-program-with-a-long-name", "a-program-with-", "a-program-with-a-long-name"},
        {"/usr/bin/xz", "", "xz"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        (void)profile_add_mapping(&profile, &(struct mapping){.file_name = profile_text(&profile, cases[i][0])});
        profile_add_metadata_text(&profile, "process", cases[i][1]);
        (void)deliver_complete(&profile);
        CHECK_TEXT(profile_c_string(&profile, profile.release), cases[i][2]);
        profile_fini(&profile);
    }
}

TEST_MAIN()
