/* The small types and functions that everything else uses.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/buffer.h"
#include "base/clean_path.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/index_table.h"
#include "base/protobuf.h"
#include "base/rfc3339.h"
#include "base/varint_groups.h"

#include <time.h>

TEST(a_buffer_rejects_to_grow_past_its_maximum_and_remembers)
{
    struct buffer buffer;
    buffer_init(&buffer, 10);
    buffer_append_text(&buffer, "12345678");
    CHECK(!buffer.failed);
    buffer_append_text(&buffer, "901");
    CHECK(buffer.failed && buffer.is_full);
    CHECK_UINT(buffer.size, 8);
    buffer_append_text(&buffer, "9");
    CHECK_UINT(buffer.size, 8);
    buffer_fini(&buffer);
}

TEST(a_clean_path_has_no_empty_part_and_no_way_back)
{
    static const char *const paths[][2] = {
        {"", "."},         {".", "."},           {"/", "/"},         {"//a///b/", "/a/b"},    {"a/./b", "a/b"},
        {"a/../b", "b"},   {"a/..", "."},        {"../a", "../a"},   {"../../a/..", "../.."}, {"/../a", "/a"},
        {"/a/../..", "/"}, {"a/b/../../c", "c"}, {"..a/b", "..a/b"},
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct buffer out;
        buffer_init(&out, 64);
        buffer_append_text(&out, "x");
        clean_path_append(&out, slice_of_text(paths[i][0]));
        buffer_append_byte(&out, 0);
        CHECK_TEXT((const char *)out.data + 1, paths[i][1]);
        buffer_fini(&out);
    }
}

TEST(a_cursor_never_reads_past_its_end_and_stays_failed)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct cursor cursor = cursor_of(slice_of(bytes, sizeof(bytes)));
    CHECK_UINT(cursor_u16(&cursor), 0x0201);
    CHECK_UINT(cursor_u16(&cursor), 0);
    CHECK(cursor.failed);
    CHECK_UINT(cursor_u8(&cursor), 0);
}

TEST(reads_every_form_of_an_rfc_3339_time_and_nothing_else)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } times[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2023-11-14T22:13:20Z", 1700000000000000000},
        {"2023-11-14t22:13:20.1z", 1700000000100000000},
        {"2023-11-14 22:13:20.123456789Z", 1700000000123456789},
        {"2023-11-14T22:13:20.1234567899Z", 1700000000123456789},
        {"2023-11-14T23:13:20+01:00", 1700000000000000000},
        {"2023-11-14T20:43:20.5-0130", 1700000000500000000},
        {"2023-11-14T22:13:20", 1700000000000000000},
        {"2024-02-29T00:00:00Z", 1709164800000000000},
        {"2016-12-31T23:59:60Z", 1483228800000000000},
    };
    static const char *const rejected[] = {
        "",
        "2023",
        "2023-11-14",
        "2023-11-14T22:13Z",
        "2023-13-14T22:13:20Z",
        "2023-02-29T22:13:20Z",
        "2023-11-00T22:13:20Z",
        "2023-11-14T24:13:20Z",
        "2023-11-14T22:60:20Z",
        "2023-11-14T22:13:61Z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20Zx",
        "2023-11-14T22:13:20+1:00",
        "2023-11-14T22:13:20+24:00",
        "1969-12-31T23:59:59Z",
        "2600-01-01T00:00:00Z",
        "-023-11-14T22:13:20Z",
        "1700000000",
    };
    uint64_t ns;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (!rfc3339_parse(slice_of_text(times[i].text), &ns)) TEST_FAIL("%s", times[i].text);
        CHECK_UINT(ns, times[i].ns);
    }
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (rfc3339_parse(slice_of_text(rejected[i]), &ns)) TEST_FAIL("%s", rejected[i]);
    }
    char text[RFC3339_TEXT_SIZE];
    rfc3339_format(1700000000123456789, text);
    CHECK_TEXT(text, "2023-11-14T22:13:20.123456789Z");
    rfc3339_format(1700000000123456000, text);
    CHECK_TEXT(text, "2023-11-14T22:13:20.123456Z");
    rfc3339_format(UINT64_MAX, text);
    CHECK_TEXT(text, "2554-07-21T23:34:33.709551615Z");
}

TEST(a_time_before_now_is_not_before_1970)
{
    const uint64_t now_ns = 1700000000500000000;
    uint64_t ns = 0;
    CHECK(time_before_parse("now-2h", now_ns, &ns));
    CHECK_UINT(ns, now_ns - 7200000000000);
    CHECK(time_before_parse("now-19675d", now_ns, &ns));
    CHECK_UINT(ns, 80000500000000);
    static const char *const rejected[] = {"now-19676d", "now-213504d", "now-999999999d", "now-", "now-1", "now-1x"};
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (time_before_parse(rejected[i], now_ns, &ns)) TEST_FAIL("%s", rejected[i]);
    }
}

TEST(each_day_is_libcs_and_is_read_as_it_was_written)
{
    enum { DAYS = 213503 }; /* to 2554 */
    for (uint64_t day = 0; day < DAYS; day++) {
        time_t seconds = (time_t)(day * 24 * 60 * 60 + day % 86400);
        uint64_t time_ns = (uint64_t)seconds * 1000000000, read_ns = 0;
        char text[RFC3339_TEXT_SIZE], expected[RFC3339_TEXT_SIZE];
        struct tm utc;
        CHECK(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.000000Z", gmtime_r(&seconds, &utc)) > 0);
        rfc3339_format(time_ns, text);
        CHECK_TEXT(text, expected);
        CHECK(rfc3339_parse(slice_of_text(text), &read_ns) && read_ns == time_ns);
    }
}

