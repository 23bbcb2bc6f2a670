/* profile.proto in both directions (PPF-1 PPF-2 PPF-3 PPF-4 PPF-5 PPF-6 PPF-7 PPF-8 PPF-9): by hand-made files, one for
 * each rule, and by real ones.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/file.h"
#include "base/gzip.h"
#include "base/protobuf.h"
#include "format/format.h"
#include "format/pprof/pprof.h"
#include "profile/time_labels.h"

#include <glob.h>

#define CONFORMANCE TEST_SOURCE_ROOT "/../shared/fixtures/pprof-conformance/"

/* --- Making files ------------------------------------------------------------------------------------------------- */

struct number {
    uint32_t field;
    uint64_t value;
};

static void add_message(struct buffer *out, uint32_t field, const struct number *numbers)
{
    size_t begin = protobuf_begin_message(out, field);
    for (; numbers->field != 0; numbers++) protobuf_append_explicit_number(out, numbers->field, numbers->value);
    protobuf_end_message(out, begin);
}

#define MESSAGE(out, field, ...) add_message((out), (field), (const struct number[]){__VA_ARGS__, {0}})

/* Strings 0 … 7 of every file made here. */
static void add_strings(struct buffer *out)
{
    static const char *const strings[] = {"",  "samples", "count", "work", "thread_id", "bytes", "# offbeat ticks = 7",
                                          "hi"};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        protobuf_append_bytes(out, 6, slice_of_text(strings[i]));
    }
}

/* One sample type, function 10, mapping 20, location 30: sparse, as ids may be. */
static void add_entities(struct buffer *out)
{
    MESSAGE(out, 1, {1, 1}, {2, 2});
    MESSAGE(out, 5, {1, 10}, {2, 3});
    MESSAGE(out, 3, {1, 20}, {2, 0x1000}, {3, 0x2000});
    size_t location = protobuf_begin_message(out, 4);
    protobuf_append_number(out, 1, (uint64_t)1 << 60);
    protobuf_append_number(out, 2, 20);
    MESSAGE(out, 4, {1, 10}, {2, 77}, {3, 5});
    protobuf_end_message(out, location);
}

static const uint64_t LOCATION = (uint64_t)1 << 60;

static enum status decode(const struct buffer *file, struct profile *profile, struct error *error)
{
    profile_init(profile);
    return format_decode(buffer_slice(file), profile, NULL, error);
}

/* Rejected, with a message that holds WORDS. */
static void check_rejected(struct buffer *file, const char *words)
{
    struct profile profile;
    struct error error = {0};
    enum status status = decode(file, &profile, &error);
    profile_fini(&profile);
    buffer_fini(file);
    if (status != STATUS_MALFORMED) TEST_FAIL("status %d (%s), expected a rejection", status, error.message);
    if (!strstr(error.message, words)) TEST_FAIL("\"%s\" does not say \"%s\"", error.message, words);
}

static struct buffer new_file(void)
{
    struct buffer file;
    buffer_init(&file, 1 << 20);
    return file;
}

/* --- What must be read -------------------------------------------------------------------------------------------- */

TEST(reads_messages_in_any_order_sparse_ids_and_packed_numbers_PPF_1)
{
    struct buffer file = new_file();
    static const uint64_t ids[] = {(uint64_t)1 << 60, (uint64_t)1 << 60};
    size_t sample = protobuf_begin_message(&file, 2);
    protobuf_append_packed(&file, 1, ids, 2);
    protobuf_append_number(&file, 1, LOCATION);
    protobuf_append_number(&file, 2, 42);
    protobuf_end_message(&file, sample);
    add_entities(&file);
    protobuf_append_bytes(&file, 99, slice_of_text("unknown"));
    add_strings(&file);

    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 1);
    CHECK_INT(profile_sample_values(&profile, 0)[0], 42);
    CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[0]), 3);
    const struct location *location =
        profile_location(&profile, profile_stack(&profile, (struct stack_id){1}).location);
    CHECK_UINT(location->mapping.index, 1);
    CHECK_INT(profile_lines(&profile, location)->line, 77);
    CHECK_INT(profile_lines(&profile, location)->column, 5);
    CHECK_TEXT(profile_c_string(&profile, profile.functions.items[1].name), "work");
    profile_fini(&profile);
    buffer_fini(&file);
}

/* The first two ids of the file are the profile's. Then one location appears twice, so the ids after it differ. */
TEST(finds_locations_by_id_also_after_a_duplicate_PPF_1)
{
    static const struct {
        uint64_t id, address;
    } places[] = {{1, 0xa}, {2, 0xb}, {3, 0xa}, {4, 0xc}, {9, 0xd}, {(uint64_t)1 << 40, 0xe}, {5, 0xf}};
    enum { PLACES = sizeof(places) / sizeof(places[0]) };
    struct buffer file = new_file();
    MESSAGE(&file, 1, {1, 1}, {2, 2});
    for (size_t i = 0; i < PLACES; i++) MESSAGE(&file, 4, {1, places[i].id}, {3, places[i].address});
    for (size_t i = 0; i < PLACES; i++) MESSAGE(&file, 2, {1, places[i].id}, {2, 1});
    add_strings(&file);
    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, PLACES);
    for (size_t i = 0; i < PLACES; i++) {
        struct stack stack = profile_stack(&profile, profile.samples.stack[i]);
        CHECK_UINT(profile_location(&profile, stack.location)->address, places[i].address);
    }
    profile_fini(&profile);
    buffer_fini(&file);
}

