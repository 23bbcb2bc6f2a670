/* Reading and writing JSON.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/json_place.h"
#include "base/json_reader.h"
#include "base/json_time.h"
#include "base/json_writer.h"
#include "base/uuid.h"

#include <math.h>

/* The status of skipping over TEXT, in memory of exactly its size so that a sanitizer sees a byte too many. */
static enum status skip_all(struct slice text, struct error *error)
{
    uint8_t *copy = malloc(text.size ? text.size : 1);
    if (text.size) memcpy(copy, text.data, text.size);
    struct json_reader reader;
    json_reader_init(&reader, slice_of(copy, text.size));
    json_skip(&reader);
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    free(copy);
    return status;
}

TEST(json_that_the_grammar_allows_is_accepted)
{
    static const char *const texts[] = {
        "null",
        " true\t",
        "false\r\n",
        "0",
        "-0",
        "-0.0e-0",
        "1E+2",
        "12.50",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2 , 3]",
        "{\"a\":1,\"a\":2}",
        "{\"\" : [{}, [[]]]}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
        "\"\xC2\x80\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"",
        "\"\\ud83d\\ude00 \\ud800 \\udc00\"",
        "\"\\u0000\"",
        "123456789012345678901234567890",
        "1e999",
        "\"\x7F\"",
        "\"/\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct error error;
        if (skip_all(slice_of_text(texts[i]), &error) != STATUS_OK) TEST_FAIL("%s: %s", texts[i], error.message);
    }
}

TEST(json_that_the_grammar_does_not_allow_is_rejected)
{
    static const char *const texts[] = {
        "",
        " ",
        "nul",
        "nulL",
        "True",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "-a",
        "0x10",
        "1 2",
        "NaN",
        "Infinity",
        "\"",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\t\"",
        "\"\n\"",
        "'a'",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "}",
        "{1:2}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{,}",
        "[1}",
        "{\"a\":1]",
        "\xEF\xBB\xBFnull",
        "// x\n1",
        "\"\x80\"",
        "\"\xC0\x80\"",
        "\"\xE0\x9F\xBF\"",
        "\"\xED\xA0\x80\"",
        "\"\xF4\x90\x80\x80\"",
        "\"\xF5\x80\x80\x80\"",
        "\"\xE2\x82\"",
        "\"\xC3",
        "{\"a\":1}}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (skip_all(slice_of_text(texts[i]), NULL) != STATUS_MALFORMED) TEST_FAIL("accepted: %s", texts[i]);
    }
    CHECK_UINT(skip_all(slice_of("\"\0\"", 3), NULL), STATUS_MALFORMED);
}

