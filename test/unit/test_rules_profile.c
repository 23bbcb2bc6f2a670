/* Acceptance of V1 profiles, by the documents and by the real service, and the reasons for rejection (V1-1 V1-2 V1-3
 * V1-4, FMT-3 FMT-6 FMT-7, REL-1; facts §1.4). Each case is a profile that is accepted with one text in it replaced.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/buffer.h"
#include "format/sentry/rules.h"

static const char good[] =
    "{\"version\":\"1\",\"event_id\":\"41fed0925670468bb0457f61a74688ec\",\"platform\":\"python\",\"release\":\"a@1\","
    "\"environment\":\"test\",\"timestamp\":\"2023-01-01T00:00:00.000Z\",\"device\":{\"architecture\":\"x86_64\"},"
    "\"os\":{\"name\":\"Linux\",\"version\":\"6.1\"},\"runtime\":{\"name\":\"CPython\",\"version\":\"3.11\"},"
    "\"transaction\":{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"GET /\","
    "\"trace_id\":\"4b25bc58f14243d8b208d1e22a054164\",\"active_thread_id\":\"259\"},"
    "\"debug_meta\":{\"images\":[{\"type\":\"symbolic\",\"image_addr\":\"0x1000\",\"image_size\":4096}]},"
    "\"measurements\":{\"cpu\":{\"unit\":\"percent\",\"values\":[{\"elapsed_since_start_ns\":\"5\",\"value\":\"1e3\"}]}"
    "},"
    "\"profile\":{\"samples\":["
    "{\"elapsed_since_start_ns\":\"0\",\"stack_id\":0,\"thread_id\":\"259\"},"
    "{\"elapsed_since_start_ns\":\"10000000\",\"stack_id\":1,\"thread_id\":\"259\"},"
    "{\"elapsed_since_start_ns\":\"20000000\",\"stack_id\":0,\"thread_id\":\"259\"}],"
    "\"stacks\":[[0,1],[]],"
    "\"frames\":[{\"function\":\"work\",\"lineno\":7,\"instruction_addr\":\"0x1230\"},{\"function\":\"main\","
    "\"instruction_addr\":\"0x1234\"}],"
    "\"thread_metadata\":{\"259\":{\"name\":\"main\",\"priority\":5}}}}";

/* TEXT with the first FROM in it made TO. */
static struct buffer replaced_in(const char *text, const char *from, const char *to)
{
    struct buffer out;
    buffer_init(&out, 1 << 16);
    const char *place = strstr(text, from);
    if (!place) TEST_FAIL("no %s", from);
    buffer_append(&out, text, (size_t)(place - text));
    buffer_append_text(&out, to);
    buffer_append_text(&out, place + strlen(from));
    return out;
}

static struct buffer replaced(const char *from, const char *to)
{
    return replaced_in(good, from, to);
}

static const char *validate(struct slice payload, const struct rules_context *context, enum rules rules)
{
    static char text[2][600];
    struct rules_result result;
    struct error error;
    CHECK_UINT(rules_validate_profile(payload, context, rules, &result, &error), STATUS_OK);
    rules_result_print(&result, text[rules], sizeof(text[rules]));
    return text[rules];
}

/* "" is accepted. */
struct rule_case {
    const char *from, *to, *spec, *relay;
};

static void check_cases(const struct rule_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buffer payload = replaced(cases[i].from, cases[i].to);
        const char *expected[] = {[RULES_SPEC] = cases[i].spec, [RULES_RELAY] = cases[i].relay};
        for (enum rules rules = RULES_SPEC; rules < RULES_COUNT; rules++) {
            const char *found = validate(buffer_slice(&payload), NULL, rules);
            if (strcmp(found, expected[rules][0] ? expected[rules] : "accepted") != 0) {
                printf("# %s by %s: %s\n#   expected %s\n", cases[i].to, rules == RULES_SPEC ? "spec" : "relay", found,
                       expected[rules]);
                TEST_FAIL("case %zu", i);
            }
        }
        buffer_fini(&payload);
    }
}
#define CHECK_CASES(cases) check_cases((cases), sizeof(cases) / sizeof((cases)[0]))

#define INVALID "profiling_invalid_json: "

TEST(a_whole_profile_is_accepted_by_both_sets_V1_1)
{
    CHECK_TEXT(validate(slice_of_text(good), NULL, RULES_SPEC), "accepted");
    CHECK_TEXT(validate(slice_of_text(good), NULL, RULES_RELAY), "accepted");
}

