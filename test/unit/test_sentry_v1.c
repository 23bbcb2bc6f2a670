/* Sample Format V1 there and back, in its envelope, and its idle samples (V1-1 V1-2 V1-3 V1-5 ENV-2; facts §4.2).
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "detected.h"
#include "base/buffer.h"
#include "format/sentry/envelope.h"
#include "format/format.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/sentry_v1.h"

static const char seconds_of_v1[] =
    "{\"profile\":{\"frames\":[{\"function\":\"leaf\",\"lineno\":3},{\"name\":\"main\",\"file\":\"a.py\",\"line\":9}],"
    "\"stacks\":[[0,1],[],[1]],\"samples\":["
    "{\"elapsed_since_start_ns\":\"30000001\",\"stack_id\":2,\"thread_id\":\"7\"},"
    "{\"elapsed_since_start_ns\":\"10000000\",\"stack_id\":0,\"thread_id\":7},"
    "{\"elapsed_since_start_ns\":20000000,\"stack_id\":1,\"thread_id\":\"7\"}],"
    "\"thread_metadata\":{\"7\":{\"name\":\"main thread\",\"priority\":31}}},"
    "\"measurements\":{\"cpu\":{\"unit\":\"percent\",\"values\":[{\"elapsed_since_start_ns\":\"5\",\"value\":12.5}]}},"
    "\"transactions\":[{\"id\":\"30976F2D-DBE0-4AC9-B6BF-FE6E35D4710C\",\"name\":\"GET /\",\"trace_id\":"
    "\"4b25bc58f14243d8b208d1e22a054164\",\"active_thread_id\":7,\"relative_start_ns\":\"1\",\"relative_end_ns\":"
    "40000000}],"
    "\"device\":{\"architecture\":\"arm64e\",\"is_emulator\":false,\"locale\":\"en_US\",\"manufacturer\":\"Apple\","
    "\"model\":\"iPhone14,8\"},\"os\":{\"name\":\"iOS\",\"version\":\"16.3\",\"build_number\":\"20D47\"},"
    "\"runtime\":{\"name\":\"CPython\",\"version\":\"3.11\"},\"event_id\":\"41fed0925670468bb0457f61a74688ec\","
    "\"platform\":\"python\",\"release\":\"a@1\",\"dist\":\"d\",\"environment\":\"test\","
    "\"timestamp\":\"2023-11-14T23:13:20.000000007+01:00\",\"version\":\"1\"}";

#define START_NS 1700000000000000007u

static enum status decode(struct profile *profile, const char *text, struct error *error)
{
    profile_init(profile);
    return sentry_v1_decode(slice_of_text(text), profile, error);
}

#define CHECK_STRING(profile, id, expected) CHECK_TEXT(profile_c_string((profile), (id)), expected)

static void check_metadata(const struct profile *profile)
{
    CHECK_INT(sentry_extension(profile)->sample_format, 1);
    CHECK_STRING(profile, profile->chunk_id, "41fed0925670468bb0457f61a74688ec");
    CHECK_STRING(profile, profile->platform, "python");
    CHECK_STRING(profile, profile->release, "a@1");
    CHECK_STRING(profile, profile->dist, "d");
    CHECK_STRING(profile, profile->environment, "test");
    CHECK_STRING(profile, sentry_extension(profile)->transaction.id, "30976f2ddbe04ac9b6bffe6e35d4710c");
    CHECK_STRING(profile, sentry_extension(profile)->transaction.name, "GET /");
    CHECK_STRING(profile, sentry_extension(profile)->transaction.trace_id, "4b25bc58f14243d8b208d1e22a054164");
    CHECK_STRING(profile, profile->active_thread, "7");
    CHECK_UINT(sentry_extension(profile)->transaction.start_ns, 1);
    CHECK_UINT(sentry_extension(profile)->transaction.end_ns, 40000000);
    CHECK_STRING(profile, sentry_extension(profile)->device.architecture, "arm64e");
    CHECK(sentry_extension(profile)->device.has_is_emulator && !sentry_extension(profile)->device.is_emulator);
    CHECK_STRING(profile, sentry_extension(profile)->device.locale, "en_US");
    CHECK_STRING(profile, sentry_extension(profile)->device.manufacturer, "Apple");
    CHECK_STRING(profile, sentry_extension(profile)->device.model, "iPhone14,8");
    CHECK_STRING(profile, sentry_extension(profile)->os.name, "iOS");
    CHECK_STRING(profile, sentry_extension(profile)->os.version, "16.3");
    CHECK_STRING(profile, sentry_extension(profile)->os.build_number, "20D47");
    CHECK_STRING(profile, sentry_extension(profile)->runtime.name, "CPython");
    CHECK_STRING(profile, sentry_extension(profile)->runtime.version, "3.11");
}

static void check_samples(const struct profile *profile)
{
    CHECK_UINT(profile->time_ns, START_NS);
    CHECK_UINT(profile->duration_ns, 30000001);
    CHECK_UINT(profile->samples.count, 3);
    static const uint64_t elapsed_ns[] = {10000000, 20000000, 30000001};
    static const int64_t wall_ns[] = {10000000, 10000001, 0};
    static const size_t depths[] = {2, 0, 1};
    for (size_t i = 0; i < 3; i++) {
        CHECK_UINT(profile->samples.time_ns[i], START_NS + elapsed_ns[i]);
        CHECK_INT(profile_sample_values(profile, i)[1], wall_ns[i]);
        CHECK_UINT(profile_stack_depth(profile, profile->samples.stack[i]), depths[i]);
    }
    const struct thread *thread = profile_thread(profile, profile->samples.thread[0]);
    CHECK_STRING(profile, thread->id, "7");
    CHECK_STRING(profile, thread->name, "main thread");
    CHECK(thread->has_priority && thread->priority == 31);
    CHECK_UINT(profile->measurements.count, 1);
    CHECK_UINT(profile->measurements.items[0].values[0].time_ns, START_NS + 5);
    CHECK(profile->measurements.items[0].values[0].value == 12.5);
}

/* Measured values V1-7, optional members of the device V1-10. */
TEST(all_of_v1_is_read_whatever_its_order_and_spelling_V1_1_V1_2_V1_3)
{
    struct profile profile;
    CHECK_UINT(decode(&profile, seconds_of_v1, NULL), STATUS_OK);
    check_metadata(&profile);
    check_samples(&profile);
    profile_fini(&profile);
}