/* Ids of one to six bytes by chance. The samples come last, so that some stack ends with the file. */
TEST(ids_of_every_length_are_read_wherever_they_are_in_a_stack_PPF_1)
{
    enum { DENSE = 20000, STACKS = 200, DEPTH_MAX = 20 };
    static const uint64_t sparse[] = {(uint64_t)1 << 27, ((uint64_t)1 << 28) + 5, (uint64_t)1 << 40};
    static uint64_t ids[STACKS][DEPTH_MAX];
    struct buffer file = new_file();
    add_strings(&file);
    MESSAGE(&file, 1, {1, 1}, {2, 2});
    for (uint64_t id = 1; id <= DENSE; id++) MESSAGE(&file, 4, {1, id}, {3, id});
    for (size_t i = 0; i < 3; i++) MESSAGE(&file, 4, {1, sparse[i]}, {3, sparse[i]});
    uint32_t chance = 1;
    for (size_t i = 0; i < STACKS; i++) {
        for (size_t frame = 0; frame < DEPTH_MAX; frame++) {
            chance = chance * 1103515245 + 12345;
            uint32_t bits = chance >> 8, kind = bits % 7;
            uint32_t below = kind < 3 ? 127 : kind < 5 ? 16383 : DENSE;
            ids[i][frame] = kind == 6 && bits % 5 < 3 ? sparse[bits % 5] : 1 + (bits >> 3) % below;
        }
        size_t sample = protobuf_begin_message(&file, 2);
        protobuf_append_number(&file, 2, 1);
        protobuf_append_packed(&file, 1, ids[i], 1 + i % DEPTH_MAX);
        protobuf_end_message(&file, sample);
    }
    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, STACKS);
    for (size_t i = 0; i < STACKS; i++) {
        struct stack_id at = profile.samples.stack[i];
        CHECK_UINT(profile_stack_depth(&profile, at), 1 + i % DEPTH_MAX);
        for (size_t frame = 0; at.index != 0; frame++, at = profile_stack(&profile, at).parent) {
            struct location_id location = profile_stack(&profile, at).location;
            CHECK_UINT(profile_location(&profile, location)->address, ids[i][frame]);
        }
    }
    profile_fini(&profile);
    buffer_fini(&file);
}

TEST(a_zero_is_a_value_of_a_label_and_survives_both_ways_PPF_8)
{
    struct buffer file = new_file(), again = new_file();
    add_entities(&file);
    size_t sample = protobuf_begin_message(&file, 2);
    protobuf_append_explicit_number(&file, 2, 1);
    MESSAGE(&file, 3, {1, 7});                 /* nothing but a key: the number 0 */
    MESSAGE(&file, 3, {1, 7}, {2, 0});         /* an empty text, written as such */
    MESSAGE(&file, 3, {1, 7}, {3, 0}, {4, 5}); /* 0 bytes */
    MESSAGE(&file, 3, {1, 7}, {2, 3});
    protobuf_end_message(&file, sample);
    add_strings(&file);

    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(pprof_encode(&profile, &again, NULL), STATUS_OK);
    profile_fini(&profile);
    CHECK_UINT(decode(&again, &profile, NULL), STATUS_OK);
    struct label_set set = profile.label_sets.items[profile.samples.labels[0].index];
    const struct label *labels = &profile.labels.items[set.first];
    CHECK_UINT(set.count, 4);
    CHECK(labels[0].is_number && labels[0].number == 0 && labels[0].unit.index == 0);
    CHECK(!labels[1].is_number && labels[1].text.index == 0);
    CHECK(labels[2].is_number && labels[2].number == 0);
    CHECK_TEXT(profile_c_string(&profile, labels[2].unit), "bytes");
    CHECK_TEXT(profile_c_string(&profile, labels[3].text), "work");
    profile_fini(&profile);
    buffer_fini(&file);
    buffer_fini(&again);
}

TEST(a_thread_id_label_makes_a_thread)
{
    struct buffer file = new_file();
    add_entities(&file);
    size_t sample = protobuf_begin_message(&file, 2);
    protobuf_append_explicit_number(&file, 2, 1);
    MESSAGE(&file, 3, {1, 4}, {3, 4711});
    protobuf_end_message(&file, sample);
    add_strings(&file);

    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    const struct thread *thread = profile_thread(&profile, profile.samples.thread[0]);
    CHECK_TEXT(profile_c_string(&profile, thread->id), "4711");
    profile_fini(&profile);
    buffer_fini(&file);
}

TEST(a_location_of_a_mapping_that_is_not_there_has_none)
{
    struct buffer file = new_file();
    add_entities(&file);
    MESSAGE(&file, 4, {1, 31}, {2, 99}, {3, 0x1234});
    add_strings(&file);
    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.locations.count, 3);
    CHECK_UINT(profile.locations.items[2].mapping.index, 0);
    profile_fini(&profile);
    buffer_fini(&file);
}