TEST(required_metadata_is_required_V1_1_V1_4_V1_9)
{
    static const struct rule_case cases[] = {
        {"\"event_id\":\"41fed0925670468bb0457f61a74688ec\",", "", INVALID "event_id: expected uuid, found nothing",
         INVALID "event_id: expected uuid, found nothing"},
        {"\"event_id\"", "\"profile_id\"", INVALID "event_id: expected uuid, found nothing", ""},
        {"41fed0925670468bb0457f61a74688ec", "00000000000000000000000000000000",
         INVALID "event_id: expected uuid of version 4, found \"00000000000000000000000000000000\"", ""},
        {"41fed0925670468bb0457f61a74688ec", "41fed0925670168bb0457f61a74688ec",
         INVALID "event_id: expected uuid of version 4, found \"41fed0925670168bb0457f61a74688ec\"", ""},
        {"\"thread_metadata\"", "\"x\"", INVALID "profile.thread_metadata: expected object, found nothing", ""},
        {"41fed0925670468bb0457f61a74688ec", "41FED092-5670-468B-B045-7F61A74688EC",
         INVALID "event_id: expected 32 lowercase hex digits, found \"41FED092-5670-468B-B045-7F61A74688EC\"", ""},
        {"\"41fed0925670468bb0457f61a74688ec\"", "\"41fe\"", INVALID "event_id: expected uuid, found \"41fe\"",
         INVALID "event_id: expected uuid, found \"41fe\""},
        {"\"platform\":\"python\",", "", INVALID "platform: expected string, found nothing",
         INVALID "platform: expected string, found nothing"},
        {"\"platform\":\"python\"", "\"platform\":null", INVALID "platform: expected string, found null",
         INVALID "platform: expected string, found null"},
        {"\"release\":\"a@1\",", "", INVALID "release: expected string, found nothing", ""},
        {"\"timestamp\":\"2023-01-01T00:00:00.000Z\",", "", "",
         INVALID "timestamp: expected string with an RFC 3339 time, found nothing"},
        {"2023-01-01T00:00:00.000Z", "2023", INVALID "timestamp: expected string with an RFC 3339 time, found \"2023\"",
         INVALID "timestamp: expected string with an RFC 3339 time, found \"2023\""},
        {"\"architecture\":\"x86_64\"", "", INVALID "device.architecture: expected string, found nothing",
         INVALID "device.architecture: expected string, found nothing"},
        {"\"device\":{\"architecture\":\"x86_64\"},", "", INVALID "device: expected object, found nothing",
         INVALID "device: expected object, found nothing"},
        {"\"architecture\":\"x86_64\"", "\"architecture\":7",
         INVALID "device.architecture: expected string, found number",
         INVALID "device.architecture: expected string, found number"},
        {",\"version\":\"6.1\"", "", INVALID "os.version: expected string, found nothing",
         INVALID "os.version: expected string, found nothing"},
        {"\"name\":\"Linux\",", "", INVALID "os.name: expected string, found nothing",
         INVALID "os.name: expected string, found nothing"},
        {"\"profile\":{", "\"other\":{", INVALID "profile: expected object, found nothing",
         INVALID "profile: expected object, found nothing"},
        {"\"environment\":\"test\"", "\"environment\":null", "", ""},
        {"\"environment\":\"test\"", "\"environment\":\"a\",\"environment\":\"b\"",
         INVALID "environment: expected key that comes once, found \"b\"",
         INVALID "environment: expected key that comes once, found \"b\""},
        {"\"runtime\":{\"name\":\"CPython\",\"version\":\"3.11\"},", "\"unknown\":[{}],", "", ""},
    };
    CHECK_CASES(cases);
}

/* 004 lists cocoa, node, python and rust; the service's own list is longer and is not checked there. */
TEST(only_the_service_accepts_unlisted_platforms_V1_1)
{
    static const char *const platforms[] = {"php", "ruby", "java", "go", "csharp", "javascript"};
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        char text[32], spec[160];
        (void)snprintf(text, sizeof(text), "\"%s\"", platforms[i]);
        (void)snprintf(
            spec, sizeof(spec),
            "profiling_platform_not_supported: platform: expected cocoa, node, python, rust, native or other, found %s",
            text);
        CHECK_CASES(((struct rule_case[]){{"\"python\"", text, spec, ""}}));
    }
    static const struct rule_case listed[] = {{"\"python\"", "\"node\"", "", ""}};
    CHECK_CASES(listed);
}

