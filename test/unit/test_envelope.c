/* Envelopes, framed as the real server frames them (ENV-1, ENV-2, V1-5; facts §2.1).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "format/sentry/envelope.h"

/* "type:payload|type:payload|", ending in "!" if the framing is broken; "-" if it is no envelope, "?" if its header is
 * broken. */
static const char *items_of(struct slice bytes)
{
    static char text[400];
    struct envelope_reader reader;
    struct envelope_item item;
    struct error error = {.status = STATUS_OK};
    int used = 0;

    if (envelope_open(&reader, bytes, &error) != STATUS_OK) {
        envelope_close(&reader);
        return error.status == STATUS_NOT_THIS_FORMAT ? "-" : "?";
    }
    while (envelope_next(&reader, &item, &error)) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%.*s:%.*s|", SLICE_ARGUMENTS(item.type),
                         SLICE_ARGUMENTS(item.payload));
    }
    (void)snprintf(text + used, sizeof(text) - (size_t)used, "%s", error.status == STATUS_OK ? "" : "!");
    envelope_close(&reader);
    return text;
}

#define CHECK_ITEMS(bytes, expected) CHECK_TEXT(items_of(slice_of(bytes, sizeof(bytes) - 1)), expected)

TEST(an_item_with_a_length_has_exactly_so_many_bytes_ENV_1)
{
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":5}\nab\ncd\n{\"type\":\"x\",\"length\":0}\n\n", "event:ab\ncd|x:|");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":5}\nabcde", "event:abcde|");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":4}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":6}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":6}\nabcde\n", "event:abcde\n|");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":7}\nabcde\n", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":5}", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":-1}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":\"5\"}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":4294967296}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":18446744073709551615}\nabcde", "!");
}

TEST(an_item_without_a_length_ends_with_its_line_ENV_1)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n{\"type\":\"b\"}\ntwo", "a:one|b:two|");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\n\n{\"type\":\"b\",\"length\":null}\n", "a:|b:|");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}", "a:|");
    CHECK_ITEMS("{}\n{\"type\":\"a\",\"length\":0}", "a:|");
}

TEST(an_envelope_may_hold_no_items)
{
    CHECK_ITEMS("{}", "");
    CHECK_ITEMS("{}\n", "");
    CHECK_ITEMS("{\"event_id\":\"71bba98d90b545c39f2ae73f702d7ef4\"}\n", "");
    CHECK_ITEMS("{}\n\n", "!");
}

TEST(only_a_newline_ends_a_line)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\r\n", "a:one\r|");
    CHECK_ITEMS("{}\n{\"type\":\"a\",\"length\":5}\none\r\n\n", "a:one\r\n|");
    CHECK_ITEMS("{}\n{\"type\":\"a\",\"length\":3}\none\r\n", "!");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\nx\n{\"type\":\"b\"}\r\none", "a:x|!");
    CHECK_ITEMS("{}\r\n{\"type\":\"a\"}\none", "-");
}

TEST(a_blank_line_after_the_last_item_is_an_error)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n\n", "a:one|!");
    CHECK_ITEMS("{}\n{\"type\":\"a\",\"length\":3}\none\n\n", "a:one|!");
}

TEST(a_header_that_is_carried_begins_its_line)
{
    struct buffer out;
    buffer_init(&out, 1 << 10);
    envelope_begin_with(&out, slice_of_text(" {}"));
    envelope_add_item_with(&out, slice_of_text("\n{\n\"type\":\"a\"}"), slice_of_text("one"));
    CHECK(envelope_detect(buffer_slice(&out)));
    buffer_append_byte(&out, '\0');
    CHECK_TEXT((const char *)out.data, "{}\n{ \"type\":\"a\"}\none\n");
    buffer_fini(&out);
}

TEST(unknown_items_and_unknown_header_members_are_carried_ENV_2)
{
    CHECK_ITEMS("{\"x\":{\"y\":[1]},\"trace\":7}\n{\"type\":\"something new\",\"more\":[{}]}\npayload",
                "something new:payload|");
    CHECK_ITEMS("{}\n{\"type\":\"profile_chunk_ui\"}\n{}", "profile_chunk_ui:{}|");
}

TEST(an_item_without_a_type_breaks_the_envelope)
{
    CHECK_ITEMS("{}\n{}\nx", "!");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n{\"length\":1}\nx", "a:one|!");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\nnot json\nx", "a:one|!");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n{\"type\":1}\nx", "a:one|!");
    CHECK_ITEMS("{}\n{\"type\":null}\nx", "!");
    CHECK_ITEMS("{}\nx\n{}", "!");
}

TEST(what_does_not_begin_with_a_header_is_no_envelope)
{
    CHECK_ITEMS("", "-");
    CHECK_ITEMS("\n", "-");
    CHECK_ITEMS("[]\n{\"type\":\"a\"}\none", "-");
    CHECK_ITEMS("{\"sdk\":\n", "-");
    CHECK_ITEMS("main;work 42\n", "-");
}