TEST(gzip_members_join_and_one_that_is_cut_short_is_rejected_PPF_1)
{
    struct buffer file = new_file(), packed = new_file();
    add_entities(&file);
    add_strings(&file);
    struct slice raw = buffer_slice(&file);
    CHECK_UINT(gzip_compress(slice_of(raw.data, 20), 6, &packed, NULL), STATUS_OK);
    CHECK_UINT(gzip_compress(slice_of(raw.data + 20, raw.size - 20), 6, &packed, NULL), STATUS_OK);
    struct profile profile;
    CHECK_UINT(decode(&packed, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.functions.count, 2);
    profile_fini(&profile);
    packed.size -= 3;
    struct error error;
    CHECK_UINT(decode(&packed, &profile, &error), STATUS_MALFORMED);
    profile_fini(&profile);
    buffer_fini(&file);
    buffer_fini(&packed);
}

/* --- What must be rejected (pprof's CheckValid), naming what it is --------------------------------------------------
 */

TEST(a_value_too_few_is_rejected_PPF_2)
{
    struct buffer file = new_file();
    add_entities(&file);
    MESSAGE(&file, 2, {1, LOCATION});
    add_strings(&file);
    check_rejected(&file, "sample 0 has 0 values");
}

TEST(samples_without_sample_types_are_rejected)
{
    struct buffer file = new_file();
    MESSAGE(&file, 2, {2, 1});
    add_strings(&file);
    check_rejected(&file, "no sample types");
}

TEST(a_sample_of_a_location_that_is_not_there_is_rejected_PPF_4)
{
    struct buffer file = new_file();
    add_entities(&file);
    MESSAGE(&file, 2, {1, 12345}, {2, 1});
    add_strings(&file);
    check_rejected(&file, "location 12345");
}

TEST(a_line_of_a_function_that_is_not_there_is_rejected)
{
    struct buffer file = new_file();
    size_t location = protobuf_begin_message(&file, 4);
    protobuf_append_number(&file, 1, 1);
    MESSAGE(&file, 4, {1, 321});
    protobuf_end_message(&file, location);
    add_strings(&file);
    check_rejected(&file, "function 321");
}

TEST(ids_that_are_zero_or_double_are_rejected_PPF_4)
{
    struct buffer file = new_file();
    MESSAGE(&file, 3, {1, 0});
    add_strings(&file);
    check_rejected(&file, "mapping has the id 0");
    file = new_file();
    add_entities(&file);
    MESSAGE(&file, 4, {1, LOCATION});
    add_strings(&file);
    check_rejected(&file, "two locations have the id 1152921504606846976");
    file = new_file();
    add_entities(&file);
    MESSAGE(&file, 5, {1, 10});
    add_strings(&file);
    check_rejected(&file, "two functions have the id 10");
}

TEST(rejects_missing_strings_and_a_first_string_that_is_not_empty)
{
    struct buffer file = new_file();
    MESSAGE(&file, 1, {1, 8}, {2, 2});
    add_strings(&file);
    protobuf_append_number(&file, 9, 5); /* strings at the end may be cut */
    check_rejected(&file, "string 8");
    file = new_file();
    protobuf_append_bytes(&file, 6, slice_of_text("x"));
    add_strings(&file);
    check_rejected(&file, "first string");
    file = new_file();
    MESSAGE(&file, 1, {1, 0});
    check_rejected(&file, "no strings");
}

TEST(two_profiles_in_one_file_are_rejected)
{
    struct buffer file = new_file();
    add_strings(&file);
    protobuf_append_number(&file, 9, 5);
    protobuf_append_number(&file, 9, 6);
    check_rejected(&file, "two profiles");
}

TEST(wrong_wire_types_and_broken_messages_are_rejected)
{
    struct buffer file = new_file();
    add_strings(&file);
    for (int i = 0; i < 20; i++) protobuf_append_number(&file, 12, 1);
    protobuf_append_bytes(&file, 12, slice_of_text("x"));
    check_rejected(&file, "field 12");
    file = new_file();
    add_strings(&file);
    protobuf_append_bytes(&file, 3, slice_of_text("\x08"));
    check_rejected(&file, "mapping is cut short");
    file = new_file();
    add_strings(&file);
    protobuf_append_bytes(&file, 3, slice_of_text("\x0a\x01x"));
    check_rejected(&file, "field 1 of a mapping");
}

TEST(what_is_no_profile_is_distinguished_from_a_broken_one)
{
    static const char *const others[] = {"", "{\"a\": 1}", "main;work 42\n", "heap profile: 1: 2 [3: 4] @ heap_v2/1\n"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK_UINT(pprof_decode(slice_of_text(others[i]), &profile, NULL), STATUS_NOT_THIS_FORMAT);
        profile_fini(&profile);
    }
}

/* --- What must be written ----------------------------------------------------------------------------------------- */

static struct location_id add_place(struct profile *profile, uint64_t address, const char *function, enum in_app in_app)
{
    struct function named = {.name = profile_text(profile, function), .in_app = in_app};
    struct line line = {.function = profile_add_function(profile, &named), .line = 3, .column = 8};
    struct location location = {.mapping = {2}, .address = address, .is_folded = true};
    return profile_add_location(profile, &location, &line, 1);
}

/* Three mappings, of which the second is referred to; two functions that are one to pprof; threads; facts. */
static void build(struct profile *profile)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    for (uint64_t i = 1; i <= 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "/bin/file%d", (int)i);
        struct mapping mapping = {
            .start = i << 20, .limit = (i << 20) + 4096, .file_name = profile_text(profile, name)};
        profile_add_mapping(profile, &mapping);
    }
    struct stack_id one = profile_add_stack(profile, (struct stack_id){0}, add_place(profile, 5, "f", IN_APP_YES));
    struct stack_id two = profile_add_stack(profile, (struct stack_id){0}, add_place(profile, 5, "f", IN_APP_NO));
    struct thread_id thread = profile_add_thread(
        profile, &(struct thread){.id = profile_text(profile, "42"), .name = profile_text(profile, "main")});
    static const int64_t values[] = {1, 1000};
    profile_add_sample(profile, &(struct sample){.stack = one, .thread = thread, .time_ns = 1}, values);
    profile_add_sample(profile, &(struct sample){.stack = two, .thread = thread, .time_ns = 2}, values);
    profile_add_sample(profile, &(struct sample){.stack = two, .time_ns = 3}, values);
    profile_add_metadata_number(profile, "ticks", -7);
    profile_add_metadata_text(profile, "engine", "signals");
    profile_add_comment(profile, slice_of_text("as said"));
    profile->has_times = true;
    profile->period = 9900990;
    profile->period_type = (struct value_type){profile_text(profile, "wall"), profile_text(profile, "nanoseconds")};
    profile->doc_url = profile_text(profile, "https://example.org/");
}

static void add_comment(struct profile *profile, const char *text)
{
    profile_add_comment(profile, slice_of_text(text));
}

static int64_t number_of_fact(const struct profile *profile, const char *key)
{
    for (size_t i = 0; i < profile->metadata.count; i++) {
        if (strcmp(profile_c_string(profile, profile->metadata.items[i].key), key) == 0)
            return profile->metadata.items[i].number;
    }
    return INT64_MIN;
}

/* pprof puts the comments of merged profiles one after the other. */
TEST(facts_of_merged_profiles_add_up)
{
    struct profile profile, again;
    struct buffer file = new_file();
    build(&profile);
    add_comment(&profile, "# offbeat ticks = 3 (3f9a12)");
    add_comment(&profile, "# offbeat ticks = 3 (ffffff)");
    add_comment(&profile, "# offbeat engine: timers");
    add_comment(&profile, "# offbeat lost = 9223372036854775807 (3f9a12)");
    add_comment(&profile, "# offbeat lost = 9223372036854775807 (ffffff)");
    add_comment(&profile, "# offbeat ticks = 1x");
    add_comment(&profile, "# offbeat ticks");
    CHECK_UINT(pprof_encode(&profile, &file, NULL), STATUS_OK);
    CHECK_UINT(decode(&file, &again, NULL), STATUS_OK);
    CHECK_INT(number_of_fact(&again, "ticks"), -1);
    CHECK_INT(number_of_fact(&again, "lost"), INT64_MAX);
    CHECK_UINT(again.metadata.count, 3);
    CHECK_TEXT(profile_c_string(&again, again.metadata.items[1].text), "timers"); /* the first one counts */
    CHECK_UINT(again.comments.count, 3);
    profile_fini(&profile);
    profile_fini(&again);
    buffer_fini(&file);
}