TEST(only_cocoa_has_a_build_number_V1_6)
{
    static const struct rule_case cases[] = {
        {"\"6.1\"", "\"6.1\",\"build_number\":\"20D47\"",
         "profiling_invalid_profile_metadata: os.build_number: expected nothing, as the platform is not cocoa, found "
         "string",
         ""},
        {"\"6.1\"", "\"6.1\",\"build_number\":null", "", ""},
    };
    CHECK_CASES(cases);
}

TEST(each_thread_with_samples_has_metadata_FMT_5)
{
    static const struct rule_case cases[] = {
        {"\"259\":{", "\"260\":{", INVALID "profile.thread_metadata.259: expected object, found nothing", ""},
    };
    CHECK_CASES(cases);
}

TEST(several_values_of_a_measurement_are_not_at_the_start_V1_7)
{
    static const struct rule_case cases[] = {
        {"[{\"elapsed_since_start_ns\":\"5\"",
         "[{\"elapsed_since_start_ns\":\"0\",\"value\":1},{\"elapsed_since_start_ns\":\"0\"",
         INVALID "measurements.cpu.values[1].elapsed_since_start_ns: expected time after 0, which the first value has, "
                 "found \"0\"",
         ""},
        {"[{\"elapsed_since_start_ns\":\"5\"",
         "[{\"elapsed_since_start_ns\":\"0\",\"value\":1},{\"elapsed_since_start_ns\":\"5\"", "", ""},
    };
    CHECK_CASES(cases);
}

TEST(only_version_1_is_accepted_V1_1)
{
    static const struct rule_case cases[] = {
        {"\"version\":\"1\"", "\"version\":\"2\"",
         "profiling_platform_not_supported: version: expected \"1\", found \"2\"",
         "profiling_platform_not_supported: version: expected \"1\", found \"2\""},
        {"\"version\":\"1\",", "", "profiling_platform_not_supported: version: expected \"1\", found nothing",
         "profiling_platform_not_supported: version: expected \"1\", found nothing"},
        {"\"version\":\"1\"", "\"version\":1", INVALID "version: expected string, found number",
         INVALID "version: expected string, found number"},
    };
    CHECK_CASES(cases);
}

TEST(a_transaction_must_be_there_and_whole_V1_1_V1_4)
{
    static const char object[] = "\"transaction\":{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"GET /\","
                                 "\"trace_id\":\"4b25bc58f14243d8b208d1e22a054164\",\"active_thread_id\":\"259\"}";
    static const char listed[] = "\"transactions\":[{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"GET /\","
                                 "\"trace_id\":\"4b25bc58f14243d8b208d1e22a054164\",\"active_thread_id\":259,"
                                 "\"relative_start_ns\":\"0\",\"relative_end_ns\":20000000}]";
    static const struct rule_case cases[] = {
        {object, "\"x\":0", "profiling_no_transaction_associated: transaction: expected object, found nothing",
         "profiling_no_transaction_associated: transaction: expected object, found nothing"},
        {object, "\"transactions\":[]",
         "profiling_no_transaction_associated: transaction: expected object, found nothing",
         "profiling_no_transaction_associated: transaction: expected object, found nothing"},
        {object, listed, INVALID "transactions[0].active_thread_id: expected string of an integer, found number", ""},
        {"30976f2ddbe04ac9b6bffe6e35d4710c", "00000000000000000000000000000000",
         "profiling_invalid_transaction_metadata: transaction: expected an id and a trace_id other than 0, found 0",
         "profiling_invalid_transaction_metadata: transaction: expected an id and a trace_id other than 0, found 0"},
        {"4b25bc58f14243d8b208d1e22a054164", "00000000-0000-0000-0000-000000000000",
         "profiling_invalid_transaction_metadata: transaction: expected an id and a trace_id other than 0, found 0",
         "profiling_invalid_transaction_metadata: transaction: expected an id and a trace_id other than 0, found 0"},
        {"\"GET /\"", "\"\"", "profiling_invalid_transaction_metadata: transaction.name: expected a name, found \"\"",
         "profiling_invalid_transaction_metadata: transaction.name: expected a name, found \"\""},
        {"\"name\":\"GET /\",", "", INVALID "transaction.name: expected string, found nothing",
         INVALID "transaction.name: expected string, found nothing"},
        {",\"active_thread_id\":\"259\"", "",
         "profiling_invalid_transaction_metadata: transaction.active_thread_id: expected string of an integer, found "
         "nothing",
         ""},
        {"\"active_thread_id\":\"259\"", "\"active_thread_id\":259",
         INVALID "transaction.active_thread_id: expected string of an integer, found number", ""},
        {"\"active_thread_id\":\"259\"", "\"active_thread_id\":\"main\"",
         INVALID "transaction.active_thread_id: expected whole number, or a string that holds one, "
                 "found \"main\"",
         INVALID "transaction.active_thread_id: expected whole number, or a string that holds one, "
                 "found \"main\""},
        {"\"active_thread_id\":\"259\"",
         "\"active_thread_id\":\"259\",\"relative_start_ns\":\"9\",\"relative_end_ns\":\"8\"",
         "profiling_invalid_transaction_metadata: transaction.relative_start_ns: expected a start that is not after "
         "the "
         "end, found 9 to 8",
         "profiling_invalid_transaction_metadata: transaction.relative_start_ns: expected a start that is not after "
         "the "
         "end, found 9 to 8"},
    };
    CHECK_CASES(cases);
}

