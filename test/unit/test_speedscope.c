/* speedscope's JSON, read and written.  SPDX-License-Identifier: MIT */
#include "decoded.h"
#include "test.h"

#include "format/viewer/speedscope.h"

#define SCHEMA "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
#define FRAMES "\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.c\",\"line\":3,\"col\":5},{\"name\":\"f\"}]}"

static const char evented[] = "{" SCHEMA FRAMES ",\"profiles\":[{\"type\":\"evented\",\"name\":\"one\","
                              "\"unit\":\"milliseconds\",\"startValue\":10,\"endValue\":20,\"events\":["
                              "{\"type\":\"O\",\"frame\":0,\"at\":10},{\"type\":\"O\",\"frame\":1,\"at\":12.5},"
                              "{\"type\":\"C\",\"frame\":1,\"at\":13},{\"type\":\"C\",\"frame\":0,\"at\":14}]}]}";

TEST(an_evented_profile_becomes_a_sample_for_each_stretch_between_events)
{
    struct buffer out;
    const char *text =
        decoded_text(&out, &format_speedscope, slice_of_text(evented), DUMP_TIMES | DUMP_THREADS | DUMP_VALUES);
    CHECK_TEXT(text, "samples/count wall/nanoseconds\n"
                     "sample at 10000000 thread one/one 1 2500000\n main (a.c:3:5)\n"
                     "sample at 12500000 thread one/one 1 500000\n f (:0:0)\n main (a.c:3:5)\n"
                     "sample at 13000000 thread one/one 1 1000000\n main (a.c:3:5)\n");
    buffer_fini(&out);
}

TEST(profiles_of_one_name_are_separate_threads_in_any_member_order)
{
    static const char text[] =
        "{\"profiles\":[{\"weights\":[3,4],\"samples\":[[0,1],[]],\"unit\":\"bytes\",\"endValue\":7,\"startValue\":0,"
        "\"name\":\"x\",\"type\":\"sampled\"},{\"type\":\"sampled\",\"name\":\"x\",\"unit\":\"none\",\"startValue\":0,"
        "\"endValue\":2,\"samples\":[[1]],\"weights\":[2]}],\"unknown\":{\"a\":[null]}," FRAMES "}";
    struct buffer out;
    CHECK(speedscope_detect(slice_of_text(text)));
    CHECK_TEXT(decoded_text(&out, &format_speedscope, slice_of_text(text), DUMP_THREADS | DUMP_VALUES),
               "samples/count space/bytes\n"
               "sample thread x/x 1 3\n f (:0:0)\n main (a.c:3:5)\n"
               "sample thread x/x 1 4\n"
               "sample thread x #2/x 2 0\n f (:0:0)\n");
    buffer_fini(&out);
}

TEST(what_is_broken_is_rejected_with_what_was_wrong)
{
#define ONE(body) "{" FRAMES ",\"profiles\":[{\"name\":\"x\",\"startValue\":0,\"endValue\":9," body "}]}"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"shared\":{}}", "no \"shared\" or no \"profiles\""},
        {"{\"shared\":{},\"profiles\":[]}", "shared.frames"},
        {ONE("\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[2]],\"weights\":[1]"), "frame that is not there"},
        {ONE("\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[1]],\"weights\":[]"), "fewer weights"},
        {ONE("\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[],\"weights\":[1]"), "more weights"},
        {ONE("\"type\":\"sampled\",\"unit\":\"miles\",\"samples\":[],\"weights\":[]"), "unit"},
        {ONE("\"type\":\"drawn\",\"unit\":\"none\",\"samples\":[],\"weights\":[]"), "neither sampled nor evented"},
        {ONE("\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":1}]"), "closes"},
        {ONE("\"type\":\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"frame\":0}]"), "without"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer out;
        const char *message = decoded_text(&out, &format_speedscope, slice_of_text(cases[i].text), 0);
        if (!strstr(message, cases[i].message)) TEST_FAIL("%s: \"%s\"", cases[i].text, message);
        buffer_fini(&out);
    }
}

/* Two threads; the first is idle for a second between its samples. */
static void make(struct profile *profile)
{
    static const uint64_t start = 1700000000000000000;
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->has_times = true;
    profile->time_ns = start;
    struct function function = {
        .name = profile_text(profile, "f"), .file_name = profile_text(profile, "f.c"), .start_line = 7};
    struct line line = {.function = profile_add_function(profile, &function), .line = 9};
    struct mapping mapping = {.file_name = profile_text(profile, "/lib/libx.so.1"), .start = 0x1000, .limit = 0x2000};
    struct location_id known = profile_add_location(profile, &(struct location){0}, &line, 1);
    struct location_id unknown = profile_add_location(
        profile, &(struct location){.address = 0x1234, .mapping = profile_add_mapping(profile, &mapping)}, NULL, 0);
    struct stack_id root = profile_add_stack(profile, (struct stack_id){0}, known);
    struct stack_id leaf = profile_add_stack(profile, root, unknown);
    struct thread first = {.id = profile_text(profile, "10"), .name = profile_text(profile, "main")};
    struct thread second = {.id = profile_text(profile, "11"), .name = profile_text(profile, "main")};
    struct thread_id ids[] = {profile_add_thread(profile, &first), profile_add_thread(profile, &second)};
    const int64_t values[] = {1, 10000000};
    const struct sample samples[] = {
        {.stack = leaf, .thread = ids[0], .time_ns = start},
        {.stack = root, .thread = ids[1], .time_ns = start + 5000000},
        {.stack = root, .thread = ids[0], .time_ns = start + 1010000000},
    };
    for (size_t i = 0; i < 3; i++) profile_add_sample(profile, &samples[i], values);
}

