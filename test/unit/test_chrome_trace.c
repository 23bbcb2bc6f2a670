/* Trace events with begin, end and complete events.  SPDX-License-Identifier: MIT */
#include "decoded.h"
#include "test.h"

#include "detected.h"
#include "format/viewer/chrome_trace.h"

#define BEGIN(name, at) "{\"ph\":\"B\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" at "}"
#define END(at) "{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":" at "}"
#define COMPLETE(name, at, length)                                                                                     \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" at ",\"dur\":" length "}"

TEST(open_events_are_stacks)
{
    check_stacks(&format_chrome_trace, "[" BEGIN("a", "1") "," BEGIN("b", "3.5") "," END("4.25") "," END("10") "]",
                 "a 8250\na;b 750\n");
}

TEST(complete_events_nest_whatever_their_order)
{
    check_stacks(&format_chrome_trace,
                 "[" COMPLETE("in", "5", "5") "," COMPLETE("out", "5", "20") "," COMPLETE("alone", "40", "1") "]",
                 "alone 1000\nout 15000\nout;in 5000\n");
}

TEST(a_complete_event_ends_with_the_one_around_it)
{
    struct profile profile;
    const char *text = "[" COMPLETE("out", "0", "10") "," COMPLETE("in", "5", "20") "]";
    check_stacks(&format_chrome_trace, text, "out 5000\nout;in 5000\n");
    profile_init(&profile);
    CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_TEXT(profile_c_string(&profile, profile.metadata.items[1].key), "events_cut");
    CHECK_INT(profile.metadata.items[1].number, 1);
    profile_fini(&profile);
}

TEST(what_an_event_is_about_is_in_its_name)
{
#define ABOUT(name, at, length, arguments)                                                                             \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" at ",\"dur\":" length ",\"args\":" arguments "}"
    check_stacks(&format_chrome_trace,
                 "[" ABOUT("Source", "0", "10", "{\"detail\":\"/usr/include/a.h\"}") ","   //
                 ABOUT("checkSourceFile", "20", "1", "{\"pos\":3,\"path\":\"/b.ts\"}") "," //
                 ABOUT("OptFunction", "30", "1", "{\"detail\":\"\"}") "," ABOUT("x", "40", "1", "[]") "]",
                 "OptFunction 1000\nSource: /usr/include/a.h 10000\ncheckSourceFile: /b.ts 1000\nx 1000\n");
}

TEST(a_long_name_of_a_template_is_whole)
{
    enum { LONG = 6000 };
    char text[LONG + 256], stacks[LONG + 64], detail[LONG + 1];
    memset(detail, 'x', LONG);
    detail[LONG] = '\0';
    (void)snprintf(text, sizeof(text), "[" ABOUT("F", "0", "1", "{\"detail\":\"%s\"}") "]", detail);
    (void)snprintf(stacks, sizeof(stacks), "F: %s 1000\n", detail);
    check_stacks(&format_chrome_trace, text, stacks);
}

TEST(totals_of_clang_are_left_out)
{
    struct profile profile;
    const char *text = "{\"traceEvents\":[" COMPLETE("Frontend", "5", "5") "," ABOUT(
        "Total Frontend", "0", "5",
        "{\"count\":1,\"avg ms\":0}") "," COMPLETE("Total work", "20", "1") "],\"beginningOfTime\":1700000000000000}";
    check_stacks(&format_chrome_trace, text, "Frontend 5000\nTotal work 1000\n");
    profile_init(&profile);
    CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.time_ns, 1700000000000000000);
    profile_fini(&profile);
}

TEST(an_end_without_a_begin_is_counted_and_ignored)
{
    check_stacks(&format_chrome_trace,
                 "[" END("1") "," BEGIN("a", "2") "," COMPLETE("b", "3", "9") "," END("4") "," END("5") "]",
                 "a 1000\na;b 1000\n");
}

TEST(an_end_ends_the_event_of_its_name)
{
#define NAMED(name, time) "{\"ph\":\"E\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" time "}"
    check_stacks(&format_chrome_trace, "[" COMPLETE("a", "0", "9") "," BEGIN("b", "1") "," END("2") "]",
                 "a 8000\na;b 1000\n");
    check_stacks(&format_chrome_trace, "[" BEGIN("a", "1") "," NAMED("b", "3") "," NAMED("a", "9") "]", "a 8000\n");
    check_stacks(&format_chrome_trace,
                 "[" BEGIN("a", "1") "," BEGIN("b", "2") "," NAMED("a", "4") "," NAMED("b", "9") "]",
                 "a 1000\na;b 2000\n");
}

