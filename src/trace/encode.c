/* A complete transaction as the JSON of a `transaction` item (facts §3.4; LNK-1, LNK-2, LNK-3).
 *
 * The root and its texts always fit: 64 entries of at most 1 224 bytes, each byte at most six of JSON, are half of what
 * a server takes. Spans are taken back when they are over that. SPDX-License-Identifier: MIT */
#include "base/hex.h"
#include "trace/trace_private.h"

#include <stdio.h>

static const char *const status_names[] = {
    [TRACE_STATUS_UNSET] = NULL,
    [TRACE_STATUS_OK] = "ok",
    [TRACE_STATUS_CANCELLED] = "cancelled",
    [TRACE_STATUS_UNKNOWN_ERROR] = "unknown_error",
    [TRACE_STATUS_INVALID_ARGUMENT] = "invalid_argument",
    [TRACE_STATUS_DEADLINE_EXCEEDED] = "deadline_exceeded",
    [TRACE_STATUS_NOT_FOUND] = "not_found",
    [TRACE_STATUS_ALREADY_EXISTS] = "already_exists",
    [TRACE_STATUS_PERMISSION_DENIED] = "permission_denied",
    [TRACE_STATUS_RESOURCE_EXHAUSTED] = "resource_exhausted",
    [TRACE_STATUS_FAILED_PRECONDITION] = "failed_precondition",
    [TRACE_STATUS_ABORTED] = "aborted",
    [TRACE_STATUS_OUT_OF_RANGE] = "out_of_range",
    [TRACE_STATUS_UNIMPLEMENTED] = "unimplemented",
    [TRACE_STATUS_INTERNAL_ERROR] = "internal_error",
    [TRACE_STATUS_UNAVAILABLE] = "unavailable",
    [TRACE_STATUS_DATA_LOSS] = "data_loss",
    [TRACE_STATUS_UNAUTHENTICATED] = "unauthenticated",
};

static const char *const source_names[] = {
    [TRACE_SOURCE_CUSTOM] = "custom",       [TRACE_SOURCE_URL] = "url",
    [TRACE_SOURCE_ROUTE] = "route",         [TRACE_SOURCE_VIEW] = "view",
    [TRACE_SOURCE_COMPONENT] = "component", [TRACE_SOURCE_TASK] = "task",
};

/* The compiler chooses the enum's type, so a caller's -1 may arrive as a large number or as -1. */
bool trace_status_is_known(enum trace_status status)
{
    return (unsigned long)status < sizeof(status_names) / sizeof(*status_names);
}

bool trace_source_is_known(enum trace_source source)
{
    return (unsigned long)source < sizeof(source_names) / sizeof(*source_names);
}

static void write_member(struct json_writer *writer, const char *key, const char *text)
{
    if (!text || !*text) return;
    json_member_text(writer, key, text);
}

static void write_time(struct json_writer *writer, const char *key, uint64_t time_ns)
{
    json_write_key(writer, key);
    json_write_fixed(writer, time_ns, 9);
}

static void write_times(struct json_writer *writer, const struct trace_span *span)
{
    write_time(writer, "start_timestamp", span->start_ns + span->transaction->anchor_ns);
    write_time(writer, "timestamp", span->end_ns + span->transaction->anchor_ns);
}

static void write_span_id(struct json_writer *writer, const char *key, uint64_t id)
{
    char text[TRACE_SPAN_ID_SIZE];
    if (id == 0) return;
    hex_write_u64(text, id);
    json_member_text(writer, key, text);
}

static void write_entry(struct json_writer *writer, const struct trace_entry *entry)
{
    json_write_key_slice(writer, slice_of_text(entry->key));
    switch (entry->kind) {
    case TRACE_ENTRY_NUMBER:
        json_write_double(writer, entry->number);
        break;
    case TRACE_ENTRY_INTEGER:
        json_write_i64(writer, entry->integer);
        break;
    case TRACE_ENTRY_BOOL:
        json_write_bool(writer, entry->integer != 0);
        break;
    case TRACE_ENTRY_TEXT:
    case TRACE_ENTRY_TAG:
        json_write_text(writer, entry->text);
        break;
    }
}

static void write_entries(struct json_writer *writer, const struct trace_span *span, bool are_tags)
{
    for (size_t i = 0; i < span->entry_count; i++) {
        if ((span->entries[i].kind == TRACE_ENTRY_TAG) == are_tags) write_entry(writer, &span->entries[i]);
    }
}

static void write_tags(struct json_writer *writer, const struct trace_span *span)
{
    bool has_tags = false;
    for (size_t i = 0; i < span->entry_count; i++) has_tags |= span->entries[i].kind == TRACE_ENTRY_TAG;
    if (!has_tags) return;
    json_begin_object_member(writer, "tags");
    write_entries(writer, span, true);
    json_end_object(writer);
}