TEST(a_json_error_has_the_offset_at_which_it_was_noticed)
{
    struct error error;
    CHECK_UINT(skip_all(slice_of_text("{\"a\": [1, 2, x]}"), &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, 13);
    CHECK_UINT(skip_all(slice_of_text("[\"plain text \x01 \"]"), &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, 13);
    CHECK_UINT(skip_all(slice_of_text("[1"), &error), STATUS_MALFORMED);
    CHECK_TEXT(error.message, "input ends early");
}

TEST(json_nested_deeper_than_the_maximum_is_rejected)
{
    char text[2 * JSON_DEPTH_MAX + 2];
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    CHECK_UINT(skip_all(slice_of(text, 2 * JSON_DEPTH_MAX + 2), NULL), STATUS_TOO_LARGE);
    CHECK_UINT(skip_all(slice_of(text + 1, 2 * JSON_DEPTH_MAX), NULL), STATUS_OK);
}

TEST(a_json_object_gives_its_keys_and_values_in_order)
{
    struct json_reader reader;
    json_reader_init(&reader, slice_of_text(" {\"n\" : -7 ,\"list\":[ true,null ] , \"s\\u0061\":\"x\"} "));
    struct slice key;
    json_object_begin(&reader);
    CHECK(json_object_next(&reader, &key));
    CHECK(slice_equals_text(key, "n"));
    CHECK_INT(json_i64(&reader), -7);
    CHECK(json_object_next(&reader, &key));
    json_array_begin(&reader);
    CHECK(json_array_next(&reader));
    CHECK(!json_null(&reader));
    CHECK(json_bool(&reader));
    CHECK(json_array_next(&reader));
    CHECK_UINT(json_peek(&reader), JSON_NULL);
    CHECK(json_null(&reader));
    CHECK(!json_array_next(&reader));
    CHECK(json_object_next(&reader, &key));
    CHECK(slice_equals_text(key, "sa"));
    CHECK(slice_equals_text(json_string(&reader), "x"));
    CHECK(!json_object_next(&reader, &key));
    CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
    json_reader_fini(&reader);
}

TEST(a_json_reader_that_failed_gives_nothing_and_keeps_the_first_failure)
{
    struct json_reader reader;
    struct error error;
    struct slice key;
    json_reader_init(&reader, slice_of_text("{\"a\":\"text\",\"b\":2}"));
    json_object_begin(&reader);
    CHECK(json_object_next(&reader, &key));
    CHECK_UINT(json_u64(&reader), 0);
    CHECK(!json_object_next(&reader, &key));
    CHECK_UINT(json_string(&reader).size, 0);
    CHECK_UINT(json_peek(&reader), JSON_NOTHING);
    json_skip(&reader);
    CHECK_UINT(json_reader_finish(&reader, &error), STATUS_MALFORMED);
    CHECK_TEXT(error.message, "expected a number");
    CHECK_UINT(error.offset, 5);
    json_reader_fini(&reader);
}

TEST(json_strings_are_views_of_the_input_unless_they_hold_escapes)
{
    static const char text[] = "[\"longer than eight bytes \xC3\xA9\",\"\\u20ac\\ud83d\\ude00 and \\ud800!\\n\"]";
    struct json_reader reader;
    json_reader_init(&reader, slice_of_text(text));
    json_array_begin(&reader);
    CHECK(json_array_next(&reader));
    struct slice plain = json_string(&reader);
    CHECK(plain.data == (const uint8_t *)text + 2);
    CHECK_UINT(plain.size, 26);
    CHECK(json_array_next(&reader));
    CHECK(slice_equals_text(json_string(&reader), "\xE2\x82\xAC\xF0\x9F\x98\x80 and \xEF\xBF\xBD!\n"));
    CHECK(!json_array_next(&reader));
    CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
    json_reader_fini(&reader);
}

static bool read_u64(const char *text, uint64_t *ret_value)
{
    struct json_reader reader;
    json_reader_init(&reader, slice_of_text(text));
    *ret_value = json_u64(&reader);
    return json_reader_finish(&reader, NULL) == STATUS_OK;
}

static bool read_i64(const char *text, int64_t *ret_value)
{
    struct json_reader reader;
    json_reader_init(&reader, slice_of_text(text));
    *ret_value = json_i64(&reader);
    return json_reader_finish(&reader, NULL) == STATUS_OK;
}

TEST(json_integers_are_exact_to_their_last_value_and_rejected_beyond)
{
    uint64_t u;
    int64_t i;
    CHECK(read_u64("18446744073709551615", &u));
    CHECK_UINT(u, UINT64_MAX);
    CHECK(read_u64("-0", &u) && u == 0);
    CHECK(!read_u64("18446744073709551616", &u));
    CHECK(!read_u64("99999999999999999999999", &u));
    CHECK(!read_u64("-1", &u));
    CHECK(!read_u64("1.0", &u));
    CHECK(!read_u64("1e3", &u));
    CHECK(!read_u64("\"1\"", &u));
    CHECK(read_i64("-9223372036854775808", &i));
    CHECK_INT(i, INT64_MIN);
    CHECK(read_i64("9223372036854775807", &i));
    CHECK_INT(i, INT64_MAX);
    CHECK(!read_i64("9223372036854775808", &i));
    CHECK(!read_i64("-9223372036854775809", &i));
}

static void check_double(const char *text)
{
    struct json_number number;
    if (!json_number_of_text(slice_of_text(text), &number)) TEST_FAIL("no number: %s", text);
    double actual = json_number_to_double(&number), expected = strtod(text, NULL);
    if (memcmp(&actual, &expected, sizeof(actual)) != 0) TEST_FAIL("%s: %.17g, expected %.17g", text, actual, expected);
}

/* Digits are taken eight at a time where so many bytes are left, and one by one at the end of the input. */
TEST(json_integers_of_every_length_are_exact_wherever_they_are)
{
    static const char *const after[] = {"", ",", "]", " ", "\n        ", ",12345678", "/234567890", ":234567890"};
    static const char digits[] = "1234567890123456789";
    for (size_t size = 1; size < sizeof(digits); size++) {
        uint64_t expected = 0;
        for (size_t i = 0; i < size; i++) expected = expected * 10 + (uint64_t)(digits[i] - '0');
        for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
            char text[64];
            struct json_reader reader;
            (void)snprintf(text, sizeof(text), "%.*s%s", (int)size, digits, after[i]);
            json_reader_init(&reader, slice_of_text(text));
            CHECK_UINT(json_u64(&reader), expected);
            CHECK(!reader.failed);
            CHECK_UINT(json_reader_taken(&reader), size);
            json_reader_fini(&reader);
        }
    }
    static const char *const rejected[] = {"01",         "01,       ", "1.5       ", "1e5       ",
                                           "1E5       ", "1234567.5 ", "-        "};
    for (size_t i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        uint64_t value;
        CHECK(!read_u64(rejected[i], &value));
    }
}

TEST(a_guess_at_a_key_takes_it_only_if_it_is_right_and_a_value_follows)
{
    static const struct {
        const char *text;
        bool is_taken;
    } cases[] = {
        {"{\"stack_id\":17}", true},   {"{\"stack_ie\":17}", false},   {"{\"stack_id\" :17}", false},
        {"{\"stack_id\": 17}", false}, {"{\"stack_id\":null}", false}, {"{ \"stack_id\":17}", false},
        {"{\"stack_id\":", false},     {"{\"stack_id\"", false},       {"{,\"stack_id\":17}", false},
    };
    static const char guess[] = "\"stack_id\":";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_reader reader;
        json_reader_init(&reader, slice_of_text(cases[i].text));
        json_object_begin(&reader);
        CHECK(json_object_next_is(&reader, guess, sizeof(guess) - 1) == cases[i].is_taken);
        CHECK_UINT(json_reader_taken(&reader), cases[i].is_taken ? sizeof(guess) : 1);
        CHECK(!json_object_ends(&reader));
        if (cases[i].is_taken) {
            CHECK_UINT(json_u64(&reader), 17);
            CHECK(json_object_ends(&reader));
            CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
        }
        json_reader_fini(&reader);
    }
}

