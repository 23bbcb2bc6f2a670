/* The processed profile of the Firefox Profiler.  SPDX-License-Identifier: MIT */
#include "decoded.h"
#include "test.h"

#include "format/viewer/firefox.h"

#include "base/json_reader.h"
#include "profile/frame_kind.h"

/* main calls outer, into which inner is inlined; then an address that nobody could name. Two threads. */
static void make(struct profile *profile)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->has_times = true;
    profile->time_ns = UINT64_C(1700000000000000000);
    struct mapping program = {.file_name = profile_text(profile, "/opt/prog"),
                              .build_id = profile_text(profile, "f1c3bcc0279865fe3058404b2831d9e64135386c"),
                              .start = 0x401000,
                              .limit = 0x402000,
                              .file_offset = 0x1000};
    struct mapping library = {
        .file_name = profile_text(profile, "/lib/libx.so"), .start = 0x7000, .limit = 0x8000, .image_start = 0x6000};
    struct mapping_id files[] = {profile_add_mapping(profile, &program), profile_add_mapping(profile, &library)};
    struct function functions[] = {
        {.name = profile_text(profile, "main"), .file_name = profile_text(profile, "a.c"), .start_line = 3},
        {.name = profile_text(profile, "outer")},
        {.name = profile_text(profile, "inner"), .file_name = profile_text(profile, "a.h")},
    };
    struct line in_main = {.function = profile_add_function(profile, &functions[0]), .line = 5};
    struct line inlined[] = {{.function = profile_add_function(profile, &functions[2]), .line = 7, .column = 2},
                             {.function = profile_add_function(profile, &functions[1])}};
    struct location_id places[] = {
        profile_add_location(profile, &(struct location){.mapping = files[0], .address = 0x401010}, &in_main, 1),
        profile_add_location(profile, &(struct location){.mapping = files[0], .address = 0x401020}, inlined, 2),
        profile_add_location(profile, &(struct location){.mapping = files[1], .address = 0x7004}, NULL, 0),
    };
    struct stack_id stacks[4] = {{0}};
    for (size_t i = 0; i < 3; i++) stacks[i + 1] = profile_add_stack(profile, stacks[i], places[i]);
    struct thread threads[] = {{.id = profile_text(profile, "9"), .name = profile_text(profile, "prog")},
                               {.id = profile_text(profile, "10")}};
    struct thread_id ids[] = {profile_add_thread(profile, &threads[0]), profile_add_thread(profile, &threads[1])};
    const int64_t values[] = {1, 10000000};
    const struct sample samples[] = {
        {.stack = stacks[3], .thread = ids[0], .time_ns = profile_start_ns(profile) + 1000},
        {.stack = stacks[1], .thread = ids[1], .time_ns = profile_start_ns(profile) + 2000},
        {.stack = stacks[0], .thread = ids[0], .time_ns = profile_start_ns(profile) + 10001000},
    };
    for (size_t i = 0; i < 3; i++) profile_add_sample(profile, &samples[i], values);
    profile_add_metadata_text(profile, "pid", "9");
}

static const char expected_tables[] =
    "\"libs\":[{\"arch\":\"\",\"name\":\"prog\",\"path\":\"/opt/prog\",\"debugName\":\"prog\","
    "\"debugPath\":\"/opt/prog\",\"breakpadId\":\"C0BCC3F19827FE653058404B2831D9E60\","
    "\"codeId\":\"f1c3bcc0279865fe3058404b2831d9e64135386c\"},"
    "{\"arch\":\"\",\"name\":\"libx.so\",\"path\":\"/lib/libx.so\",\"debugName\":\"libx.so\","
    "\"debugPath\":\"/lib/libx.so\",\"breakpadId\":\"\",\"codeId\":null}],"
    "\"shared\":{\"stackTable\":{\"frame\":[0,2,1,3],\"prefix\":[null,0,1,2],\"length\":4},"
    "\"frameTable\":{\"address\":[4112,4128,4128,4100],\"inlineDepth\":[0,1,0,0],\"category\":[1,1,1,2],"
    "\"subcategory\":[0,0,0,0],\"func\":[0,1,2,3],\"nativeSymbol\":[null,null,null,null],"
    "\"innerWindowID\":[null,null,null,null],\"line\":[5,7,null,null],\"column\":[null,2,null,null],\"length\":4},"
    "\"funcTable\":{\"name\":[1,2,3,4],\"isJS\":[false,false,false,false],"
    "\"relevantForJS\":[false,false,false,false],\"resource\":[0,0,0,1],\"source\":[0,1,null,null],"
    "\"lineNumber\":[3,null,null,null],\"columnNumber\":[null,null,null,null],\"length\":4},"
    "\"resourceTable\":{\"lib\":[0,1],\"name\":[5,6],\"host\":[null,null],\"type\":[1,1],\"length\":2},"
    "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},"
    "\"sources\":{\"id\":[null,null],\"filename\":[7,8],\"startLine\":[1,1],\"startColumn\":[1,1],"
    "\"sourceMapURL\":[null,null],\"length\":2},"
    "\"stringArray\":[\"\",\"main\",\"inner\",\"outer\",\"0x1004\",\"prog\",\"libx.so\",\"a.c\",\"a.h\"]}";

