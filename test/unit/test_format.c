/* How formats are told apart: by content alone, through gzip.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/gzip.h"
#include "format/format.h"

static const struct {
    const char *text;
    enum format format;
} contents[] = {
    {"main;work 42\n", FORMAT_COLLAPSED},
    {"{main};{closure} 42\n", FORMAT_COLLAPSED},
    {"{\"version\": \"2\"}", FORMAT_SENTRY_V2},
    {" \n{\n", FORMAT_SENTRY_V2},
    {"{}\n{\"type\":\"profile_chunk\"}\n{}", FORMAT_ENVELOPE},
    {"\x0a\x04\x08\x01\x10\x02", FORMAT_PPROF},
    {"OFFBEAT\x01", FORMAT_RECORDING},
    {"", FORMAT_UNKNOWN},
    {"hello\n", FORMAT_UNKNOWN},
    {"\x7f\x45LF\x02\x01", FORMAT_UNKNOWN},
};

TEST(a_format_is_known_by_its_content_also_when_compressed)
{
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct slice raw = slice_of_text(contents[i].text);
        struct buffer packed;
        buffer_init(&packed, 1 << 16);
        CHECK_UINT(gzip_compress(raw, 6, &packed, NULL), STATUS_OK);
        enum format found = format_detect(raw), found_packed = format_detect(buffer_slice(&packed));
        if (found != contents[i].format || found_packed != found) {
            TEST_FAIL("\"%s\" is %s, compressed %s", contents[i].text, format_name(found), format_name(found_packed));
        }
        buffer_fini(&packed);
    }
}

TEST(names_and_paths_name_formats)
{
    CHECK_UINT(format_of_name("sentry-v2"), FORMAT_SENTRY_V2);
    CHECK_UINT(format_of_name("x"), FORMAT_UNKNOWN);
    CHECK_UINT(format_of_path("a/xz.pb.gz"), FORMAT_PPROF);
    CHECK_UINT(format_of_path("xz.envelope"), FORMAT_ENVELOPE);
    CHECK_UINT(format_of_path("xz.folded"), FORMAT_COLLAPSED);
    CHECK_UINT(format_of_path("xz.json"), FORMAT_SENTRY_V2);
    CHECK_UINT(format_of_path("xz"), FORMAT_UNKNOWN);
    CHECK_TEXT(format_name(FORMAT_RECORDING), "recording");
}

TEST(an_unknown_file_and_a_read_only_format_are_refused_by_name)
{
    struct profile profile;
    struct error error;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    profile_init(&profile);
    CHECK_UINT(format_decode(slice_of_text("hello"), &profile, NULL, &error), STATUS_NOT_THIS_FORMAT);
    CHECK_UINT(format_encode(&profile, FORMAT_RECORDING, &out, &error), STATUS_UNSUPPORTED);
    CHECK(strstr(error.message, "recording") != NULL);
    CHECK_UINT(format_decode(slice_of_text("{}\n{\"type\":\"event\"}\n{}"), &profile, NULL, &error),
               STATUS_UNSUPPORTED);
    profile_fini(&profile);
    buffer_fini(&out);
}

TEST_MAIN()
