/* pprof's older formats: real captures against the dumps of the reference tool, and what those do not show by hand
 * (PPF-1, PPF-3, PPF-4, PPF-7). SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/file.h"
#include "format/format.h"
#include "format/pprof/pprof_legacy.h"
#include "report/raw_report.h"

#define LEGACY TEST_SOURCE_ROOT "/../shared/fixtures/pprof-conformance/legacy/"

static const char *const captures[] = {
    "cppbench.contention", "cppbench.cpu",         "cppbench.growth", "cppbench.heap",   "cppbench.thread",
    "cppbench.thread.all", "cppbench.thread.none", "go.crc32.cpu",    "go.godoc.thread", "gobench.cpu",
    "gobench.heap",        "java.contention",      "java.cpu",        "java.heap",
};
enum { CAPTURES = sizeof(captures) / sizeof(captures[0]) };

static bool read_capture(const char *name, const char *suffix, struct buffer *bytes)
{
    char path[512];
    (void)snprintf(path, sizeof(path), LEGACY "%s%s", name, suffix);
    buffer_init(bytes, 1 << 20);
    return file_read(path, bytes, NULL) == STATUS_OK;
}

/* Returns BYTES as text. The format is detected by content. */
static struct buffer raw_text(struct slice bytes)
{
    struct profile profile;
    struct error error = {0};
    struct buffer text;
    const struct format *format = NULL;
    buffer_init(&text, 1 << 20);
    profile_init(&profile);
    if (format_decode(bytes, &profile, &format, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_UINT(format, &format_pprof_legacy);
    raw_write_text(&profile, &text);
    buffer_append_byte(&text, '\0');
    profile_fini(&profile);
    return text;
}

static void check_raw(struct slice bytes, const char *expected)
{
    struct buffer text = raw_text(bytes);
    CHECK_TEXT((const char *)text.data, expected);
    buffer_fini(&text);
}

static void check_text(const char *file, const char *expected)
{
    check_raw(slice_of_text(file), expected);
}

static void check_rejected(const char *file, const char *words)
{
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    enum status status = pprof_legacy_decode(slice_of_text(file), &profile, &error);
    profile_fini(&profile);
    if (status != STATUS_MALFORMED)
        TEST_FAIL("status %d (%s), expected a rejection of %s", status, error.message, file);
    if (!strstr(error.message, words)) TEST_FAIL("\"%s\" does not say \"%s\"", error.message, words);
}

TEST(reads_all_14_captures_as_pprof_does_PPF_1_PPF_3_PPF_4_PPF_7)
{
    CHECK_UINT(CAPTURES, 14);
    for (size_t i = 0; i < CAPTURES; i++) {
        struct buffer bytes, expected;
        if (!read_capture(captures[i], "", &bytes) || !read_capture(captures[i], ".string", &expected))
            SKIP("../shared/fixtures is not there");
        buffer_append_byte(&expected, '\0');
        struct buffer text = raw_text(buffer_slice(&bytes));
        if (strcmp((const char *)text.data, (const char *)expected.data) != 0)
            TEST_FAIL("%s reads otherwise", captures[i]);
        buffer_fini(&text);
        buffer_fini(&bytes);
        buffer_fini(&expected);
    }
}

/* --- CPU profiles of gperftools ----------------------------------------------------------------------------------- */

static void append_word(struct buffer *out, uint64_t word, unsigned size, bool is_big_endian)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned shift = 8 * (is_big_endian ? size - 1 - i : i);
        buffer_append_byte(out, (uint8_t)(word >> shift));
    }
}

static struct buffer cpu_file(const uint64_t *words, size_t count, unsigned size, bool is_big_endian, const char *text)
{
    struct buffer file;
    buffer_init(&file, 1 << 16);
    for (size_t i = 0; i < count; i++) append_word(&file, words[i], size, is_big_endian);
    buffer_append_text(&file, text);
    return file;
}

#define CPU_HEADER 0, 3, 0, 10000, 0
#define WORDS(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

