/* Acceptance of V2 chunks, and the reasons for rejection (V2-1 V2-2 V2-3 V2-4 V2-5 V2-6 V2-7, FMT-1 FMT-2 FMT-3 FMT-4
 * FMT-5 FMT-6 FMT-7, REL-1; facts §1.2, §1.3, §5): each case changes one thing in a chunk that both sets of rules
 * accept, and says what either makes of it.  SPDX-License-Identifier: MIT
 */
#include "test.h"

#include "format/sentry/sentry_v2.h"

#include <stdlib.h>

/* Two threads: "1" has three samples, "2" two and an idle one. Stack 2 is empty, stack 3 is used by nobody. */
static const char accepted_chunk[] =
    "{\"version\":\"2\",\"profiler_id\":\"0b167bf84f9e4b84b384f321756d51e0\","
    "\"chunk_id\":\"9723ec98a59b4cf9a8321939aa98f852\",\"platform\":\"python\",\"release\":\"a@1\","
    "\"client_sdk\":{\"name\":\"sdk\",\"version\":\"1.0\"},"
    "\"debug_meta\":{\"images\":[{\"type\":\"symbolic\",\"debug_id\":\"1cc8ef1f-c2a2-e14d-ce2e-848c620ef422\","
    "\"image_addr\":\"0x7f0000000000\",\"image_size\":4096,\"image_vmaddr\":\"0x0\",\"code_file\":\"/lib/l.so\"}]},"
    "\"measurements\":{\"cpu\":{\"unit\":\"percent\",\"values\":[{\"timestamp\":1700000000.5,\"value\":12.5}]}},"
    "\"profile\":{\"frames\":[{\"function\":\"f\",\"lineno\":7,\"in_app\":true,\"instruction_addr\":\"0x7f0000000018\"}"
    ","
    "{\"function\":\"g\",\"instruction_addr\":\"0x7f0000000010\"}],"
    "\"stacks\":[[0],[1,0],[],[1]],"
    "\"samples\":[{\"timestamp\":1700000000.0,\"stack_id\":0,\"thread_id\":\"1\"},"
    "{\"timestamp\":1700000000.5,\"stack_id\":1,\"thread_id\":\"1\"},"
    "{\"timestamp\":1700000001.0,\"stack_id\":0,\"thread_id\":\"2\"},"
    "{\"timestamp\":1700000001.5,\"stack_id\":2,\"thread_id\":\"2\"},"
    "{\"timestamp\":1700000002.0,\"stack_id\":1,\"thread_id\":\"2\"},"
    "{\"timestamp\":1700000003.0,\"stack_id\":1,\"thread_id\":\"1\"}],"
    "\"thread_metadata\":{\"1\":{\"name\":\"main\",\"priority\":3},\"2\":{}}}}";

#define JSON "profiling_invalid_json: "
#define METADATA "profiling_invalid_profile_metadata: "
#define VERSION "profiling_platform_not_supported: version: expected \"2\", found "
#define YES "accepted"

/* CHUNK with the first FROM in it made into TO. To be freed. */
static char *changed(const char *chunk, const char *from, const char *to)
{
    const char *place = strstr(chunk, from);
    if (!place) TEST_FAIL("no %s in the chunk", from);
    size_t front = (size_t)(place - chunk), size = strlen(chunk) + strlen(to) + 1;
    char *text = malloc(size);
    if (!text) abort();
    (void)snprintf(text, size, "%.*s%s%s", (int)front, chunk, to, place + strlen(from));
    return text;
}

/* Returns the result of RULES for PAYLOAD, followed by the repairs. */
static const char *say(const char *payload, const struct rules_context *context, enum rules rules)
{
    static char text[1024];
    struct rules_result result;
    static struct error error;
    if (rules_validate_chunk(slice_of_text(payload), context, rules, &result, &error) != STATUS_OK)
        return error.message;
    rules_result_print(&result, text, sizeof(text));
    for (uint32_t i = 0; i < result.repairs.count; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof(text) - used, "; %d %s", (int)result.repairs.items[i].count,
                       result.repairs.items[i].what);
    }
    return text;
}

struct change {
    const char *from, *to, *spec, *relay;
};

