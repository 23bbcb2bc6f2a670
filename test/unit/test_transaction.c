/* Links of transactions and spans to profiles, and client reports (LNK-1…3, ENV-2; facts §2.7, §3.4).
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "format/sentry/client_report.h"
#include "format/sentry/transaction.h"

#define CHECK_SLICE(slice, text) CHECK(slice_equals_text((slice), (text)))

static const char transaction_text[] =
    "{\"type\":\"transaction\",\"event_id\":\"2D226BCF-2A51-4528-ADC1-9037A6E43877\",\"platform\":\"python\","
    "\"transaction\":\"GET "
    "\\/\",\"release\":\"a@1\",\"environment\":null,\"start_timestamp\":\"2023-11-14T22:13:20.25Z\","
    "\"contexts\":{\"trace\":{\"trace_id\":\"8450ef61f4aa4d4d976c50a41715229d\",\"span_id\":\"abd71dabf8bde62b\","
    "\"parent_span_id\":null,\"op\":\"task\",\"status\":\"ok\",\"data\":{\"thread.id\":\"259\",\"thread.name\":"
    "\"main\","
    "\"other\":[1]}},\"profile\":{\"profiler_id\":\"396DB369-2B77-46B8-8F60-9446F08703AE\"},\"os\":{}},"
    "\"timestamp\":1700000021.5,\"spans\":[{\"trace_id\":\"8450ef61f4aa4d4d976c50a41715229d\",\"span_id\":\"a1\","
    "\"parent_span_id\":\"abd71dabf8bde62b\",\"op\":\"db\",\"description\":\"SELECT "
    "1\",\"start_timestamp\":1700000020.5,"
    "\"timestamp\":1700000021,\"status\":\"ok\",\"data\":{\"thread.id\":260,\"profiler_id\":"
    "\"71bba98d90b545c39f2ae73f702d7ef4\"}},{}]}";

static void check_transaction(const struct transaction *transaction)
{
    CHECK_TEXT(transaction->event_id, "2d226bcf2a514528adc19037a6e43877");
    CHECK_SLICE(transaction->name, "GET /");
    CHECK_SLICE(transaction->platform, "python");
    CHECK_SLICE(transaction->release, "a@1");
    CHECK_SLICE(transaction->environment, "");
    CHECK_SLICE(transaction->root.trace_id, "8450ef61f4aa4d4d976c50a41715229d");
    CHECK_SLICE(transaction->root.span_id, "abd71dabf8bde62b");
    CHECK_SLICE(transaction->root.parent_span_id, "");
    CHECK_SLICE(transaction->root.op, "task");
    CHECK_SLICE(transaction->root.status, "ok");
    CHECK_UINT(transaction->root.start_ns, 1700000000250000000u);
    CHECK_UINT(transaction->root.end_ns, 1700000021500000000u);
    CHECK_SLICE(transaction->root.profiler_id, "396db3692b7746b88f609446f08703ae");
    CHECK_SLICE(transaction->root.thread_id, "259");
    CHECK_SLICE(transaction->root.thread_name, "main");
    CHECK_UINT(transaction->spans.count, 2);
    const struct span *span = &transaction->spans.items[0];
    CHECK_SLICE(span->span_id, "a1");
    CHECK_SLICE(span->description, "SELECT 1");
    CHECK_SLICE(span->thread_id, "260");
    CHECK_SLICE(span->profiler_id, "71bba98d90b545c39f2ae73f702d7ef4");
    CHECK_UINT(span->end_ns, 1700000021000000000u);
    CHECK_SLICE(transaction->spans.items[1].thread_id, "");
    /* LNK-5 */
    CHECK_SLICE(transaction_profiler_of(transaction, span), "71bba98d90b545c39f2ae73f702d7ef4");
    CHECK_SLICE(transaction_profiler_of(transaction, &transaction->spans.items[1]), "396db3692b7746b88f609446f08703ae");
}

TEST(reads_profiler_and_thread_of_transaction_and_spans_LNK_1_LNK_2_LNK_3)
{
    struct transaction transaction;
    CHECK_UINT(transaction_decode(slice_of_text(transaction_text), &transaction, NULL), STATUS_OK);
    check_transaction(&transaction);
    transaction_fini(&transaction);
}

