/* Formats are distinguished by content alone, through gzip.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "detected.h"
#include "base/gzip.h"
#include "format/sentry/envelope.h"
#include "format/format.h"
#include "format/recording/recording_layout.h"
#include "format/sentry/sentry_v2.h"
#include "profile/profile_extent.h"

static const struct {
    const char *text;
    const struct format *format;
} contents[] = {
    {"main;work 42\n", &format_collapsed},
    {"{main};{closure} 42\n", &format_collapsed},
    {"{\"version\": \"2\"}", &format_sentry_v2},
    {" \n{\n", &format_sentry_v2},
    {"{}\n{\"type\":\"profile_chunk\"}\n{}", &format_envelope},
    {"\x0a\x04\x08\x01\x10\x02", &format_pprof},
    {RECORDING_MAGIC, &format_recording},
    {"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}", &format_speedscope},
    {"{\"version\":\"0.0.1\",\"name\":\"x\",\"shared\":{\"frames\":[]},\"profiles\":[]}\n", &format_speedscope},
    {"{\"nodes\":[],\"samples\":[]}", &format_chrome},
    {"{\"head\":{}}\n", &format_chrome},
    {"{\"traceEvents\":[]}", &format_chrome},
    {"[{\"pid\":1,\"ph\":\"M\"}", &format_chrome},
    {"{\"meta\":{},\"shared\":{}}", &format_firefox},
    {"a prog 12/13 [003] 1.5:  7 cycles:u: \n\t10 f (/a)\n", &format_perf_script},
    {"# ========\n\nprog 12 1.500000: cycles: 10 f+0x3 (/a 5)\n", &format_perf_script},
    {"prog 12 1.5: sched:sched_switch: prio 120\nprog 12 1.6: sched:sched_switch: prio 110\n", &format_perf_script},
    {"prog 12 1.5: sched:sched_switch: prio 120\n", &format_collapsed},
    {"prog 12 1.5: sched:sched_switch: prio 120\nprog 12 1.6: sched:sched_switch: prio 110\nmain 3\n",
     &format_collapsed},
    {"prog 12;main 1.5: 3\n", &format_collapsed},
    {"a;b 1 2\n", &format_collapsed},
    {"{\"exporter\":\"x\"}\n{\"type\":\"profile_chunk\"}\n{}\n", &format_envelope},
    {"[\"ph\"]", NULL},
    {"", NULL},
    {"hello\n", NULL},
    {"\x7f\x45LF\x02\x01", NULL},
};

TEST(a_format_is_known_by_its_content_also_when_compressed)
{
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct slice raw = slice_of_text(contents[i].text);
        struct buffer packed;
        buffer_init(&packed, 1 << 16);
        CHECK_UINT(gzip_compress(raw, 6, &packed, NULL), STATUS_OK);
        const struct format *found = detected_format(raw), *found_packed = detected_format(buffer_slice(&packed));
        if (found != contents[i].format || found_packed != found) {
            TEST_FAIL("\"%s\" is %s, compressed %s", contents[i].text, format_name(found), format_name(found_packed));
        }
        buffer_fini(&packed);
    }
}

TEST(names_and_paths_name_formats)
{
    CHECK_UINT(format_of_name("sentry-v2"), &format_sentry_v2);
    CHECK_UINT(format_of_name("x"), NULL);
    CHECK_UINT(format_of_path("a/xz.pb.gz"), &format_pprof);
    CHECK_UINT(format_of_path("xz.envelope"), &format_envelope);
    CHECK_UINT(format_of_path("xz.folded"), &format_collapsed);
    CHECK_UINT(format_of_path("xz.json"), &format_sentry_v2);
    CHECK_UINT(format_of_path("xz.speedscope.json"), &format_speedscope);
    CHECK_UINT(format_of_path("xz.firefox.json.gz"), &format_firefox);
    CHECK(format_path_is_compressed("xz.firefox.json.gz"));
    CHECK(!format_path_is_compressed("xz.pb.gz"));
    CHECK(!format_path_is_compressed("xz.json"));
    CHECK_UINT(format_of_path("xz"), NULL);
    CHECK_TEXT(format_name(&format_recording), "recording");
}

/* Appends COUNT lines of one stack. */
static void add_lines(struct buffer *out, size_t count)
{
    for (size_t i = 0; i < count; i++) buffer_append_text(out, "main;work 42\n");
}

