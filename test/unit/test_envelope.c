/* Envelopes, framed as the real receiver frames them (ENV-1, ENV-2; facts §2.1).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "format/envelope.h"

/* "type:payload|type:payload|", ending in "!" if the framing is broken, or "-" if it is no envelope. */
static const char *items_of(struct slice bytes)
{
    static char text[400];
    struct envelope_reader reader;
    struct envelope_item item;
    struct error error = {.status = STATUS_OK};
    int used = 0;

    if (envelope_open(&reader, bytes, &error) != STATUS_OK) return error.status == STATUS_NOT_THIS_FORMAT ? "-" : "?";
    while (envelope_next(&reader, &item, &error)) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%.*s:%.*s|", SLICE_ARGUMENTS(item.type),
                         SLICE_ARGUMENTS(item.payload));
    }
    (void)snprintf(text + used, sizeof(text) - (size_t)used, "%s", error.status == STATUS_OK ? "" : "!");
    return text;
}

#define CHECK_ITEMS(bytes, expected) CHECK_TEXT(items_of(slice_of(bytes, sizeof(bytes) - 1)), expected)

TEST(an_item_with_a_length_has_exactly_so_many_bytes)
{
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":5}\nab\ncd\n{\"type\":\"x\",\"length\":0}\n\n", "event:ab\ncd|x:|");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":5}\nabcde", "event:abcde|");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":4}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":6}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":-1}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":4294967296}\nabcde", "!");
    CHECK_ITEMS("{}\n{\"type\":\"event\",\"length\":18446744073709551615}\nabcde", "!");
}

TEST(an_item_without_a_length_ends_with_its_line)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n{\"type\":\"b\"}\ntwo", "a:one|b:two|");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\n\n{\"type\":\"b\",\"length\":null}\n", "a:|b:|");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}", "a:|");
}

TEST(only_a_newline_ends_a_line)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\r\n", "a:one\r|");
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\nx\n{\"type\":\"b\"}\r\none", "a:x|!");
    CHECK_ITEMS("{}\r\n{\"type\":\"a\"}\none", "-");
}

TEST(a_blank_line_after_the_last_item_is_an_error)
{
    CHECK_ITEMS("{}\n{\"type\":\"a\"}\none\n\n", "a:one|!");
}

TEST(unknown_items_and_unknown_header_members_are_carried)
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
}

TEST(what_does_not_begin_with_a_header_and_an_item_is_no_envelope)
{
    CHECK_ITEMS("", "-");
    CHECK_ITEMS("{}", "-");
    CHECK_ITEMS("{\"version\":\"2\"}\n", "-");
    CHECK_ITEMS("{}\nx\n{}", "-");
    CHECK_ITEMS("[]\n{\"type\":\"a\"}\none", "-");
    CHECK_ITEMS("main;work 42\n", "-");
    CHECK_ITEMS("{\"event_id\":\"no uuid\"}\n{\"type\":\"a\"}\none", "-");
    CHECK_ITEMS("{\"sent_at\":7}\n{\"type\":\"a\"}\none", "-");
    CHECK_ITEMS("{\"event_id\":\"71BBA98D-90B5-4520-8F2A-73F702D7EF4C\",\"dsn\":null}\n{\"type\":\"a\"}\none",
                "a:one|");
}

TEST(the_error_tells_the_place_in_the_whole_envelope)
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
}

TEST(a_written_envelope_is_framed_with_lengths_and_reads_back)
{
    struct buffer out;
    buffer_init(&out, 1000);
    envelope_begin(&out, "offbeat", "1.2", 1700000000123456789u);
    envelope_add_item(&out, "profile_chunk", "native", slice_of_text("{\n}"));
    envelope_add_item(&out, "attachment", NULL, slice_of(NULL, 0));
    CHECK(!out.failed);
    CHECK(slice_equals_text(buffer_slice(&out), "{\"sdk\":{\"name\":\"offbeat\",\"version\":\"1.2\"},"
                                                "\"sent_at\":\"2023-11-14T22:13:20.123456Z\"}\n"
                                                "{\"type\":\"profile_chunk\",\"platform\":\"native\",\"length\":3}\n"
                                                "{\n}\n{\"type\":\"attachment\",\"length\":0}\n\n"));
    CHECK_TEXT(items_of(buffer_slice(&out)), "profile_chunk:{\n}|attachment:|");
    buffer_clear(&out);
    envelope_begin(&out, NULL, NULL, 0);
    CHECK(slice_equals_text(buffer_slice(&out), "{}\n"));
    buffer_fini(&out);
}

TEST(damaged_envelopes_are_read_without_harm)
{
    static const char text[] = "{\"sdk\":{}}\n{\"type\":\"event\",\"length\":5}\nab\ncd\n{\"type\":\"x\"}\nabc\n";
    uint64_t state = 1;
    for (int round = 0; round < 20000; round++) {
        size_t size = sizeof(text) - 1;
        char *damaged = malloc(size);
        memcpy(damaged, text, size);
        for (int hits = 0; hits < 2; hits++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            damaged[(state >> 33) % size] = (char)(state >> 56);
        }
        (void)items_of(slice_of(damaged, size));
        free(damaged);
    }
}

TEST_MAIN()