TEST(the_last_stack_of_a_killed_program_is_left_out)
{
    const uint64_t words[] = {CPU_HEADER, 2, 2, 0x1100, 0x1200, 1, 3, 0x1300};
    for (size_t cut = 1; cut < 4; cut++) {
        struct profile profile;
        struct buffer file = cpu_file(words, sizeof(words) / sizeof(words[0]) - cut + 1, 8, false, "");
        profile_init(&profile);
        CHECK_UINT(pprof_legacy_decode(buffer_slice(&file), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, 1);
        CHECK_UINT(profile.omissions.count, 1);
        profile_fini(&profile);
        buffer_fini(&file);
    }
}

TEST(reads_cpu_profiles_of_each_word_size_and_byte_order_PPF_4)
{
    for (int form = 0; form < 4; form++) {
        struct buffer file =
            cpu_file(WORDS(CPU_HEADER, 2, 2, 0x1100, 0x1200, 1, 1, 0x1300, 0, 1, 0), form < 2 ? 4 : 8, form % 2,
                     "1000-2000 r-xp 00000000 08:01 77 /bin/main program (deleted)\n"
                     "2000-3000 rw-p 00000000 00:00 0\n");
        check_raw(buffer_slice(&file), "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\n"
                                       "samples/count cpu/nanoseconds\n          2   20000000: 1 2 \n"
                                       "          1   10000000: 3 \nLocations\n     1: 0x1100 M=1 \n"
                                       "     2: 0x11ff M=1 \n     3: 0x1300 M=1 \nMappings\n"
                                       "1: 0x1000/0x2000/0x0 /bin/main program  \n");
        buffer_fini(&file);
    }
}

TEST(frames_of_the_signal_handler_and_a_doubled_leaf_are_taken_away)
{
    struct buffer file =
        cpu_file(WORDS(CPU_HEADER, 1, 5, 0x10, 0xaa, 0xbb, 0x20, 0x31, 1, 5, 0x11, 0xaa, 0xbb, 0x11, 0x31, 0, 1, 0), 8,
                 false, "");
    check_raw(buffer_slice(&file),
              "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\n"
              "samples/count cpu/nanoseconds\n          1   10000000: 1 2 3 \n"
              "          1   10000000: 4 3 \nLocations\n     1: 0x10 M=1 \n     2: 0x1f M=1 \n"
              "     3: 0x30 M=1 \n     4: 0x11 M=1 \nMappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
    buffer_fini(&file);
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

TEST(a_heap_profile_is_unsampled_and_shows_what_is_in_use_last_PPF_3)
{
    check_text("heap profile: 1: 1024 [2: 2048] @ heap_v2/1024\n"
               "1: 1024 [2: 2048] @ 0x11 0x21\n# a comment\n-1: -8 [0: 0] @\n",
               "PeriodType: space bytes\nPeriod: 1024\nSamples:\n"
               "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes\n"
               "          3       3239          1       1619: 1 2 \n                bytes:[1024]\n"
               "          0          0       -128      -1028: \n                bytes:[8]\n"
               "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \nMappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(growth_and_fragmentation_profiles_are_whole_PPF_3)
{
    static const char *const kinds[] = {"growthz", "growth", "fragmentationz", "heapprofile"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char file[128];
        (void)snprintf(file, sizeof(file), "heap profile:  3:  96 [  3: 96] @ %s\n 3: 96 [3: 96] @ 0x11\n", kinds[i]);
        check_text(file, "PeriodType: space bytes\nPeriod: 1\nSamples:\nobjects/count space/bytes\n"
                         "          3         96: 1 \n                bytes:[32]\nLocations\n     1: 0x10 M=1 \n"
                         "Mappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
    }
}

TEST(the_runtimes_mutex_profile_is_a_contention_profile_PPF_3)
{
    check_text("--- mutex:\ncycles/second=2000000000\nsampling period=10\n600 3 @ 0x11 0x21\n",
               "PeriodType: contentions count\nPeriod: 10\nSamples:\ncontentions/count delay/nanoseconds\n"
               "         30       3000: 1 2 \nLocations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \nMappings\n"
               "1: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(a_count_may_have_comments_between_its_stacks)
{
    check_text(
        "# goroutines\n\ngoroutine profile: total 5\n4 @ 0x11\n#\t0x10\tmain.f+0x1\tmain.go:3\n\n1 @ 0x11 0x21\n",
        "PeriodType: goroutine count\nPeriod: 1\nSamples:\ngoroutine/count\n          4: 1 \n          1: 1 2 \n"
        "Locations\n     1: 0x10 M=1 \n     2: 0x20 M=1 \nMappings\n1: 0x0/0xffffffffffffffff/0x0   \n");
}

TEST(java_names_replace_addresses_and_unnamed_addresses_stay)
{
    check_text("--- heapz 1 ---\nformat = java\nresolution = bytes\n  4096 2 @ 0x1 0x2 0x3\n\n"
               " 0x1 a.B.c (generated) (B.java:12)\n 0x2 memcpy (/lib/x/libc.so.6)\n",
               "PeriodType:  \nPeriod: 0\nSamples:\ninuse_objects/count inuse_space/bytes\n"
               "        513    1050625: 1 2 3 \n                bytes:[2048]\nLocations\n"
               "     1: 0x0 a.B.c (generated) B.java:12:0 s=0\n     2: 0x0 memcpy libc.so.6:0:0 s=0\n     3: 0x3 \n"
               "Mappings\n");
}

/* --- Mappings ----------------------------------------------------------------------------------------------------- */

#define COUNT_OF_0x5000 "x profile: total 1\n1 @ 0x5001\n--- Memory map: ---\n"
#define RAW_OF_0x5000                                                                                                  \
    "PeriodType: x count\nPeriod: 1\nSamples:\nx/count\n          1: 1 \nLocations\n     1: 0x5000 M=1 \nMappings\n"

TEST(mappings_have_a_brief_form_with_variables_and_a_loggers_prefix_PPF_7)
{
    check_text(COUNT_OF_0x5000 "root=/opt\nI0102 03:04:05.6 maps.cc:78] 0x5000-0x6000: $root/bin (@F00) 0123abcdef\n",
               RAW_OF_0x5000 "1: 0x5000/0x6000/0xf00 /opt/bin 0123abcdef \n");
}

TEST(joins_adjacent_mappings_and_puts_the_program_first_PPF_7)
{
    check_text(COUNT_OF_0x5000
               "3000-4000 r-xp 00000000 08:01 1 /lib/libz.so.1\n5000-6000 r-xp 00001000 08:01 1 /bin/x\n"
               "6000-7000 r-xp 00002000 08:01 1 /bin/x\n7000-8000 r-xp 00009000 08:01 1 /bin/x\n",
               RAW_OF_0x5000 "1: 0x5000/0x7000/0x1000 /bin/x  \n2: 0x3000/0x4000/0x0 /lib/libz.so.1  \n"
                             "3: 0x7000/0x8000/0x9000 /bin/x  \n");
}

TEST(the_next_mapping_gets_the_part_of_a_file_without_one_PPF_7)
{
    check_text(COUNT_OF_0x5000 "6000-7000 r-xp 00002000 08:01 1 /bin/x\n",
               RAW_OF_0x5000 "1: 0x4000/0x7000/0x0 /bin/x  \n");
}

/* --- Rejections -----------------------------------------------------------------------------------------------------
 */

TEST(what_is_broken_is_rejected_with_what_was_expected)
{
    check_rejected("heap profile: 1: 2 [3: 4] @ heap_v9/1\n", "nobody knows");
    check_rejected("heap profile: 1: 2 [3: 4] @ heap_v2/1\n1: 2 [3: 4]\n", "1: 2 [3: 4] @ 0x");
    check_rejected("heap profile: 1: 2 [3: 4] @ heap_v2/1\n0: 2 [3: 4] @\n", "0 objects");
    check_rejected("heap profile: 1: 2 [3: 4] @ heap_v2/1\n1: 2 [3: 4] @ 0x12345678901234567\n", "64 bits");
    check_rejected("x profile: total 2\n1 @ 0x1\none @ 0x1\n", "1 @ 0x");
    check_rejected("--- contention:\ncolour = 3\n", "colour");
    check_rejected("--- contention:\nsampling period = many\n", "number");
    check_rejected("--- contention:\n1 @ 0x1\n", "1 2 @ 0x");
    check_rejected("--- threadz 1 ---\n\n--- Threat 1 ---\n", "Thread");
    check_rejected("--- heapz 1 ---\nformat = cobol\n", "java");
    check_rejected("--- heapz 1 ---\nformat = java\n10 1 @ 0x1\n", "resolution");
    check_rejected("--- heapz 1 ---\nformat = java\nresolution = bytes\n10 0 @ 0x1\n", "no objects");
    struct buffer file = cpu_file(WORDS(CPU_HEADER, 1, 1000, 0x10), 8, false, "");
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(pprof_legacy_decode(buffer_slice(&file), &profile, NULL), STATUS_MALFORMED);
    profile_fini(&profile);
    buffer_fini(&file);
}

TEST(does_not_detect_similar_text_of_other_formats)
{
    static const char *const others[] = {"",
                                         "\n\n",
                                         "heap profile of mine 3\n",
                                         "profile: total 5\n",
                                         "x profile: total 5\n",
                                         "x profile: total 5\nmain;work 3\n",
                                         "--- contention: 5\n",
                                         "# a 3\n--- Thread 1 (name: a/1) stack: --- 7\n",
                                         "a profile: total 5 6\n"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(!pprof_legacy_detect(slice_of_text(others[i])));
}

/* The reader reads or rejects files that are cut or have a changed byte. */
TEST(damaged_captures_are_read_or_rejected_but_never_crash)
{
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < CAPTURES; i++) {
        struct buffer bytes;
        if (!read_capture(captures[i], "", &bytes)) SKIP("../shared/fixtures is not there");
        uint8_t *damaged = malloc(bytes.size);
        for (int round = 0; round < 300; round++) {
            memcpy(damaged, bytes.data, bytes.size);
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t place = random % bytes.size;
            damaged[place] = (uint8_t)(random >> 32);
            struct profile profile;
            struct buffer text;
            profile_init(&profile);
            buffer_init(&text, 1 << 22);
            if (pprof_legacy_decode(slice_of(damaged, random >> 60 ? bytes.size : place), &profile, NULL) == STATUS_OK)
                raw_write_text(&profile, &text);
            buffer_fini(&text);
            profile_fini(&profile);
        }
        free(damaged);
        buffer_fini(&bytes);
    }
}

TEST_MAIN()