TEST(a_header_with_a_wrong_id_name_or_time_breaks_the_envelope)
{
    CHECK_ITEMS("{\"event_id\":\"no uuid\"}\n{\"type\":\"a\"}\none", "?");
    CHECK_ITEMS("{\"event_id\":7}\n", "?");
    CHECK_ITEMS("{\"sent_at\":7}\n{\"type\":\"a\"}\none", "?");
    CHECK_ITEMS("{\"sent_at\":\"yesterday\"}\n", "?");
    CHECK_ITEMS("{\"dsn\":7}\n", "?");
    CHECK_ITEMS("{\"event_id\":null,\"dsn\":null,\"sent_at\":null,\"sdk\":null,\"trace\":null}\n", "");
    CHECK_ITEMS("{\"sdk\":7,\"trace\":[]}\n", "");
}

TEST(the_attributes_of_the_header_have_their_types_ENV_1)
{
    struct envelope_reader reader;
    CHECK_UINT(
        envelope_open(&reader,
                      slice_of_text("{\"event_id\":\"71BBA98D-90B5-4520-8F2A-73F702D7EF4C\","
                                    "\"dsn\":\"https:\\/\\/key@host\\/1\",\"sent_at\":\"2023-11-14T23:13:20.5+01:00\","
                                    "\"sdk\":{\"name\":\"sentry.\\u0070hp\",\"version\":\"4.29.0\",\"packages\":[]},"
                                    "\"trace\":{\"trace_id\":\"12\",\"sample_rate\":0.5}}\n"),
                      NULL),
        STATUS_OK);
    const struct envelope_attributes *attributes = &reader.attributes;
    CHECK_TEXT(attributes->event_id, "71bba98d90b545208f2a73f702d7ef4c");
    CHECK(slice_equals_text(attributes->dsn, "https://key@host/1"));
    CHECK_UINT(attributes->sent_at_ns, 1700000000500000000u);
    CHECK(slice_equals_text(attributes->sdk_name, "sentry.php"));
    CHECK(slice_equals_text(attributes->sdk_version, "4.29.0"));
    CHECK(slice_equals_text(attributes->trace, "{\"trace_id\":\"12\",\"sample_rate\":0.5}"));
    envelope_close(&reader);
}

TEST(the_attributes_of_an_item_are_read_through_their_escapes_ENV_2)
{
    struct envelope_reader reader;
    struct envelope_item item;
    CHECK_UINT(envelope_open(
                   &reader,
                   slice_of_text("{}\n{\"type\":\"pro\\u0066ile_chunk_ui\",\"platform\":\"android\",\"item_count\":3,"
                                 "\"content_type\":\"application\\/json\",\"meta_length\":7}\n{}\n"
                                 "{\"type\":\"event\",\"platform\":null}\n{}"),
                   NULL),
               STATUS_OK);
    CHECK(envelope_next(&reader, &item, NULL));
    CHECK(slice_equals_text(item.type, "profile_chunk_ui") && envelope_item_is_chunk(&item));
    CHECK(slice_equals_text(item.platform, "android"));
    CHECK(slice_equals_text(item.content_type, "application/json"));
    CHECK(item.has_meta_length);
    CHECK_UINT(item.item_count, 3);
    CHECK(envelope_next(&reader, &item, NULL));
    CHECK(!envelope_item_is_chunk(&item) && !item.has_meta_length && item.platform.size == 0);
    envelope_close(&reader);
}

TEST(a_file_is_taken_for_an_envelope_by_its_first_line_and_what_follows)
{
    static const struct {
        const char *text;
        bool expected;
    } files[] = {
        {"{}", true},
        {"{}\n", true},
        {"{\"event_id\":\"no uuid\"}\n", true},
        {"{\"event_id\":\"no uuid\"}\n{\"type\":\"a\"}\none", true},
        {"{\"profile\":{}}\n{\"type\":\"a\"}\none", true},
        {"{\"version\":\"2\",\"profile\":{}}", false},
        {"{\"version\":\"2\"}\n", false},
        {"{\"sdk\":{}} 1", false},
        {"{\n\"version\":\"2\"}\n", false},
        {"{}\nx\n{}", false},
        {"{}\r\n{\"type\":\"a\"}\r\none", true},
        {"{}\n\n{\"type\":\"a\"}\none", true},
        {"[]\n{\"type\":\"a\"}\none", false},
        {"", false},
        {"\n", false},
        {"main;work 42\n", false},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bool is_envelope = envelope_detect(slice_of_text(files[i].text));
        if (is_envelope != files[i].expected) TEST_FAIL("%s: %d", files[i].text, is_envelope);
    }
}