static void check_changes(const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *payload = changed(accepted_chunk, changes[i].from, changes[i].to);
        const char *expected[RULES_COUNT] = {[RULES_SPEC] = changes[i].spec, [RULES_RELAY] = changes[i].relay};
        for (enum rules rules = 0; rules < RULES_COUNT; rules++) {
            const char *found = say(payload, NULL, rules);
            if (strcmp(found, expected[rules]) != 0)
                TEST_FAIL("%s for %s: %s: %s", changes[i].to, changes[i].from, rules == RULES_SPEC ? "spec" : "relay",
                          found);
        }
        free(payload);
    }
}
#define CHECK_CHANGES(changes) check_changes((changes), sizeof(changes) / sizeof((changes)[0]))

TEST(a_chunk_that_keeps_all_rules_is_accepted_by_both_sets_REL_1)
{
    CHECK_TEXT(say(accepted_chunk, NULL, RULES_SPEC), YES);
    CHECK_TEXT(say(accepted_chunk, NULL, RULES_RELAY), YES);
}

TEST(metadata_is_typed_and_complete_V2_1_V2_2_V2_5)
{
    static const struct change changes[] = {
        {"\"version\":\"2\",", "", VERSION "nothing", VERSION "nothing"},
        {"\"version\":\"2\"", "\"version\":\"1\"", VERSION "\"1\"", VERSION "\"1\""},
        {"\"version\":\"2\"", "\"version\":2", JSON "version: expected string, found number",
         JSON "version: expected string, found number"},
        {"\"profiler_id\":\"0b167bf84f9e4b84b384f321756d51e0\"", "\"x\":0",
         METADATA "profiler_id: expected uuid, found nothing", JSON "profiler_id: expected uuid, found nothing"},
        {"\"chunk_id\"", "\"event_id\"", YES, YES},
        {"\"chunk_id\"", "\"profiler_id\"", METADATA "chunk_id: expected uuid, found nothing",
         JSON "chunk_id: expected uuid, found nothing"},
        {"0b167bf84f9e4b84b384f321756d51e0", "0B167BF8-4F9E-4B84-B384-F321756D51E0",
         JSON "profiler_id: expected 32 lowercase hex digits, found \"0B167BF8-4F9E-4B84-B384-F321756D51E0\"", YES},
        {"0b167bf84f9e4b84b384f321756d51e0", "00000000000000000000000000000000",
         JSON "profiler_id: expected uuid of version 4, found \"00000000000000000000000000000000\"", YES},
        {"9723ec98a59b4cf9a8321939aa98f852", "9723ec98a59b7cf9a8321939aa98f852",
         JSON "chunk_id: expected uuid of version 4, found \"9723ec98a59b7cf9a8321939aa98f852\"", YES},
        {"0b167bf84f9e4b84b384f321756d51e0", "0b16", JSON "profiler_id: expected uuid, found \"0b16\"",
         JSON "profiler_id: expected uuid, found \"0b16\""},
        {"\"platform\":\"python\"", "\"platform\":null", METADATA "platform: expected string, found null",
         JSON "platform: expected string, found null"},
        {"\"platform\":\"python\",", "", METADATA "platform: expected string, found nothing",
         JSON "platform: expected string, found nothing"},
        {"\"release\":\"a@1\",", "", METADATA "release: expected string, found nothing", YES},
        {"\"release\":\"a@1\"", "\"release\":null", METADATA "release: expected string, found null", YES},
        {"\"release\":\"a@1\"", "\"release\":1", JSON "release: expected string, found number",
         JSON "release: expected string, found number"},
        {"\"client_sdk\":{\"name\":\"sdk\",\"version\":\"1.0\"},", "",
         METADATA "client_sdk: expected object, found nothing", JSON "client_sdk: expected object, found nothing"},
        {"\"name\":\"sdk\",", "", JSON "client_sdk.name: expected string, found nothing",
         JSON "client_sdk.name: expected string, found nothing"},
        {"\"release\":\"a@1\"", "\"release\":\"a@1\",\"event_id\":\"9723ec98a59b4cf9a8321939aa98f852\"",
         JSON "event_id: expected key that comes once, found \"9723ec98a59b4cf9a8321939aa98f852\"",
         JSON "event_id: expected key that comes once, found \"9723ec98a59b4cf9a8321939aa98f852\""},
        {"\"release\":\"a@1\"", "\"release\":\"a@1\",\"x\":1,\"x\":2", YES, YES},
        {"\"release\":\"a@1\"", "\"release\":\"a@1\",\"environment\":null,\"dist\":5", YES, YES},
    };
    CHECK_CHANGES(changes);
}

