/* Recordings of Java that are broken; test/cli/jfr.py compares real ones with jfr print.  SPDX-License-Identifier: MIT
 */
#include "test.h"

#include "base/file.h"
#include "format/format.h"
#include "format/jfr/jfr.h"

static void read_real(struct buffer *raw)
{
    struct buffer file;
    struct slice bytes;
    buffer_init(&file, 1 << 20);
    CHECK_UINT(file_read(TEST_SOURCE_ROOT "/test/data/jfr/g1.jfr.gz", &file, NULL), STATUS_OK);
    CHECK_UINT(format_decompress(buffer_slice(&file), FORMAT_BYTES_MAX, raw, &bytes, NULL), STATUS_OK);
    buffer_fini(&file);
}

static enum status decode(struct buffer *bytes, size_t size, struct error *error)
{
    struct profile profile;
    profile_init(&profile);
    enum status status = jfr_decode(slice_of(bytes->data, size), &profile, error);
    profile_fini(&profile);
    return status;
}

TEST(reads_value_types_of_the_events_that_are_there)
{
    struct buffer bytes;
    struct profile profile;
    read_real(&bytes);
    profile_init(&profile);
    CHECK_UINT(jfr_decode(buffer_slice(&bytes), &profile, NULL), STATUS_OK);
    CHECK(profile.has_times);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].type), "samples");
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[2].type), "alloc_space");
    CHECK_TEXT(profile_c_string(&profile, profile.default_value_type), "samples");
    CHECK_INT(profile.period, 10000000);
    CHECK_TEXT(profile_c_string(&profile, profile.period_type.unit), "nanoseconds");
    profile_fini(&profile);
    buffer_fini(&bytes);
}

TEST(rejects_a_chunk_that_is_cut_short_at_any_place)
{
    struct buffer bytes;
    struct error error = {0};
    read_real(&bytes);
    for (size_t size = 0; size < bytes.size; size += size < 100 ? 1 : 997) {
        enum status status = decode(&bytes, size, &error);
        CHECK_UINT(status, size < 6 ? STATUS_NOT_THIS_FORMAT : STATUS_MALFORMED);
    }
    buffer_fini(&bytes);
}

TEST(rejects_what_is_broken_with_its_place)
{
    struct buffer bytes;
    struct error error = {0};
    read_real(&bytes);
    bytes.data[67] = 0;
    CHECK_UINT(decode(&bytes, bytes.size, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(error.offset, 64);
    bytes.data[67] = 1;
    bytes.data[68] = 1; /* the size of the first event */
    CHECK_UINT(decode(&bytes, bytes.size, &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, 68);
    buffer_fini(&bytes);
}

TEST(only_format_2_is_detected)
{
    CHECK(jfr_detect(slice_of("FLR\0\0\2\0\1", 8)));
    CHECK(!jfr_detect(slice_of("FLR\0\0\1\0\0", 8)));
    CHECK(!jfr_detect(slice_of("FLR", 3)));
}

TEST(frames_have_the_kind_that_the_virtual_machine_gave_them)
{
    struct buffer bytes;
    struct profile profile;
    size_t counts[FRAME_KINDS] = {0};
    read_real(&bytes);
    profile_init(&profile);
    CHECK_UINT(jfr_decode(buffer_slice(&bytes), &profile, NULL), STATUS_OK);
    for (size_t i = 1; i < profile.locations.count; i++) counts[profile.locations.items[i].kind]++;
    CHECK(counts[FRAME_INTERPRETED] > 0);
    CHECK(counts[FRAME_JIT] > 0);
    CHECK(counts[FRAME_INLINED] > 0);
    CHECK_UINT(counts[FRAME_UNKNOWN], 0);
    profile_fini(&profile);
    buffer_fini(&bytes);
}

TEST_MAIN()