TEST(facts_are_lines_that_pprof_hides)
{
    static const char text[] = "a\nb\\c \x7f = \xc3\xa4: ";
    struct profile profile, again;
    struct buffer file = new_file();
    build(&profile);
    profile_add_metadata_text(&profile, "odd key: = \xc3\xa4", text);
    profile_add_metadata_text(&profile, "pid", "9");
    CHECK_UINT(pprof_encode(&profile, &file, NULL), STATUS_OK);
    CHECK_UINT(decode(&file, &again, NULL), STATUS_OK);
    CHECK_UINT(again.metadata.count, 4);
    CHECK_TEXT(profile_c_string(&again, again.metadata.items[2].key), "odd key: = \xc3\xa4");
    CHECK_TEXT(profile_c_string(&again, again.metadata.items[2].text), text);
    CHECK(!again.metadata.items[3].is_number);
    CHECK_UINT(again.comments.count, 1);
    profile_fini(&profile);
    profile_fini(&again);
    buffer_fini(&file);
}

TEST(sums_equal_samples_and_writes_threads_as_labels_PPF_2)
{
    struct profile profile, again;
    struct buffer file = new_file();
    build(&profile);
    CHECK_UINT(pprof_encode(&profile, &file, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 3);
    CHECK_UINT(decode(&file, &again, NULL), STATUS_OK);

    CHECK_UINT(again.samples.count, 2);
    CHECK_INT(profile_sample_values(&again, 0)[0], 2);
    CHECK_INT(profile_sample_values(&again, 0)[1], 2000);
    CHECK_UINT(again.functions.count, 2);
    CHECK(again.locations.items[1].is_folded);
    CHECK_INT(again.lines.items[0].column, 8);
    const struct thread *thread = profile_thread(&again, again.samples.thread[0]);
    CHECK_TEXT(profile_c_string(&again, thread->id), "42");
    CHECK_TEXT(profile_c_string(&again, thread->name), "main");
    CHECK_UINT(again.samples.thread[1].index, 0);
    CHECK_UINT(again.samples.labels[1].index, 0);
    CHECK_UINT(again.mappings.count, 3);
    CHECK_TEXT(profile_c_string(&again, again.mappings.items[1].file_name), "/bin/file1");
    CHECK_TEXT(profile_c_string(&again, again.mappings.items[2].file_name), "/bin/file2");
    CHECK_UINT(again.metadata.count, 2);
    CHECK_TEXT(profile_c_string(&again, again.metadata.items[0].key), "ticks");
    CHECK_INT(again.metadata.items[0].number, -7);
    CHECK_TEXT(profile_c_string(&again, again.metadata.items[1].text), "signals");
    CHECK_UINT(again.comments.count, 1);
    CHECK_INT(again.period, 9900990);
    CHECK_TEXT(profile_c_string(&again, again.doc_url), "https://example.org/");
    profile_fini(&profile);
    profile_fini(&again);
    buffer_fini(&file);
}

static void check_stable(const struct profile *profile, const char *what)
{
    struct buffer first, second;
    struct profile again;
    struct error error = {0};
    buffer_init(&first, PPROF_BYTES_MAX);
    buffer_init(&second, PPROF_BYTES_MAX);
    profile_init(&again);
    if (pprof_encode(profile, &first, &error) != STATUS_OK) TEST_FAIL("%s: %s", what, error.message);
    if (format_decode(buffer_slice(&first), &again, NULL, &error) != STATUS_OK)
        TEST_FAIL("%s: %s", what, error.message);
    if (pprof_encode(&again, &second, &error) != STATUS_OK) TEST_FAIL("%s: %s", what, error.message);
    if (!slice_equal(buffer_slice(&first), buffer_slice(&second)))
        TEST_FAIL("%s changes when it is written again", what);
    profile_fini(&again);
    buffer_fini(&first);
    buffer_fini(&second);
}

TEST(what_was_written_is_written_to_the_same_bytes_again)
{
    struct profile profile;
    build(&profile);
    check_stable(&profile, "the profile");
    profile_fini(&profile);
}

/* 200 places, the addresses 1 to 200; the last 60 are in two samples each. */
TEST(locations_of_most_frames_get_ids_of_one_byte_in_stable_order)
{
    enum { PLACES = 200, FREQUENT_FROM = 141, ONE_BYTE = 127 };
    struct profile profile, again;
    struct buffer file = new_file();
    profile_init(&profile);
    profile_add_value_type(&profile, "samples", "count");
    static const int64_t one = 1;
    for (uint64_t address = 1; address <= PLACES; address++) {
        struct location location = {.address = address};
        struct location_id place = profile_add_location(&profile, &location, NULL, 0);
        struct stack_id stack = profile_add_stack(&profile, (struct stack_id){0}, place);
        profile_add_sample(&profile, &(struct sample){.stack = stack}, &one);
        if (address < FREQUENT_FROM) continue;
        struct stack_id recursive = profile_add_stack(&profile, stack, place);
        profile_add_sample(&profile, &(struct sample){.stack = recursive}, &one);
    }
    CHECK_UINT(pprof_encode(&profile, &file, NULL), STATUS_OK);
    CHECK_UINT(decode(&file, &again, NULL), STATUS_OK);
    CHECK_UINT(again.locations.count, PLACES + 1);
    /* Beside the 60 frequent ones there is room for the first 67 of the others. */
    enum { OTHERS = ONE_BYTE - (PLACES - FREQUENT_FROM + 1) };
    for (uint64_t id = 1; id <= PLACES; id++) {
        uint64_t expected = id <= OTHERS     ? id
                            : id <= ONE_BYTE ? id - OTHERS + FREQUENT_FROM - 1
                                             : id - ONE_BYTE + OTHERS;
        CHECK_UINT(again.locations.items[id].address, expected);
    }
    check_stable(&profile, "the profile with frequent places");
    profile_fini(&profile);
    profile_fini(&again);
    buffer_fini(&file);
}

/* --- Every field ------------------------------------------------------------------------------------------------- */

/* Two sample types, a sample with labels of both kinds, an inlined and an outer line with columns, a folded location, a
 * mapping with all flags, and all that a profile says of itself. Strings as in the table below, by their place. */
static struct buffer complete_file(void)
{
    static const char *const strings[] = {"",          "samples",  "count",   "cpu",     "nanoseconds",
                                          "inlined",   "_Zi",      "outer",   "_Zo",     "a.c",
                                          "/bin/prog", "0123abcd", "text",    "value",   "bytes",
                                          "unit",      "drop|me",  "keep|me", "comment", "https://x"};
    struct buffer file = new_file();
    MESSAGE(&file, 1, {1, 1}, {2, 2});
    MESSAGE(&file, 1, {1, 3}, {2, 4});
    size_t sample = protobuf_begin_message(&file, 2);
    protobuf_append_number(&file, 1, 7);
    protobuf_append_number(&file, 2, 3);
    protobuf_append_number(&file, 2, 30);
    MESSAGE(&file, 3, {1, 12}, {2, 13});
    MESSAGE(&file, 3, {1, 14}, {3, 64}, {4, 15});
    protobuf_end_message(&file, sample);
    MESSAGE(&file, 3, {1, 9}, {2, 0x1000}, {3, 0x2000}, {4, 0x500}, {5, 10}, {6, 11}, {7, 1}, {8, 1}, {9, 1}, {10, 1});
    size_t location = protobuf_begin_message(&file, 4);
    protobuf_append_number(&file, 1, 7);
    protobuf_append_number(&file, 2, 9);
    protobuf_append_number(&file, 3, 0x1234);
    MESSAGE(&file, 4, {1, 21}, {2, 11}, {3, 12});
    MESSAGE(&file, 4, {1, 22}, {2, 13}, {3, 14});
    protobuf_append_number(&file, 5, 1);
    protobuf_end_message(&file, location);
    MESSAGE(&file, 5, {1, 21}, {2, 5}, {3, 6}, {4, 9}, {5, 10});
    MESSAGE(&file, 5, {1, 22}, {2, 7}, {3, 8}, {4, 9}, {5, 12});
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        protobuf_append_bytes(&file, 6, slice_of_text(strings[i]));
    protobuf_append_number(&file, 7, 16);
    protobuf_append_number(&file, 8, 17);
    protobuf_append_number(&file, 9, 1700000000000000000u);
    protobuf_append_number(&file, 10, 5000000000u);
    MESSAGE(&file, 11, {1, 3}, {2, 4});
    protobuf_append_number(&file, 12, 10000000);
    protobuf_append_number(&file, 13, 18);
    protobuf_append_number(&file, 14, 3);
    protobuf_append_number(&file, 15, 19);
    return file;
}

/* A set bit for each field that MESSAGE has, and the last of those with the number FIELD_WANTED. */
static uint32_t fields_of(struct slice message, uint32_t field_wanted, struct slice *ret_last)
{
    struct cursor cursor = cursor_of(message);
    struct protobuf_field field;
    uint32_t present = 0;
    while (protobuf_next(&cursor, &field)) {
        present |= 1u << field.number;
        if (field.number == field_wanted) *ret_last = field.bytes;
    }
    CHECK(!cursor.failed);
    return present;
}

#define FIELDS(first, last) ((2u << (last)) - (1u << (first)))

TEST(every_field_of_every_message_is_written_back_PPF_1_PPF_3_PPF_6_PPF_7)
{
    struct buffer file = complete_file(), packed = new_file(), raw = new_file();
    struct profile profile;
    struct slice part = {0}, inner = {0};
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(pprof_encode(&profile, &packed, NULL), STATUS_OK);
    CHECK(gzip_detect(buffer_slice(&packed)));
    CHECK_UINT(gzip_decompress(buffer_slice(&packed), &raw, NULL), STATUS_OK);
    CHECK_UINT(fields_of(buffer_slice(&raw), 1, &part), FIELDS(1, 15));
    CHECK_UINT(fields_of(part, 0, &inner), FIELDS(1, 2));
    (void)fields_of(buffer_slice(&raw), 2, &part);
    CHECK_UINT(fields_of(part, 3, &inner), FIELDS(1, 3));
    CHECK_UINT(fields_of(inner, 0, &inner), 1u << 1 | 1u << 3 | 1u << 4);
    (void)fields_of(buffer_slice(&raw), 3, &part);
    CHECK_UINT(fields_of(part, 0, &inner), FIELDS(1, 10));
    (void)fields_of(buffer_slice(&raw), 4, &part);
    CHECK_UINT(fields_of(part, 4, &inner), FIELDS(1, 5));
    CHECK_UINT(fields_of(inner, 0, &inner), FIELDS(1, 3));
    (void)fields_of(buffer_slice(&raw), 5, &part);
    CHECK_UINT(fields_of(part, 0, &inner), FIELDS(1, 5));
    profile_fini(&profile);
    buffer_fini(&file);
    buffer_fini(&packed);
    buffer_fini(&raw);
}

TEST(keeps_every_field_PPF_1_PPF_3_PPF_4_PPF_6_PPF_7_PPF_8_PPF_9)
{
    struct buffer file = complete_file(), written = new_file();
    struct profile profile;
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(pprof_encode(&profile, &written, NULL), STATUS_OK);
    profile_fini(&profile);
    CHECK_UINT(decode(&written, &profile, NULL), STATUS_OK);
#define CHECK_STRING(id, expected) CHECK_TEXT(profile_c_string(&profile, id), expected)
    CHECK_STRING(profile.value_types[0].type, "samples");
    CHECK_STRING(profile.value_types[1].unit, "nanoseconds");
    CHECK_INT(profile_sample_values(&profile, 0)[0], 3);
    CHECK_INT(profile_sample_values(&profile, 0)[1], 30);
    CHECK_STRING(profile.period_type.type, "cpu");
    CHECK_INT(profile.period, 10000000);
    CHECK_STRING(profile.default_value_type, "cpu");
    CHECK_STRING(profile.drop_frames, "drop|me");
    CHECK_STRING(profile.keep_frames, "keep|me");
    CHECK_STRING(profile.comments.items[0], "comment");
    CHECK_STRING(profile.doc_url, "https://x");
    CHECK_UINT(profile.time_ns, 1700000000000000000u);
    CHECK_UINT(profile.duration_ns, 5000000000u);

    const struct location *location =
        profile_location(&profile, profile_stack(&profile, (struct stack_id){1}).location);
    const struct line *lines = profile_lines(&profile, location);
    CHECK_UINT(location->address, 0x1234);
    CHECK(location->is_folded);
    CHECK_UINT(location->line_count, 2);
    CHECK_INT(lines[0].line, 11);
    CHECK_INT(lines[0].column, 12);
    CHECK_INT(lines[1].column, 14);
    const struct function *inlined = profile_function(&profile, lines[0].function);
    CHECK_STRING(inlined->name, "inlined");
    CHECK_STRING(inlined->system_name, "_Zi");
    CHECK_STRING(inlined->file_name, "a.c");
    CHECK_INT(inlined->start_line, 10);
    CHECK_STRING(profile_function(&profile, lines[1].function)->name, "outer");
    const struct mapping *mapping = profile_mapping(&profile, location->mapping);
    CHECK_UINT(mapping->start, 0x1000);
    CHECK_UINT(mapping->limit, 0x2000);
    CHECK_UINT(mapping->file_offset, 0x500);
    CHECK_STRING(mapping->file_name, "/bin/prog");
    CHECK_STRING(mapping->build_id, "0123abcd");
    CHECK(mapping->has_functions && mapping->has_filenames && mapping->has_line_numbers && mapping->has_inline_frames);
    struct label_set set = profile.label_sets.items[profile.samples.labels[0].index];
    CHECK_UINT(set.count, 2);
    CHECK_STRING(profile.labels.items[set.first].text, "value");
    CHECK_INT(profile.labels.items[set.first + 1].number, 64);
    CHECK_STRING(profile.labels.items[set.first + 1].unit, "unit");
#undef CHECK_STRING
    profile_fini(&profile);
    buffer_fini(&file);
    buffer_fini(&written);
}

/* --- Where the reference tool loses something --------------------------------------------------------------------- */

/* It distinguishes locations by the column of their outermost line only. */
/* A profile with one sample of weight 1. */
static void start_one(struct profile *profile)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
}