TEST(json_doubles_are_the_nearest_ones)
{
    static const char *const hard[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1e-400",
        "1e400",
        "-1e400",
        "1e22",
        "1e23",
        "1e19",
        "18014398509481985",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740992.5",
        "9007199254740993.00000000000000000000000001",
        "4503599627370496.5",
        "4503599627370497.5",
        "4503599627370497.500",
        "0.1",
        "0.30000000000000004",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4703282292062327208e-324",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1700000000.1234567",
        "1795190980.632179260253906",
        "9999999999999999999",
        "9999999999999999999e-19",
        "0.0000000000000000001",
        "0.000000000000000000000000000000000000001e39",
        "8.988465674311580e307",
        "123456789012345678901234567890",
        "0.500000000000000166533453693773481063544750213623046875",
    };
    for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) check_double(hard[i]);

    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 200000; round++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        char text[64];
        uint64_t digits = state >> (state & 31);
        int exponent = (int)(state % 43) - 30;
        (void)snprintf(text, sizeof(text), "%s%" PRIu64 "e%d", state & 64 ? "-" : "", digits, exponent);
        check_double(text);
    }
}

TEST(a_json_number_with_very_many_digits_still_gives_the_nearest_double)
{
    enum { SIZE = 3000 };
    char text[SIZE + 40];
    (void)snprintf(text, sizeof(text),
                   "1.00000000000000011102230246251565404236316680908203125"); /* half-way: even is 1 */
    size_t used = strlen(text);
    check_double(text);
    memset(text + used, '0', SIZE - used);
    text[SIZE] = 0;
    check_double(text);
    text[SIZE - 1] = '1';
    check_double(text);
    memset(text, '0', SIZE);
    text[1] = '.';
    memcpy(text + SIZE, "17e3010", 8);
    check_double(text);
}

