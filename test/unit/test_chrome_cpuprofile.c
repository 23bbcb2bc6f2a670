/* V8's CPU profiles.  SPDX-License-Identifier: MIT */
#include "real.h"
#include "decoded.h"
#include "test.h"

enum { ALL = DUMP_TIMES | DUMP_THREADS | DUMP_VALUES };

#define FRAME(name, line) "\"callFrame\":{\"functionName\":\"" name "\",\"url\":\"a.js\",\"lineNumber\":" #line "}"

static const char *read_text(struct buffer *out, const char *text, unsigned what)
{
    return decoded_text(out, &format_chrome, slice_of_text(text), what);
}

TEST(reads_root_idle_and_garbage_collector_frames)
{
    struct buffer out;
    CHECK_TEXT(
        read_text(
            &out,
            "{\"nodes\":[{\"id\":1," FRAME(
                "(root)",
                -1) ",\"children\":[2,3,4,5]},"
                    "{\"id\":2," FRAME("(idle)", -1) "},{\"id\":3," FRAME(
                        "(garbage collector)",
                        -1) "},"
                            "{\"id\":4," FRAME("(program)", -1) "},{\"id\":5," FRAME(
                                "f", 4) ",\"children\":[6]},"
                                        "{\"id\":6," FRAME("", 0) "}],\"startTime\":1000,\"endTime\":1070,"
                                                                  "\"samples\":[6,3,2,4],\"timeDeltas\":[10,20,10,15]}",
            ALL),
        "samples/count wall/nanoseconds\n"
        "sample at 1010000 thread / 1 20000\n (anonymous) (a.js:1:0)\n f (a.js:5:0)\n"
        "sample at 1030000 thread / 1 10000\n (garbage collector) (a.js:0:0)\n (anonymous) (a.js:1:0)\n f (a.js:5:0)\n"
        "sample at 1040000 thread / 1 15000\n"
        "sample at 1055000 thread / 1 15000\n (program) (a.js:0:0)\n");
    buffer_fini(&out);
}

TEST(a_sample_that_was_written_late_is_put_where_it_belongs)
{
    struct buffer out;
    CHECK_TEXT(read_text(&out,
                         "{\"startTime\":0,\"endTime\":50,\"timeDeltas\":[10,30,-20],\"samples\":[1,2,1],"
                         "\"nodes\":[{\"id\":1," FRAME("f", 0) "},{\"id\":2," FRAME("g", 1) "}]}",
                         ALL),
               "samples/count wall/nanoseconds\n"
               "sample at 10000 thread / 1 10000\n f (a.js:1:0)\n"
               "sample at 20000 thread / 1 20000\n f (a.js:1:0)\n"
               "sample at 40000 thread / 1 10000\n g (a.js:2:0)\n");
    buffer_fini(&out);
}

TEST(the_old_form_holds_its_children_and_counts_hits)
{
    struct buffer out;
    CHECK_TEXT(
        read_text(&out,
                  "{\"head\":{\"functionName\":\"(root)\",\"url\":\"\",\"lineNumber\":0,\"id\":1,\"hitCount\":0,"
                  "\"children\":[{\"functionName\":\"f\",\"url\":\"a.js\",\"lineNumber\":7,\"id\":2,\"hitCount\":3,"
                  "\"children\":[{\"functionName\":\"g\",\"url\":\"b.js\",\"lineNumber\":1,\"id\":3,\"hitCount\":1,"
                  "\"children\":[]}]}]},\"startTime\":2,\"endTime\":2.004}",
                  ALL),
        "samples/count wall/nanoseconds\n"
        "sample at 0 thread / 3 3000000\n f (a.js:7:0)\n"
        "sample at 0 thread / 1 1000000\n g (b.js:1:0)\n f (a.js:7:0)\n");
    buffer_fini(&out);
    CHECK_TEXT(read_text(&out,
                         "{\"head\":{\"functionName\":\"f\",\"id\":2},\"startTime\":2,\"endTime\":2.004,"
                         "\"samples\":[2,2],\"timestamps\":[2001000,2002500]}",
                         ALL),
               "samples/count wall/nanoseconds\n"
               "sample at 2001000000 thread / 1 1500000\n f (:0:0)\n"
               "sample at 2002500000 thread / 1 1500000\n f (:0:0)\n");
    buffer_fini(&out);
}