/* As a file that went through Windows or an editor: servers reject it (REL-1), people want to look into it. */
TEST(a_lenient_reader_takes_other_line_ends_and_empty_lines)
{
    static const char text[] = "{}\r\n\r\n{\"type\":\"a\"}\r\none\r\n\n{\"type\":\"b\",\"length\":3}\r\ntwo\r\n\r\n";
    struct envelope_reader reader;
    struct envelope_item item;
    struct error error = {0};
    CHECK_UINT(envelope_open(&reader, slice_of_text(text), NULL), STATUS_NOT_THIS_FORMAT);
    envelope_close(&reader);
    CHECK_UINT(envelope_check(slice_of_text(text), NULL), STATUS_MALFORMED);
    CHECK_UINT(envelope_open_lenient(&reader, slice_of_text(text), NULL), STATUS_OK);
    CHECK(envelope_next(&reader, &item, &error) && slice_equals_text(item.payload, "one"));
    CHECK(envelope_next(&reader, &item, &error) && slice_equals_text(item.payload, "two"));
    CHECK(!envelope_next(&reader, &item, &error));
    CHECK_UINT(error.status, STATUS_OK);
    envelope_close(&reader);
}

TEST(the_error_has_the_place_in_the_entire_envelope)
{
    static const char text[] = "{}\n{\"type\":\"a\"}\none\n{\"type\":1}\nx";
    struct envelope_reader reader;
    struct envelope_item item;
    struct error error;
    CHECK_UINT(envelope_open(&reader, slice_of_text(text), &error), STATUS_OK);
    CHECK(slice_equals_text(reader.header, "{}"));
    CHECK(envelope_next(&reader, &item, &error));
    CHECK(slice_equals_text(item.header, "{\"type\":\"a\"}"));
    CHECK(!envelope_next(&reader, &item, &error));
    CHECK_UINT(error.status, STATUS_MALFORMED);
    CHECK_UINT(error.offset, 28);
    envelope_close(&reader);
}

/* --- What a server takes ---------------------------------------------------------------------------------------- */

static enum status check_one(const char *type, size_t size, unsigned count, char *ret_message)
{
    struct buffer bytes, payload;
    struct error error = {.message = ""};
    buffer_init(&bytes, (size_t)300 << 20);
    buffer_init(&payload, (size_t)300 << 20);
    uint8_t *place = buffer_reserve(&payload, size);
    if (place) memset(place, 'x', size);
    buffer_grow(&payload, size);
    envelope_begin(&bytes, &(struct envelope_attributes){0});
    for (unsigned i = 0; i < count; i++) envelope_add_item(&bytes, type, NULL, buffer_slice(&payload));
    enum status status = bytes.failed ? STATUS_NO_MEMORY : envelope_check(buffer_slice(&bytes), &error);
    memcpy(ret_message, error.message, sizeof(error.message));
    buffer_fini(&bytes);
    buffer_fini(&payload);
    return status;
}

TEST(what_is_over_a_limit_is_rejected_with_the_type_that_is)
{
    static const struct {
        const char *type;
        size_t bytes_max;
        unsigned count_max;
    } rules[] = {
        {"event", 1 << 20, 1},          {"transaction", 1 << 20, 1},       {"profile", 50 << 20, 1},
        {"profile_chunk", 50 << 20, 1}, {"profile_chunk_ui", 50 << 20, 1}, {"client_report", 4 << 10, 3},
        {"span", 1 << 20, 3},           {"check_in", 100 << 10, 3},
    };
    char message[256], expected[100];
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        (void)snprintf(expected, sizeof(expected), "envelope exceeded size limits for type '%s'", rules[i].type);
        CHECK_UINT(check_one(rules[i].type, rules[i].bytes_max, 1, message), STATUS_OK);
        CHECK_UINT(check_one(rules[i].type, rules[i].bytes_max + 1, 1, message), STATUS_TOO_LARGE);
        CHECK(strstr(message, expected) == message);
        CHECK_UINT(check_one(rules[i].type, 3, rules[i].count_max, message), STATUS_OK);
        CHECK_UINT(check_one(rules[i].type, 3, rules[i].count_max + 1, message),
                   rules[i].count_max == 1 ? STATUS_TOO_LARGE : STATUS_OK);
        if (rules[i].count_max == 1) CHECK(strstr(message, expected) == message);
    }
    CHECK_UINT(check_one("session", 3, 100, message), STATUS_OK);
    CHECK_UINT(check_one("session", 3, 101, message), STATUS_TOO_LARGE);
    CHECK_UINT(check_one("attachment", 199 << 20, 1, message), STATUS_OK);
    CHECK_UINT(check_one("attachment", 200 << 20, 1, message), STATUS_TOO_LARGE);
}