/* The thread's number is the key of thread_metadata in a chunk. */
static void write_data(struct json_writer *writer, const struct trace_span *span, const char *profiler_id)
{
    char thread_id[16];
    (void)snprintf(thread_id, sizeof(thread_id), "%d", (int)span->tid);
    json_begin_object_member(writer, "data");
    write_member(writer, "thread.id", thread_id);
    write_member(writer, "thread.name", span->thread_name);
    write_member(writer, "profiler_id", profiler_id);
    write_entries(writer, span, false);
    json_end_object(writer);
}

static void write_ids(struct json_writer *writer, const struct trace_span *span)
{
    write_member(writer, "trace_id", span->transaction->trace_id);
    write_span_id(writer, "span_id", span->id);
    write_span_id(writer, "parent_span_id", span->parent_id);
    write_member(writer, "op", span->texts);
    write_member(writer, "status", status_names[span->status]);
    write_member(writer, "origin", "manual");
}

static void write_contexts(struct json_writer *writer, const struct trace_transaction *transaction)
{
    json_begin_object_member(writer, "contexts");
    json_begin_object_member(writer, "trace");
    write_ids(writer, transaction->root);
    write_member(writer, "description", transaction->root->description);
    write_data(writer, transaction->root, NULL);
    json_end_object(writer);
    if (transaction->profiler_id[0]) {
        json_begin_object_member(writer, "profile");
        write_member(writer, "profiler_id", transaction->profiler_id);
        json_end_object(writer);
    }
    struct slice contexts = transaction->tracer->options.contexts;
    if (contexts.size > 0) json_write_raw(writer, contexts);
    json_end_object(writer);
}

static void write_user(struct json_writer *writer, const struct trace_transaction *transaction)
{
    static const char *const keys[] = {"id", "username", "email", "ip_address"};
    bool has_user = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) has_user |= transaction->user[i] != NULL;
    if (!has_user) return;
    json_begin_object_member(writer, "user");
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) write_member(writer, keys[i], transaction->user[i]);
    json_end_object(writer);
}

static void write_span(struct json_writer *writer, const struct trace_span *span)
{
    char profiler_id[UUID_TEXT_SIZE] = "";
    (void)tracer_profiler_id(span->transaction->tracer, span->profiler, profiler_id);
    json_begin_object(writer);
    write_ids(writer, span);
    write_member(writer, "description", span->description);
    write_times(writer, span);
    write_tags(writer, span);
    write_data(writer, span, profiler_id);
    json_end_object(writer);
}

/* Writes the spans as far as OUT stays below LIMIT, where room is left for the end of the object. */
static void write_spans(struct json_writer *writer, struct trace_transaction *transaction, size_t limit)
{
    json_begin_array_member(writer, "spans");
    for (struct trace_span *span = transaction->finished; span; span = span->next) {
        if (span->is_left_out) continue;
        struct json_writer before = *writer;
        size_t size = writer->out->size;
        write_span(writer, span);
        if (writer->out->failed || writer->out->size <= limit) continue;
        writer->out->size = size;
        *writer = before;
        span->is_left_out = true;
        transaction->finished_count--;
        atomic_fetch_add(&transaction->lost_over_maximum, 1);
    }
    json_end_array(writer);
}

void trace_transaction_encode(struct trace_transaction *transaction, struct buffer *out)
{
    enum { CLOSING_BYTES = 2 };
    const struct tracer_options *options = &transaction->tracer->options;
    struct json_writer writer = json_writer_of(out);
    size_t limit = out->size + TRACE_PAYLOAD_BYTES_MAX - CLOSING_BYTES;
    json_begin_object(&writer);
    write_member(&writer, "type", "transaction");
    write_member(&writer, "event_id", transaction->event_id);
    write_member(&writer, "platform", "native");
    write_member(&writer, "transaction", transaction->name[0] ? transaction->name : "<unnamed>");
    json_begin_object_member(&writer, "transaction_info");
    write_member(&writer, "source", source_names[transaction->source]);
    json_end_object(&writer);
    write_times(&writer, transaction->root);
    write_member(&writer, "release", options->release);
    write_member(&writer, "environment", *options->environment ? options->environment : "production");
    write_member(&writer, "dist", options->dist);
    write_member(&writer, "server_name", options->server_name);
    json_begin_object_member(&writer, "sdk");
    write_member(&writer, "name", "offbeat");
    write_member(&writer, "version", OFFBEAT_VERSION);
    json_end_object(&writer);
    write_user(&writer, transaction);
    write_tags(&writer, transaction->root);
    write_contexts(&writer, transaction);
    write_spans(&writer, transaction, limit);
    json_end_object(&writer);
}