TEST(the_envelope_must_hold_the_transaction_V1_5)
{
    struct rules_context context = {.is_in_envelope = true};
    CHECK_TEXT(validate(slice_of_text(good), &context, RULES_RELAY),
               "missing_transaction: expected a transaction in the envelope, found nothing");
    context.has_transaction = true;
    CHECK_TEXT(validate(slice_of_text(good), &context, RULES_RELAY), "accepted");
}

TEST(the_profile_names_the_transaction_of_its_envelope_V1_5_V1_9)
{
    struct rules_context context = {.is_in_envelope = true, .has_transaction = true};
    (void)strcpy(context.transaction_id, "30976f2ddbe04ac9b6bffe6e35d4710c");
    CHECK_TEXT(validate(slice_of_text(good), &context, RULES_SPEC), "accepted");
    context.transaction_id[31] = 'd';
    CHECK_TEXT(validate(slice_of_text(good), &context, RULES_SPEC),
               "profiling_invalid_transaction_metadata: transaction.id: expected 30976f2ddbe04ac9b6bffe6e35d4710d, the "
               "id in the "
               "envelope, found 30976f2ddbe04ac9b6bffe6e35d4710c");
    CHECK_TEXT(validate(slice_of_text(good), &context, RULES_RELAY),
               "accepted"); /* the service does not compare them */
}

TEST(times_are_strings_of_whole_numbers_V1_3_V1_9)
{
    static const char whole[] = "whole number, or a string that holds one";
    char expected[200];
    (void)snprintf(expected, sizeof(expected),
                   INVALID "profile.samples[1].elapsed_since_start_ns: expected %s, found 1.5", whole);
    struct rule_case cases[] = {
        {"\"10000000\"", "10000000",
         INVALID "profile.samples[1].elapsed_since_start_ns: expected string of an integer, found number", ""},
        {"\"10000000\"", "1.5",
         INVALID "profile.samples[1].elapsed_since_start_ns: expected string of an integer, found number", expected},
        {"\"elapsed_since_start_ns\":\"5\"", "\"elapsed_since_start_ns\":5",
         INVALID "measurements.cpu.values[0].elapsed_since_start_ns: expected string of an integer, found number", ""},
        {"\"elapsed_since_start_ns\":\"10000000\",", "",
         INVALID "profile.samples[1].elapsed_since_start_ns: expected string of an integer, found nothing",
         INVALID "profile.samples[1].elapsed_since_start_ns: expected string of an integer, found nothing"},
        {"\"stack_id\":1", "\"stack_id\":\"1\"", INVALID "profile.samples[1].stack_id: expected number, found string",
         INVALID "profile.samples[1].stack_id: expected number, found string"},
        {"\"stack_id\":1", "\"stack_id\":-1",
         INVALID "profile.samples[1].stack_id: expected integer from 0 to 2^64 - 1, found -1",
         INVALID "profile.samples[1].stack_id: expected integer from 0 to 2^64 - 1, found -1"},
        {"\"stack_id\":1,\"thread_id\":\"259\"", "\"stack_id\":1,\"thread_id\":259",
         INVALID "profile.samples[1].thread_id: expected string of an integer, found number", ""},
    };
    CHECK_CASES(cases);
    static const char *const floats[] = {"\"1.5\"", "\"1e3\"", "\"-1\"", "\"\"", "null", "\"18446744073709551616\""};
    for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
        struct buffer payload = replaced("\"10000000\"", floats[i]);
        bool is_string = floats[i][0] != 'n';
        (void)snprintf(expected, sizeof(expected),
                       INVALID "profile.samples[1].elapsed_since_start_ns: expected %s, found %s",
                       is_string ? whole : "string of an integer", floats[i]);
        CHECK_TEXT(validate(buffer_slice(&payload), NULL, RULES_RELAY), expected);
        if (is_string) CHECK_TEXT(validate(buffer_slice(&payload), NULL, RULES_SPEC), expected);
        buffer_fini(&payload);
    }
}