/* V1-7 and V1-10 too. */
TEST(what_was_written_reads_back_the_same_V1_1_V1_2_V1_3)
{
    struct profile profile, again;
    struct buffer bytes, twice;
    CHECK_UINT(decode(&profile, seconds_of_v1, NULL), STATUS_OK);
    buffer_init(&bytes, 1 << 16);
    buffer_init(&twice, 1 << 16);
    CHECK_UINT(sentry_v1_encode(&profile, &bytes, NULL), STATUS_OK);
    CHECK(memmem(bytes.data, bytes.size, "\"elapsed_since_start_ns\":\"30000001\"", 34) != NULL);
    CHECK(memmem(bytes.data, bytes.size, "\"timestamp\":\"2023-11-14T22:13:20.000000007Z\"", 44) != NULL);
    CHECK(memmem(bytes.data, bytes.size, "\"active_thread_id\":\"7\"", 22) != NULL);
    profile_init(&again);
    CHECK_UINT(sentry_v1_decode(buffer_slice(&bytes), &again, NULL), STATUS_OK);
    check_metadata(&again);
    check_samples(&again);
    CHECK_UINT(sentry_v1_encode(&again, &twice, NULL), STATUS_OK);
    CHECK(slice_equal(buffer_slice(&bytes), buffer_slice(&twice)));
    buffer_fini(&bytes);
    buffer_fini(&twice);
    profile_fini(&again);
    profile_fini(&profile);
}