static const char expected_thread[] =
    "\"registerTime\":0.000000,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":\"prog\",\"isMainThread\":true,"
    "\"pid\":\"9\",\"tid\":\"9\",\"samples\":{\"stack\":[3,null],\"time\":[0.000000,10.000000],"
    "\"weightType\":\"tracing-ms\",\"weight\":[10,10],\"length\":2}";

static void check_holds(const struct buffer *text, const char *part)
{
    if (!strstr((const char *)text->data, part)) TEST_FAIL("%s\n# is not in\n# %s", part, (const char *)text->data);
}

TEST(writes_columns_and_inlined_functions_as_frames_with_depth)
{
    struct profile profile;
    struct buffer out;
    make(&profile);
    buffer_init(&out, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &out, NULL), STATUS_OK);
    CHECK(firefox_detect(buffer_slice(&out)));
    buffer_append_byte(&out, '\0');
    check_holds(&out, "\"preprocessedProfileVersion\":61");
    check_holds(&out, "\"startTime\":1700000000000.001000");
    check_holds(&out, "\"symbolicated\":false");
    check_holds(&out, expected_tables);
    check_holds(&out, expected_thread);
    check_holds(&out, "\"name\":\"10\",\"isMainThread\":false");
    check_holds(&out, "\"initialSelectedThreads\":[0]");
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(a_profile_without_times_is_one_sample_after_the_other)
{
    struct profile profile;
    struct buffer out;
    make(&profile);
    profile.has_times = false;
    profile.active_thread = profile_text(&profile, "10");
    buffer_init(&out, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    check_holds(&out, "\"time\":[0.000000,10.000000]");
    check_holds(&out, "\"initialSelectedThreads\":[1]");
    buffer_fini(&out);
    profile_fini(&profile);
}

/* A thread whose process runs another program, and a thread of another process. */
TEST(each_process_has_its_own_tracks)
{
    static const struct {
        const char *thread, *process;
        int64_t pid;
    } samples[] = {{"7", "sh", 7}, {"8", "cc", 8}, {"7", "xz", 7}};
    struct profile profile;
    struct buffer out;
    make(&profile);
    for (size_t i = 0; i < 3; i++) {
        struct label labels[] = {
            {.key = profile_text(&profile, "pid"), .is_number = true, .number = samples[i].pid},
            {.key = profile_text(&profile, "process"), .text = profile_text(&profile, samples[i].process)},
            {.key = profile_text(&profile, "thread"), .text = profile_text(&profile, samples[i].process)},
        };
        struct thread thread = {.id = profile_text(&profile, samples[i].thread)};
        struct sample sample = {.stack = {1},
                                .thread = profile_add_thread(&profile, &thread),
                                .labels = profile_add_labels(&profile, labels, 3),
                                .time_ns = profile_start_ns(&profile) + 5000};
        profile_add_sample(&profile, &sample, (const int64_t[]){1, 1});
    }
    buffer_init(&out, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    check_holds(&out, "\"name\":\"sh\",\"isMainThread\":true,\"pid\":\"7\",\"tid\":\"7\"");
    check_holds(&out, "\"name\":\"xz\",\"isMainThread\":true,\"pid\":\"7.1\",\"tid\":\"7\"");
    check_holds(&out, "\"name\":\"cc\",\"isMainThread\":true,\"pid\":\"8\",\"tid\":\"8\"");
    check_holds(&out, "\"processName\":\"xz\"");
    check_holds(&out, "\"name\":\"10\",\"isMainThread\":false,\"pid\":\"9\"");
    buffer_fini(&out);
    profile_fini(&profile);
}

enum { ALL = DUMP_TIMES | DUMP_THREADS | DUMP_VALUES | DUMP_ADDRESSES | DUMP_LABELS | DECODED_OFFSET };

TEST(what_is_written_is_json_and_is_read_back)
{
    struct profile profile;
    struct buffer written, out;
    struct json_reader reader;
    make(&profile);
    buffer_init(&written, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &written, NULL), STATUS_OK);
    json_reader_init(&reader, buffer_slice(&written));
    json_skip(&reader);
    CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
    json_reader_fini(&reader);
    CHECK_TEXT(decoded_text(&out, &format_firefox, buffer_slice(&written), ALL),
               "samples/count wall/nanoseconds\n"
               "sample at 1700000000000001000 thread 9/prog 1 10000000\n"
               " @200001004 in /lib/libx.so ?\n"
               " @100001020 in /opt/prog inner (a.h:7:2) < outer (:0:0)\n"
               " @100001010 in /opt/prog main (a.c:5:0)\n"
               "sample at 1700000000000002000 thread 10/ 1 10000000\n"
               " @100001010 in /opt/prog main (a.c:5:0)\n"
               "sample at 1700000000010001000 thread 9/prog 1 10000000\n");
    buffer_fini(&out);
    buffer_fini(&written);
    profile_fini(&profile);
}

/* As samply and Firefox before version 60 write it: tables in each thread, times as differences, CPU time. */
static const char of_each_thread[] =
    "{\"threads\":[{\"name\":\"GeckoMain\",\"pid\":\"7\",\"tid\":9,\"processName\":\"web\",\"samples\":{\"stack\":[1,"
    "null,2],\"timeDeltas\":[0.5,1,0.25],\"threadCPUDelta\":[0,900,30],\"weight\":null,\"weightType\":\"samples\","
    "\"length\":3},\"stackTable\":{\"frame\":[0,1,2],\"prefix\":[null,0,1],\"length\":3},\"frameTable\":{\"address\":["
    "-1,16,16],\"inlineDepth\":[0,0,1],\"func\":[0,1,2],\"line\":[null,8,9],\"column\":[null,null,3],\"length\":3},"
    "\"funcTable\":{\"name\":[0,1,2],\"isJS\":[true,false,false],\"resource\":[-1,0,0],\"fileName\":[3,null,null],"
    "\"lineNumber\":[4,null,null]},\"resourceTable\":{\"lib\":[0],\"name\":[1]},\"stringArray\":[\"js\",\"0x10\","
    "\"in\","
    "\"a.js\"]},{\"name\":\"Other\",\"pid\":\"8\",\"tid\":10,\"samples\":{\"stack\":[],\"time\":[]},\"stackTable\":{"
    "\"frame\":[],\"prefix\":[]}}],\"libs\":[{\"name\":\"libxul.so\",\"path\":\"/opt/libxul.so\",\"breakpadId\":"
    "\"C0BCC3F19827FE653058404B2831D9E60\"}],\"meta\":{\"version\":29,\"startTime\":1000,\"interval\":1,"
    "\"sampleUnits\":"
    "{\"threadCPUDelta\":\"\xc2\xb5s\"}}}";

TEST(tables_of_each_thread_are_read)
{
    struct buffer out;
    CHECK_TEXT(decoded_text(&out, &format_firefox, slice_of_text(of_each_thread), ALL),
               "samples/count cpu/nanoseconds\n"
               "sample at 1000500000 thread 9/GeckoMain 1 0 pid=7 process=web\n"
               " @100000010 in /opt/libxul.so ?\n"
               " @0 in  js (a.js:0:0)\n"
               "sample at 1001500000 thread 9/GeckoMain 1 900000 pid=7 process=web\n"
               "sample at 1001750000 thread 9/GeckoMain 1 30000 pid=7 process=web\n"
               " @100000010 in /opt/libxul.so in (:9:3) < 0x10 (:8:0)\n"
               " @0 in  js (a.js:0:0)\n");
    buffer_fini(&out);
}

/* Two processes, each with its own clock and library. The caller has its return address. */
static const char raw[] =
    "{\"meta\":{\"version\":34,\"startTime\":1000,\"interval\":1,\"sampleUnits\":{\"threadCPUDelta\":\"ns\"}},"
    "\"libs\":[{\"name\":\"p\",\"path\":\"/opt/p\",\"codeId\":\"ab\",\"start\":4096,\"end\":8192}],"
    "\"threads\":[{\"name\":\"GeckoMain\",\"pid\":7,\"tid\":7,\"processName\":\"web\","
    "\"samples\":{\"schema\":{\"stack\":0,\"time\":1,\"threadCPUDelta\":3},"
    "\"data\":[[1,0.5,0,40],[2,1.5],[null,2]]},"
    "\"markers\":{\"schema\":{\"name\":0},\"data\":[[0],[0]]},"
    "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0],[0,1],[1,2]]},"
    "\"frameTable\":{\"schema\":{\"location\":0,\"line\":4},\"data\":[[0],[1],[2,false,0,null,9]]},"
    "\"stringTable\":[\"(root)\",\"0x1010\",\"inner (http://x/a.js:2:15)[7]\"]}],"
    "\"processes\":[{\"meta\":{\"startTime\":2000},\"libs\":[],\"processes\":[],\"threads\":[{\"name\":\"GeckoMain\","
    "\"pid\":8,\"tid\":8,\"processName\":\"tab\",\"samples\":{\"schema\":{\"stack\":1,\"time\":0},\"data\":[[1,0]]},"
    "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0]]},"
    "\"frameTable\":{\"schema\":{\"location\":0},\"data\":[[0]]},\"stringTable\":[\"0x1010\"]}]}]}";

TEST(the_raw_form_has_processes_with_their_own_clocks_and_libraries)
{
    struct buffer out;
    CHECK_TEXT(decoded_text(&out, &format_firefox, slice_of_text(raw), ALL),
               "samples/count cpu/nanoseconds\n"
               "sample at 1000500000 thread 7/GeckoMain 1 40 pid=7 process=web\n"
               " @100000010 in /opt/p ?\n"
               " @0 in  (root) (:0:0)\n"
               "sample at 1001500000 thread 7/GeckoMain 1 0 pid=7 process=web\n"
               " @0 in  inner (http://x/a.js:9:0)\n"
               " @10000000f in /opt/p ?\n"
               " @0 in  (root) (:0:0)\n"
               "sample at 1002000000 thread 7/GeckoMain 1 0 pid=7 process=web\n"
               "sample at 2001000000 thread 8/GeckoMain 1 0 pid=8 process=tab\n"
               " @0 in  0x1010 (:0:0)\n");
    buffer_fini(&out);
}

/* A thread that was never sampled has the markers: a string by its number, another member as it is, no stack. */
#define MARKERS(name, data)                                                                                            \
    "{\"meta\":{\"version\":29,\"startTime\":1000,\"interval\":1,\"categories\":[{\"name\":\"DOM\"}],"                 \
    "\"markerSchema\":[{\"name\":\"T\",\"data\":[{\"key\":\"id\",\"format\":\"unique-string\"},{\"label\":\"x\"}]}]}," \
    "\"libs\":[],\"threads\":[{\"name\":\"A\",\"tid\":8,\"pid\":\"7\",\"samples\":{\"stack\":[null],\"time\":[5]},"    \
    "\"stackTable\":{\"frame\":[],\"prefix\":[]},\"stringArray\":[]},{\"name\":\"B\",\"tid\":9,\"pid\":\"7\","         \
    "\"samples\":"                                                                                                     \
    "{\"stack\":[],\"time\":[]},\"markers\":{\"name\":[" name "],\"startTime\":[2],\"endTime\":[3.5],\"phase\":[1],"   \
    "\"category\":[0],\"data\":[" data                                                                                 \
    "],\"length\":1},\"stackTable\":{\"frame\":[],\"prefix\":[]},\"stringArray\":[\"n\","                              \
    "\"text\"]}]}"

TEST(markers_are_read_and_written)
{
    struct profile profile;
    struct buffer out;
    profile_init(&profile);
    struct slice text =
        slice_of_text(MARKERS("0", "{\"type\":\"T\",\"id\":1,\"n\":1,\"stack\":{\"time\":1},\"x\":[1 ,2]}"));
    CHECK_UINT(firefox_decode(text, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.markers.count, 1);
    const struct marker *marker = &profile.markers.items[0];
    CHECK_TEXT(profile_c_string(&profile, marker->name), "n");
    CHECK_TEXT(profile_c_string(&profile, marker->category), "DOM");
    CHECK_TEXT(profile_c_string(&profile, marker->details), "{\"type\":\"T\",\"n\":1,\"x\":[1 ,2]}");
    CHECK_UINT(marker->start_ns, 1002000000);
    CHECK_UINT(marker->end_ns, 1003500000);
    CHECK_UINT(marker->kind, MARKER_INTERVAL);
    buffer_init(&out, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &out, NULL), STATUS_OK);
    buffer_append_byte(&out, '\0');
    check_holds(&out, "\"markerSchema\":[{\"name\":\"T\",\"fields\":[{\"key\":\"id\",\"format\":\"unique-string\"}]}]");
    check_holds(&out, "\"name\":\"B\",\"isMainThread\":false,\"pid\":\"7\",\"tid\":\"9\"");
    check_holds(&out, "\"markers\":{\"data\":[{\"type\":\"T\",\"n\":1,\"x\":[1 ,2],\"id\":");
    check_holds(&out, "\"startTime\":[0.000000],\"endTime\":[1.500000],\"phase\":[1],\"category\":[6],\"length\":1");
    buffer_fini(&out);
    profile_fini(&profile);

    CHECK_TEXT(decoded_text(&out, &format_firefox, slice_of_text(MARKERS("2", "null")), ALL),
               "a marker has a name that is not there (offset 471)");
    buffer_fini(&out);
}

TEST(broken_profiles_are_rejected_with_the_place)
{
    static const struct {
        const char *text, *message;
    } files[] = {
        {"{\"meta\":{},\"libs\":[]}", "there is no list of threads (offset 0)"},
        {"{\"meta\":{},\"threads\":[{\"samples\":{\"schema\":{\"stack\":0,\"time\":1},\"data\":[[0,1]]}}]}",
         "a sample has a stack that is not there (offset 71)"},
        {"{\"meta\":{},\"threads\":[{\"samples\":{\"schema\":{},\"data\":[]},\"frameTable\":{\"schema\":"
         "{\"location\":0},\"data\":[[1]]}}]}",
         "a frame has a string that is not there (offset 0)"},
        {"{\"meta\":{},\"threads\":[{\"stackTable\":{\"frame\":[0],\"prefix\":[null]},\"frameTable\":{\"func\":[]}}]}",
         "a stack has a frame that is not there (offset 36)"},
        {"{\"meta\":{},\"threads\":[{\"stackTable\":{\"frame\":[0],\"prefix\":[0]},\"frameTable\":{\"func\":[0]}}]}",
         "a stack comes before the one that it extends (offset 36)"},
        {"{\"meta\":{},\"threads\":[{\"stackTable\":{\"frame\":[0],\"prefix\":[]},\"frameTable\":{\"func\":[0]}}]}",
         "the columns of stackTable differ in length (offset 36)"},
        {"{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0],\"time\":[1]}}]}",
         "a sample has a stack that is not there (offset 42)"},
        {"{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0],\"time\":[]}}]}",
         "the columns of samples differ in length (offset 33)"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct buffer out;
        CHECK_TEXT(decoded_text(&out, &format_firefox, slice_of_text(files[i].text), ALL), files[i].message);
        buffer_fini(&out);
    }
}

TEST(keeps_the_kinds_of_frames_as_categories)
{
    static const enum frame_kind kinds[] = {FRAME_KERNEL, FRAME_JIT, FRAME_INTERPRETED, FRAME_UNKNOWN};
    struct profile profile, read;
    struct buffer out;
    make(&profile);
    struct stack_id stack = {0};
    for (size_t i = 0; i < 4; i++) {
        struct line line = {.function = profile_add_function(&profile, &(struct function){.name = profile.platform})};
        struct location location = {.kind = kinds[i]};
        stack = profile_add_stack(&profile, stack, profile_add_location(&profile, &location, &line, 1));
    }
    struct sample sample = {.stack = stack, .thread = {1}, .time_ns = profile_start_ns(&profile) + 20000000};
    profile_add_sample(&profile, &sample, (const int64_t[]){1, 10000000});
    buffer_init(&out, 1 << 20);
    CHECK_UINT(firefox_encode(&profile, &out, NULL), STATUS_OK);
    profile_init(&read);
    CHECK_UINT(firefox_decode(buffer_slice(&out), &read, NULL), STATUS_OK);
    struct stack_id at = read.samples.stack[read.samples.count - 1];
    for (size_t i = 4; i-- > 0; at = profile_stack(&read, at).parent) {
        const struct location *location = profile_location(&read, profile_stack(&read, at).location);
        CHECK_TEXT(frame_kind_name(frame_kind_of(&read, location, 0)), frame_kind_name(kinds[i]));
    }
    profile_fini(&read);
    profile_fini(&profile);
    buffer_fini(&out);
}

TEST_MAIN()