TEST(frames_images_threads_measurements_are_typed_FMT_3_FMT_6_FMT_7)
{
    static const struct rule_case cases[] = {
        {"\"lineno\":7", "\"lineno\":-1",
         INVALID "profile.frames[0].lineno: expected integer from 0 to 4294967295, found -1",
         INVALID "profile.frames[0].lineno: expected integer from 0 to 4294967295, found -1"},
        {"\"lineno\":7", "\"line\":4294967296",
         INVALID "profile.frames[0].line: expected integer from 0 to 4294967295, found 4294967296",
         INVALID "profile.frames[0].line: expected integer from 0 to 4294967295, found 4294967296"},
        {"\"lineno\":7", "\"lineno\":7,\"line\":7",
         INVALID "profile.frames[0].line: expected key that comes once, found 7",
         INVALID "profile.frames[0].line: expected key that comes once, found 7"},
        {"\"function\":\"work\",\"lineno\":7,\"instruction_addr\":\"0x1230\"", "\"function\":null",
         INVALID "profile.frames[0]: expected filename, function or instruction_addr, found object", ""},
        {"\"0x1234\"", "4660",
         INVALID "profile.frames[1].instruction_addr: expected string with an address, found number",
         INVALID "profile.frames[1].instruction_addr: expected string with an address, found number"},
        {"\"0x1234\"", "\"0xyz\"",
         INVALID "profile.frames[1].instruction_addr: expected string with an address, found "
                 "\"0xyz\"",
         INVALID "profile.frames[1].instruction_addr: expected string with an address, found \"0xyz\""},
        {"\"symbolic\"", "\"elf\"", "",
         INVALID "debug_meta.images[0].type: expected macho, symbolic, sourcemap, proguard or jvm, found \"elf\""},
        {"\"image_size\":4096", "\"build_id\":\"f1c3bcc0279865fe3058404b2831d9e64135386c\"", "",
         INVALID "debug_meta.images[0].build_id: expected uuid, found \"f1c3bcc0279865fe3058404b2831d9e64135386c\""},
        {"{\"images\":[{\"type\":\"symbolic\",\"image_addr\":\"0x1000\",\"image_size\":4096}]}", "null",
         INVALID "debug_meta: expected object, found null", INVALID "debug_meta: expected object, found null"},
        {"{\"images\":[{\"type\":\"symbolic\",\"image_addr\":\"0x1000\",\"image_size\":4096}]}", "{}",
         INVALID "debug_meta.images: expected array, found nothing",
         INVALID "debug_meta.images: expected array, found nothing"},
        {"\"priority\":5", "\"priority\":-5",
         INVALID "profile.thread_metadata.259.priority: expected integer from 0 to 4294967295, found -5",
         INVALID "profile.thread_metadata.259.priority: expected integer from 0 to 4294967295, found -5"},
        {"\"percent\"", "\"nanojoule\"",
         INVALID "measurements.cpu.unit: expected nanosecond, ns, hertz, hz, byte or percent, found "
                 "\"nanojoule\"",
         ""},
        {"\"1e3\"", "1e3", "", ""},
        {"\"1e3\"", "\"+Infinity\"", "", ""},
        {"\"1e3\"", "\"much\"",
         INVALID "measurements.cpu.values[0].value: expected number, or a string that holds one, found \"much\"",
         INVALID "measurements.cpu.values[0].value: expected number, or a string that holds one, found \"much\""},
        {"\"1e3\"", "1e999", INVALID "measurements.cpu.values[0].value: expected finite number, found 1e999",
         INVALID "measurements.cpu.values[0].value: expected finite number, found 1e999"},
    };
    CHECK_CASES(cases);
}