static void rewrite(struct slice bytes, struct buffer *out)
{
    struct profile profile;
    struct error error = {.message = ""};
    profile_init(&profile);
    CHECK_UINT(sentry_v1_decode(bytes, &profile, NULL), STATUS_OK);
    if (sentry_v1_encode(&profile, out, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    profile_fini(&profile);
}

TEST(prefers_the_transaction_object_to_the_first_of_the_list_V1_1)
{
    static const char format[] = "{\"version\":\"1\",%s,\"profile\":{\"frames\":[],\"stacks\":[],\"samples\":[]}}";
    static const char *const spellings[] = {
        "\"transaction\":{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"a\"},"
        "\"transactions\":[{\"id\":\"40976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"b\"}]",
        "\"transactions\":[{\"id\":\"40976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"b\"}],"
        "\"transaction\":{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"a\"}",
        "\"transactions\":[{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"a\"},"
        "{\"id\":\"40976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"b\"}]",
    };
    for (size_t i = 0; i < 3; i++) {
        char text[400];
        struct profile profile;
        (void)snprintf(text, sizeof(text), format, spellings[i]);
        CHECK_UINT(decode(&profile, text, NULL), STATUS_OK);
        CHECK_STRING(&profile, sentry_extension(&profile)->transaction.name, "a");
        CHECK_STRING(&profile, sentry_extension(&profile)->transaction.id, "30976f2ddbe04ac9b6bffe6e35d4710c");
        profile_fini(&profile);
    }
}

TEST(writes_the_defaults_of_servers_for_missing_fields_V1_2)
{
    static const char text[] =
        "{\"version\":\"1\",\"event_id\":\"41fed0925670468bb0457f61a74688ec\",\"release\":\"a@1\",\"transaction\":{"
        "\"id\":"
        "\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"trace_id\":\"4b25bc58f14243d8b208d1e22a054164\",\"name\":\"a\"},"
        "\"profile\":{\"frames\":[{\"function\":\"f\"}],\"stacks\":[[0]],\"samples\":["
        "{\"elapsed_since_start_ns\":1,\"stack_id\":0,\"thread_id\":\"1\"},"
        "{\"elapsed_since_start_ns\":9,\"stack_id\":0,\"thread_id\":\"1\"}]}}";
    static const char *const written[] = {"\"environment\":\"production\"", "\"device\":{\"architecture\":\"unknown\"}",
                                          "\"os\":{\"name\":\"unknown\",\"version\":\"unknown\"}",
                                          "\"active_thread_id\":\"1\""};
    struct buffer out;
    buffer_init(&out, 1 << 16);
    rewrite(slice_of_text(text), &out);
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        if (!memmem(out.data, out.size, written[i], strlen(written[i]))) TEST_FAIL("no %s", written[i]);
    }
    CHECK(memmem(out.data, out.size, "\"runtime\"", 9) == NULL);
    buffer_fini(&out);
}

TEST(transactions_after_the_first_stay_in_the_list_FMT_8)
{
    static const char text[] =
        "{\"version\":\"1\",%s\"release\":\"a@1\",\"event_id\":\"41fed0925670468bb0457f61a74688ec\",\"profile\":{"
        "\"frames\":[{\"function\":\"f\"}],\"stacks\":[[0]],\"samples\":["
        "{\"elapsed_since_start_ns\":1,\"stack_id\":0,\"thread_id\":\"1\"},"
        "{\"elapsed_since_start_ns\":9,\"stack_id\":0,\"thread_id\":\"1\"}]}}";
#define TRANSACTION(digit)                                                                                             \
    "{\"id\":\"" #digit                                                                                                \
    "0976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"a\",\"trace_id\":\"4b25bc58f14243d8b208d1e22a054164\"}"
    static const struct {
        const char *members, *list; /* NULL: none is written */
    } spellings[] = {
        {"\"transactions\":[" TRANSACTION(1) "],", NULL},
        {"\"transactions\":[" TRANSACTION(1) ", " TRANSACTION(2) "],",
         "\"transactions\":[" TRANSACTION(1) ", " TRANSACTION(2) "]"},
        {"\"transactions\":[" TRANSACTION(2) "],\"transaction\":" TRANSACTION(1) ",",
         "\"transactions\":[" TRANSACTION(2) "]"},
    };
#undef TRANSACTION
    for (size_t i = 0; i < 3; i++) {
        char source[1000];
        struct buffer once, twice;
        buffer_init(&once, 1 << 16);
        buffer_init(&twice, 1 << 16);
        (void)snprintf(source, sizeof(source), text, spellings[i].members);
        rewrite(slice_of_text(source), &once);
        CHECK(memmem(once.data, once.size, "\"transaction\":{\"id\":\"1", 22) != NULL);
        const char *expected = spellings[i].list ? spellings[i].list : "\"transactions\"";
        bool is_there = memmem(once.data, once.size, expected, strlen(expected)) != NULL;
        CHECK(is_there == (spellings[i].list != NULL));
        rewrite(buffer_slice(&once), &twice);
        CHECK(slice_equal(buffer_slice(&once), buffer_slice(&twice)));
        buffer_fini(&once);
        buffer_fini(&twice);
    }
}

TEST(v1_and_v2_are_distinguished_wherever_the_version_is)
{
    static const struct {
        const char *text;
        const struct format *format;
    } files[] = {
        {"{\"version\":\"1\"}", &format_sentry_v1},
        {"{\"version\":\"2\"}", &format_sentry_v2},
        {"{\"profile\":{\"samples\":[]},\"version\":\"1\"}", &format_sentry_v1},
        {"{\"profile\":{\"samples\":[]},\"version\":\"2\"}", &format_sentry_v2},
        {"{\"event_id\":\"x\",\"transactions\":[", &format_sentry_v1},
        {"{\"profiler_id\":\"x\",\"device\":{}}", &format_sentry_v2},
        {"{\"device\":{},\"version\":\"2\"}", &format_sentry_v1},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct format *found = detected_format(slice_of_text(files[i].text));
        if (found != files[i].format) TEST_FAIL("%s is %s", files[i].text, format_name(found));
    }
}

TEST(what_is_broken_is_rejected_V1_3)
{
    static const struct {
        const char *text;
        enum status status;
    } broken[] = {
        {"[]", STATUS_NOT_THIS_FORMAT},
        {"{\"version\":\"2\",\"profile\":{}}", STATUS_UNSUPPORTED},
        {"{\"version\":\"1\"}", STATUS_MALFORMED},
        {"{\"profile\":{}}", STATUS_MALFORMED},
        {"{\"version\":\"1\",\"timestamp\":\"now\",\"profile\":{}}", STATUS_MALFORMED},
        {"{\"version\":\"1\",\"timestamp\":1700000000,\"profile\":{}}", STATUS_MALFORMED},
        {"{\"version\":\"1\",\"profile\":{\"stacks\":[[]],\"samples\":[{\"elapsed_since_start_ns\":1.5,\"stack_id\":0,"
         "\"thread_id\":\"1\"}]}}",
         STATUS_MALFORMED},
        {"{\"version\":\"1\",\"profile\":{\"stacks\":[[]],\"samples\":[{\"elapsed_since_start_ns\":\"1.5\",\"stack_"
         "id\":0,"
         "\"thread_id\":\"1\"}]}}",
         STATUS_MALFORMED},
        {"{\"version\":\"1\",\"profile\":{\"stacks\":[[]],\"samples\":[{\"timestamp\":1.5,\"stack_id\":0,"
         "\"thread_id\":\"1\"}]}}",
         STATUS_MALFORMED},
        {"{\"version\":\"1\",\"profile\":{\"stacks\":[[]],\"samples\":[{\"elapsed_since_start_ns\":1,\"stack_id\":1,"
         "\"thread_id\":\"1\"}]}}",
         STATUS_MALFORMED},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct profile profile;
        struct error error = {.message = ""};
        enum status status = decode(&profile, broken[i].text, &error);
        if (status != broken[i].status) TEST_FAIL("%s: %d %s", broken[i].text, (int)status, error.message);
        profile_fini(&profile);
    }
}

TEST(what_the_model_has_no_place_for_is_kept_wherever_it_was_FMT_8)
{
    static const char *const kept[] = {
        "\"contexts\":{\"trace\":{\"span_id\":\"b\"}}",
        "\"classification\":\"x\"",
        "\"kernel\":[1]",
        "\"sapi\":\"cli\"",
        "\"duration_ns\":173661069",
        "\"vars\":{\"a\":1}",
        "\"queue_metadata\":{}",
    };
    char text[1200];
    struct profile profile;
    struct buffer out;
    (void)snprintf(text, sizeof(text),
                   "{\"version\":\"1\",%s,\"release\":\"a@1\",\"device\":{\"architecture\":"
                   "\"a\",%s},\"os\":{\"name\":\"l\",%s},"
                   "\"runtime\":{%s},\"transaction\":{\"id\":"
                   "\"30976f2ddbe04ac9b6bffe6e35d4710c\",%s},"
                   "\"profile\":{\"frames\":[{\"function\":\"f\",%s}],\"stacks\":[[0]],"
                   "\"samples\":["
                   "{\"elapsed_since_start_ns\":1,\"stack_id\":0,\"thread_id\":\"1\"},"
                   "{\"elapsed_since_start_ns\":2,\"stack_id\":0,\"thread_id\":\"1\"}],%s}}",
                   kept[0], kept[1], kept[2], kept[3], kept[4], kept[5], kept[6]);
    buffer_init(&out, 1 << 14);
    CHECK_UINT(decode(&profile, text, NULL), STATUS_OK);
    CHECK_UINT(sentry_v1_encode(&profile, &out, NULL), STATUS_OK);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const uint8_t *end = out.data + out.size, *place = memmem(out.data, out.size, kept[i], strlen(kept[i]));
        if (!place) TEST_FAIL("%s is lost", kept[i]);
        place += strlen(kept[i]);
        if (memmem(place, (size_t)(end - place), kept[i], strlen(kept[i]))) TEST_FAIL("%s is there twice", kept[i]);
    }
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(what_one_version_does_not_know_does_not_get_into_the_other)
{
    struct profile profile, again;
    struct buffer out;
    static const char v2[] =
        "{\"version\":\"2\",\"platform\":\"python\",\"release\":\"a@1\",\"device\":{\"new\":1},\"timestamp\":\"never\","
        "\"profile\":{\"frames\":[{\"function\":\"f\"}],\"stacks\":[[0]],\"samples\":["
        "{\"timestamp\":1700000000.0,\"stack_id\":0,\"thread_id\":\"1\"},"
        "{\"timestamp\":1700000001.0,\"stack_id\":0,\"thread_id\":\"1\"}]}}";
    profile_init(&profile);
    profile_init(&again);
    buffer_init(&out, 1 << 14);
    CHECK_UINT(format_decode(slice_of_text(v2), &profile, NULL, NULL), STATUS_OK);
    sentry_extension_make(&profile)->transaction.id = profile_text(&profile, "30976f2ddbe04ac9b6bffe6e35d4710c");
    CHECK_UINT(sentry_v1_encode(&profile, &out, NULL), STATUS_OK);
    CHECK_UINT(sentry_v1_decode(buffer_slice(&out), &again, NULL), STATUS_OK);
    CHECK_UINT(again.time_ns, 1700000000000000000u);
    buffer_fini(&out);
    profile_fini(&again);
    profile_fini(&profile);
}

/* --- What the sender checks --------------------------------------------------------------------------------------- */

/* A profile of two samples, the second ELAPSED_NS after the start. */
static void make_profile(struct profile *profile, uint64_t elapsed_ns)
{
    static const int64_t values[2] = {1, 0};
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->has_times = true;
    profile->time_ns = 1700000000000000000u;
    profile->release = profile_text(profile, "a@1");
    sentry_extension_make(profile)->transaction.id = profile_text(profile, "30976f2ddbe04ac9b6bffe6e35d4710c");
    struct function function = {.name = profile_text(profile, "f")};
    struct line line = {.function = profile_add_function(profile, &function)};
    struct location_id place = profile_add_location(profile, &(struct location){0}, &line, 1);
    struct thread thread = {.id = profile_text(profile, "7")};
    struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, place),
                            .thread = profile_add_thread(profile, &thread),
                            .time_ns = profile_start_ns(profile)};
    profile_add_sample(profile, &sample, values);
    sample.time_ns += elapsed_ns;
    profile_add_sample(profile, &sample, values);
}

