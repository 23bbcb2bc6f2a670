/* Reads of transactions and spans what links them to profiles. One function reads a span in each of its forms: within a
 * transaction (description, timestamp, data), and sent alone (name, end_timestamp, attributes with values and types).
 * SPDX-License-Identifier: MIT */
#include "format/sentry/transaction.h"

#include "base/array.h"
#include "base/json_time.h"
#include "base/json_writer.h"

#include <stdlib.h>

/* --- Values ------------------------------------------------------------------------------------------------------- */

struct reader {
    struct json_reader json;
    struct span_list *spans; /* receives the spans and all texts */
};

/* TEXTS has room for all bytes of the document, so that nothing moves. */
static struct slice keep_text(struct buffer *texts, struct slice text)
{
    size_t first = texts->size;
    buffer_append(texts, text.data, text.size);
    return texts->failed ? slice_of(NULL, 0) : slice_of(texts->data + first, text.size);
}

/* A string, or the digits of a number; ignores anything else. */
static struct slice read_text(struct reader *reader)
{
    enum json_kind kind = json_peek(&reader->json);
    if (kind == JSON_STRING) return keep_text(&reader->spans->texts, json_string(&reader->json));
    if (kind == JSON_NUMBER) return keep_text(&reader->spans->texts, json_number(&reader->json).text);
    json_skip(&reader->json);
    return slice_of(NULL, 0);
}

/* A uuid in any spelling as 32 digits; another string is not changed. */
static struct slice read_uuid(struct reader *reader)
{
    char uuid[UUID_TEXT_SIZE];
    struct slice text = read_text(reader);
    if (!uuid_parse(text, uuid)) return text;
    reader->spans->texts.size -= text.size;
    return keep_text(&reader->spans->texts, slice_of(uuid, UUID_TEXT_SIZE - 1));
}

/* Begins the object or array that comes next. Returns false if it is another value, which is skipped. */
static bool begin_value(struct reader *reader, enum json_kind kind)
{
    bool is_of_kind = json_peek(&reader->json) == kind;
    if (!is_of_kind)
        json_skip(&reader->json);
    else if (kind == JSON_OBJECT)
        json_object_begin(&reader->json);
    else
        json_array_begin(&reader->json);
    return is_of_kind;
}

/* --- Spans -------------------------------------------------------------------------------------------------------- */

/* The value of the attribute KEY of SPAN. */
static void read_attribute(struct reader *reader, struct slice key, struct span *span)
{
    if (slice_equals_text(key, "thread.id")) {
        span->thread_id = read_text(reader);
    } else if (slice_equals_text(key, "thread.name")) {
        span->thread_name = read_text(reader);
    } else if (slice_equals_text(key, "profiler_id") || slice_equals_text(key, "sentry.profiler_id")) {
        span->profiler_id = read_uuid(reader);
    } else if (slice_equals_text(key, "sentry.release")) {
        span->release = read_text(reader);
    } else if (slice_equals_text(key, "sentry.environment")) {
        span->environment = read_text(reader);
    } else if (slice_equals_text(key, "sentry.op") && span->op.size == 0) {
        span->op = read_text(reader);
    } else {
        json_skip(&reader->json);
    }
}

/* {"thread.id": "259"} */
static void read_data(struct reader *reader, struct span *span)
{
    struct slice key;
    if (!begin_value(reader, JSON_OBJECT)) return;
    while (json_object_next(&reader->json, &key)) read_attribute(reader, key, span);
}

/* {"thread.id": {"value": "259", "type": "string"}} */
static void read_typed_attributes(struct reader *reader, struct span *span)
{
    enum { NAME_BYTES_MAX = 64 }; /* longer than those that are known */
    struct slice key, member;
    if (!begin_value(reader, JSON_OBJECT)) return;
    while (json_object_next(&reader->json, &key)) {
        uint8_t name[NAME_BYTES_MAX]; /* the next key may take the place of this one */
        size_t size = key.size < NAME_BYTES_MAX ? key.size : 0;
        if (size) memcpy(name, key.data, size);
        if (!begin_value(reader, JSON_OBJECT)) continue;
        while (json_object_next(&reader->json, &member)) {
            if (slice_equals_text(member, "value")) {
                read_attribute(reader, slice_of(name, size), span);
            } else {
                json_skip(&reader->json);
            }
        }
    }
}

static void read_span_member(struct reader *reader, struct slice key, struct span *span)
{
    if (slice_equals_text(key, "trace_id")) {
        span->trace_id = read_uuid(reader);
    } else if (slice_equals_text(key, "span_id")) {
        span->span_id = read_text(reader);
    } else if (slice_equals_text(key, "parent_span_id")) {
        span->parent_span_id = read_text(reader);
    } else if (slice_equals_text(key, "op")) {
        span->op = read_text(reader);
    } else if (slice_equals_text(key, "description") || slice_equals_text(key, "name")) {
        span->description = read_text(reader);
    } else if (slice_equals_text(key, "status")) {
        span->status = read_text(reader);
    } else if (slice_equals_text(key, "start_timestamp")) {
        span->start_ns = json_time_ns(&reader->json);
    } else if (slice_equals_text(key, "timestamp") || slice_equals_text(key, "end_timestamp")) {
        span->end_ns = json_time_ns(&reader->json);
    } else if (slice_equals_text(key, "data")) {
        read_data(reader, span);
    } else if (slice_equals_text(key, "attributes")) {
        read_typed_attributes(reader, span);
    } else if (slice_equals_text(key, "is_segment") && json_peek(&reader->json) == JSON_BOOL) {
        span->is_segment = json_bool(&reader->json);
    } else {
        json_skip(&reader->json);
    }
}