TEST(a_list_that_is_cut_short_is_read_to_its_last_event)
{
    check_stacks(&format_chrome_trace, "[" BEGIN("a", "1") "," END("2") ",\n", "a 1000\n");
    check_stacks(&format_chrome_trace, "[" BEGIN("a", "1") "," END("2") ",]", "a 1000\n");
}

TEST(an_event_that_is_cut_short_is_named)
{
    static const char *const ends[] = {",\n", "", ",{\"ph\":\"B\"", ",{\"ph\":\"B\",\"name\":\"x"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct profile profile;
        char text[300];
        profile_init(&profile);
        (void)snprintf(text, sizeof(text), "%s%s", "[" BEGIN("a", "1") "," END("2"), ends[i]);
        CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, 1);
        CHECK_UINT(profile.omissions.count, i >= 2);
        profile_fini(&profile);
    }
}

TEST(a_list_with_an_error_in_the_middle_is_rejected)
{
    static const char text[] = "[" BEGIN("a", "1") "," END("2") ",{\"ph\" 5}," BEGIN("b", "3") "]";
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, (uint64_t)(strstr(text, " 5}") + 1 - text));
    profile_fini(&profile);
}

TEST(threads_and_processes_have_names)
{
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(
        chrome_trace_decode(
            slice_of_text(
                "{\"traceEvents\":["
                "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"shop\"}},"
                "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"w\"}},"
                "{\"ph\":\"X\",\"name\":\"f\",\"pid\":7,\"tid\":2,\"ts\":1,\"dur\":1}," COMPLETE("f", "1", "2") "]}"),
            &profile, NULL),
        STATUS_OK);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_UINT(profile.threads.count, 3);
    CHECK_TEXT(profile_c_string(&profile, profile.threads.items[1].id), "1/2");
    CHECK_TEXT(profile_c_string(&profile, profile.threads.items[1].name), "w");
    CHECK_TEXT(profile_c_string(&profile, profile.threads.items[2].id), "7/2");
    profile_fini(&profile);
}

TEST(what_is_written_is_read_again_to_the_nanosecond)
{
    struct profile profile, again;
    struct buffer bytes;
    profile_init(&profile);
    profile_init(&again);
    buffer_init(&bytes, 1 << 16);
    CHECK_UINT(
        chrome_trace_decode(slice_of_text("[" BEGIN("a", "1.001") "," COMPLETE("b", "2", "3.5") "," END("10") "]"),
                            &profile, NULL),
        STATUS_OK);
    for (size_t i = 0; i < profile.samples.count; i++) profile.samples.time_ns[i] += 1700000000000000001;
    CHECK_UINT(chrome_trace_encode(&profile, &bytes, NULL), STATUS_OK);
    CHECK(detected_format(buffer_slice(&bytes)) == &format_chrome_trace);
    CHECK_UINT(chrome_trace_decode(buffer_slice(&bytes), &again, NULL), STATUS_OK);
    CHECK_UINT(again.samples.count, profile.samples.count);
    for (size_t i = 0; i < again.samples.count; i++) {
        CHECK_UINT(again.samples.time_ns[i], profile.samples.time_ns[i]);
        CHECK_INT(profile_sample_values(&again, i)[1], profile_sample_values(&profile, i)[1]);
    }
    buffer_fini(&bytes);
    profile_fini(&profile);
    profile_fini(&again);
}

/* If both events have one time, speedscope takes the begin of "b" first, and then never ends it. */
TEST(a_frame_does_not_begin_when_one_of_its_name_ends)
{
    struct profile profile;
    struct buffer bytes = {.maximum = 1 << 16};
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a;b 1\nb;c 1\nd 1\n"), &profile, NULL), STATUS_OK);
    CHECK_UINT(chrome_trace_encode(&profile, &bytes, NULL), STATUS_OK);
    buffer_append_byte(&bytes, '\0');
    const char *text = (const char *)bytes.data, *ends = strstr(text, "\"E\"");
    CHECK(ends && strstr(ends, "\"ts\":10000.000,\"name\":\"b\"}"));
    CHECK(ends && strstr(ends, "\"ts\":10000.001,\"name\":\"b\"}"));
    CHECK(ends && strstr(ends, "\"ts\":20000.000,\"name\":\"d\"}"));
    buffer_fini(&bytes);
    profile_fini(&profile);
}

