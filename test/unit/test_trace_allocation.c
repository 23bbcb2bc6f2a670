/* Whatever allocation fails, a program that traces continues, and what it makes is handed over whole, reported, or was
 * never there. The linker puts our allocator before libc's (--wrap).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "failing_allocator.h"

#include "trace/trace.h"

/* One fails, and those after it do not. */
static bool may_allocate(void)
{
    if (allocations_left < 0 || allocations_left-- > 0) return true;
    has_failed = true;
    return false;
}

static size_t spans_seen, transactions_seen; /* handed over or reported */

static void on_finished(void *data, struct trace_transaction *transaction)
{
    struct buffer out = {.maximum = 2 * TRACE_PAYLOAD_BYTES_MAX};
    struct json_writer writer = json_writer_of(&out);
    transactions_seen++;
    spans_seen += trace_transaction_facts(transaction).span_count + 1;
    trace_transaction_write_context(transaction, &writer);
    trace_transaction_encode(transaction, &out);
    buffer_fini(&out);
    trace_transaction_free(transaction);
}

static void on_discarded(void *data, const char *reason, const char *category, uint64_t quantity)
{
    *(strcmp(category, "span") == 0 ? &spans_seen : &transactions_seen) += quantity;
}

/* False if there was not even a tracer. */
static bool trace_something(const struct trace_headers *headers)
{
    struct buffer out = {.maximum = TRACE_BAGGAGE_BYTES_MAX};
    struct trace_incoming incoming = {0};
    struct tracer *tracer =
        tracer_new(&(struct tracer_options){.release = "a@1",
                                            .has_traces_sample_rate = true,
                                            .traces_sample_rate = 1,
                                            .listener = {.finished = on_finished, .discarded = on_discarded}});
    trace_incoming_read(&incoming, headers, &(struct trace_continuation){0});
    struct trace_span *root =
        trace_transaction_start(tracer, &(struct trace_start){.name = "n", .incoming = &incoming});
    struct trace_span *child = trace_span_start_child(root, "op", "description");
    (void)trace_span_enter(child);
    (void)trace_span_set_text(child, "key", "value");
    (void)trace_span_set_tag(root, "key", "value");
    trace_span_set_description(child, "another");
    trace_span_set_transaction_name(root, "renamed", TRACE_SOURCE_TASK);
    (void)trace_span_baggage(child, slice_of_text("other=1"), &out);
    trace_span_finish(trace_span_start("inner", NULL));
    trace_span_finish(child);
    trace_span_finish(root);
    tracer_free(tracer);
    trace_incoming_fini(&incoming);
    buffer_fini(&out);
    return tracer;
}

TEST(tracing_survives_each_failed_allocation_and_keeps_its_counts)
{
    static const struct trace_headers none,
        some = {.sentry_trace = {(const uint8_t *)"8450ef61f4aa4d4d976c50a41715229d-abd71dabf8bde62b-1", 51},
                .baggage = {(const uint8_t *)"sentry-trace_id=8450ef61f4aa4d4d976c50a41715229d,sentry-release=r", 65}};
    long failures = 0;
    for (int with_parent = 0; with_parent < 2; with_parent++) {
        has_failed = true;
        for (long n = 0; has_failed; n++) {
            spans_seen = transactions_seen = 0;
            has_failed = false;
            allocations_left = n;
            bool is_traced = trace_something(with_parent ? &some : &none);
            allocations_left = -1;
            failures += has_failed;
            CHECK_UINT(transactions_seen, is_traced);
            CHECK(spans_seen <= 3 && (spans_seen > 0) == is_traced);
            if (!has_failed) CHECK_UINT(spans_seen, 3);
        }
    }
    CHECK(failures > 15);
}

TEST_MAIN()