TEST(a_transaction_that_was_written_reads_back_LNK_1_LNK_2_LNK_3)
{
    struct transaction transaction, again;
    struct buffer out;
    buffer_init(&out, 1 << 14);
    CHECK_UINT(transaction_decode(slice_of_text(transaction_text), &transaction, NULL), STATUS_OK);
    transaction_encode(&transaction, &out);
    CHECK(!out.failed);
    CHECK_UINT(transaction_decode(buffer_slice(&out), &again, NULL), STATUS_OK);
    check_transaction(&again);
    transaction_fini(&again);
    transaction_fini(&transaction);
    buffer_fini(&out);
}

TEST(the_latest_times_too_are_written_as_they_are_read)
{
    static const char text[] = "{\"start_timestamp\":9999999999.987654321,\"timestamp\":17000000000.2}";
    struct transaction transaction;
    struct buffer out;
    buffer_init(&out, 1 << 10);
    CHECK_UINT(transaction_decode(slice_of_text(text), &transaction, NULL), STATUS_OK);
    transaction_encode(&transaction, &out);
    transaction_fini(&transaction);
    CHECK_UINT(transaction_decode(buffer_slice(&out), &transaction, NULL), STATUS_OK);
    CHECK_UINT(transaction.root.start_ns, 9999999999987654321u);
    CHECK_UINT(transaction.root.end_ns, 17000000000200000000u);
    transaction_fini(&transaction);
    buffer_fini(&out);
}

TEST(members_of_other_types_are_passed_over)
{
    struct transaction transaction;
    static const char text[] =
        "{\"event_id\":7,\"transaction\":[],\"contexts\":{\"trace\":[],\"profile\":\"x\"},\"spans\":{},"
        "\"start_timestamp\":null,\"timestamp\":\"soon\"}";
    CHECK_UINT(transaction_decode(slice_of_text(text), &transaction, NULL), STATUS_OK);
    CHECK_TEXT(transaction.event_id, "");
    CHECK_UINT(transaction.root.start_ns | transaction.root.end_ns, 0);
    CHECK_UINT(transaction.spans.count, 0);
    transaction_fini(&transaction);
    CHECK_UINT(transaction_decode(slice_of_text("[]"), &transaction, NULL), STATUS_MALFORMED);
    CHECK_UINT(transaction_decode(slice_of_text("{\"spans\":[{]}"), &transaction, NULL), STATUS_MALFORMED);
}

TEST(more_spans_than_are_accepted_are_rejected)
{
    struct transaction transaction;
    struct buffer text;
    buffer_init(&text, 1 << 20);
    buffer_append_text(&text, "{\"spans\":[{}");
    for (int i = 1; i < SPANS_MAX; i++) buffer_append_text(&text, ",{}");
    size_t size = text.size;
    buffer_append_text(&text, "]}");
    CHECK_UINT(transaction_decode(buffer_slice(&text), &transaction, NULL), STATUS_OK);
    CHECK_UINT(transaction.spans.count, SPANS_MAX);
    transaction_fini(&transaction);
    text.size = size;
    buffer_append_text(&text, ",{}]}");
    CHECK_UINT(transaction_decode(buffer_slice(&text), &transaction, NULL), STATUS_TOO_LARGE);
    buffer_fini(&text);
}