TEST(doubles_survive_being_written_and_read_with_the_fewest_digits)
{
    static const double values[] = {
        0.1, 1.0 / 3, 1e21, 5e-324, 1.7976931348623157e308, -2.5, 1700000000.123456, 0.30000000000000004};
    struct buffer out;
    buffer_init(&out, 1000);
    struct json_writer writer = json_writer_of(&out);
    json_begin_array(&writer);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) json_write_double(&writer, values[i]);
    json_end_array(&writer);

    struct json_reader reader;
    json_reader_init(&reader, buffer_slice(&out));
    json_array_begin(&reader);
    for (size_t i = 0; json_array_next(&reader); i++) CHECK(json_double(&reader) == values[i]);
    CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
    json_reader_fini(&reader);
    CHECK_UINT(memcmp(out.data, "[0.1,", 5), 0);
    buffer_fini(&out);
}

static void check_written(struct buffer *out, const char *expected)
{
    buffer_append_byte(out, 0);
    CHECK(!out->failed);
    CHECK_TEXT((const char *)out->data, expected);
    buffer_fini(out);
}

TEST(written_json_has_commas_escapes_and_only_valid_utf8)
{
    struct buffer out;
    buffer_init(&out, 1000);
    struct json_writer writer = json_writer_of(&out);
    json_begin_object(&writer);
    json_write_key(&writer, "list");
    json_begin_array(&writer);
    json_write_u64(&writer, UINT64_MAX);
    json_write_i64(&writer, INT64_MIN);
    json_write_fixed(&writer, 1700000000000042u, 6);
    json_write_hex(&writer, 0xABC);
    json_write_bool(&writer, false);
    json_write_double(&writer, INFINITY);
    json_end_array(&writer);
    json_write_key_slice(&writer, slice_of_text("\"k\""));
    json_write_string(&writer, slice_of("a\x01\n\\\0\xFF\xC3\xA9\xC3", 9));
    json_write_key(&writer, "empty");
    json_begin_object(&writer);
    json_end_object(&writer);
    json_write_key(&writer, "none");
    json_write_text(&writer, NULL);
    json_end_object(&writer);
    CHECK_UINT(skip_all(buffer_slice(&out), NULL), STATUS_OK);
    check_written(&out, "{\"list\":[18446744073709551615,-9223372036854775808,1700000000.000042,\"0xabc\",false,null],"
                        "\"\\\"k\\\"\":\"a\\u0001\\n\\\\\\u0000\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\","
                        "\"empty\":{},\"none\":\"\"}");
}

/* Sanitizers see what is read beside the bytes. */
TEST(damaged_json_is_read_or_rejected_at_its_place)
{
    static const char text[] = "{\"a\":[1,2.5e3,\"x\\u00e9\\ud83d\\ude00\xC3\xA9yz\",null,true],\"b\":{\"c\":-0.125}}";
    char damaged[sizeof(text)];
    unsigned accepted = 0;
    uint64_t state = 1;
    for (int round = 0; round < 100000; round++) {
        memcpy(damaged, text, sizeof(text));
        for (int hits = 0; hits < 3; hits++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            damaged[(state >> 33) % (sizeof(text) - 1)] = (char)(state >> 56);
        }
        size_t size = round % 2 ? sizeof(text) - 1 : (state >> 20) % sizeof(text);
        struct error error = {0};
        if (skip_all(slice_of(damaged, size), &error) == STATUS_OK)
            accepted++;
        else
            CHECK(error.status == STATUS_MALFORMED && error.offset <= size);
    }
    CHECK(accepted > 10 && accepted < 10000);
}