static void add_one(struct profile *profile, const struct location *location, const struct function *function,
                    struct thread_id thread)
{
    struct line line = {.function = profile_add_function(profile, function)};
    struct location_id place = profile_add_location(profile, location, &line, function->name.index ? 1 : 0);
    struct sample sample = {.stack = profile_add_stack(profile, (struct stack_id){0}, place), .thread = thread};
    profile_add_sample(profile, &sample, (const int64_t[]){1});
}

/* Writes PROFILE, which ends, and reads it again. */
static void write_and_read(struct profile *profile, struct profile *ret_again)
{
    struct buffer written;
    struct error error = {0};
    buffer_init(&written, 1 << 20);
    profile_init(ret_again);
    if (pprof_encode(profile, &written, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    if (format_decode(buffer_slice(&written), ret_again, NULL, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    buffer_fini(&written);
    profile_fini(profile);
}

static const struct mapping *mapping_of_sample(const struct profile *profile, size_t sample)
{
    struct location_id location = profile_stack(profile, profile->samples.stack[sample]).location;
    return profile_mapping(profile, profile_location(profile, location)->mapping);
}

TEST(each_address_and_each_package_has_a_mapping_FMT_11_PPF_7)
{
    struct profile profile, again;
    struct thread_id none = {0};
    start_one(&profile);
    (void)profile_add_mapping(&profile, &(struct mapping){.file_name = profile_text(&profile, "program")});
    struct function g = {.name = profile_text(&profile, "g"), .package = profile_text(&profile, "liba.so")};
    add_one(&profile, &(struct location){.address = 0x7f0000001234}, &(struct function){0}, none);
    add_one(&profile, &(struct location){0}, &g, none);
    g.package = profile_text(&profile, "libb.so");
    add_one(&profile, &(struct location){0}, &g, none);
    g.package = profile_text(&profile, "[jit]");
    add_one(&profile, &(struct location){.address = 0x5001}, &g, none);
    add_one(&profile, &(struct location){.address = 0x8fff}, &g, none);
    g.package.index = 0;
    add_one(&profile, &(struct location){0}, &g, none);
    write_and_read(&profile, &again);
    static const char *const files[] = {"//anon", "liba.so", "libb.so", "[jit]", "[jit]", ""};
    CHECK_UINT(again.samples.count, 6);
    for (size_t i = 0; i < 6; i++)
        CHECK_TEXT(profile_c_string(&again, mapping_of_sample(&again, i)->file_name), files[i]);
    CHECK_UINT(mapping_of_sample(&again, 0)->start, 0x7f0000001000);
    CHECK_UINT(mapping_of_sample(&again, 0)->limit, 0x7f0000002000);
    CHECK(!mapping_of_sample(&again, 0)->has_functions);
    CHECK_UINT(mapping_of_sample(&again, 4)->start, 0x5000);
    CHECK_UINT(mapping_of_sample(&again, 4)->limit, 0x9000);
    CHECK(mapping_of_sample(&again, 4)->has_functions);
    profile_fini(&again);
}

/* A sample of weight 1 with one label of a text, and one of a number. */
static void add_labelled(struct profile *profile, const char *text_key, const char *text, const char *number_key,
                         int64_t number)
{
    struct label labels[] = {
        {.key = profile_text(profile, text_key), .text = profile_text(profile, text)},
        {.key = profile_text(profile, number_key), .is_number = true, .number = number},
    };
    struct sample sample = {.labels = profile_add_labels(profile, labels, 2)};
    profile_add_sample(profile, &sample, (const int64_t[]){1});
}

TEST(threads_are_found_under_the_keys_of_other_writers_PPF_8)
{
    static const char *const keys[][2] = {
        {"thread", "thread_id"}, {"comm", "tid"}, {"thread_name", "tid"}, {"thread name", "thread id"}};
    struct profile profile, again;
    start_one(&profile);
    for (int64_t i = 0; i < 4; i++) add_labelled(&profile, keys[i][0], "worker", keys[i][1], 100 + i);
    write_and_read(&profile, &again);
    CHECK_UINT(again.samples.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        const struct thread *thread = profile_thread(&again, again.samples.thread[i]);
        char id[8];
        (void)snprintf(id, sizeof(id), "%u", 100 + i);
        CHECK_TEXT(profile_c_string(&again, thread->id), id);
        CHECK_TEXT(profile_c_string(&again, thread->name), "worker");
        /* Its labels stay as they were, and it gets no others. */
        CHECK_UINT(again.label_sets.items[again.samples.labels[i].index].count, 2);
    }
    profile_fini(&again);
}

TEST(a_thread_id_that_is_a_number_is_written_as_one_PPF_8)
{
    static const char *const ids[] = {"4711", "-7", "0x7f", "007", "99999999999999999999"};
    struct profile profile, again;
    start_one(&profile);
    for (unsigned i = 0; i < 5; i++)
        add_one(&profile, &(struct location){0}, &(struct function){.name = profile_text(&profile, "f")},
                profile_add_thread(&profile, &(struct thread){.id = profile_text(&profile, ids[i])}));
    write_and_read(&profile, &again);
    CHECK_UINT(again.samples.count, 5);
    for (unsigned i = 0; i < 5; i++) {
        struct label_set set = again.label_sets.items[again.samples.labels[i].index];
        CHECK_UINT(set.count, 1);
        CHECK(again.labels.items[set.first].is_number == (i < 2));
        CHECK_TEXT(profile_c_string(&again, profile_thread(&again, again.samples.thread[i])->id), ids[i]);
    }
    profile_fini(&again);
}

TEST(a_time_when_a_sample_ended_becomes_the_one_when_it_began)
{
    struct profile profile;
    profile_init(&profile);
    profile_add_value_type(&profile, "wall-time", "nanoseconds");
    for (int64_t i = 1; i <= 2; i++) {
        struct label label = {.key = profile_text(&profile, "end_timestamp_ns"), .is_number = true, .number = 1000 * i};
        struct sample sample = {.labels = profile_add_labels(&profile, &label, 1)};
        profile_add_sample(&profile, &sample, (const int64_t[]){300});
    }
    time_labels_take(&profile);
    CHECK(profile.has_times);
    CHECK_UINT(profile.samples.time_ns[0], 700);
    CHECK_UINT(profile.samples.time_ns[1], 1700);
    CHECK_UINT(profile.samples.labels[0].index, 0);
    profile_fini(&profile);
}

TEST(strings_are_utf_8_PPF_1)
{
    struct profile profile, again;
    start_one(&profile);
    struct thread thread = {.id = profile_text(&profile, "7"), .name = profile_text(&profile, "caf\xc3\xa9 \xe2\x82")};
    struct function function = {.name = profile_text(&profile, "\xe4 \xf0\x9f\x92\xa9 \xed\xa0\x80 \xc0\xaf")};
    add_one(&profile, &(struct location){0}, &function, profile_add_thread(&profile, &thread));
    write_and_read(&profile, &again);
    const char *name = profile_c_string(&again, again.functions.items[1].name);
    CHECK_TEXT(profile_c_string(&again, again.threads.items[1].name), "caf\xc3\xa9 \xef\xbf\xbd");
    CHECK_TEXT(name, "\xef\xbf\xbd \xf0\x9f\x92\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd");
    profile_fini(&again);
}

TEST(keeps_locations_with_different_inlined_columns_distinct_PPF_2)
{
    struct profile profile, merged;
    struct buffer file = new_file();
    profile_init(&profile);
    profile_init(&merged);
    profile_add_value_type(&profile, "samples", "count");
    for (int64_t column = 1; column <= 3; column++) {
        struct line lines[2] = {{.line = 1, .column = column}, {.line = 2, .column = 9}};
        lines[0].function = profile_add_function(&profile, &(struct function){.name = profile_text(&profile, "in")});
        lines[1].function = profile_add_function(&profile, &(struct function){.name = profile_text(&profile, "out")});
        struct location_id place = profile_add_location(&profile, &(struct location){.address = 5}, lines, 2);
        struct sample sample = {.stack = profile_add_stack(&profile, (struct stack_id){0}, place)};
        profile_add_sample(&profile, &sample, (const int64_t[]){1});
    }
    CHECK_UINT(profile_merge(&merged, &profile, NULL, NULL), STATUS_OK);
    CHECK_UINT(profile_merge(&merged, &profile, NULL, NULL), STATUS_OK);
    CHECK_UINT(pprof_encode(&merged, &file, NULL), STATUS_OK);
    profile_fini(&profile);
    CHECK_UINT(decode(&file, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 3);
    for (size_t i = 0; i < 3; i++) CHECK_INT(profile_sample_values(&profile, i)[0], 2);
    profile_fini(&profile);
    profile_fini(&merged);
    buffer_fini(&file);
}

TEST(a_start_before_1970_is_read_and_written_and_merged)
{
    struct profile before, after, merged;
    struct buffer bytes;
    profile_init(&before);
    profile_init(&after);
    profile_init(&merged);
    before.time_ns = -1500000000;
    before.duration_ns = 1000000000;
    buffer_init(&bytes, SIZE_MAX);
    CHECK_UINT(pprof_encode(&before, &bytes, NULL), STATUS_OK);
    CHECK_UINT(format_decode(buffer_slice(&bytes), &merged, NULL, NULL), STATUS_OK);
    CHECK_INT(merged.time_ns, -1500000000);
    after.time_ns = 500000000;
    after.duration_ns = 1000000000;
    CHECK_UINT(profile_merge(&merged, &after, NULL, NULL), STATUS_OK);
    CHECK_INT(merged.time_ns, -1500000000);
    CHECK_UINT(merged.duration_ns, 3000000000);
    profile_fini(&merged);
    profile_init(&merged);
    CHECK_UINT(profile_merge(&merged, &after, NULL, NULL), STATUS_OK);
    CHECK_UINT(profile_merge(&merged, &before, NULL, NULL), STATUS_OK);
    CHECK_INT(merged.time_ns, -1500000000);
    CHECK_UINT(merged.duration_ns, 3000000000);
    buffer_fini(&bytes);
    profile_fini(&before);
    profile_fini(&after);
    profile_fini(&merged);
}

/* It takes 9 for the earliest of 5, 0 (not known) and 9. */
TEST(a_start_that_is_not_known_does_not_hide_an_earlier_one_PPF_2)
{
    static const int64_t times[] = {5, 0, 9};
    struct profile merged;
    profile_init(&merged);
    for (int i = 0; i < 3; i++) {
        struct profile profile;
        profile_init(&profile);
        profile.time_ns = times[i];
        CHECK_UINT(profile_merge(&merged, &profile, NULL, NULL), STATUS_OK);
        profile_fini(&profile);
    }
    CHECK_INT(merged.time_ns, 5);
    profile_fini(&merged);
}

/* --- Real files --------------------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, struct slice text)
{
    for (size_t i = 0; i < text.size; i++) hash = (hash ^ text.data[i]) * 0x100000001b3u;
    return (hash ^ text.size) * 0x100000001b3u;
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return hash_text(hash, slice_of(&number, sizeof(number)));
}

/* A location without a mapping has one of anonymous memory afterwards. */
static uint64_t hash_mapping(uint64_t hash, const struct profile *profile, struct mapping_id id)
{
    const struct mapping *mapping = profile_mapping(profile, id);
    if (id.index == 0 || slice_equals_text(profile_slice(profile, mapping->file_name), "//anon")) return hash;
    hash = hash_number(hash_number(hash_number(hash, mapping->start), mapping->limit), mapping->file_offset);
    return hash_text(hash_text(hash, profile_slice(profile, mapping->file_name)),
                     profile_slice(profile, mapping->build_id));
}

static uint64_t hash_location(const struct profile *profile, struct location_id id)
{
    const struct location *location = profile_location(profile, id);
    uint64_t hash = hash_number(location->address, location->is_folded);
    hash = hash_mapping(hash, profile, location->mapping);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct line *line = &profile_lines(profile, location)[i];
        const struct function *function = profile_function(profile, line->function);
        hash = hash_number(hash_number(hash, (uint64_t)line->line), (uint64_t)line->column);
        hash = hash_text(hash_text(hash, profile_slice(profile, function->name)),
                         profile_slice(profile, function->system_name));
        hash =
            hash_number(hash_text(hash, profile_slice(profile, function->file_name)), (uint64_t)function->start_line);
    }
    return hash;
}

static uint64_t hash_sample(const struct profile *profile, size_t index)
{
    uint64_t hash = 1;
    struct stack_id stack = profile->samples.stack[index];
    for (; stack.index != 0; stack = profile_stack(profile, stack).parent) {
        hash = hash_number(hash, hash_location(profile, profile_stack(profile, stack).location));
    }
    struct label_set set = profile->label_sets.items[profile->samples.labels[index].index];
    for (uint32_t i = 0; i < set.count; i++) {
        const struct label *label = &profile->labels.items[set.first + i];
        hash = hash_text(hash, profile_slice(profile, label->key));
        hash = hash_text(hash_text(hash, profile_slice(profile, label->text)), profile_slice(profile, label->unit));
        hash = hash_number(hash, (uint64_t)label->number);
    }
    for (size_t i = 0; i < profile->value_type_count; i++) {
        hash = hash_number(hash, (uint64_t)profile_sample_values(profile, index)[i]);
    }
    return hash;
}

/* All that a profile says, whatever the numbering. */
static uint64_t hash_profile(const struct profile *profile)
{
    uint64_t hash =
        hash_number(hash_number((uint64_t)profile->time_ns, profile->duration_ns), (uint64_t)profile->period);
    hash = hash_text(hash, profile_slice(profile, profile->drop_frames));
    hash = hash_text(hash, profile_slice(profile, profile->keep_frames));
    hash = hash_text(hash, profile_slice(profile, profile->default_value_type));
    hash = hash_text(hash, profile_slice(profile, profile->period_type.type));
    for (size_t i = 0; i < profile->comments.count; i++) {
        hash = hash_text(hash, profile_slice(profile, profile->comments.items[i]));
    }
    for (size_t i = 0; i < profile->samples.count; i++) hash = hash_number(hash, hash_sample(profile, i));
    return hash;
}

static void check_round_trip(const char *path)
{
    struct buffer bytes, written;
    struct profile profile, again;
    struct error error = {0};
    buffer_init(&bytes, 1 << 26);
    buffer_init(&written, 1 << 26);
    if (file_read(path, &bytes, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    profile_init(&profile);
    profile_init(&again);
    if (format_decode(buffer_slice(&bytes), &profile, NULL, &error) != STATUS_OK)
        TEST_FAIL("%s: %s", path, error.message);
    CHECK_UINT(profile_aggregate(&profile, NULL), STATUS_OK);
    CHECK_UINT(pprof_encode(&profile, &written, NULL), STATUS_OK);
    CHECK_UINT(format_decode(buffer_slice(&written), &again, NULL, NULL), STATUS_OK);
    if (hash_profile(&profile) != hash_profile(&again)) TEST_FAIL("%s says something else after a round trip", path);
    check_stable(&again, path);
    profile_fini(&profile);
    profile_fini(&again);
    buffer_fini(&bytes);
    buffer_fini(&written);
}

TEST(real_profiles_say_the_same_after_a_round_trip_PPF_1)
{
    glob_t files;
    if (glob(CONFORMANCE "profiles/*.pb.gz", 0, NULL, &files) != 0) SKIP("../shared/fixtures is not there");
    CHECK_UINT(files.gl_pathc, 50);
    for (size_t i = 0; i < files.gl_pathc; i++) check_round_trip(files.gl_pathv[i]);
    check_round_trip(CONFORMANCE "large.cpu");
    globfree(&files);
}

/* Half of the damage is a changed byte, half a cut or a repeated piece; what comes out is decoded or rejected. */
TEST(damaged_profiles_are_read_or_rejected_but_never_crash)
{
    struct buffer bytes, raw;
    buffer_init(&bytes, 1 << 24);
    buffer_init(&raw, 1 << 24);
    if (file_read(CONFORMANCE "profiles/36.heap_tags.pb.gz", &bytes, NULL) != STATUS_OK) {
        SKIP("../shared/fixtures is not there");
    }
    CHECK_UINT(gzip_decompress(buffer_slice(&bytes), &raw, NULL), STATUS_OK);
    uint8_t *damaged = malloc(raw.size);
    uint64_t random = 88172645463325252u;
    unsigned rejected = 0;
    for (int round = 0; round < 3000; round++) {
        memcpy(damaged, raw.data, raw.size);
        size_t size = raw.size;
        for (int change = 0; change < 1 + round % 3; change++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t place = random % size;
            if (random >> 60 == 0) size = place + 1;
            damaged[place] = (uint8_t)(random >> 32);
        }
        struct profile profile;
        struct buffer out;
        profile_init(&profile);
        buffer_init(&out, 1 << 24);
        enum status status = pprof_decode(slice_of(damaged, size), &profile, NULL);
        if (status == STATUS_OK) CHECK_UINT(pprof_encode(&profile, &out, NULL), STATUS_OK);
        rejected += status != STATUS_OK;
        buffer_fini(&out);
        profile_fini(&profile);
    }
    CHECK(rejected > 100);
    free(damaged);
    buffer_fini(&bytes);
    buffer_fini(&raw);
}

TEST_MAIN()
