/* OTLP profiles. test/data/otlp has files that the Python classes of opentelemetry-proto 1.11 wrote.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/file.h"
#include "base/protobuf.h"
#include "dump.h"
#include "format/format.h"
#include "format/otlp/otlp.h"

#define DATA TEST_SOURCE_ROOT "/test/data/otlp/"

static void read_file(const char *path, const struct format *expected, struct profile *profile)
{
    struct buffer bytes;
    struct error error = {0};
    const struct format *format = NULL;
    buffer_init(&bytes, 1 << 20);
    if (file_read(path, &bytes, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    profile_init(profile);
    if (format_decode(buffer_slice(&bytes), profile, &format, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_TEXT(format_name(format), format_name(expected));
    buffer_fini(&bytes);
}

static const char *text(const struct profile *profile, struct string_id id)
{
    return profile_c_string(profile, id);
}

static const struct label *label_of(const struct profile *profile, size_t sample, const char *key)
{
    struct label_set set = profile->label_sets.items[profile->samples.labels[sample].index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        if (strcmp(text(profile, label->key), key) == 0) return label;
    }
    TEST_FAIL("sample %zu has no label %s", sample, key);
}

static void check_contents(const struct profile *profile)
{
    const int64_t first_ns = 1700000000000000000;
    CHECK_UINT(profile->value_type_count, 2);
    CHECK_TEXT(text(profile, profile->value_types[0].type), "samples");
    CHECK_TEXT(text(profile, profile->value_types[1].type), "cpu"); /* the type of the first profile is the default */
    CHECK_UINT(profile->samples.count, 4);
    CHECK_INT(profile->time_ns, first_ns);
    CHECK_UINT(profile->duration_ns, 2000000000);
    CHECK_INT(profile->period, 10000000);
    CHECK_TEXT(text(profile, profile->chunk_id), "0102030405060708090a0b0c0d0e0f10");
    CHECK_UINT(profile->comments.count, 2);
    static const int64_t values[4][2] = {{0, 5}, {1, 20}, {0, 30}, {1, 10}};
    static const uint64_t times[4] = {0, 3, 4, 5};
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(profile_sample_values(profile, i)[0], values[i][0]);
        CHECK_INT(profile_sample_values(profile, i)[1], values[i][1]);
        if (times[i]) CHECK_UINT(profile->samples.time_ns[i], (uint64_t)first_ns + times[i]);
    }
    const struct thread *worker = profile_thread(profile, profile->samples.thread[1]);
    CHECK_TEXT(text(profile, worker->name), "worker");
    CHECK_INT(profile_process(profile, worker->process)->pid, label_of(profile, 1, "pid")->number);
    CHECK_UINT(profile->processes.count, 3); /* the unknown one, and one of each resource */
    CHECK_TEXT(text(profile, profile_thread(profile, profile->samples.thread[1])->id), "42");
    CHECK_INT(label_of(profile, 0, "pid")->number, 8);
    CHECK_TEXT(text(profile, label_of(profile, 0, "service.name")->text), "bank");
    CHECK_TEXT(text(profile, label_of(profile, 1, OTLP_TRACE_LABEL)->text), "000102030405060708090a0b0c0d0e0f");
    CHECK_TEXT(text(profile, label_of(profile, 1, OTLP_SPAN_LABEL)->text), "0001020304050607");
    CHECK_INT(label_of(profile, 2, "size")->number, 4096);
    CHECK_TEXT(text(profile, label_of(profile, 2, "size")->unit), "By");
    CHECK_TEXT(text(profile, label_of(profile, 2, "ratio")->text), "0.5");
    const struct location *leaf = profile_location(profile, profile_stack(profile, profile->samples.stack[1]).location);
    CHECK_UINT(leaf->address, 0x400020);
    CHECK_UINT(leaf->line_count, 2);
    CHECK_TEXT(text(profile, profile_function(profile, profile_lines(profile, leaf)[0].function)->name), "inlined");
    CHECK_TEXT(text(profile, profile_mapping(profile, leaf->mapping)->build_id), "0123456789abcdef");
    CHECK(profile_mapping(profile, leaf->mapping)->has_functions);
}

TEST(reads_a_file_of_two_resources_written_by_the_official_classes)
{
    struct profile profile;
    read_file(DATA "two-resources.otlp", &format_otlp, &profile);
    check_contents(&profile);
    profile_fini(&profile);
}