TEST(threads_and_times_are_written_and_a_gap_between_samples_is_idle)
{
    struct profile profile;
    struct buffer out;
    struct error error = {0};
    make(&profile);
    buffer_init(&out, 1 << 20);
    CHECK_UINT(speedscope_encode(&profile, &out, &error), STATUS_OK);
    buffer_append_byte(&out, '\0');
    CHECK_TEXT((const char *)out.data,
               "{" SCHEMA "\"exporter\":\"offbeat@" OFFBEAT_VERSION "\",\"activeProfileIndex\":0,"
               "\"offbeat\":{\"start_ns\":1700000000000000000},"
               "\"shared\":{\"frames\":[{\"name\":\"f\",\"file\":\"f.c\",\"line\":7},{\"name\":\"[libx.so.1]\"}]},"
               "\"profiles\":[{\"type\":\"sampled\",\"name\":\"main\",\"unit\":\"nanoseconds\","
               "\"offbeat\":{\"thread_id\":\"10\",\"thread_name\":\"main\",\"gaps\":[1]},\"samples\":[[0,1],[],[0]],"
               "\"weights\":[10000000,1000000000,10000000],\"startValue\":0,\"endValue\":1020000000},"
               "{\"type\":\"sampled\",\"name\":\"main\",\"unit\":\"nanoseconds\","
               "\"offbeat\":{\"thread_id\":\"11\",\"thread_name\":\"main\",\"gaps\":[]},\"samples\":[[0]],"
               "\"weights\":[10000000],\"startValue\":5000000,\"endValue\":15000000}]}");
    buffer_fini(&out);
    profile_fini(&profile);
}

static bool opens_on(const struct profile *profile, const char *member)
{
    struct buffer out;
    buffer_init(&out, 1 << 20);
    CHECK_UINT(speedscope_encode(profile, &out, NULL), STATUS_OK);
    bool is_found = memmem(out.data, out.size, member, strlen(member)) != NULL;
    buffer_fini(&out);
    return is_found;
}

TEST(opens_on_the_busiest_thread_or_the_one_of_the_transaction)
{
    struct profile profile;
    make(&profile);
    for (uint32_t i = 0; i < 6; i++) {
        struct sample sample = {
            .stack = {i % 3}, .thread = {2}, .time_ns = profile_start_ns(&profile) + (i + 2) * 10000000};
        profile_add_sample(&profile, &sample, (const int64_t[]){1, 10000000});
    }
    CHECK(opens_on(&profile, "\"activeProfileIndex\":1,"));
    profile.active_thread = profile_text(&profile, "10");
    CHECK(opens_on(&profile, "\"activeProfileIndex\":0,"));
    profile_fini(&profile);
}

TEST(what_was_read_and_written_is_read_the_same)
{
    enum { ALL = DUMP_TIMES | DUMP_THREADS | DUMP_VALUES };
    struct profile profile, first, second;
    struct buffer out, again, first_dump, second_dump;
    struct error error = {0};
    make(&profile);
    profile_init(&first);
    profile_init(&second);
    buffer_init(&out, 1 << 20);
    buffer_init(&again, 1 << 20);
    CHECK_UINT(speedscope_encode(&profile, &out, &error), STATUS_OK);
    CHECK_UINT(speedscope_decode(buffer_slice(&out), &first, &error), STATUS_OK);
    CHECK_TEXT(dump(&second_dump, &first, DUMP_TIMES | DUMP_THREADS | DUMP_VALUES),
               "samples/count wall/nanoseconds\n"
               "sample at 1700000000000000000 thread 10/main 1 10000000\n [libx.so.1] (:0:0)\n f (f.c:7:0)\n"
               "sample at 1700000000005000000 thread 11/main 1 10000000\n f (f.c:7:0)\n"
               "sample at 1700000001010000000 thread 10/main 1 10000000\n f (f.c:7:0)\n");
    buffer_fini(&second_dump);
    CHECK_UINT(first.time_ns, profile.time_ns);
    CHECK_UINT(speedscope_encode(&first, &again, &error), STATUS_OK);
    CHECK_UINT(speedscope_decode(buffer_slice(&again), &second, &error), STATUS_OK);
    CHECK_TEXT(dump(&second_dump, &second, ALL), dump(&first_dump, &first, ALL));
    CHECK(slice_equal(buffer_slice(&out), buffer_slice(&again)));
    buffer_fini(&first_dump);
    buffer_fini(&second_dump);
    buffer_fini(&again);
    buffer_fini(&out);
    profile_fini(&second);
    profile_fini(&first);
    profile_fini(&profile);
}

TEST(negative_values_are_rejected)
{
    struct profile profile;
    struct buffer out;
    struct error error = {0};
    make(&profile);
    buffer_init(&out, 1 << 20);
    profile.samples.values[1] = -1;
    CHECK_UINT(speedscope_encode(&profile, &out, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(out.size, 0);
    buffer_fini(&out);
    profile_fini(&profile);
}

/* dotnet-trace writes some numbers as texts. */
TEST(numbers_may_be_texts)
{
    static const char text[] =
        "{\"$schema\":\"https://www.speedscope.app/"
        "file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":\"a\"}]},"
        "\"profiles\":[{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"milliseconds\",\"startValue\":\"0.5\","
        "\"endValue\":\"20.5\",\"events\":[{\"type\":\"O\",\"frame\":\"0\",\"at\":\"0.5\"},"
        "{\"type\":\"C\",\"frame\":0,\"at\":20.5}]}]}";
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    if (speedscope_decode(slice_of_text(text), &profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_UINT(profile.samples.count, 1);
    CHECK_INT(profile_sample_values(&profile, 0)[1], 20000000);
    profile_fini(&profile);
}

TEST_MAIN()