TEST(native_platforms_must_bring_images_and_addresses_V1_2_FMT_6_FMT_10)
{
    static const char *const platforms[] = {"\"native\"", "\"rust\""};
    for (size_t i = 0; i < 2; i++) {
        struct buffer native = replaced("\"python\"", platforms[i]);
        buffer_append_byte(&native, 0);
        CHECK_TEXT(validate(slice_of(native.data, native.size - 1), NULL, RULES_SPEC), "accepted");
        struct buffer changed = replaced_in((const char *)native.data, "\"debug_meta\"", "\"x\"");
        CHECK_TEXT(validate(buffer_slice(&changed), NULL, RULES_SPEC),
                   "profiling_invalid_profile_metadata: debug_meta.images: expected an image, found nothing");
        CHECK_TEXT(validate(buffer_slice(&changed), NULL, RULES_RELAY), "accepted");
        buffer_fini(&changed);
        changed = replaced_in((const char *)native.data, ",\"instruction_addr\":\"0x1234\"", "");
        CHECK_TEXT(validate(buffer_slice(&changed), NULL, RULES_SPEC),
                   INVALID "profile.frames[1].instruction_addr: expected string with an address, found nothing");
        CHECK_TEXT(validate(buffer_slice(&changed), NULL, RULES_RELAY), "accepted");
        buffer_fini(&changed);
        changed = replaced_in((const char *)native.data, ",\"instruction_addr\":\"0x1234\"", ",\"platform\":\"other\"");
        CHECK_TEXT(validate(buffer_slice(&changed), NULL, RULES_SPEC), "accepted");
        buffer_fini(&changed);
        buffer_fini(&native);
    }
}

TEST(native_platforms_need_images_and_cocoa_more_FMT_6)
{
    static const struct rule_case cases[] = {
        {"\"platform\":\"python\"", "\"platform\":\"cocoa\"", "",
         "profiling_invalid_profile_metadata: os.build_number: expected string, found nothing"},
    };
    CHECK_CASES(cases);
    struct buffer payload =
        replaced("\"python\",\"release\":\"a@1\",\"environment\":\"test\",\"timestamp\":\"2023-01-01T00:00:00.000Z\","
                 "\"device\":{\"architecture\":\"x86_64\"},\"os\":{",
                 "\"cocoa\",\"timestamp\":\"2023-01-01T00:00:00Z\",\"device\":{\"architecture\":\"arm64\","
                 "\"is_emulator\":true,\"locale\":\"en\",\"manufacturer\":\"Apple\"},"
                 "\"os\":{\"build_number\":\"20D47\",");
    CHECK_TEXT(validate(buffer_slice(&payload), NULL, RULES_RELAY),
               "profiling_invalid_profile_metadata: device.model: expected string, found nothing");
    buffer_fini(&payload);
    struct buffer rust = replaced("\"python\"", "\"rust\"");
    buffer_append_byte(&rust, 0);
    payload = replaced_in((const char *)rust.data,
                          "{\"type\":\"symbolic\",\"image_addr\":\"0x1000\",\"image_size\":4096}", "");
    CHECK_TEXT(validate(buffer_slice(&payload), NULL, RULES_SPEC),
               "profiling_invalid_profile_metadata: debug_meta.images: expected an image, found nothing");
    CHECK_TEXT(validate(buffer_slice(&payload), NULL, RULES_RELAY), "accepted");
    buffer_fini(&payload);
    buffer_fini(&rust);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static const char samples_of_good[] = "{\"elapsed_since_start_ns\":\"0\",\"stack_id\":0,\"thread_id\":\"259\"},"
                                      "{\"elapsed_since_start_ns\":\"10000000\",\"stack_id\":1,\"thread_id\":\"259\"},"
                                      "{\"elapsed_since_start_ns\":\"20000000\",\"stack_id\":0,\"thread_id\":\"259\"}";

/* The result on GOOD with other samples, each "elapsed stack thread", and how much was repaired ("what=count,"). */
static const char *validate_samples(const char *samples, enum rules rules)
{
    static char text[900];
    struct buffer payload, list;
    struct rules_result result;
    unsigned long long elapsed, stack, thread;
    int size;
    buffer_init(&list, 1 << 16);
    for (; sscanf(samples, "%llu %llu %llu%n", &elapsed, &stack, &thread, &size) == 3; samples += size) {
        buffer_append_format(&list, "%s{\"elapsed_since_start_ns\":\"%llu\",\"stack_id\":%llu,\"thread_id\":\"%llu\"}",
                             list.size ? "," : "", elapsed, stack, thread);
        if (samples[size] == ',') size++;
    }
    buffer_append_byte(&list, 0);
    payload = replaced(samples_of_good, (const char *)list.data);
    CHECK_UINT(rules_validate_profile(buffer_slice(&payload), NULL, rules, &result, NULL), STATUS_OK);
    rules_result_print(&result, text, sizeof(text));
    for (uint32_t i = 0; i < result.repairs.count; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof(text) - used, "; %s %llu", result.repairs.items[i].what,
                       (unsigned long long)result.repairs.items[i].count);
    }
    buffer_fini(&payload);
    buffer_fini(&list);
    return text;
}