TEST(a_merge_takes_what_the_first_profile_lacks)
{
    struct profile into, from;
    make_profile(&into, 1000000);
    make_profile(&from, 1000000);
    struct sentry_extension *extension = sentry_extension_make(&from);
    extension->transaction.id = profile_text(&from, "40976f2ddbe04ac9b6bffe6e35d4710c");
    extension->device.model = profile_text(&from, "iPhone14,8");
    sentry_add_image(&from, slice_of_text("{}"));
    sentry_add_passthrough_item(&from, slice_of_text("transaction"), slice_of_text("{}"), slice_of_text("{}"));
    CHECK_UINT(profile_merge(&into, &from, NULL, NULL), STATUS_OK);
    profile_fini(&from);
    CHECK_STRING(&into, sentry_extension(&into)->transaction.id, "30976f2ddbe04ac9b6bffe6e35d4710c");
    CHECK_STRING(&into, sentry_extension(&into)->device.model, "iPhone14,8");
    CHECK_UINT(sentry_extension(&into)->images.count, 1);
    CHECK_UINT(sentry_extension(&into)->passthrough_items.count, 0); /* the envelope is already freed */
    profile_fini(&into);
}

TEST(a_profile_without_the_extension_has_an_empty_one)
{
    struct profile into, from;
    profile_init(&into);
    profile_init(&from);
    CHECK(sentry_extension(&from)->sample_format == 0 && sentry_extension(&from)->images.count == 0);
    CHECK_UINT(profile_merge(&into, &from, NULL, NULL), STATUS_OK);
    CHECK(!into.extension && !from.extension); /* neither a reader nor a merge creates it */
    profile_fini(&from);
    profile_fini(&into);
}

