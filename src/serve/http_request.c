/* The parameters and the answer of a request, and the way from its question to an answer.  SPDX-License-Identifier: MIT
 */
#include "base/protobuf.h"
#include "serve/serve_private.h"
#include "serve/symbolication.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* google.rpc.Status: what a client of OTLP reads. Its code is that of gRPC; clients decide by the status of HTTP. */
static void write_otlp_error(struct request *request, const char *text)
{
    enum { STATUS_MESSAGE = 2 };
    struct json_writer json = json_writer_of(&request->answer);
    bool is_protobuf = request_has_type(request, "application/x-protobuf");
    request->content_type = is_protobuf ? "application/x-protobuf" : "application/json";
    if (is_protobuf) {
        protobuf_append_bytes(&request->answer, STATUS_MESSAGE, slice_of_text(text));
        return;
    }
    json_begin_object(&json);
    json_member_text(&json, "message", text);
    json_end_object(&json);
}

static void write_error(struct request *request, const char *text)
{
    /* A client tries again if the code is "unavailable" or "resource_exhausted". */
    static const char *const codes[STATUS_CODES_MAX] = {
        [401] = "unauthenticated", [403] = "permission_denied", [429] = "resource_exhausted", [503] = "unavailable"};
    bool is_of_connect = request->error_form == ERRORS_OF_CONNECT;
    const char *code = codes[request->status];
    struct json_writer json = json_writer_of(&request->answer);
    json_begin_object(&json);
    if (is_of_connect) {
        json_member_text(&json, "code", code ? code : "invalid_argument");
    }
    json_member_text(&json, is_of_connect ? "message" : "detail", text);
    json_end_object(&json);
    buffer_append_text(&request->answer, "\n");
    request->content_type = "application/json";
}

void answer_error(struct request *request, unsigned status, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buffer_clear(&request->answer);
    request->status = status;
    if (request->error_form == ERRORS_OF_OTLP)
        write_otlp_error(request, text);
    else
        write_error(request, text);
}

void answer_failure(struct request *request, const struct error *error)
{
    static const unsigned codes[] = {
        [STATUS_OK] = 500,          [STATUS_NOT_THIS_FORMAT] = 400, [STATUS_MALFORMED] = 400, [STATUS_TOO_LARGE] = 413,
        [STATUS_UNSUPPORTED] = 400, [STATUS_NO_MEMORY] = 503,       [STATUS_IO] = 503,        [STATUS_NOT_FOUND] = 404,
    };
    answer_error(request, codes[error->status], "%s", error->message);
}

/* Adds members that any answer may have to the object in the answer. */
static void add_members(struct request *request)
{
    struct json_writer json;
    if (!json_reopen_object(&request->answer, &json)) return;
    if (request->query.kind.is_chosen) {
        json_write_key(&json, "kind");
        kind_write_json(&request->query.kind, &json);
    }
    if (request->query.is_damaged) json_member_bool(&json, "is_damaged", true);
    if (request->query.missing_shards) json_member_bool(&json, "is_incomplete", true);
    json_end_object(&json);
    buffer_append_byte(&request->answer, '\n');
}

void answer_finish(struct request *request, const char *content_type)
{
    struct buffer *answer = &request->answer;
    const struct query *query = &request->query;
    if (strcmp(content_type, "application/json") == 0 &&
        (query->is_damaged || query->missing_shards || query->kind.is_chosen))
        add_members(request);
    if (answer->failed) {
        answer_error(request, answer->is_full ? 413 : 503, "the answer is too large; narrow the time range");
        return;
    }
    request->status = 200;
    request->content_type = content_type;
}

void answer_result(struct request *request, enum status status, const struct error *error, const char *content_type)
{
    if (status == STATUS_OK)
        answer_finish(request, content_type);
    else
        answer_failure(request, error);
}

const char *request_parameter(const struct request *request, const char *name)
{
    return query_text(&request->query, name);
}

struct slice request_slice(const struct request *request, const char *name)
{
    return slice_of_text(request_parameter(request, name));
}

static enum status check_request(void *context, struct error *error)
{
    struct request *request = context;
    if (atomic_load(&request->server->is_ending)) return error_set(error, STATUS_IO, 0, "the server is stopping");
    if (!request_is_abandoned(request)) return STATUS_OK;
    atomic_fetch_add(&request->server->cancelled, 1);
    return error_set(error, STATUS_IO, 0, "the client closed the connection");
}

/* Waits for a slow debug file. It is read to its end even if the client of this query has gone: others need it. */
static enum status wait_for_names(void *context, bool is_reader, struct error *error)
{
    struct request *request = context;
    enum status status = is_reader ? STATUS_OK : check_request(request, error);
    if (status == STATUS_OK && !query_suspend(request))
        status = error_set(error, STATUS_IO, 0, "too many queries wait for slow debug files; try again");
    return status;
}

static enum status name_places(void *context, struct profile *profile, struct error *error)
{
    struct request *request = context;
    const struct symbols_waiter waiter = {.wait = wait_for_names, .context = request};
    return symbols_name(request->server->symbols, request->project, profile, &waiter, error);
}

/* Returns the query of REQUEST, whose project is known. */
static struct query *query_of(struct request *request)
{
    static const struct query_calls calls = {.check = check_request, .name_places = name_places};
    struct query *query = &request->query;
    query->store = request->server->store;
    query->calls = &calls;
    query->context = request;
    query->project = request->project;
    query->now_ns = request->received_ns;
    return query;
}

void request_free_answer(struct request *request)
{
    kind_choice_fini(&request->query.kind);
    buffer_fini(&request->body);
    buffer_fini(&request->answer);
}

void request_query(struct request *request, query_answer *answer, const char *content_type)
{
    struct error error = {0};
    enum status status = answer(query_of(request), &request->answer, &error);
    if (status != STATUS_OK) buffer_clear(&request->answer);
    answer_result(request, status, &error, content_type);
}

bool request_select(struct request *request, struct selection *ret_selection)
{
    struct error error = {0};
    struct query *query = query_of(request);
    enum status status = selection_read(query, "", ret_selection, &error);
    bool has_kind = query->kind.wanted.size > 0;
    if (status == STATUS_OK && has_kind)
        status = kind_choose(&query->kind, query->store, &ret_selection->query, &error);
    if (status != STATUS_OK) answer_failure(request, &error);
    return status == STATUS_OK;
}

bool request_has_type(const struct request *request, const char *type)
{
    return request->content && strncasecmp(request->content, type, strlen(type)) == 0;
}

bool request_is_abandoned(struct request *request)
{
    char byte;
    if (request->socket < 0) return false;
    ssize_t size = recv(request->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno == ECONNRESET);
}

bool request_is_post(const struct request *request)
{
    return strcmp(request->method, "POST") == 0;
}