#define EDGES "idle samples at the edges of a thread dropped"
#define SINGLE "samples of threads with a single one dropped"
#define UNUSED "thread_metadata of threads without samples dropped"
#define TOO_FEW                                                                                                        \
    "profiling_not_enough_samples: profile.samples: expected a thread with two samples, its edges not idle, found 0"

TEST(two_samples_are_enough_V1_4)
{
    CHECK_TEXT(validate_samples("0 0 259, 1 0 259", RULES_SPEC), "accepted");
    CHECK_TEXT(validate_samples("0 0 259, 1 0 259", RULES_RELAY), "accepted");
    CHECK_TEXT(validate_samples("0 0 259", RULES_SPEC),
               "profiling_not_enough_samples: profile.samples: expected at least 2, found 1");
    CHECK_TEXT(validate_samples("0 0 259", RULES_RELAY), TOO_FEW "; " SINGLE " 1");
    CHECK_TEXT(validate_samples("0 0 1, 1 0 2", RULES_SPEC),
               INVALID "profile.thread_metadata.1: expected object, found nothing");
    CHECK_TEXT(validate_samples("0 0 1, 1 0 2", RULES_RELAY), TOO_FEW "; " SINGLE " 2");
    CHECK_TEXT(validate_samples("", RULES_RELAY), TOO_FEW);
}

TEST(idle_edges_go_first_then_threads_with_one_sample_V1_4)
{
    CHECK_TEXT(validate_samples("0 1 259, 1 0 259, 2 1 259, 3 0 259, 4 1 259", RULES_RELAY), "accepted; " EDGES " 2");
    CHECK_TEXT(validate_samples("0 1 259, 1 0 259, 2 1 259", RULES_RELAY), TOO_FEW "; " EDGES " 2; " SINGLE " 1");
    CHECK_TEXT(validate_samples("0 1 259, 1 1 259, 2 1 259", RULES_RELAY), TOO_FEW "; " EDGES " 3");
    CHECK_TEXT(validate_samples("0 0 7, 0 0 259, 1 0 7", RULES_RELAY), "accepted; " SINGLE " 1; " UNUSED " 1");
}

TEST(an_index_that_points_nowhere_is_malformed_where_its_thread_stays_V1_4)
{
    static const char malformed[] = "profiling_malformed_samples: profile.samples[1].stack_id: "
                                    "expected index below 2, found 2";
    CHECK_TEXT(validate_samples("0 0 259, 1 2 259, 2 0 259", RULES_RELAY), malformed);
    CHECK_TEXT(validate_samples("0 0 259, 1 2 259, 2 0 259", RULES_SPEC), malformed);
    CHECK_TEXT(validate_samples("0 0 259, 1 2 7, 2 0 259", RULES_RELAY), "accepted; " EDGES " 1");
    static const struct rule_case cases[] = {
        {"[[0,1],[]]", "[[0,1],[0,2],[3]]",
         "profiling_malformed_stacks: profile.stacks[1][1]: expected index below 2, found 2",
         "profiling_malformed_stacks: profile.stacks[1][1]: expected index below 2, found 2"},
        {"[[0,1],[]]", "[[0,1.0],[]]", INVALID "profile.stacks[0][1]: expected integer from 0 to 2^64 - 1, found 1.0",
         INVALID "profile.stacks[0][1]: expected integer from 0 to 2^64 - 1, found 1.0"},
        {"[[0,1],[]]", "[]", "profiling_malformed_samples: profile.stacks: expected at least 1, found 0", TOO_FEW},
    };
    CHECK_CASES(cases);
}