static const char *encode_rejection(const struct profile *profile)
{
    static struct error error;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    error.message[0] = 0;
    enum status status = sentry_v1_encode(profile, &out, &error);
    bool is_empty = out.size == 0;
    buffer_fini(&out);
    CHECK(is_empty == (status != STATUS_OK));
    return error.message;
}

TEST(the_sender_rejects_what_the_server_would_V1_4)
{
    struct profile profile;
    make_profile(&profile, 30000000000);
    CHECK_TEXT(encode_rejection(&profile), "");
    sentry_extension_make(&profile)->transaction.id.index = 0;
    CHECK(strstr(encode_rejection(&profile), "profiling_no_transaction_associated") != NULL);
    profile_fini(&profile);
    make_profile(&profile, 30000000001);
    CHECK(strstr(encode_rejection(&profile), "profiling_duration_is_too_long") != NULL);
    profile.samples.count = 1;
    CHECK(strstr(encode_rejection(&profile), "profiling_not_enough_samples") != NULL);
    profile_fini(&profile);
}

TEST(a_profile_is_written_in_one_envelope_with_its_transaction_V1_5)
{
    struct profile profile;
    struct buffer out;
    struct envelope_reader reader;
    struct envelope_item item;
    unsigned transactions = 0, profiles = 0;
    make_profile(&profile, 1000000000);
    buffer_init(&out, 1 << 16);
    CHECK_UINT(format_encode(&profile, &format_envelope_v1, &out, NULL), STATUS_OK);
    CHECK_UINT(envelope_check(buffer_slice(&out), NULL), STATUS_OK);
    CHECK_UINT(envelope_open(&reader, buffer_slice(&out), NULL), STATUS_OK);
    CHECK_TEXT(reader.attributes.event_id, "30976f2ddbe04ac9b6bffe6e35d4710c");
    while (envelope_next(&reader, &item, NULL)) {
        transactions += slice_equals_text(item.type, "transaction");
        profiles += slice_equals_text(item.type, "profile");
    }
    CHECK_UINT(transactions, 1);
    CHECK_UINT(profiles, 1);
    envelope_close(&reader);
    buffer_fini(&out);
    profile_fini(&profile);
}