TEST(uuids_are_new_each_time_and_read_in_every_spelling)
{
    char first[UUID_TEXT_SIZE], second[UUID_TEXT_SIZE], parsed[UUID_TEXT_SIZE] = "unchanged";
    CHECK(uuid_new(first) && uuid_new(second));
    CHECK(strcmp(first, second) != 0);
    CHECK_UINT(strlen(first), 32);
    CHECK_INT(first[12], '4');
    CHECK(strchr("89ab", first[16]) != NULL);
    CHECK(!uuid_parse(slice_of_text("71bba98d-90b545208f2a73f702d7ef-4"), parsed));
    CHECK(!uuid_parse(slice_of_text("71bba98d90b545208f2a73f702d7ef4g"), parsed));
    CHECK(!uuid_parse(slice_of_text(""), parsed));
    CHECK_TEXT(parsed, "unchanged");
    CHECK(uuid_parse(slice_of_text("71BBA98D-90b5-4520-8f2a-73f702d7ef4c"), parsed));
    CHECK_TEXT(parsed, "71bba98d90b545208f2a73f702d7ef4c");
    CHECK(uuid_parse(slice_of_text("71bba98d90b545208f2a73f702d7ef4c"), second));
    CHECK_TEXT(second, parsed);
}

TEST(times_are_seconds_to_the_nanosecond_or_texts)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } times[] = {
        {"1700000000", 1700000000000000000},
        {"1700000000.25", 1700000000250000000},
        {"1700000000.123456789", 1700000000123456789},
        {"1700000000.1234567891", 1700000000123456789 / 256 * 256}, /* over 19 digits: as a double */
        {"1.7e9", 1700000000000000000},
        {"0", 0},
        {"-1", 0},
        {"1e-30", 0},
        {"1e30", UINT64_MAX},
        {"\"2023-11-14T22:13:20.5Z\"", 1700000000500000000},
        {"\"soon\"", 0},
        {"null", 0},
        {"[1]", 0},
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct json_reader reader;
        json_reader_init(&reader, slice_of_text(times[i].text));
        uint64_t ns = json_time_ns(&reader);
        if (ns != times[i].ns) TEST_FAIL("%s: %" PRIu64, times[i].text, ns);
        CHECK_UINT(json_reader_finish(&reader, NULL), STATUS_OK);
        json_reader_fini(&reader);
    }
}

TEST(a_byte_has_its_place_in_the_document)
{
    static const char text[] = "{\"a\": [1, {\"b\\u0063\": null}], \"\": [[]], \"long\": \"text\"} ";
    static const struct {
        const char *at, *place, *found;
    } cases[] = {
        {"{\"a\"", "", "object"},    {"[1", "a", "array"},    {"1,", "a[0]", "1"},
        {"null", "a[1].bc", "null"}, {"[]]", "[0]", "array"}, {"\"text\"", "long", "\"text\""},
        {"ext", "long", "\"text\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char place[32], found[32];
        struct slice value;
        json_place(slice_of_text(text), (uint64_t)(strstr(text, cases[i].at) - text), place, sizeof(place), &value);
        json_describe(value, found, sizeof(found));
        CHECK_TEXT(place, cases[i].place);
        CHECK_TEXT(found, cases[i].found);
    }
    char cut[6];
    json_place(slice_of_text("{\"a\":{\"bcdef\":{x}}}"), 16, cut, sizeof(cut), NULL);
    CHECK_TEXT(cut, "a.bcd");
}

TEST_MAIN()
