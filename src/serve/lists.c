/* Answers that list what the store has.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct json_writer json;
    size_t count, limit;
    uint64_t skipped, to_skip; /* entries of the pages before */
    struct buffer last;        /* value of the last entry, in a list of values */
    bool is_cut, only_transactions;
    struct span_choice spans;
    struct store_query query;
    struct error error;
};

enum { LAST_BYTES_MAX = 1 << 16 };

/* False if the next entry is one of a page before, or if the list is full: then it is cut. */
static bool begin_entry(struct list *list)
{
    bool is_before = list->skipped < list->to_skip;
    list->skipped += is_before;
    list->is_cut = !is_before && list->count == list->limit;
    if (is_before || list->is_cut) return false;
    list->count++;
    json_begin_object(&list->json);
    return true;
}

static bool end_entry(struct list *list)
{
    json_end_object(&list->json);
    return !list->json.out->failed;
}

/* "after" is the member "next" of the page before: the last value, or how many entries the pages have. */
static bool read_after(struct request *request, bool has_values, struct list *list)
{
    const char *after = request_parameter(request, "after");
    if (!after) return true;
    if (has_values) {
        list->query.after = slice_of_text(after);
        return true;
    }
    size_t digits = strspn(after, "0123456789");
    bool is_number = digits > 0 && digits < 19 && after[digits] == '\0';
    if (is_number)
        list->to_skip = strtoull(after, NULL, 10);
    else
        answer_error(request, 400, "after: the member next of the page before is needed");
    return is_number;
}

/* Reads the parameters and begins {"NAME":[. False: answered. */
static bool begin_list(struct request *request, const char *name, bool has_values, struct list *list)
{
    struct selection selection;
    const char *limit = request_parameter(request, "limit");
    if (!request_select(request, &selection)) return false;
    *list = (struct list){.json = json_writer_of(&request->answer),
                          .limit = SERVE_LIST_MAX,
                          .spans = selection.spans,
                          .query = selection.query};
    if (limit && strtoull(limit, NULL, 10) < SERVE_LIST_MAX) list->limit = (size_t)strtoull(limit, NULL, 10);
    buffer_init(&list->last, LAST_BYTES_MAX);
    if (!read_after(request, has_values, list)) return false;
    json_begin_object(&list->json);
    json_begin_array_member(&list->json, name);
    return true;
}

static void end_list(struct request *request, struct list *list, enum status status)
{
    char number[24];
    struct slice next = buffer_slice(&list->last);
    json_end_array(&list->json);
    json_member_bool(&list->json, "is_cut", list->is_cut);
    if (next.data == NULL) {
        (void)snprintf(number, sizeof(number), "%" PRIu64, list->skipped + list->count);
        next = slice_of_text(number);
    }
    if (list->is_cut && list->count > 0) json_member_string(&list->json, "next", next);
    json_end_object(&list->json);
    answer_result(request, status, &list->error, "application/json");
    buffer_fini(&list->last);
}

/* --- Projects ----------------------------------------------------------------------------------------------------- */

/* Writes PROJECT without its key: a reader need not be able to write. */
static bool write_project(void *context, const struct store_project *project)
{
    struct list *list = context;
    if (!begin_entry(list)) return !list->is_cut;
    json_member_u64(&list->json, "id", project->id);
    json_member_string(&list->json, "name", slice_of_text(project->name));
    return end_entry(list);
}