/* --- Idle samples ------------------------------------------------------------------------------------------------- */

/* Stacks are texts of one letter a frame, root first; "" is idle. */
static struct stack_id stack_of(struct profile *profile, const char *letters)
{
    struct stack_id stack = {0};
    for (; *letters; letters++) {
        char name[2] = {*letters, 0};
        struct function function = {.name = profile_text(profile, name)};
        struct line line = {.function = profile_add_function(profile, &function)};
        stack = profile_add_stack(profile, stack, profile_add_location(profile, &(struct location){0}, &line, 1));
    }
    return stack;
}

static void check_filled(const char *const *before, const char *const *after, size_t count)
{
    struct profile profile;
    const int64_t one = 1;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    for (size_t i = 0; i < count; i++) {
        struct thread thread = {.id = profile_text(&profile, before[i][0] == '2' ? "2" : "1")};
        struct sample sample = {
            .stack = stack_of(&profile, before[i] + 1), .thread = profile_add_thread(&profile, &thread), .time_ns = i};
        profile_add_sample(&profile, &sample, &one);
    }
    CHECK_UINT(profile_fill_idle(&profile, NULL), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        if (profile.samples.stack[i].index != stack_of(&profile, after[i] + 1).index) TEST_FAIL("sample %zu", i);
    }
    profile_fini(&profile);
}