TEST(spans_that_are_sent_alone_are_read_in_both_forms_LNK_3)
{
    struct span_list spans;
    static const char list[] =
        "{\"version\":2,\"items\":[{\"name\":\"GET\",\"span_id\":\"b1\",\"trace_id\":"
        "\"4b25bc58f14243d8b208d1e22a054164\","
        "\"start_timestamp\":1700000000.5,\"end_timestamp\":1700000001.5,\"is_segment\":true,\"status\":\"ok\","
        "\"attributes\":{"
        "\"sentry.op\":{\"value\":\"task\",\"type\":\"string\"},\"thread\\u002eid\":{\"type\":\"string\",\"value\":"
        "\"0\"},"
        "\"sentry.profiler_id\":{\"value\":\"df2f6f9c51b0480ab04363e5ca6b3b98\",\"type\":\"string\"},\"n\":7}},{}]}";
    CHECK_UINT(spans_decode(slice_of_text(list), &spans, NULL), STATUS_OK);
    CHECK_UINT(spans.count, 2);
    CHECK_SLICE(spans.items[0].description, "GET");
    CHECK_SLICE(spans.items[0].op, "task");
    CHECK_SLICE(spans.items[0].thread_id, "0");
    CHECK_SLICE(spans.items[0].profiler_id, "df2f6f9c51b0480ab04363e5ca6b3b98");
    CHECK(spans.items[0].is_segment && !spans.items[1].is_segment);
    CHECK_UINT(spans.items[0].end_ns, 1700000001500000000u);
    spans_fini(&spans);
    CHECK_UINT(
        spans_decode(slice_of_text("{\"span_id\":\"b1\",\"op\":\"db\",\"data\":{\"thread.id\":\"9\"}}"), &spans, NULL),
        STATUS_OK);
    CHECK_UINT(spans.count, 1);
    CHECK_SLICE(spans.items[0].op, "db");
    CHECK_SLICE(spans.items[0].thread_id, "9");
    spans_fini(&spans);
    CHECK_UINT(spans_decode(slice_of_text("7"), &spans, NULL), STATUS_MALFORMED);
}

TEST(a_client_report_says_what_was_not_sent_and_why_ENV_2)
{
    struct client_report report;
    static const char text[] = "{\"timestamp\":\"2023-11-14T22:13:20Z\",\"discarded_events\":["
                               "{\"reason\":\"queue_overflow\",\"category\":\"profile_chunk\",\"quantity\":3},"
                               "{\"reason\":\"bad mood\",\"category\":\"span\",\"quantity\":5,\"x\":null}]}";
    CHECK_UINT(client_report_decode(slice_of_text(text), &report, NULL), STATUS_OK);
    CHECK_UINT(report.time_ns, 1700000000000000000u);
    CHECK_UINT(report.count, 2);
    CHECK_TEXT(report.items[0].reason, "queue_overflow");
    CHECK_TEXT(report.items[0].category, "profile_chunk");
    CHECK_UINT(report.items[0].quantity, 3);
    CHECK(report.items[0].is_known_reason && !report.items[1].is_known_reason);
    client_report_fini(&report);
    CHECK_UINT(client_report_decode(slice_of_text("{\"timestamp\":1700000000.5}"), &report, NULL), STATUS_OK);
    CHECK_UINT(report.time_ns, 1700000000500000000u);
    client_report_fini(&report);
    CHECK_UINT(client_report_decode(slice_of_text("{\"discarded_events\":[{\"quantity\":-1}]}"), &report, NULL),
               STATUS_MALFORMED);
    CHECK_UINT(client_report_decode(slice_of_text("[]"), &report, NULL), STATUS_MALFORMED);
}

/* Sanitizers see what is read beside the bytes. */
TEST(damaged_payloads_are_read_or_rejected)
{
    char damaged[sizeof(transaction_text)];
    unsigned read = 0, rejected = 0;
    uint64_t state = 1;
    for (int round = 0; round < 10000; round++) {
        struct transaction transaction;
        struct span_list spans;
        struct client_report report;
        memcpy(damaged, transaction_text, sizeof(damaged));
        state = state * 6364136223846793005u + 1442695040888963407u;
        damaged[(state >> 33) % (sizeof(damaged) - 1)] = (char)(state >> 56);
        struct slice bytes = slice_of(damaged, sizeof(damaged) - 1);
        struct error error = {0};
        if (transaction_decode(bytes, &transaction, &error) == STATUS_OK) {
            CHECK(transaction.spans.count <= 2);
            read++;
            transaction_fini(&transaction);
        } else {
            CHECK(error.status == STATUS_MALFORMED && error.offset <= bytes.size && error.message[0] != '\0');
            rejected++;
        }
        if (spans_decode(bytes, &spans, NULL) == STATUS_OK) spans_fini(&spans);
        if (client_report_decode(bytes, &report, NULL) == STATUS_OK) client_report_fini(&report);
    }
    CHECK(read > 1000 && rejected > 1000);
}

TEST_MAIN()