TEST(one_profile_or_chunk_an_envelope_and_broken_framing_is_reported_V1_5)
{
    struct error error;
    CHECK_UINT(
        envelope_check(slice_of_text("{}\n{\"type\":\"profile\"}\n{}\n{\"type\":\"profile_chunk\"}\n{}"), &error),
        STATUS_TOO_LARGE);
    CHECK_UINT(envelope_check(slice_of_text("{}\n{\"type\":\"event\"}\n{}\n{\"type\":\"transaction\"}\n{}"), &error),
               STATUS_TOO_LARGE);
    CHECK_UINT(envelope_check(slice_of_text("{}\n{\"type\":\"transaction\"}\n{}\n{\"type\":\"profile\"}\n{}"), &error),
               STATUS_OK);
    CHECK_UINT(envelope_check(slice_of_text("{}\n{}\n{}"), &error), STATUS_MALFORMED);
    CHECK_UINT(envelope_check(slice_of_text(""), &error), STATUS_MALFORMED);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

TEST(a_written_envelope_is_framed_with_lengths_and_reads_back_ENV_1)
{
    struct buffer out;
    struct envelope_attributes attributes = {.event_id = "71bba98d90b545208f2a73f702d7ef4c",
                                             .dsn = slice_of_text("https://key@host/1"),
                                             .sdk_name = slice_of_text("offbeat"),
                                             .sdk_version = slice_of_text("1.2"),
                                             .sent_at_ns = 1700000000123456000u,
                                             .trace = slice_of_text("{\"trace_id\":\"12\"}")};
    buffer_init(&out, 1000);
    envelope_begin(&out, &attributes);
    envelope_add_item(&out, "profile_chunk", "native", slice_of_text("{\n}"));
    envelope_add_item(&out, "attachment", NULL, slice_of(NULL, 0));
    CHECK(!out.failed);
    CHECK(slice_equals_text(buffer_slice(&out),
                            "{\"event_id\":\"71bba98d90b545208f2a73f702d7ef4c\",\"dsn\":\"https://key@host/1\","
                            "\"sdk\":{\"name\":\"offbeat\",\"version\":\"1.2\"},"
                            "\"sent_at\":\"2023-11-14T22:13:20.123456Z\",\"trace\":{\"trace_id\":\"12\"}}\n"
                            "{\"type\":\"profile_chunk\",\"platform\":\"native\",\"length\":3}\n"
                            "{\n}\n{\"type\":\"attachment\",\"length\":0}\n\n"));
    CHECK_TEXT(items_of(buffer_slice(&out)), "profile_chunk:{\n}|attachment:|");
    buffer_clear(&out);
    envelope_begin(&out, &(struct envelope_attributes){0});
    CHECK(text_begins_with(buffer_slice(&out), "{\"event_id\":\"") && out.size == strlen("{\"event_id\":\"\"}\n") + 32);
    buffer_fini(&out);
}

TEST(items_are_written_again_as_they_came_with_and_without_length_ENV_1)
{
    static const char text[] =
        "{\"new\":[1]}\n{\"type\":\"a\",\"x\":{}}\none\r\n{\"type\":\"b\",\"length\":5}\nab\ncd\n"
        "{\"type\":\"c\"}\n\n";
    struct envelope_reader reader;
    struct envelope_item item;
    struct buffer out;
    buffer_init(&out, 1000);
    CHECK_UINT(envelope_open(&reader, slice_of_text(text), NULL), STATUS_OK);
    envelope_begin_with(&out, reader.header);
    while (envelope_next(&reader, &item, NULL)) envelope_add_item_with(&out, item.header, item.payload);
    CHECK(slice_equals_text(buffer_slice(&out), text));
    envelope_close(&reader);
    buffer_clear(&out);
    envelope_begin_with(&out, slice_of_text("{\n\"a\": 1\n}"));
    CHECK(slice_equals_text(buffer_slice(&out), "{ \"a\": 1 }\n"));
    buffer_fini(&out);
}

/* Sanitizers see what is read beside the bytes. */
TEST(damaged_envelopes_are_read_or_rejected)
{
    static const char text[] = "{\"sdk\":{}}\n{\"type\":\"event\",\"length\":5}\nab\ncd\n{\"type\":\"x\"}\nabc\n";
    unsigned read = 0, rejected = 0;
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        size_t size = sizeof(text) - 1;
        char *damaged = malloc(size);
        memcpy(damaged, text, size);
        for (int hits = 0; hits < 2; hits++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            damaged[(state >> 33) % size] = (char)(state >> 56);
        }
        const char *items = items_of(slice_of(damaged, size));
        if (strchr(items, '|') && items[strlen(items) - 1] == '|') read++;
        if (strchr("-?!", items[0]) && items[1] == '\0') rejected++;
        free(damaged);
    }
    CHECK(read > 500 && rejected > 5000);
}

TEST_MAIN()