static struct span *add_span(struct reader *reader)
{
    struct span_list *spans = reader->spans;
    struct span *span = ARRAY_ADD(spans, SPANS_MAX);
    if (span)
        *span = (struct span){0};
    else
        json_reader_reject(&reader->json, spans->count == SPANS_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY,
                           "more spans than are accepted");
    return span;
}

static void read_spans(struct reader *reader)
{
    struct slice key;
    if (!begin_value(reader, JSON_ARRAY)) return;
    while (json_array_next(&reader->json)) {
        struct span *span = begin_value(reader, JSON_OBJECT) ? add_span(reader) : NULL;
        if (!span) continue;
        while (json_object_next(&reader->json, &key)) read_span_member(reader, key, span);
    }
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

static void read_profile_context(struct reader *reader, struct transaction *transaction)
{
    struct slice key;
    if (!begin_value(reader, JSON_OBJECT)) return;
    while (json_object_next(&reader->json, &key)) {
        if (slice_equals_text(key, "profiler_id")) {
            transaction->root.profiler_id = read_uuid(reader);
        } else if (slice_equals_text(key, "profile_id")) {
            transaction->profile_id = read_uuid(reader);
        } else {
            json_skip(&reader->json);
        }
    }
}

/* contexts.trace is a span except the name and the times, which the transaction has. The profiler_id of
 * contexts.profile takes precedence over its own. */
static void read_trace_context(struct reader *reader, struct span *root)
{
    struct span trace = {.start_ns = root->start_ns, .end_ns = root->end_ns, .profiler_id = root->profiler_id};
    struct slice key;
    if (!begin_value(reader, JSON_OBJECT)) return;
    while (json_object_next(&reader->json, &key)) read_span_member(reader, key, &trace);
    trace.start_ns = root->start_ns;
    trace.end_ns = root->end_ns;
    if (root->profiler_id.size) trace.profiler_id = root->profiler_id;
    *root = trace;
}

struct slice transaction_profiler_of(const struct transaction *transaction, const struct span *span)
{
    return span->profiler_id.size ? span->profiler_id : transaction->root.profiler_id;
}

static void read_contexts(struct reader *reader, struct transaction *transaction)
{
    struct slice key;
    if (!begin_value(reader, JSON_OBJECT)) return;
    while (json_object_next(&reader->json, &key)) {
        if (slice_equals_text(key, "trace")) {
            read_trace_context(reader, &transaction->root);
        } else if (slice_equals_text(key, "profile")) {
            read_profile_context(reader, transaction);
        } else {
            json_skip(&reader->json);
        }
    }
}

static void read_transaction_member(struct reader *reader, struct slice key, struct transaction *transaction)
{
    if (slice_equals_text(key, "event_id") && json_peek(&reader->json) == JSON_STRING) {
        (void)uuid_parse(json_string(&reader->json), transaction->event_id);
    } else if (slice_equals_text(key, "transaction")) {
        transaction->name = read_text(reader);
    } else if (slice_equals_text(key, "platform")) {
        transaction->platform = read_text(reader);
    } else if (slice_equals_text(key, "release")) {
        transaction->release = read_text(reader);
    } else if (slice_equals_text(key, "environment")) {
        transaction->environment = read_text(reader);
    } else if (slice_equals_text(key, "start_timestamp")) {
        transaction->root.start_ns = json_time_ns(&reader->json);
    } else if (slice_equals_text(key, "timestamp")) {
        transaction->root.end_ns = json_time_ns(&reader->json);
    } else if (slice_equals_text(key, "contexts")) {
        read_contexts(reader, transaction);
    } else if (slice_equals_text(key, "spans")) {
        read_spans(reader);
    } else {
        json_skip(&reader->json);
    }
}

/* --- Payloads ---------------------------------------------------------------------------------------------------- */

/* No string is longer than its document, except a uuid, whose hyphens are removed. */
static enum status begin_document(struct reader *reader, struct slice bytes, struct span_list *spans,
                                  struct error *error)
{
    reader->spans = spans;
    json_reader_init(&reader->json, bytes);
    if (json_peek(&reader->json) != JSON_OBJECT) return error_set(error, STATUS_MALFORMED, 0, "expected a JSON object");
    buffer_init(&spans->texts, bytes.size);
    if (!buffer_reserve(&spans->texts, bytes.size)) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for spans");
    json_object_begin(&reader->json);
    return STATUS_OK;
}

enum status transaction_decode(struct slice bytes, struct transaction *ret_transaction, struct error *error)
{
    struct transaction transaction = {0};
    struct reader reader;
    struct slice key;
    enum status status = begin_document(&reader, bytes, &transaction.spans, error);
    if (status == STATUS_OK) {
        while (json_object_next(&reader.json, &key)) read_transaction_member(&reader, key, &transaction);
        status = json_reader_finish(&reader.json, error);
    }
    json_reader_fini(&reader.json);
    if (status == STATUS_OK) {
        *ret_transaction = transaction;
    } else {
        transaction_fini(&transaction);
    }
    return status;
}

void transaction_fini(struct transaction *transaction)
{
    spans_fini(&transaction->spans);
    *transaction = (struct transaction){0};
}

enum status spans_decode(struct slice bytes, struct span_list *ret_spans, struct error *error)
{
    struct span_list spans = {0};
    struct reader reader;
    struct slice key;
    struct span alone = {0};
    bool is_list = false;
    enum status status = begin_document(&reader, bytes, &spans, error);
    while (status == STATUS_OK && json_object_next(&reader.json, &key)) {
        if (slice_equals_text(key, "items")) {
            is_list = true;
            read_spans(&reader);
        } else {
            read_span_member(&reader, key, &alone);
        }
    }
    struct span *span = status == STATUS_OK && !is_list ? add_span(&reader) : NULL;
    if (span) *span = alone;
    if (status == STATUS_OK) status = json_reader_finish(&reader.json, error);
    json_reader_fini(&reader.json);
    if (status == STATUS_OK) {
        *ret_spans = spans;
    } else {
        spans_fini(&spans);
    }
    return status;
}

void spans_fini(struct span_list *spans)
{
    free(spans->items);
    buffer_fini(&spans->texts);
    *spans = (struct span_list){0};
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* No more than 19 digits: those are read back to the nanosecond (base/json_time.h). From 2286 on to the microsecond. */
static void write_time(struct json_writer *writer, const char *key, uint64_t time_ns)
{
    bool is_long = time_ns >= 10000000000000000000u;
    json_write_key(writer, key);
    json_write_fixed(writer, is_long ? time_ns / 1000 : time_ns, is_long ? 6 : 9);
}

static void write_times(struct json_writer *writer, const struct span *span)
{
    write_time(writer, "start_timestamp", span->start_ns);
    write_time(writer, "timestamp", span->end_ns);
}

static void write_data(struct json_writer *writer, const struct span *span, bool with_profiler)
{
    json_begin_object_member(writer, "data");
    json_member_string_if_any(writer, "thread.id", span->thread_id);
    json_member_string_if_any(writer, "thread.name", span->thread_name);
    if (with_profiler) json_member_string_if_any(writer, "profiler_id", span->profiler_id);
    json_end_object(writer);
}

static void write_span_ids(struct json_writer *writer, const struct span *span)
{
    json_member_string_if_any(writer, "trace_id", span->trace_id);
    json_member_string_if_any(writer, "span_id", span->span_id);
    json_member_string_if_any(writer, "parent_span_id", span->parent_span_id);
    json_member_string_if_any(writer, "op", span->op);
    json_member_string_if_any(writer, "status", span->status);
}

static void write_contexts(struct json_writer *writer, const struct transaction *transaction)
{
    json_begin_object_member(writer, "contexts");
    json_begin_object_member(writer, "trace");
    write_span_ids(writer, &transaction->root);
    write_data(writer, &transaction->root, false);
    json_end_object(writer);
    if (transaction->root.profiler_id.size || transaction->profile_id.size) {
        json_begin_object_member(writer, "profile");
        json_member_string_if_any(writer, "profiler_id", transaction->root.profiler_id);
        json_member_string_if_any(writer, "profile_id", transaction->profile_id);
        json_end_object(writer);
    }
    json_end_object(writer);
}

static void write_spans(struct json_writer *writer, const struct transaction *transaction)
{
    json_begin_array_member(writer, "spans");
    for (size_t i = 0; i < transaction->spans.count && !writer->out->failed; i++) {
        const struct span *span = &transaction->spans.items[i];
        json_begin_object(writer);
        write_span_ids(writer, span);
        json_member_string_if_any(writer, "description", span->description);
        write_times(writer, span);
        write_data(writer, span, true);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void transaction_encode(const struct transaction *transaction, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    json_member_string_if_any(&writer, "type", slice_of_text("transaction"));
    json_member_string_if_any(&writer, "event_id", slice_of_text(transaction->event_id));
    json_member_string_if_any(&writer, "platform", transaction->platform);
    json_member_string_if_any(&writer, "transaction", transaction->name);
    json_write_key(&writer, "transaction_info");
    json_write_raw(&writer, slice_of_text("{\"source\":\"custom\"}"));
    write_times(&writer, &transaction->root);
    json_member_string_if_any(&writer, "release", transaction->release);
    json_member_string_if_any(&writer, "environment", transaction->environment);
    write_contexts(&writer, transaction);
    write_spans(&writer, transaction);
    json_end_object(&writer);
}