TEST(leb128_takes_64_bits_and_rejects_more)
{
    static const uint8_t largest[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct cursor cursor = cursor_of(slice_of(largest, sizeof(largest)));
    CHECK_UINT(cursor_uleb128(&cursor), UINT64_MAX);
    CHECK(!cursor.failed);

    static const uint8_t over[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    cursor = cursor_of(slice_of(over, sizeof(over)));
    (void)cursor_uleb128(&cursor);
    CHECK(cursor.failed);

    static const uint8_t minus_two[] = {0x7e};
    cursor = cursor_of(slice_of(minus_two, sizeof(minus_two)));
    CHECK_INT(cursor_sleb128(&cursor), -2);
}

/* All patterns of one to three bytes come; now and then one that ends it: longer, 0, above the maximum, written with
 * more bytes than it needs. */
TEST(varints_read_in_groups_are_those_read_one_by_one)
{
    enum { LISTS = 4000, NUMBERS = 60, MAXIMUM = 1500000 };
    static struct varint_groups groups;
    varint_groups_init(&groups);
    uint32_t chance = 1;
    size_t ended_early = 0;
    for (int list = 0; list < LISTS; list++) {
        uint8_t bytes[NUMBERS * PROTOBUF_VARINT_BYTES_MAX];
        uint32_t values[NUMBERS * PROTOBUF_VARINT_BYTES_MAX];
        size_t size = 0;
        for (int i = 0; i < NUMBERS; i++) {
            static const uint32_t limits[] = {127, 16383, MAXIMUM};
            chance = chance * 1103515245 + 12345;
            uint64_t value = 1 + (chance >> 8) % limits[(chance >> 4) % 3];
            if (chance >> 24 == 7) value = (chance >> 16) % 2 ? 0 : MAXIMUM + (chance >> 14) % 3;
            if (chance >> 22 == 9) value = UINT64_MAX >> (chance >> 16) % 60;
            size += protobuf_put_varint(bytes + size, value);
            if (chance >> 23 == 11) bytes[size - 1] |= 0x80, bytes[size++] = 0;
        }
        const uint8_t *position = bytes, *at = bytes;
        size_t count = varint_groups_read(&groups, &position, bytes + size, MAXIMUM, values);
        CHECK(count % 4 == 0 && position <= bytes + size);
        for (size_t i = 0; i < count; i++) {
            uint64_t value;
            at = protobuf_read_varint(at, bytes + size, &value);
            CHECK(at != NULL && value > 0 && value <= MAXIMUM);
            CHECK_UINT(values[i], value);
        }
        CHECK(at == position);
        bool is_early = bytes + size - position >= VARINT_GROUP_ROOM;
        bool has_reason = false;
        for (int i = 0; is_early && i < 4; i++) {
            uint64_t value;
            const uint8_t *next = protobuf_read_varint(at, bytes + size, &value);
            has_reason |= !next || next - at > 3 || value == 0 || value > MAXIMUM;
            if (next) at = next;
        }
        CHECK(!is_early || has_reason);
        ended_early += is_early;
    }
    CHECK(ended_early > LISTS / 10 && ended_early < LISTS);
}

/* The second factor of the product that hashes words was this constant: one such word made every hash the same. */
TEST(nobody_can_choose_texts_that_share_a_hash)
{
    enum { COUNT = 1000 };
    static uint64_t hashes[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t words[2] = {i, 0xD6E8FEB86659FD93u};
        hashes[i] = hash_bytes(words, sizeof(words));
    }
    unsigned equal = 0;
    for (unsigned i = 1; i < COUNT; i++) equal += hashes[i] == hashes[0];
    CHECK_UINT(equal, 0);
}

TEST(characters_that_command_a_terminal_or_turn_text_are_escaped)
{
    static const struct {
        const char *text, *printable;
    } texts[] = {
        {"plain", "plain"},
        {"Gr\u00fc\u00dfe \u65e5 \U0001f600", "Gr\u00fc\u00dfe \u65e5 \U0001f600"},
        {"a\033[31mb\x7f", "a\\x1b[31mb\\x7f"},
        {"a\xc2\x9b"
         "b\xc2\x9d"
         "c",
         "a\\u009bb\\u009dc"},
        {"a\u202eb\u2066c\u200fd\u2028e", "a\\u202eb\\u2066c\\u200fd\\u2028e"},
        {"a\x9b\xff"
         "b\xe2\x80",
         "a\\x9b\\xffb\\xe2\\x80"},
        {"a\nb\r", "a\\x0ab\\x0d"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct buffer out;
        buffer_init(&out, SIZE_MAX);
        printable_append(&out, slice_of_text(texts[i].text), "");
        CHECK(slice_equals_text(buffer_slice(&out), texts[i].printable));
        CHECK(printable_is(slice_of_text(texts[i].text)) == (strcmp(texts[i].text, texts[i].printable) == 0));
        buffer_fini(&out);
    }
    struct buffer lines;
    buffer_init(&lines, SIZE_MAX);
    printable_append(&lines, slice_of("a\n\0b\U000e0041", 8), "\n");
    CHECK(slice_equals_text(buffer_slice(&lines), "a\n\\x00b\\U000e0041"));
    buffer_fini(&lines);
}

static bool same_number(const void *context, uint32_t index, const void *key)
{
    const uint64_t *numbers = context;
    return numbers[index] == *(const uint64_t *)key;
}

TEST(an_index_table_finds_everything_that_was_added)
{
    enum { COUNT = 10000 };
    static uint64_t numbers[COUNT];
    struct index_table table = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = (uint64_t)i * 4096;
        CHECK(index_table_add(&table, hash_mix(0, numbers[i]), i));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_UINT(index_table_find(&table, hash_mix(0, numbers[i]), same_number, numbers, &numbers[i]), i);
    }
    uint64_t missing = 5;
    CHECK_UINT(index_table_find(&table, hash_mix(0, missing), same_number, numbers, &missing), INDEX_NONE);
    index_table_fini(&table);
}

TEST_MAIN()