TEST(reads_a_file_compressed_twice_or_with_a_byte_order_mark)
{
    struct buffer text, once, twice;
    struct profile profile;
    buffer_init(&text, 1 << 20);
    buffer_init(&once, 1 << 20);
    buffer_init(&twice, 1 << 20);
    buffer_append_text(&text, "\xef\xbb\xbf");
    add_lines(&text, 3);
    CHECK_UINT(gzip_compress(buffer_slice(&text), 6, &once, NULL), STATUS_OK);
    CHECK_UINT(gzip_compress(buffer_slice(&once), 6, &twice, NULL), STATUS_OK);
    const struct buffer *inputs[] = {&text, &once, &twice};
    for (size_t i = 0; i < 3; i++) {
        struct buffer copy;
        buffer_init(&copy, 1 << 20);
        buffer_append(&copy, inputs[i]->data, inputs[i]->size);
        for (int in_place = 0; in_place < 2; in_place++) {
            profile_init(&profile);
            const struct format *format = NULL;
            bool is_cut = true;
            if (in_place) CHECK_UINT(format_open(&copy, &format, &is_cut, NULL), STATUS_OK);
            CHECK_UINT(is_cut, !in_place);
            CHECK_UINT(in_place ? format_decode_opened(format, &copy, &profile, NULL)
                                : format_decode(buffer_slice(inputs[i]), &profile, NULL, NULL),
                       STATUS_OK);
            CHECK_UINT(profile.samples.count, 3);
            CHECK(profile.strings.count > 1 &&
                  !memchr(profile.strings.items[1].data, 0xef, profile.strings.items[1].size));
            profile_fini(&profile);
        }
    }
    buffer_fini(&text);
    buffer_fini(&once);
    buffer_fini(&twice);
}

/* 800 bytes that held 1 GiB made `top` take 6.7 GB. */
TEST(rejects_a_small_file_that_holds_very_much)
{
    struct buffer text, packed;
    struct profile profile;
    struct error error = {0};
    buffer_init(&text, 40 << 20);
    buffer_init(&packed, 40 << 20);
    add_lines(&text, (18 << 20) / 13);
    CHECK_UINT(gzip_compress(buffer_slice(&text), 9, &packed, NULL), STATUS_OK);
    CHECK(packed.size < 65536); /* 18 MiB: under 16 MiB any ratio is allowed, above only 256 */
    profile_init(&profile);
    CHECK_UINT(format_decode(buffer_slice(&packed), &profile, NULL, &error), STATUS_TOO_LARGE);
    CHECK(strstr(error.message, "hold more than") != NULL);
    profile_fini(&profile);
    buffer_fini(&text);
    buffer_fini(&packed);
}

/* A stack of 100 000 frames at one place with 60 000 inlined functions was counted 6e9 times. */
TEST(rejects_stacks_that_are_far_larger_than_their_file)
{
    struct profile profile;
    struct error error = {0};
    enum { LINES = 1000, FRAMES = 20000 };
    static struct line lines[LINES];
    profile_init(&profile);
    struct location_id place = profile_add_location(&profile, &(struct location){.address = 1}, lines, LINES);
    struct stack_id stack = {0};
    for (int i = 0; i < FRAMES; i++) stack = profile_add_stack(&profile, stack, place);
    CHECK_UINT(profile_check_inlined(&profile, 100000, &error), STATUS_TOO_LARGE);
    CHECK_UINT(profile_check_inlined(&profile, 10000000, &error), STATUS_OK);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_sample(&profile, &(struct sample){.stack = stack}, &(int64_t){1});
    profile_add_sample(&profile, &(struct sample){.stack = stack}, &(int64_t){1});
    CHECK_UINT(profile_check_flat(&profile, false, &error), STATUS_OK); /* not read from a file */
    profile.source_bytes = 2000000;
    CHECK_UINT(profile_check_flat(&profile, true, &error), STATUS_OK);
    CHECK_UINT(profile_check_flat(&profile, false, &error), STATUS_TOO_LARGE);
    profile_fini(&profile);
}