TEST(an_idle_sample_gets_what_its_neighbours_have_in_common)
{
    static const char *const before[] = {"1", "1abc", "1", "2x", "1", "1abde", "1", "1q", "2", "1", "2xyz", "2"};
    static const char *const after[] = {"1", "1abc", "1ab", "2x", "1ab", "1abde", "1", "1q", "2x", "1", "2xyz", "2"};
    check_filled(before, after, sizeof(before) / sizeof(before[0]));
    static const char *const same[] = {"1ab", "1", "1ab"}, *const same_filled[] = {"1ab", "1ab", "1ab"};
    check_filled(same, same_filled, 3);
    static const char *const deeper[] = {"1abcdefgh", "1", "1abc"}, *const deeper_filled[] = {"1abcdefgh", "1abc",
                                                                                              "1abc"};
    check_filled(deeper, deeper_filled, 3);
}

TEST(deep_stacks_are_compared_in_few_steps)
{
    enum { DEPTH = 200000, SAMPLES = 2000 };
    struct profile profile;
    const int64_t one = 1;
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    struct stack_id trunk = {0}, branches[2];
    for (uint64_t i = 1; i <= DEPTH; i++) {
        trunk = profile_add_stack(&profile, trunk,
                                  profile_add_location(&profile, &(struct location){.address = i}, NULL, 0));
    }
    for (uint64_t b = 0; b < 2; b++) {
        branches[b] = trunk;
        for (uint64_t i = 1; i <= DEPTH; i++) {
            struct location place = {.address = (b + 1) * 1000000 + i};
            branches[b] = profile_add_stack(&profile, branches[b], profile_add_location(&profile, &place, NULL, 0));
        }
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        struct sample sample = {.stack = i % 2 ? (struct stack_id){0} : branches[i / 2 % 2]};
        profile_add_sample(&profile, &sample, &one);
    }
    CHECK_UINT(profile_fill_idle(&profile, NULL), STATUS_OK);
    for (size_t i = 1; i < SAMPLES - 1; i += 2) CHECK_UINT(profile.samples.stack[i].index, trunk.index);
    profile_fini(&profile);
}

TEST_MAIN()