void list_projects(struct request *request)
{
    struct list list;
    if (!begin_list(request, "projects", false, &list)) return;
    enum status status = store_each_project(request->server->store, write_project, &list, &list.error);
    end_list(request, &list, status);
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

static bool write_chunk(void *context, const struct store_chunk *chunk)
{
    static const char *const kinds[] = {
        [STORE_CHUNK] = "chunk", [STORE_PROFILE] = "profile", [STORE_FILE] = "file", [STORE_TRACE] = "trace"};
    struct list *list = context;
    struct json_writer *json = &list->json;
    if (!begin_entry(list)) return !list->is_cut;
    bool is_known = chunk->kind >= STORE_CHUNK && chunk->kind <= STORE_TRACE;
    json_member_string(json, "kind", slice_of_text(is_known ? kinds[chunk->kind] : "unknown"));
    json_member_string(json, "profiler", chunk->profiler_id);
    json_member_string(json, "chunk", chunk->chunk_id);
    json_member_string(json, "service", chunk->service);
    json_member_string(json, "environment", chunk->environment);
    json_member_string(json, "release", chunk->release);
    json_member_string(json, "host", chunk->host);
    json_member_string(json, "platform", chunk->platform);
    json_member_time(json, "start", chunk->start_ns);
    json_member_time(json, "end", chunk->end_ns);
    json_member_time(json, "received", chunk->received_ns);
    json_member_u64(json, "samples", chunk->sample_count);
    json_member_u64(json, "bytes", chunk->payload.size);
    return end_entry(list);
}

void list_chunks(struct request *request)
{
    struct list list;
    if (!begin_list(request, "chunks", false, &list)) return;
    enum status status = store_each_chunk(request->server->store, &list.query, write_chunk, &list, &list.error);
    end_list(request, &list, status);
}

static bool copy_payload(void *context, const struct store_chunk *chunk)
{
    buffer_append(context, chunk->payload.data, chunk->payload.size);
    return false;
}

/* The payload as it was sent. */
void show_raw(struct request *request)
{
    struct selection selection;
    struct error error = {0};
    if (!request_select(request, &selection)) return;
    selection.query.with_payload = true;
    if (selection.query.chunk_id.size == 0) {
        answer_error(request, 400, "chunk is needed: the id of a chunk");
        return;
    }
    if (store_each_chunk(request->server->store, &selection.query, copy_payload, &request->answer, &error) != STATUS_OK)
        answer_failure(request, &error);
    else if (request->answer.size == 0)
        answer_error(request, 404, "there is no such chunk");
    else
        answer_finish(request, "application/octet-stream");
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static bool write_value(void *context, const struct store_value *value)
{
    struct list *list = context;
    if (!begin_entry(list)) return false;
    buffer_clear(&list->last);
    (void)buffer_reserve(&list->last, 1); /* the value may be empty */
    buffer_append(&list->last, value->value.data, value->value.size);
    json_member_string(&list->json, "name", value->value);
    json_member_time(&list->json, "first", value->first_ns);
    json_member_time(&list->json, "last", value->last_ns);
    json_member_u64(&list->json, "chunks", value->chunk_count);
    json_member_u64(&list->json, "samples", value->sample_count);
    return end_entry(list);
}

void list_values(struct request *request)
{
    static const char *const names[STORE_COLUMNS] = {
        [STORE_SERVICE] = "services", [STORE_ENVIRONMENT] = "environments", [STORE_RELEASE] = "releases",
        [STORE_HOST] = "hosts",       [STORE_PLATFORM] = "platforms",       [STORE_PROFILER] = "sessions",
    };
    struct list list;
    unsigned column = 0;
    while (column + 1 < STORE_COLUMNS && strcmp(names[column], request->route) != 0) column++;
    if (!begin_list(request, names[column], true, &list)) return;
    enum status status = store_each_value(request->server->store, &list.query, (enum store_column)column, write_value,
                                          &list, &list.error);
    end_list(request, &list, status);
}

/* --- Spans -------------------------------------------------------------------------------------------------------- */

static bool write_span(void *context, const struct store_span *span)
{
    struct list *list = context;
    struct json_writer *json = &list->json;
    if (list->only_transactions && !span->is_transaction) return true;
    if (!span_is_chosen(&list->spans, span)) return true;
    if (!begin_entry(list)) return !list->is_cut;
    json_member_string(json, "trace", span->trace_id);
    json_member_string(json, "span", span->span_id);
    json_member_string(json, "name", span->name);
    json_member_string(json, "op", span->op);
    json_member_string(json, "service", span->service);
    json_member_string(json, "environment", span->environment);
    json_member_string(json, "release", span->release);
    json_member_string(json, "profiler", span->profiler_id);
    json_member_string(json, "profile", span->profile_id);
    json_member_string(json, "thread", span->thread_id);
    json_member_time(json, "start", span->start_ns);
    json_member_time(json, "end", span->end_ns);
    json_member_bool(json, "is_transaction", span->is_transaction);
    return end_entry(list);
}

void list_spans(struct request *request)
{
    struct list list;
    bool only_transactions = strcmp(request->route, "transactions") == 0;
    if (!begin_list(request, only_transactions ? "transactions" : "spans", false, &list)) return;
    list.only_transactions = only_transactions;
    enum status status = store_each_span(request->server->store, &list.query, write_span, &list, &list.error);
    end_list(request, &list, status);
}

/* --- What came of the items --------------------------------------------------------------------------------------- */

static bool write_rejected(void *context, const struct store_rejected *rejected)
{
    struct list *list = context;
    struct json_writer *json = &list->json;
    if (!begin_entry(list)) return !list->is_cut;
    json_member_time(json, "received", rejected->received_ns);
    json_member_string(json, "type", rejected->type);
    json_member_string(json, "reason", rejected->reason);
    json_member_string(json, "place", rejected->place);
    json_member_string(json, "found", rejected->found);
    json_member_string(json, "expected", rejected->expected);
    json_member_string(json, "sdk", rejected->sdk);
    json_member_string(json, "header", rejected->header);
    json_member_u64(json, "bytes", rejected->payload.size);
    return end_entry(list);
}

void list_rejected(struct request *request)
{
    struct list list;
    if (!begin_list(request, "rejected", false, &list)) return;
    if (list.query.to_ns == 0) list.query.to_ns = UINT64_MAX;
    enum status status = store_each_rejected(request->server->store, &list.query, write_rejected, &list, &list.error);
    end_list(request, &list, status);
}

static bool write_outcome(void *context, const struct store_outcome *outcome)
{
    struct list *list = context;
    if (!begin_entry(list)) return !list->is_cut;
    json_member_string(&list->json, "outcome", outcome->outcome);
    json_member_string(&list->json, "category", outcome->category);
    json_member_string(&list->json, "reason", outcome->reason);
    json_member_u64(&list->json, "quantity", outcome->quantity);
    return end_entry(list);
}

void list_outcomes(struct request *request)
{
    struct list list;
    if (!begin_list(request, "outcomes", false, &list)) return;
    enum status status = store_each_outcome(request->server->store, &list.query, write_outcome, &list, &list.error);
    end_list(request, &list, status);
}