TEST(names_what_it_cannot_read_and_what_helps)
{
    static const struct {
        const char *bytes, *hint;
    } files[] = {
        {"2ELIFREP\x68", "perf script | offbeat"},
        {"\xfd\x37zXZ", "xz -dc"},
        {"BZh91AY", "bzip2 -dc"},
        {"\xff\xfem", "UTF-8"},
        {"\x7f\x45LF\x02", "ELF file"},
        {"{\"snapshot\":{\"meta\":{\"node_fields\":[]}}}", "heap snapshot"},
        {"v8-version,10,2\nshared-library,/usr/bin/node\n", "--prof-process"},
        {"gmon\x01", "gprof PROGRAM FILE"},
        {"adcg*22B", "gcov FILE"},
        {"MOJ\x03", "mojo2austin"},
        {"Nettrace\x14", "dotnet-trace convert"},
        {"JAVA PROFILE 1.0.2", "heap dump of Java"},
        {"<?xml version=\"1.0\"?>\n<svg width=\"1200\">", "picture (SVG)"},
        {"<!DOCTYPE html>\n<title>502</title>", "web page"},
        {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
        {"digraph \"x\" {\n", "Graphviz"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        CHECK_UINT(format_decode(slice_of_text(files[i].bytes), &profile, NULL, &error), STATUS_UNSUPPORTED);
        if (!strstr(error.message, files[i].hint)) TEST_FAIL("%s", error.message);
        profile_fini(&profile);
    }
}

/* Made by brotli: forty different lines of collapsed stacks. */
TEST(says_that_a_brotli_file_was_cut_short)
{
    static const uint8_t packed[] = {0x1f, 0x4d, 0x02, 0x00, 0x04, 0x0a, 0xb7, 0x75, 0x4a, 0x22, 0x44, 0xfe, 0x0e,
                                     0x50, 0x67, 0x4b, 0x46, 0xe7, 0xd4, 0xcd, 0x22, 0x55, 0x7a, 0xf1, 0x67, 0xda,
                                     0x01, 0xc5, 0xe2, 0xb9, 0x34, 0x8b, 0x47, 0xfb, 0xdc, 0xc7, 0xf9, 0xec, 0xff,
                                     0xfb, 0x5d, 0xad, 0x76, 0x4a, 0x4d, 0xa9, 0xed, 0x1d, 0x9d, 0x5d, 0xba, 0x76,
                                     0x5b, 0x19, 0x7a, 0x18, 0x31, 0x62, 0xc4, 0x88, 0x11, 0x23, 0x46, 0x8c, 0x00,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x42, 0x08, 0x21, 0x84, 0x10, 0x9e};
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    CHECK_UINT(format_decode(slice_of(packed, sizeof(packed)), &profile, NULL, &error), STATUS_OK);
    profile_fini(&profile);
    profile_init(&profile);
    CHECK_UINT(format_decode(slice_of(packed, sizeof(packed) - 1), &profile, NULL, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "cut short") != NULL);
    profile_fini(&profile);
}

TEST(an_unknown_file_and_a_read_only_format_are_rejected_by_name)
{
    struct profile profile;
    struct error error;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    profile_init(&profile);
    CHECK_UINT(format_decode(slice_of_text("hello"), &profile, NULL, &error), STATUS_NOT_THIS_FORMAT);
    CHECK_UINT(format_encode(&profile, &format_recording, &out, &error), STATUS_UNSUPPORTED);
    CHECK(strstr(error.message, "recording") != NULL);
    CHECK_UINT(format_decode(slice_of_text("{}\n{\"type\":\"event\"}\n{}"), &profile, NULL, &error),
               STATUS_UNSUPPORTED);
    profile_fini(&profile);
    buffer_fini(&out);
}

/* Appends to OUT a chunk of two samples, the first at START_S. */
static void add_chunk(struct buffer *out, uint64_t start_s)
{
    struct profile profile;
    struct buffer chunk;
    struct error error = {0};
    profile_init(&profile);
    buffer_init(&chunk, 1 << 16);
    profile_add_value_type(&profile, "samples", "count");
    profile_add_value_type(&profile, "wall", "nanoseconds");
    profile.profiler_id = profile_text(&profile, "0123456789ab4def8123456789abcdef");
    profile.release = profile_text(&profile, "program@1");
    profile.has_times = true;
    struct line line = {.function =
                            profile_add_function(&profile, &(struct function){.name = profile_text(&profile, "f")})};
    struct location_id place = profile_add_location(&profile, &(struct location){0}, &line, 1);
    struct sample sample = {
        .stack = profile_add_stack(&profile, (struct stack_id){0}, place),
        .thread = profile_add_thread(&profile, &(struct thread){.id = profile_text(&profile, "42")}),
    };
    static const int64_t values[] = {1, 10000000};
    for (uint64_t i = 0; i < 2; i++) {
        sample.time_ns = start_s * 1000000000 + i * 10000000;
        profile_add_sample(&profile, &sample, values);
    }
    if (sentry_v2_encode(&profile, NULL, &chunk, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    envelope_add_item(out, "profile_chunk", "native", buffer_slice(&chunk));
    profile_fini(&profile);
    buffer_fini(&chunk);
}

TEST(all_chunks_of_an_envelope_become_one_profile_in_the_order_of_time)
{
    struct buffer envelope;
    struct profile profile;
    struct error error = {0};
    const struct format *format;
    buffer_init(&envelope, 1 << 20);
    profile_init(&profile);
    envelope_begin(&envelope, &(struct envelope_attributes){0});
    add_chunk(&envelope, 1700000060);
    envelope_add_item(&envelope, "event", NULL, slice_of_text("{}"));
    add_chunk(&envelope, 1700000000);
    if (format_decode(buffer_slice(&envelope), &profile, &format, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_UINT(format, &format_envelope);
    CHECK(profile.samples.count >= 4);
    for (size_t i = 1; i < profile.samples.count; i++) {
        CHECK(profile.samples.time_ns[i - 1] <= profile.samples.time_ns[i]);
    }
    CHECK_UINT(profile.samples.time_ns[0] / 1000000000, 1700000000);
    CHECK_UINT(profile.samples.time_ns[profile.samples.count - 1] / 1000000000, 1700000060);
    CHECK_UINT(profile_stack_limit(&profile), 2);
    CHECK_UINT(profile.threads.count, 2);
    profile_fini(&profile);
    buffer_fini(&envelope);
}

TEST_MAIN()