TEST(samples_are_typed_V2_3_FMT_1)
{
    static const struct change changes[] = {
        {"\"thread_id\":\"1\"", "\"thread_id\":1", JSON "profile.samples[0].thread_id: expected string, found number",
         JSON "profile.samples[0].thread_id: expected string, found number"},
        {"\"timestamp\":1700000000.0", "\"timestamp\":\"1700000000.0\"",
         JSON "profile.samples[0].timestamp: expected number, found string",
         JSON "profile.samples[0].timestamp: expected number, found string"},
        {"\"timestamp\":1700000000.0", "\"timestamp\":1e999",
         JSON "profile.samples[0].timestamp: expected finite number, found 1e999",
         JSON "profile.samples[0].timestamp: expected finite number, found 1e999"},
        {"\"timestamp\":1700000000.0", "\"timestamp\":1700000000", YES, YES},
        {"\"stack_id\":0", "\"stack_id\":1.0",
         JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found 1.0",
         JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found 1.0"},
        {"\"stack_id\":0", "\"stack_id\":-1",
         JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found -1",
         JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found -1"},
        {"\"stack_id\":0,", "", JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found nothing",
         JSON "profile.samples[0].stack_id: expected integer from 0 to 2^64 - 1, found nothing"},
        {"[[0],", "[[\"0\"],", JSON "profile.stacks[0][0]: expected number, found string",
         JSON "profile.stacks[0][0]: expected number, found string"},
        {"\"samples\":[", "\"samples\":[],\"more\":[",
         "profiling_not_enough_samples: profile.samples: expected at "
         "least one, found none",
         "profiling_not_enough_samples: profile.samples: expected a thread with two samples that have frames, found "
         "none"},
        {"\"stacks\":[[0],[1,0],[],[1]],", "", JSON "profile.stacks: expected array, found nothing",
         JSON "profile.stacks: expected array, found nothing"},
    };
    CHECK_CHANGES(changes);
}

TEST(frames_are_typed_FMT_3_FMT_8)
{
    static const struct change changes[] = {
        {"\"lineno\":7", "\"lineno\":-1", YES,
         JSON "profile.frames[0].lineno: expected integer from 0 to 4294967295, found -1"},
        {"\"lineno\":7", "\"lineno\":4294967296", YES,
         JSON "profile.frames[0].lineno: expected integer from 0 to 4294967295, found 4294967296"},
        {"\"lineno\":7", "\"lineno\":7,\"line\":7",
         JSON "profile.frames[0].line: expected key that comes once, found 7",
         JSON "profile.frames[0].line: expected key that comes once, found 7"},
        {"\"lineno\":7", "\"line\":7,\"column\":1,\"file\":\"x\",\"package\":null,\"vars\":{\"a\":[1]}", YES, YES},
        {"\"in_app\":true", "\"in_app\":1", JSON "profile.frames[0].in_app: expected true or false, found 1",
         JSON "profile.frames[0].in_app: expected true or false, found 1"},
        {"\"0x7f0000000010\"", "139637976727568",
         JSON "profile.frames[1].instruction_addr: expected string with an address, found number",
         JSON "profile.frames[1].instruction_addr: expected string with an address, found number"},
        {"\"0x7f0000000010\"", "\"139637976727568\"", YES, YES},
        {"\"0x7f0000000010\"", "\"f\"",
         JSON "profile.frames[1].instruction_addr: expected string with an address, found \"f\"",
         JSON "profile.frames[1].instruction_addr: expected string with an address, found \"f\""},
        {"\"function\":\"f\",\"lineno\":7,\"in_app\":true,\"instruction_addr\":\"0x7f0000000018\"", "\"module\":\"m\"",
         JSON "profile.frames[0]: expected filename, function or instruction_addr, found object", YES},
        {"\"function\":\"f\"", "\"function\":\"f\",\"platform\":5", YES,
         JSON "profile.frames[0].platform: expected string, found number"},
        {"{\"function\":\"f\",\"lineno\":7,\"in_app\":true,\"instruction_addr\":\"0x7f0000000018\"}", "null",
         JSON "profile.frames[0]: expected object, found null", JSON "profile.frames[0]: expected object, found null"},
    };
    CHECK_CHANGES(changes);
}

TEST(threads_and_images_are_typed_FMT_5_FMT_6)
{
    static const struct change changes[] = {
        {"\"priority\":3", "\"priority\":-5", YES,
         JSON "profile.thread_metadata.1.priority: expected integer from 0 to 4294967295, found -5"},
        {"\"priority\":3", "\"priority\":1.5", YES,
         JSON "profile.thread_metadata.1.priority: expected integer from 0 to 4294967295, found 1.5"},
        {",\"thread_metadata\":{\"1\":{\"name\":\"main\",\"priority\":3},\"2\":{}}", "",
         JSON "profile.thread_metadata: expected object, found nothing", YES},
        {",\"2\":{}", "", JSON "profile.thread_metadata.2: expected object, found nothing", YES},
        {"\"2\":{}", "\"2\":{},\"3\":{\"name\":\"gone\"}", YES,
         YES "; 1 entries of thread_metadata dropped, without samples"},
        {"\"symbolic\"", "\"elf\"", YES,
         JSON "debug_meta.images[0].type: expected macho, symbolic, sourcemap, proguard or jvm, found \"elf\""},
        {"\"type\":\"symbolic\",", "", JSON "debug_meta.images[0].type: expected string, found nothing",
         JSON "debug_meta.images[0].type: expected string, found nothing"},
        {"\"type\":\"symbolic\"", "\"type\":\"symbolic\",\"build_id\":\"f1c3bcc0279865fe3058404b2831d9e64135386c\"",
         YES, JSON "debug_meta.images[0].build_id: expected uuid, found \"f1c3bcc0279865fe3058404b2831d9e64135386c\""},
        {"\"type\":\"symbolic\"", "\"type\":\"symbolic\",\"code_id\":\"f1c3\",\"arch\":7", YES, YES},
        {"\"image_addr\":\"0x7f0000000000\"", "\"image_addr\":1",
         JSON "debug_meta.images[0].image_addr: expected string with an address, found number",
         JSON "debug_meta.images[0].image_addr: expected string with an address, found number"},
        {"\"image_size\":4096", "\"image_size\":\"4096\"", YES, YES},
        {"\"debug_meta\":{", "\"debug_meta\":null,\"x\":{", YES, JSON "debug_meta: expected object, found null"},
        {"\"debug_meta\":{\"images\"", "\"debug_meta\":{\"x\"", JSON "debug_meta.images: expected array, found nothing",
         JSON "debug_meta.images: expected array, found nothing"},
        {"\"debug_meta\"", "\"x\"", YES, YES},
    };
    CHECK_CHANGES(changes);
}

TEST(measurements_are_typed_FMT_7_V2_4)
{
    static const struct change changes[] = {
        {"\"value\":12.5", "\"value\":\"1e3\"", YES, YES},
        {"\"value\":12.5", "\"value\":\"+Infinity\"", YES, YES},
        {"\"value\":12.5", "\"value\":\".5\"", YES, YES},
        {"\"value\":12.5", "\"value\":+Infinity",
         JSON "measurements.cpu.values[0].value: expected value, found something else at byte 463",
         JSON "measurements.cpu.values[0].value: expected value, found something else at byte 463"},
        {"\"value\":12.5", "\"value\":\"fast\"",
         JSON "measurements.cpu.values[0].value: expected number, or a string that holds one, found \"fast\"",
         JSON "measurements.cpu.values[0].value: expected number, or a string that holds one, found \"fast\""},
        {"\"timestamp\":1700000000.5,\"value\"", "\"timestamp\":\"1700000000.5\",\"value\"",
         JSON "measurements.cpu.values[0].timestamp: expected number, found string",
         JSON "measurements.cpu.values[0].timestamp: expected number, found string"},
        {"\"percent\"", "\"nanojoule\"",
         JSON "measurements.cpu.unit: expected nanosecond, ns, hertz, hz, byte or percent, found \"nanojoule\"", YES},
        {"\"percent\"", "\"joule\"",
         JSON "measurements.cpu.unit: expected nanosecond, ns, hertz, hz, byte or percent, found \"joule\"",
         JSON "measurements.cpu.unit: expected nanosecond, ns, hertz, hz, byte, percent, nanojoule or nj, found "
              "\"joule\""},
        {"\"percent\"", "\"nj\"",
         JSON "measurements.cpu.unit: expected nanosecond, ns, hertz, hz, byte or percent, found \"nj\"", YES},
        {"\"percent\"", "\"nanosecond\"", YES, YES},
        {"\"percent\"", "\"ns\"", YES, YES},
        {"\"percent\"", "\"hertz\"", YES, YES},
        {"\"percent\"", "\"hz\"", YES, YES},
        {"\"percent\"", "\"byte\"", YES, YES},
        {"\"timestamp\":1700000000.5,\"value\"", "\"value\"",
         JSON "measurements.cpu.values[0].timestamp: expected finite number, found nothing",
         JSON "measurements.cpu.values[0].timestamp: expected finite number, found nothing"},
        {"\"timestamp\":1700000000.5,\"value\":12.5", "\"timestamp\":1700000000.5",
         JSON "measurements.cpu.values[0].value: expected number, or a string that holds one, found nothing",
         JSON "measurements.cpu.values[0].value: expected number, or a string that holds one, found nothing"},
        {"\"values\":[{\"timestamp\":1700000000.5,\"value\":12.5}]",
         "\"values\":{\"timestamp\":1700000000.5,\"value\":12.5}", YES,
         JSON "measurements.cpu.values: expected array, found object"}, /* the documents' own example */
        {"\"measurements\":{", "\"measurements\":null,\"x\":{", YES, JSON "measurements: expected object, found null"},
    };
    CHECK_CHANGES(changes);
}

TEST(a_file_that_is_not_json_is_reported_first)
{
    CHECK_TEXT(say("", NULL, RULES_RELAY), JSON "expected valid JSON, found input ends early at byte 0");
    CHECK_TEXT(say("[]", NULL, RULES_RELAY), JSON "expected object, found array");
    CHECK_TEXT(say("{\"version\":\"1\",\"profile\":{\"samples\":[{]}}", NULL, RULES_RELAY),
               JSON "profile.samples[0]: expected string, found something else at byte 38");
    CHECK_TEXT(say("{}{}", NULL, RULES_RELAY),
               JSON "expected valid JSON, found more bytes after the end of the value at byte 2");
    /* The fields that decide the kind are checked before the ones further in. */
    CHECK_TEXT(say("{\"profile\":{\"samples\":5},\"platform\":\"x\",\"version\":\"1\","
                   "\"chunk_id\":\"9723ec98a59b4cf9a8321939aa98f852\"}",
                   NULL, RULES_RELAY),
               VERSION "\"1\"");
    CHECK_TEXT(say("{\"profile\":{\"samples\":5},\"platform\":\"x\",\"version\":\"2\","
                   "\"chunk_id\":\"9723ec98a59b4cf9a8321939aa98f852\"}",
                   NULL, RULES_RELAY),
               JSON "profile.samples: expected array, found number");
}

#define LAST "{\"timestamp\":1700000003.0,\"stack_id\":1,\"thread_id\":\"1\"}"

TEST(samples_are_repaired_before_validation_V2_5)
{
    static const struct change changes[] = {
        /* Threads with one sample that has frames go first, whatever else is wrong with them. */
        {LAST, LAST ",{\"timestamp\":1700000009.0,\"stack_id\":9,\"thread_id\":\"3\"}",
         "profiling_malformed_samples: profile.samples[6].stack_id: expected index below 4, found 9",
         YES "; 1 samples dropped, of threads that have not two with frames"},
        {"1700000002.0,\"stack_id\":1", "1700000002.0,\"stack_id\":2", YES,
         YES "; 3 samples dropped, of threads that have not two with frames; 1 entries of thread_metadata dropped, "
             "without samples"},
        {LAST, "{\"timestamp\":1700000003.0,\"stack_id\":9,\"thread_id\":\"1\"}",
         "profiling_malformed_samples: profile.samples[5].stack_id: expected index below 4, found 9",
         "profiling_malformed_samples: profile.samples[5].stack_id: expected index below 4, found 9"},
        {"\"stacks\":[[0],[1,0],[],[1]]", "\"stacks\":[[],[],[],[]]", YES,
         "profiling_not_enough_samples: profile.samples: expected a thread with two samples that have frames, found "
         "none; 6 samples dropped, of threads that have not two with frames"},
        {"\"stacks\":[[0],[1,0],[],[1]]", "\"stacks\":[[0],[1,0],[],[1,7]]",
         "profiling_malformed_stacks: profile.stacks[3][1]: expected index below 2, found 7",
         "profiling_malformed_stacks: profile.stacks[3][1]: expected index below 2, found 7"},
        {"\"stacks\":[[0],[1,0],[],[1]]", "\"stacks\":[]",
         "profiling_malformed_samples: profile.stacks: expected at least one, found none",
         "profiling_not_enough_samples: profile.samples: expected a thread with two samples that have frames, found "
         "none; 6 samples dropped, of threads that have not two with frames"},
        {"1700000003.0", "1700000066.0", YES, YES},
        {"1700000003.0", "1700000066.001", YES,
         "profiling_duration_is_too_long: profile.samples: expected at most 66 s from first to last, found 66.001000 "
         "s"},
        {"1700000003.0", "1600000000.0", YES,
         "profiling_duration_is_too_long: profile.samples: expected at most 66 s from first to last, found "
         "100000002.000000 s; 1 samples sorted by time, that were earlier than the one before"},
        {"1700000003.0", "1700000000.2", YES, YES "; 1 samples sorted by time, that were earlier than the one before"},
        {"1700000000.5,\"stack_id\"", "1700000000.0,\"stack_id\"", YES, YES},
        {"\"python\"", "\"cocoa\"", YES, YES "; 2 instruction addresses cut to 36 bits, as for cocoa"},
    };
    CHECK_CHANGES(changes);
}

TEST(native_code_has_images_and_addresses_FMT_3_FMT_6_FMT_10)
{
    char *native = changed(accepted_chunk, "\"python\"", "\"native\"");
    char *without_images = changed(native, "\"debug_meta\"", "\"x\"");
    char *without_id = changed(native, "\"debug_id\":\"1cc8ef1f-c2a2-e14d-ce2e-848c620ef422\",", "");
    char *no_image = changed(native, "\"images\":[{", "\"images\":[],\"x\":[{");
    char *without_address = changed(native, ",\"instruction_addr\":\"0x7f0000000018\"", "");
    char *other_code = changed(without_address, "\"function\":\"f\"", "\"function\":\"f\",\"platform\":\"other\"");
    CHECK_TEXT(say(native, NULL, RULES_SPEC), YES);
    CHECK_TEXT(say(without_images, NULL, RULES_SPEC), METADATA "debug_meta.images: expected an image, found nothing");
    CHECK_TEXT(say(no_image, NULL, RULES_SPEC), METADATA "debug_meta.images: expected an image, found nothing");
    CHECK_TEXT(say(no_image, NULL, RULES_RELAY), YES);
    CHECK_TEXT(say(without_images, NULL, RULES_RELAY), YES);
    CHECK_TEXT(say(without_id, NULL, RULES_SPEC),
               METADATA "debug_meta.images[0].debug_id: expected string, found nothing");
    CHECK_TEXT(say(without_address, NULL, RULES_SPEC),
               JSON "profile.frames[0].instruction_addr: expected string with an address, found nothing");
    CHECK_TEXT(say(other_code, NULL, RULES_SPEC), YES);
    CHECK_TEXT(say(without_address, NULL, RULES_RELAY), YES);
    free(native);
    free(without_images);
    free(without_id);
    free(without_address);
    free(no_image);
    free(other_code);
}

TEST(the_items_header_names_the_platform_V2_7)
{
    static const char type[] = "profiling_invalid_profile_type: item.platform: expected ";
    char expected[256];
    struct rules_context context = {.is_in_envelope = true, .platform = slice_of_text("python")};
    CHECK_TEXT(say(accepted_chunk, &context, RULES_SPEC), YES);
    context.platform = slice_of_text("node"); /* another one of the same class */
    CHECK_TEXT(say(accepted_chunk, &context, RULES_RELAY), YES);
    (void)snprintf(expected, sizeof(expected), "%sthe payload's, \"python\", found \"node\"", type);
    CHECK_TEXT(say(accepted_chunk, &context, RULES_SPEC), expected);
    context.platform = slice_of_text("cocoa");
    (void)snprintf(expected, sizeof(expected), "%sone of a backend, like the payload's, found \"cocoa\"", type);
    CHECK_TEXT(say(accepted_chunk, &context, RULES_RELAY), expected);
    context.platform = slice_of(NULL, 0);
    CHECK_TEXT(say(accepted_chunk, &context, RULES_RELAY), YES);
    (void)snprintf(expected, sizeof(expected), "%sthe payload's, \"python\", found nothing", type);
    CHECK_TEXT(say(accepted_chunk, &context, RULES_SPEC), expected);
    context.has_meta_length = true;
    CHECK_TEXT(say(accepted_chunk, &context, RULES_RELAY),
               "profiling_invalid_sampled_profile: item.meta_length: expected no meta_length with JSON, found one");
}

/* Members that offbeat would not keep: a value, a name, many measurements, many images without a place in memory. */
TEST(a_payload_of_any_size_gets_a_result_V2_10)
{
    static const struct {
        const char *from, *front, *item, *back;
        size_t count;
    } payloads[] = {
        {"\"release\"", "\"x\":\"", "y", "\",\"release\"", 3 << 20},
        {"\"release\"", "\"", "y", "\":1,\"release\"", 3 << 20},
        {"\"function\":\"f\"", "\"function\":\"f", "y", "\"", 3 << 20},
        {"\"function\":\"f\"", "\"vars\":\"", "y", "\",\"function\":\"f\"", 3 << 20},
        {"\"images\":[", "\"images\":[", "{\"type\":\"sourcemap\"},", "", 20000},
    };
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        struct buffer middle;
        buffer_init(&middle, 16 << 20);
        buffer_append_text(&middle, payloads[i].front);
        for (size_t k = 0; k < payloads[i].count; k++) buffer_append_text(&middle, payloads[i].item);
        buffer_append_text(&middle, payloads[i].back);
        buffer_append_byte(&middle, 0);
        char *payload = changed(accepted_chunk, payloads[i].from, (const char *)middle.data);
        CHECK_TEXT(say(payload, NULL, RULES_SPEC), YES);
        CHECK_TEXT(say(payload, NULL, RULES_RELAY), YES);
        free(payload);
        buffer_fini(&middle);
    }
}

TEST(a_chunk_over_50_mib_is_rejected_V2_5)
{
    struct rules_result result;
    size_t size = RULES_RELAY_BYTES_MAX + 1;
    char *text = malloc(size);
    if (!text) abort();
    memset(text, ' ', size);
    memcpy(text, accepted_chunk, sizeof(accepted_chunk) - 1);
    CHECK_UINT(rules_validate_chunk(slice_of(text, size), NULL, RULES_RELAY, &result, NULL), STATUS_OK);
    CHECK_TEXT(reject_reason_name(result.reason), "profiling_exceed_size_limit");
    CHECK_UINT(rules_validate_chunk(slice_of(text, size - 1), NULL, RULES_RELAY, &result, NULL), STATUS_OK);
    CHECK(result.accepted);
    CHECK_UINT(rules_validate_chunk(slice_of(text, 50000001), NULL, RULES_SPEC, &result, NULL), STATUS_OK);
    CHECK_TEXT(reject_reason_name(result.reason), "profiling_exceed_size_limit");
    CHECK_UINT(rules_validate_chunk(slice_of(text, 50000000), NULL, RULES_SPEC, &result, NULL), STATUS_OK);
    CHECK(result.accepted);
    free(text);
}

/* V2-6: the same code validates input and output. */
TEST(one_reading_decodes_and_validates_V2_6)
{
    struct profile profile;
    struct rules_result result;
    char *liberal = changed(accepted_chunk, "\"symbolic\"", "\"elf\"");
    profile_init(&profile);
    CHECK_UINT(sentry_v2_decode_and_validate(slice_of_text(liberal), NULL, RULES_RELAY, &profile, &result, NULL),
               STATUS_OK);
    CHECK(!result.accepted);
    CHECK_UINT(profile.samples.count, 6);
    profile_fini(&profile);
    free(liberal);
}

/* Messages and the helper's answers begin with the name of a reason. */
TEST(each_reject_reason_has_a_name_that_reads_back_REL_1)
{
    for (enum reject_reason reason = REJECT_NONE; reason < REJECT_REASONS; reason++) {
        char message[128];
        (void)snprintf(message, sizeof(message), "%s: x", reject_reason_name(reason));
        CHECK_UINT(reject_reason_of_message(message), reason);
        CHECK_UINT(reject_reason_of_message(reject_reason_name(reason)), reason);
    }
    CHECK_UINT(reject_reason_of_message("profiling_invalid"), REJECT_NONE);
    CHECK_UINT(reject_reason_of_message("profiling_invalid_json_x: y"), REJECT_NONE);
}

TEST_MAIN()