TEST(thirty_seconds_are_the_longest_V1_4)
{
    CHECK_TEXT(validate_samples("0 0 259, 30000000000 0 259", RULES_SPEC), "accepted");
    CHECK_TEXT(validate_samples("0 0 259, 30000000000 0 259", RULES_RELAY), "accepted");
    CHECK_TEXT(
        validate_samples("0 0 259, 30000000001 0 259", RULES_SPEC),
        "profiling_duration_is_too_long: profile.samples: expected at most 30000000000 ns between first and last "
        "sample, found 30000000001");
    CHECK_TEXT(
        validate_samples("0 0 259, 30000000001 0 259", RULES_RELAY),
        "profiling_duration_is_too_long: profile.samples[1].elapsed_since_start_ns: expected at most 30000000000, "
        "found 30000000001");
    /* The documents measure from the first sample, the service from the start. */
    CHECK_TEXT(validate_samples("5000000000 0 259, 31000000000 0 259", RULES_SPEC), "accepted");
    CHECK(strstr(validate_samples("5000000000 0 259, 31000000000 0 259", RULES_RELAY), "duration_is_too_long") != NULL);
}

TEST(what_is_outside_of_the_transaction_goes_first_V1_4)
{
    struct rules_result result;
    struct buffer payload =
        replaced("\"active_thread_id\":\"259\"",
                 "\"active_thread_id\":\"259\",\"relative_start_ns\":0,\"relative_end_ns\":\"19999999\"");
    CHECK_UINT(rules_validate_profile(buffer_slice(&payload), NULL, RULES_RELAY, &result, NULL), STATUS_OK);
    CHECK_TEXT(reject_reason_name(result.reason), "profiling_not_enough_samples");
    CHECK_UINT(result.repairs.count, 3);
    CHECK_TEXT(result.repairs.items[0].what, "samples outside of the transaction dropped");
    CHECK_UINT(result.repairs.items[0].count, 1);
    buffer_fini(&payload);
}

TEST(what_is_no_json_or_too_large_is_rejected_V1_4)
{
    CHECK_TEXT(validate(slice_of_text(""), NULL, RULES_RELAY),
               INVALID "expected valid JSON, found input ends early at byte 0");
    CHECK_TEXT(validate(slice_of_text("[]"), NULL, RULES_RELAY), INVALID "expected object, found array");
    CHECK(strstr(validate(slice_of(good, sizeof(good) - 2), NULL, RULES_RELAY), INVALID "expected valid JSON") != NULL);
    struct buffer large;
    buffer_init(&large, (size_t)60 << 20);
    buffer_append(&large, good, sizeof(good) - 1);
    size_t missing = ((size_t)50 << 20) - large.size;
    memset(buffer_reserve(&large, missing + 1), ' ', missing + 1);
    buffer_grow(&large, missing);
    CHECK_TEXT(validate(buffer_slice(&large), NULL, RULES_RELAY), "accepted");
    buffer_grow(&large, 1);
    CHECK_TEXT(validate(buffer_slice(&large), NULL, RULES_RELAY),
               "profiling_exceed_size_limit: expected at most 52428800 bytes, found 52428801 bytes");
    CHECK_TEXT(validate(slice_of(large.data, 50000001), NULL, RULES_SPEC), /* V2-10, of V1 too */
               "profiling_exceed_size_limit: expected at most 50000000 bytes, found 50000001 bytes");
    CHECK_TEXT(validate(slice_of(large.data, 50000000), NULL, RULES_SPEC), "accepted");
    buffer_fini(&large);
}

TEST(validates_damaged_profiles)
{
    char damaged[sizeof(good)];
    uint64_t state = 1;
    struct rules_result result;
    for (int round = 0; round < 10000; round++) {
        memcpy(damaged, good, sizeof(good));
        state = state * 6364136223846793005u + 1442695040888963407u;
        damaged[(state >> 33) % (sizeof(good) - 1)] = (char)(state >> 56);
        CHECK_UINT(rules_validate_profile(slice_of(damaged, sizeof(good) - 1), NULL, (enum rules)(round % RULES_COUNT),
                                          &result, NULL),
                   STATUS_OK);
    }
}

TEST_MAIN()