TEST(places_without_functions_begin_later_too)
{
    struct profile profile;
    struct buffer bytes = {.maximum = 1 << 16};
    profile_init(&profile);
    CHECK_UINT(format_collapsed.decode(slice_of_text("a 1\nb 1\n"), &profile, NULL), STATUS_OK);
    for (size_t i = 0; i < profile.functions.count; i++) profile.functions.items[i].name.index = 0;
    CHECK_UINT(chrome_trace_encode(&profile, &bytes, NULL), STATUS_OK);
    buffer_append_byte(&bytes, '\0');
    const char *ends = strstr((const char *)bytes.data, "\"E\"");
    CHECK(ends && strstr(ends, "\"ts\":10000.001,\"name\":\"[unknown]\"}"));
    buffer_fini(&bytes);
    profile_fini(&profile);
}

/* --- Samples of stacks, as Hermes writes them: numbers are texts, and a caller may come after its callee. -----------
 */

#define SAMPLE(at, frame) "{\"ts\":\"" at "\",\"pid\":7,\"tid\":\"8\",\"weight\":\"1\",\"sf\":" frame "}"
#define SAMPLED(events, samples, frames)                                                                               \
    "{\"traceEvents\":[" events "],\"samples\":[" samples "],\"stackFrames\":{" frames "}}"
#define FRAMES                                                                                                         \
    "\"3\":{\"name\":\"f(http://a:8081/b.js?c=d:17:4)\",\"line\":\"19\",\"parent\":\"1\"},"                            \
    "\"2\":{\"name\":\"[GC]\",\"parent\":1},\"1\":{\"name\":\"[root]\"}"

TEST(samples_of_stacks_last_until_the_next_one)
{
    const char *text =
        SAMPLED("", SAMPLE("10", "1") "," SAMPLE("15", "3") "," SAMPLE("35", "2") "," SAMPLE("36", "1"), FRAMES);
    check_stacks(&format_chrome_trace, text, "[root] 5000\n[root];[GC] 1000\n[root];f 20000\n");
    CHECK(detected_format(slice_of_text(text)) == &format_chrome_trace);
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    bool is_found = false;
    for (size_t i = 0; i < profile.functions.count; i++) {
        const struct function *function = &profile.functions.items[i];
        if (function->start_line != 17) continue;
        is_found = true;
        CHECK_TEXT(profile_c_string(&profile, function->file_name), "http://a:8081/b.js?c=d");
    }
    CHECK(is_found);
    profile_fini(&profile);
}

TEST(events_beside_samples_are_left_out_and_named)
{
    struct profile profile;
    const char *text = SAMPLED(COMPLETE("a", "0", "9") "," COMPLETE("b", "0", "0") "," BEGIN("c", "1") "," END("2"),
                               SAMPLE("10", "1") "," SAMPLE("15", "1"), FRAMES);
    check_stacks(&format_chrome_trace, text, "[root] 5000\n");
    profile_init(&profile);
    CHECK_UINT(chrome_trace_decode(slice_of_text(text), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.omissions.count, 1);
    profile_fini(&profile);
}

TEST(frames_that_are_not_there_or_in_a_circle_are_rejected)
{
    static const char *const broken[] = {
        SAMPLED("", SAMPLE("10", "9") "," SAMPLE("15", "1"), FRAMES),
        SAMPLED("", SAMPLE("10", "1") "," SAMPLE("15", "1"),
                "\"1\":{\"name\":\"a\",\"parent\":2},\"2\":{\"name\":\"b\",\"parent\":1}"),
        SAMPLED("", SAMPLE("10", "1") "," SAMPLE("15", "1"), "\"1\":{\"name\":\"a\"},\"1\":{\"name\":\"b\"}"),
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK(chrome_trace_decode(slice_of_text(broken[i]), &profile, NULL) != STATUS_OK);
        profile_fini(&profile);
    }
}

TEST(rejects_what_is_broken_and_says_where)
{
    static const struct {
        const char *text;
        uint64_t offset;
    } broken[] = {
        {"[" BEGIN("a", "x") "]", 43},
        {"{\"traceEvents\":{\"ph\":\"B\"}}", 15},
        {"{\"traceEvents\":[{\"ph\":\"B\",}]}", 26},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        CHECK_UINT(chrome_trace_decode(slice_of_text(broken[i].text), &profile, &error), STATUS_MALFORMED);
        if (error.offset != broken[i].offset)
            TEST_FAIL("%zu: at %llu: %s", i, (unsigned long long)error.offset, error.message);
        profile_fini(&profile);
    }
}

TEST_MAIN()
