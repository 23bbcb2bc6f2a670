/* From one format to another and back: what both hold is there again. Real traffic, as real.h finds it.
 * SPDX-License-Identifier: MIT */
#include "real.h"
#include "test.h"

#include "detected.h"
#include "base/file.h"
#include "dump.h"
#include "format/format.h"
#include "format/sentry/sentry_extension.h"
#include "profile/time_labels.h"

#include <glob.h>

#define CONFORMANCE TEST_SOURCE_ROOT "/../shared/fixtures/pprof-conformance/"

enum { OUTPUT_BYTES_MAX = 1 << 28 };

/* False if the file holds no profile. */
static bool read_profile(const char *path, struct profile *profile, const struct format **ret_format)
{
    struct buffer bytes;
    buffer_init(&bytes, 1 << 28);
    profile_init(profile);
    bool is_read = file_read(path, &bytes, NULL) == STATUS_OK &&
                   format_decode(buffer_slice(&bytes), profile, ret_format, NULL) == STATUS_OK;
    buffer_fini(&bytes);
    return is_read;
}

/* Writes FROM as FORMAT and reads that into RET_PROFILE. */
static void pass_through(const struct profile *from, const struct format *format, struct profile *ret_profile,
                         const char *path)
{
    struct buffer bytes;
    struct error error = {0};
    const struct format *found = NULL;
    buffer_init(&bytes, OUTPUT_BYTES_MAX);
    profile_init(ret_profile);
    if (format_encode(from, format, &bytes, &error) != STATUS_OK ||
        format_decode(buffer_slice(&bytes), ret_profile, &found, &error) != STATUS_OK)
        TEST_FAIL("%s: %s: %s", path, format_name(format), error.message);
    buffer_fini(&bytes);
    if (found != format) TEST_FAIL("%s: written as %s, found as %s", path, format_name(format), format_name(found));
}

static void check_same(const struct profile *before, const struct profile *after, unsigned what, const char *path)
{
    struct buffer before_text, after_text;
    const char *expected = dump(&before_text, before, what), *found = dump(&after_text, after, what);
    size_t i = 0;
    while (expected[i] && expected[i] == found[i]) i++;
    if (expected[i] != found[i]) {
        size_t from = i > 200 ? i - 200 : 0;
        TEST_FAIL("%s: \"%.400s\" became \"%.400s\"", path, expected + from, found + from);
    }
    buffer_fini(&before_text);
    buffer_fini(&after_text);
}

static void for_each_profile(const char *pattern, bool (*check)(struct profile *profile, const char *path),
                             size_t count_min)
{
    glob_t files;
    size_t count = 0;
    if (glob(pattern, 0, NULL, &files) != 0) TEST_FAIL("there is no %s", pattern);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct profile profile;
        const struct format *format;
        bool is_profile = read_profile(files.gl_pathv[i], &profile, &format) && profile.samples.count > 0;
        count += is_profile && check(&profile, files.gl_pathv[i]);
        profile_fini(&profile);
    }
    globfree(&files);
    CHECK(count >= count_min);
}

/* Samples that are equal in thread, stack and time are one in pprof. */
static void sum_repeats(struct profile *profile)
{
    time_labels_put(profile);
    CHECK_UINT(profile_aggregate(profile, NULL), STATUS_OK);
    time_labels_take(profile);
}

static bool check_v2_pprof_v2(struct profile *profile, const char *path)
{
    struct profile in_pprof, chunk, again;
    if (sentry_extension(profile)->sample_format != 2) return false;
    pass_through(profile, &format_sentry_v2, &chunk, path);
    sum_repeats(&chunk);
    time_labels_put(&chunk);
    pass_through(&chunk, &format_pprof, &in_pprof, path);
    check_same(&chunk, &in_pprof, DUMP_TIMES | DUMP_THREADS | DUMP_VALUES | DUMP_ADDRESSES, path);
    CHECK(in_pprof.has_times);
    in_pprof.release = profile_text(&in_pprof, "a release, which pprof has no place for");
    pass_through(&in_pprof, &format_sentry_v2, &again, path);
    check_same(&chunk, &again, DUMP_TIMES | DUMP_THREADS | DUMP_ADDRESSES, path);
    profile_fini(&again);
    profile_fini(&in_pprof);
    profile_fini(&chunk);
    return true;
}