TEST(a_trace_brings_profiles_of_several_threads_in_chunks)
{
    static const char text[] =
        "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":9,\"args\":{\"name\":\"Worker\"}},"
        "{\"ph\":\"P\",\"name\":\"Profile\",\"pid\":7,\"tid\":9,\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":100}}}"
        ","
        "{\"ph\":\"P\",\"name\":\"ProfileChunk\",\"pid\":7,\"tid\":3,\"id\":\"0x1\",\"args\":{\"data\":{\"cpuProfile\":"
        "{\"nodes\":[{\"id\":1," FRAME("(root)", -1) "},{\"id\":2,\"parent\":1," FRAME(
            "f", 1) "}],\"samples\":[2]},"
                    "\"timeDeltas\":[5]}}},"
                    "{\"ph\":\"X\",\"name\":\"other\",\"pid\":7,\"tid\":9,\"args\":{\"data\":[1]}},"
                    "{\"ph\":\"P\",\"name\":\"ProfileChunk\",\"pid\":7,\"tid\":3,\"id\":\"0x1\",\"args\":{\"data\":{"
                    "\"cpuProfile\":"
                    "{\"nodes\":[{\"id\":3,\"parent\":2," FRAME("g",
                                                                2) "}],\"samples\":[3,2]},\"timeDeltas\":[10,20]}}}]}";
    static const char expected[] = "samples/count wall/nanoseconds\n"
                                   "sample at 105000 thread 9/Worker 1 10000\n f (a.js:2:0)\n"
                                   "sample at 115000 thread 9/Worker 1 20000\n g (a.js:3:0)\n f (a.js:2:0)\n"
                                   "sample at 135000 thread 9/Worker 1 0\n f (a.js:2:0)\n";
    struct buffer out;
    CHECK(format_chrome.detect(slice_of_text(text)));
    CHECK_TEXT(read_text(&out, text, ALL), expected);
    buffer_fini(&out);
}

TEST(what_is_broken_is_rejected_with_what_was_wrong)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"nodes\":[{\"id\":1," FRAME("f", 0) ",\"children\":[2]}]}", "child that is not there"},
        {"{\"nodes\":[{\"id\":1," FRAME("f", 0) ",\"parent\":2}]}", "parent that does not come before"},
        {"{\"nodes\":[{\"id\":1," FRAME("f", 0) "},{\"id\":1," FRAME("g", 0) "}]}", "one id"},
        {"{\"nodes\":[{\"id\":1," FRAME("f", 0) "}],\"samples\":[2]}", "node that is not there"},
        {"{\"nodes\":[{\"id\":1," FRAME("f", 0) ",\"children\":[2]},{\"id\":2," FRAME(
             "g", 0) ",\"children\":[1]}],\"samples\":[2]}",
         "more than 65536"},
        {"{\"traceEvents\":[{\"ph\":\"X\"}]}", "no CPU profile"},
        {"{\"nodes\":[] x", "expected"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer out;
        const char *message = read_text(&out, cases[i].text, 0);
        if (!strstr(message, cases[i].message)) TEST_FAIL("%s: \"%s\"", cases[i].text, message);
        buffer_fini(&out);
    }
}

/* The figures are the file's own: 891 samples, 203 of them idle, and the time from the first sample to its end. */
TEST(a_real_file_keeps_every_sample_and_the_entire_time)
{
    struct profile profile;
    uint64_t wall_ns = 0, idle = 0;
    read_profile(real_path("cpuprofile/mixed-1ms.cpuprofile"), &format_chrome, &profile);
    CHECK_UINT(profile.samples.count, 891);
    for (size_t i = 0; i < profile.samples.count; i++) {
        wall_ns += (uint64_t)profile_sample_values(&profile, i)[1];
        idle += profile.samples.stack[i].index == 0;
    }
    CHECK_UINT(wall_ns, (1961526632 - 1960055823 - 4124) * UINT64_C(1000));
    CHECK_UINT(idle, 203);
    profile_fini(&profile);
}

TEST(shares_of_a_real_file_match_the_recorded_work)
{
    struct profile profile;
    double shares[2] = {0};
    static const char *const names[] = {"hotLoopA", "hotLoopB"};
    read_profile(real_path("cpuprofile/ratio-70-30.cpuprofile"), &format_chrome, &profile);
    for (size_t i = 0; i < profile.samples.count; i++) {
        struct stack_id stack = profile.samples.stack[i];
        for (; stack.index; stack = profile_stack(&profile, stack).parent) {
            const struct location *location = profile_location(&profile, profile_stack(&profile, stack).location);
            struct string_id name = profile_function(&profile, profile_lines(&profile, location)->function)->name;
            for (size_t k = 0; k < 2; k++) {
                if (strcmp(profile_c_string(&profile, name), names[k]) == 0)
                    shares[k] += (double)profile_sample_values(&profile, i)[1];
            }
        }
    }
    double share = shares[0] / (shares[0] + shares[1]);
    if (share < 0.68 || share > 0.72) TEST_FAIL("hotLoopA has %.3f", share);
    profile_fini(&profile);
}

TEST_MAIN()