TEST(reads_the_same_in_json)
{
    struct profile profile;
    read_file(DATA "two-resources.otlp.json", &format_otlp_json, &profile);
    check_contents(&profile);
    profile_fini(&profile);
}

TEST(keeps_everything_in_a_round_trip_through_both_encodings)
{
    static const struct format *const written[] = {&format_otlp, &format_otlp_json};
    for (size_t i = 0; i < 2; i++) {
        struct profile profile, again;
        struct buffer bytes;
        buffer_init(&bytes, 1 << 20);
        read_file(DATA "two-resources.otlp", &format_otlp, &profile);
        CHECK_UINT(format_encode(&profile, written[i], &bytes, NULL), STATUS_OK);
        profile_init(&again);
        CHECK_UINT(written[i]->decode(buffer_slice(&bytes), &again, NULL), STATUS_OK);
        check_contents(&again);
        profile_fini(&again);
        profile_fini(&profile);
        buffer_fini(&bytes);
    }
}

TEST(merges_the_documents_of_a_file_with_one_a_line)
{
#define DOCUMENT(value)                                                                                                \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":1},\"samples\":["     \
    "{\"stackIndex\":1,\"values\":[" value "]}]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"cpu\",\"f\"],"           \
    "\"functionTable\":[{},{\"nameStrindex\":2}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"          \
    "\"stackTable\":[{},{\"locationIndices\":[1]}]}}\n"
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(otlp_json_decode(slice_of_text(DOCUMENT("\"7\"") DOCUMENT("-8")), &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 2);
    CHECK_INT(profile_sample_values(&profile, 0)[0], 7);
    CHECK_INT(profile_sample_values(&profile, 1)[0], -8);
    profile_fini(&profile);
}

/* A data message with SAMPLE, the bytes of one, and a dictionary of "" only. */
static enum status decode_sample(struct slice sample, struct error *error)
{
    struct buffer bytes;
    struct profile profile;
    buffer_init(&bytes, 1 << 16);
    profile_init(&profile);
    size_t resource = protobuf_begin_message(&bytes, 1), scope = protobuf_begin_message(&bytes, 2);
    size_t made = protobuf_begin_message(&bytes, 2);
    protobuf_append_bytes(&bytes, 2, sample);
    protobuf_end_message(&bytes, made);
    protobuf_end_message(&bytes, scope);
    protobuf_end_message(&bytes, resource);
    protobuf_append_bytes(&bytes, 2, slice_of("\x2a\0", 2));
    enum status status = otlp_decode(buffer_slice(&bytes), &profile, error);
    profile_fini(&profile);
    buffer_fini(&bytes);
    return status;
}

TEST(rejects_what_is_broken_and_says_where)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum status status;
        const char *message;
    } samples[] = {
        {"\x08\x05\x22\x01\x01", 5, STATUS_MALFORMED, "an index 5 into the table of stacks, which has 0 entries"},
        {"\x12\x01\x07\x22\x01\x01", 6, STATUS_MALFORMED, "table of attributes"},
        {"\x18\x02\x22\x01\x01", 5, STATUS_MALFORMED, "table of links"},
        {"\x22\x02\x01\x02\x2a\x08\1\0\0\0\0\0\0\0", 14, STATUS_MALFORMED, "a sample has 2 values and 1 times"},
        {"\x22\x01\x81", 3, STATUS_MALFORMED, "a list of numbers is cut short"},
        {"", 0, STATUS_MALFORMED, "a sample without values and times"},
        {"\x12\x01\x01\x20\x01", 5, STATUS_UNSUPPORTED, "before 1.10"}, /* values and a link, as they were in 1.9 */
        {"\x22\x01\x01", 3, STATUS_OK, ""},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct error error = {0};
        enum status status = decode_sample(slice_of(samples[i].bytes, samples[i].size), &error);
        if (status != samples[i].status || !strstr(error.message, samples[i].message))
            TEST_FAIL("sample %zu: status %d, %s", i, status, error.message);
    }
}

TEST(says_at_which_byte_a_message_is_broken)
{
    static const uint8_t bytes[] = {0x12, 0x02, 0x2a, 0x00, 0x0a, 0x02, 0x0a, 0x09};
    struct error error = {0};
    struct profile profile;
    profile_init(&profile);
    CHECK_UINT(otlp_decode(slice_of(bytes, sizeof(bytes)), &profile, &error), STATUS_MALFORMED);
    CHECK(error.offset >= 6 && error.offset <= sizeof(bytes));
    profile_fini(&profile);
}

TEST_MAIN()