/* FMT-1, V2-3, PPF-1, PPF-4. */
TEST(a_chunk_through_pprof_keeps_stacks_threads_times_addresses)
{
    for_each_profile(real_path("envelopes/*/*.raw"), check_v2_pprof_v2, real_is_complete() ? 35 : 12);
}

/* Samples of one time may come in another order of their threads; samples of a thread keep their order. */
static void check_same_threads(const struct profile *before, const struct profile *after, const char *path)
{
    for (uint32_t i = 1; i < before->threads.count; i++) {
        const char *id = profile_c_string(before, before->threads.items[i].id);
        struct buffer before_text, after_text;
        if (strcmp(dump_thread(&before_text, before, id), dump_thread(&after_text, after, id)) != 0)
            TEST_FAIL("%s: thread %s is another", path, id);
        buffer_fini(&before_text);
        buffer_fini(&after_text);
    }
}

static bool check_firefox(struct profile *profile, const char *path)
{
    struct profile first, second;
    pass_through(profile, &format_firefox, &first, path);
    pass_through(&first, &format_firefox, &second, path);
    check_same(&first, &second, DUMP_TIMES | DUMP_THREADS | DUMP_VALUES, path);
    CHECK_UINT(first.samples.count, profile->samples.count);
    profile_fini(&second);
    profile_fini(&first);
    return true;
}

static bool check_speedscope(struct profile *profile, const char *path)
{
    struct profile first, second;
    pass_through(profile, &format_speedscope, &first, path);
    pass_through(&first, &format_speedscope, &second, path);
    check_same(&first, &second, DUMP_TIMES | DUMP_THREADS | DUMP_VALUES, path);
    if (sentry_extension(profile)->sample_format == 2) {
        CHECK_UINT(first.samples.count, profile->samples.count);
        check_same_threads(profile, &first, path);
    }
    profile_fini(&second);
    profile_fini(&first);
    return true;
}

TEST(a_profile_that_goes_through_speedscope_keeps_stacks_and_times)
{
    for_each_profile(real_path("envelopes/*-v2-*/*.raw"), check_speedscope, real_is_complete() ? 4 : 3);
    for_each_profile(real_path("envelopes/java-*/*.raw"), check_speedscope, 1);
}

TEST(a_profile_through_firefox_keeps_stacks_times_and_values)
{
    for_each_profile(real_path("envelopes/*-v2-*/*.raw"), check_firefox, real_is_complete() ? 4 : 3);
    for_each_profile(real_path("cpuprofile/*.cpuprofile"), check_firefox, 2);
}

/* Data that is written for readers only must be written for every element. */
static bool check_all_targets(struct profile *profile, const char *path)
{
    static const struct format *const written[] = {&format_collapsed, &format_speedscope, &format_firefox,
                                                   &format_otlp,      &format_otlp_json,  &format_pprof};
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        struct buffer bytes;
        struct error error = {0};
        buffer_init(&bytes, OUTPUT_BYTES_MAX);
        enum status status = format_encode(profile, written[i], &bytes, &error);
        const struct format *found = detected_format(buffer_slice(&bytes));
        buffer_fini(&bytes);
        if (status == STATUS_UNSUPPORTED) continue; /* negative values, nothing to be written */
        if (status != STATUS_OK) TEST_FAIL("%s: %s: %s", path, format_name(written[i]), error.message);
        if (found != written[i])
            TEST_FAIL("%s: written as %s, found as %s", path, format_name(written[i]), format_name(found));
    }
    return true;
}

TEST(whatever_is_read_can_be_written_and_is_found_out_again)
{
    for_each_profile(real_path("cpuprofile/*.cpuprofile"), check_all_targets, 2);
    for_each_profile(real_path("perf/*.script.txt"), check_all_targets, 3);
    for_each_profile(real_path("pprof/*/*"), check_all_targets, 5);
    for_each_profile(real_path("jfr/*.collapsed"), check_all_targets, 1);
    if (access(CONFORMANCE, X_OK) == 0) for_each_profile(CONFORMANCE "profiles/*.pb.gz", check_all_targets, 40);
}

TEST_MAIN()
