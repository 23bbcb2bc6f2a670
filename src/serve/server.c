/* Connections, requests that arrive, and maintenance.  SPDX-License-Identifier: MIT */
#include "page/page.h"
#include "serve/alerts.h"
#include "serve/debug_uploads.h"
#include "serve/serve_private.h"
#include "serve/symbolication.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* Set before the first connection. */
static const struct http_library *http;

/* --- A request ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct request *request = context;
    struct query *query = &request->query;
    if (query->parameter_count == QUERY_PARAMETERS_MAX) return MHD_NO;
    struct parameter *parameter = &query->parameters[query->parameter_count];
    parameter->name = strdup(name);
    parameter->value = strdup(value ? value : "");
    if (!parameter->name || !parameter->value) {
        free(parameter->name);
        free(parameter->value);
        return MHD_NO;
    }
    query->parameter_count++;
    return MHD_YES;
}

static char *copy_header(struct MHD_Connection *connection, const char *name)
{
    const char *value = http->lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value ? strdup(value) : NULL;
}

static struct request *request_new(struct server *server, struct MHD_Connection *connection, const char *method,
                                   const char *path)
{
    struct request *request = calloc(1, sizeof(*request));
    if (!request) return NULL;
    request->server = server;
    request->connection = connection;
    request->method = strdup(method);
    request->path = strdup(path);
    request->sentry_auth = copy_header(connection, "X-Sentry-Auth");
    request->authorization = copy_header(connection, "Authorization");
    request->encoding = copy_header(connection, "Content-Encoding");
    request->content = copy_header(connection, "Content-Type");
    request->begun_ns = clock_monotonic_ns();
    request->received_ns = clock_utc_ns();
    request->status = 200;
    const union MHD_ConnectionInfo *info = http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    request->socket = info ? info->connect_fd : -1;
    info = http->get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    request->is_local = info && info->client_addr && info->client_addr->sa_family == AF_UNIX;
    info = http->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->place = info ? info->socket_context : NULL;
    buffer_init(&request->body, SERVE_BODY_BYTES_MAX);
    buffer_init(&request->answer, ANSWER_BYTES_MAX);
    (void)http->get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, request);
    atomic_fetch_add(&server->connections, 1);
    return request;
}

static void uncount_body(struct request *request)
{
    atomic_fetch_sub(&request->server->body_bytes, request->counted_bytes);
    if (request->is_unauthenticated) atomic_fetch_sub(&request->server->unauthenticated_bytes, request->counted_bytes);
    request->counted_bytes = 0;
}

static void request_free(struct request *request)
{
    uncount_body(request);
    atomic_fetch_sub(&request->server->connections, 1);
    for (size_t i = 0; i < request->query.parameter_count; i++) {
        free(request->query.parameters[i].name);
        free(request->query.parameters[i].value);
    }
    free(request->method);
    free(request->path);
    free(request->sentry_auth);
    free(request->authorization);
    free(request->encoding);
    free(request->content);
    request_free_answer(request);
    free(request);
}

/* --- The answer --------------------------------------------------------------------------------------------------- */

static void add_cross_origin_headers(struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {"Access-Control-Allow-Origin", "*"},
        {"Access-Control-Allow-Methods", "POST"},
        {"Access-Control-Allow-Headers",
         "x-sentry-auth, x-requested-with, x-forwarded-for, origin, referer, accept, content-type, authentication, "
         "authorization, content-encoding, transfer-encoding"},
        {"Access-Control-Expose-Headers", "x-sentry-error, x-sentry-rate-limits, retry-after"},
        {"Access-Control-Max-Age", "3600"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)http->add_response_header(response, headers[i][0], headers[i][1]);
}

/* Names of files have a hash of their content, so a browser may keep them. */
static void add_page_headers(const struct request *request, struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        {"Content-Encoding", "gzip"},
        {"Content-Security-Policy", PAGE_POLICY},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)http->add_response_header(response, headers[i][0], headers[i][1]);
    (void)http->add_response_header(response, "Cache-Control",
                                    request->is_kept ? "public, max-age=31536000, immutable" : "no-store");
}

/* All categories of the key; an SDK that knows no such header waits for Retry-After. */
static void add_retry_headers(const struct request *request, struct MHD_Response *response)
{
    enum { USUAL_SECONDS = 5 };
    char text[64];
    unsigned seconds = request->retry_seconds ? request->retry_seconds : USUAL_SECONDS;
    (void)snprintf(text, sizeof(text), "%u", seconds);
    (void)http->add_response_header(response, "Retry-After", text);
    if (request->status != 429) return;
    (void)snprintf(text, sizeof(text), "%u::key:too_many_requests", seconds);
    (void)http->add_response_header(response, "X-Sentry-Rate-Limits", text);
}

static void add_kind_header(const struct request *request, struct MHD_Response *response)
{
    struct buffer text;
    buffer_init(&text, 4 * KINDS_TEXT_MAX);
    kind_append_header(&request->query.kind, &text);
    buffer_append_byte(&text, '\0');
    if (!text.failed) (void)http->add_response_header(response, "X-Offbeat-Kind", (const char *)text.data);
    buffer_fini(&text);
}

/* Adds "X-Offbeat-Incomplete: shard 2, shard 3". */
static void add_incomplete_header(const struct request *request, struct MHD_Response *response)
{
    enum { TEXT_BYTES_MAX = 32 * 16 };
    struct buffer text = {.maximum = TEXT_BYTES_MAX};
    for (int shard = 0; shard < 32; shard++) {
        if (request->query.missing_shards >> shard & 1)
            buffer_append_format(&text, "%sshard %d", text.size > 0 ? ", " : "", shard + 1);
    }
    buffer_append_byte(&text, '\0');
    if (!text.failed) (void)http->add_response_header(response, "X-Offbeat-Incomplete", (const char *)text.data);
    buffer_fini(&text);
}

static enum MHD_Result send_answer(struct request *request)
{
    static char nothing[1];
    struct buffer *answer = &request->answer;
    struct MHD_Response *response =
        answer->size ? http->create_response_from_buffer(answer->size, answer->data, MHD_RESPMEM_MUST_FREE)
                     : http->create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    if (answer->size) *answer = (struct buffer){.maximum = ANSWER_BYTES_MAX};
    if (request->content_type) (void)http->add_response_header(response, "Content-Type", request->content_type);
    if (request->is_page)
        add_page_headers(request, response);
    else
        (void)http->add_response_header(response, "Cache-Control", "no-store");
    (void)http->add_response_header(response, "X-Content-Type-Options", "nosniff");
    /* Only programs in a browser send from another origin: nobody else's page may read profiles. */
    if (request->allows_origins) add_cross_origin_headers(response);
    if (request->query.is_damaged) (void)http->add_response_header(response, "X-Offbeat-Damaged", "true");
    if (request->query.missing_shards) add_incomplete_header(request, response);
    if (request->query.kind.is_chosen && request->status == 200) add_kind_header(request, response);
    if (request->asks_for_login)
        (void)http->add_response_header(response, "WWW-Authenticate", "Basic realm=\"offbeat\"");
    /* go tool pprof shows the body of an error only with these. */
    if (request->status >= 400) (void)http->add_response_header(response, "X-Go-Pprof", "1");
    if (request->status == 503 || request->status == 429) add_retry_headers(request, response);
    if (request->state == REQUEST_REJECTED) (void)http->add_response_header(response, "Connection", "close");
    enum MHD_Result result = http->queue_response(request->connection, request->status, response);
    http->destroy_response(response);
    if (request->status < STATUS_CODES_MAX) atomic_fetch_add(&request->server->answers[request->status], 1);
    return result;
}

/* --- Arrival ------------------------------------------------------------------------------------------------------ */

static void reject_body(struct request *request, unsigned status, const char *detail)
{
    answer_error(request, status, "%s", detail);
    request->state = REQUEST_REJECTED;
}

/* Fields of a header that decide where its request ends and whom it is for. */
struct framing {
    unsigned hosts, lengths, encodings; /* fields Host, Content-Length and Transfer-Encoding */
    bool has_bad_name, is_chunked;
};

static enum MHD_Result read_framing(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct framing *framing = context;
    static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    framing->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->encodings++;
        framing->is_chunked = value && strcasecmp(value, "chunked") == 0;
    }
    framing->has_bad_name |= name[0] == '\0' || name[strspn(name, token)] != '\0';
    return MHD_YES;
}

/* Rejects a request of which a proxy may see another end or host than this server (RFC 9112, 3.2, 5.1 and 6.3): what
 * follows it would be a hidden request. */
static bool has_clear_framing(struct request *request, const char *version)
{
    struct framing framing = {0};
    (void)http->get_connection_values(request->connection, MHD_HEADER_KIND, read_framing, &framing);
    const char *problem = NULL;
    if (framing.has_bad_name)
        problem = "the name of a header field has a blank or another wrong character";
    else if (framing.hosts > 1 || (framing.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0))
        problem = "one Host field is needed";
    else if (framing.lengths > 1)
        problem = "there are two Content-Length fields";
    else if (framing.lengths && framing.encodings)
        problem = "there are Content-Length and Transfer-Encoding";
    else if (framing.encodings > 1 || (framing.encodings && !framing.is_chunked))
        problem = "the Transfer-Encoding is not chunked";
    if (problem) reject_body(request, 400, problem);
    return !problem;
}

/* Checks the header of a request before its body arrives. */
static void begin(struct request *request, const char *version)
{
    if (!request->method || !request->path) {
        reject_body(request, 503, "not enough memory");
        return;
    }
    if (!has_clear_framing(request, version)) return;
    const char *text = http->lookup_connection_value(request->connection, MHD_HEADER_KIND, "Content-Length");
    unsigned long long length = text ? strtoull(text, NULL, 10) : 0;
    request->expected_bytes = length < SERVE_EXPECTED_BYTES_MAX ? (size_t)length : SERVE_EXPECTED_BYTES_MAX;
    if (length > SERVE_BODY_BYTES_MAX)
        reject_body(request, 413, "the body is larger than 40 MiB");
    else if (!request_check_early(request))
        request->state = REQUEST_REJECTED;
}

/* False if there is no room: bodies without a key in front of them have a small part of it. */
static bool count_bytes(struct request *request, size_t size)
{
    struct server *server = request->server;
    request->is_unauthenticated = !request->has_key;
    request->counted_bytes += size;
    size_t all = atomic_fetch_add(&server->body_bytes, size) + size, unauthenticated = 0;
    if (request->is_unauthenticated) unauthenticated = atomic_fetch_add(&server->unauthenticated_bytes, size) + size;
    return all <= SERVE_BODIES_BYTES_MAX && unauthenticated <= SERVE_UNAUTHENTICATED_BYTES_MAX;
}

static void take_bytes(struct request *request, const char *bytes, size_t size)
{
    struct server *server = request->server;
    if (request->state != REQUEST_ARRIVING) return;
    atomic_fetch_add(&server->received_bytes, size);
    request->body_bytes += size;
    if (!request_is_post(request)) {
        reject_body(request, 413, "this request has no body");
    } else if (size > SERVE_BODY_BYTES_MAX - request->body.size) {
        reject_body(request, 413, "the body is larger than 40 MiB");
    } else if (!count_bytes(request, size)) {
        reject_body(request, 503, "too many bodies are arriving; try again");
    } else {
        if (request->body.size == 0) (void)buffer_reserve(&request->body, request->expected_bytes);
        buffer_append(&request->body, bytes, size);
        if (request->body.failed) reject_body(request, 503, "not enough memory");
    }
    if (request->state != REQUEST_REJECTED) return;
    buffer_fini(&request->body);
    uncount_body(request);
}

/* Called when the header is there, for each part of the body, at its end, and when the connection resumes. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *bytes, size_t *size, void **of_connection)
{
    struct server *server = context;
    struct request *request = *of_connection;
    if (!request) {
        request = request_new(server, connection, method, path);
        *of_connection = request;
        if (!request) return MHD_NO;
        begin(request, version);
        connections_note(&server->open_connections, request->place, false, request->is_known);
        /* An honest client that is above its rate must see the answer: its body is read and dropped. */
        bool reads_body = request->state != REQUEST_REJECTED || request->status == 429;
        return reads_body ? MHD_YES : send_answer(request);
    }
    if (*size > 0) {
        if (clock_monotonic_ns() - request->begun_ns > SERVE_REQUEST_SECONDS * SECOND_NS) return MHD_NO;
        take_bytes(request, bytes, *size);
        *size = 0;
        return MHD_YES;
    }
    if (request->state == REQUEST_ARRIVING) {
        if (workers_add(&server->workers, request)) return MHD_YES; /* from here on REQUEST is a worker's */
        reject_body(request, 503, "too many requests wait");
    }
    return send_answer(request);
}

static void complete(void *context, struct MHD_Connection *connection, void **of_connection,
                     enum MHD_RequestTerminationCode why)
{
    struct request *request = *of_connection;
    *of_connection = NULL;
    if (!request) return;
    const struct serve_options *options = &request->server->options;
    uint64_t duration_ns = clock_monotonic_ns() - request->begun_ns;
    enum latency_kind kind = request->has_key ? LATENCY_INGEST : LATENCY_OTHER;
    metrics_note_request(&request->server->metrics, request->is_query ? LATENCY_QUERY : kind, duration_ns);
    if (options->log_request && request->method && request->path) {
        const struct serve_event event = {.method = request->method,
                                          .path = request->path,
                                          .status = request->status,
                                          .time_ns = request->received_ns,
                                          .duration_ns = duration_ns,
                                          .body_bytes = request->body_bytes};
        options->log_request(&event);
    }
    connections_note(&request->server->open_connections, request->place, true, request->is_known);
    request_free(request);
}

static void note_connection(void *context, struct MHD_Connection *connection, void **place,
                            enum MHD_ConnectionNotificationCode what)
{
    struct server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        connections_remove(&server->open_connections, *place);
        *place = NULL;
        return;
    }
    const union MHD_ConnectionInfo *file = http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *client = http->get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *place =
        file ? connections_add(&server->open_connections, file->connect_fd, client ? client->client_addr : NULL) : NULL;
}

/* Answers REQUEST, in a worker. */
static void answer_request(struct request *request)
{
    request_run(request);
    buffer_fini(&request->body);
    uncount_body(request);
}

/* Removes and adds up old data. */
static void maintain_store(struct server *server)
{
    uint64_t removed = 0, rolled_up = 0;
    struct error error;
    if (store_expire(server->store, clock_utc_ns(), server->options.keep_ns, server->options.disk_bytes_max, &removed,
                     &error) != STATUS_OK)
        server_log(server, "cannot remove old data: %s", error.message);
    else if (removed > 0)
        server_log(server, "removed %llu days of data", (unsigned long long)removed);
    if (store_debug_expire(server->store, clock_utc_ns(), server->options.debug_keep_ns,
                           server->options.debug_bytes_max, &removed, &error) != STATUS_OK)
        server_log(server, "cannot remove old debug files: %s", error.message);
    else if (removed > 0)
        server_log(server, "removed %llu debug files", (unsigned long long)removed);
    if (!store_has_room(server->store)) {
        server_log_failure(server, "cannot store: the disk is full");
        return;
    }
    if (store_update_rollups(server->store, clock_utc_ns(), &rolled_up, &error) != STATUS_OK)
        server_log(server, "cannot add up old data: %s", error.message);
    atomic_fetch_add(&server->rolled_up, rolled_up);
    rates_report(server);
}

/* Maintains the store every minute, the certificate and the connections every two seconds. */
static void *run_maintenance(void *context)
{
    enum { MAINTENANCE_SECONDS = 60, WAKE_SECONDS = 2 };
    struct server *server = context;
    uint64_t maintained_ns = 0;
    (void)pthread_mutex_lock(&server->lock);
    while (!server->is_stopping) {
        (void)pthread_mutex_unlock(&server->lock);
        uint64_t now = clock_monotonic_ns();
        if (maintained_ns == 0 || now - maintained_ns >= MAINTENANCE_SECONDS * SECOND_NS) {
            maintain_store(server);
            maintained_ns = now;
        }
        certificate_reload(server);
        connections_close_slow(&server->open_connections);
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += WAKE_SECONDS;
        (void)pthread_mutex_lock(&server->lock);
        if (!server->is_stopping) (void)pthread_cond_timedwait(&server->maintenance_wakes, &server->lock, &until);
    }
    (void)pthread_mutex_unlock(&server->lock);
    rates_report(server);
    return NULL;
}

/* --- Start and stop ----------------------------------------------------------------------------------------------- */

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_address(const char *text, uint16_t port, union any_address *ret_address)
{
    *ret_address = (union any_address){0};
    if (inet_pton(AF_INET, text, &ret_address->v4.sin_addr) == 1) {
        ret_address->v4.sin_family = AF_INET;
        ret_address->v4.sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &ret_address->v6.sin6_addr) != 1) return false;
    ret_address->v6.sin6_family = AF_INET6;
    ret_address->v6.sin6_port = htons(port);
    return true;
}

bool serve_is_address(const char *text)
{
    union any_address ignored;
    return parse_address(text, 0, &ignored);
}

bool serve_is_loopback(const char *address)
{
    union any_address parsed;
    if (!parse_address(address, 0, &parsed)) return false;
    if (parsed.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&parsed.v6.sin6_addr);
    return (ntohl(parsed.v4.sin_addr.s_addr) >> 24) == 127;
}

static uint16_t port_of(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = http->get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

static enum status listen_on(struct server *server, struct error *error)
{
    union any_address address;
    if (!parse_address(server->options.address, server->options.port, &address))
        return error_set(error, STATUS_UNSUPPORTED, 0, "%s is no address; use numbers, as in 127.0.0.1",
                         server->options.address);
    bool has_tls = server->options.certificate != NULL;
    if (has_tls) server->served = pem_of_texts(server->options.certificate, server->options.private_key);
    if (has_tls && !server->served) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    server->daemon = server_start_daemon(server, server->served, &address.any, -1);
    if (!server->daemon && has_tls)
        return error_set(error, STATUS_IO, 0,
                         "cannot listen on %s port %u, or the certificate or its key is not usable",
                         server->options.address, server->options.port);
    if (!server->daemon)
        return error_set_errno(error, "cannot listen on %s port %u", server->options.address, server->options.port);
    server->port = port_of(server->daemon);
    bool is_ipv6 = address.any.sa_family == AF_INET6;
    (void)snprintf(server->base_url, sizeof(server->base_url), "%s://%s%s%s:%u", has_tls ? "https" : "http",
                   is_ipv6 ? "[" : "", server->options.address, is_ipv6 ? "]" : "", server->port);
    if (server->options.public_url)
        (void)snprintf(server->base_url, sizeof(server->base_url), "%s", server->options.public_url);
    return server->options.admin_folder ? admin_listen(server, error) : STATUS_OK;
}

static unsigned worker_count(const struct serve_options *options)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned count = processors > 0 && processors < 4 ? 4 * (unsigned)processors : 16;
    if (options->workers) count = options->workers;
    return count < SERVE_WORKERS_MAX ? count : SERVE_WORKERS_MAX;
}

static enum status start_symbols(struct server *server, struct error *error)
{
    const struct serve_options *options = &server->options;
    if (!options->symbol_reader) return STATUS_OK;
    server->symbols =
        symbols_new(server->store, options->symbol_reader, &server->is_ending, options->log, options->log_context);
    if (server->symbols) server->assembler = assembler_start(server->store, server->symbols);
    return server->assembler ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
}

enum status server_start(struct store *store, const struct serve_options *options, struct server **ret_server,
                         struct error *error)
{
    http = http_library_get(error);
    if (!http) return STATUS_UNSUPPORTED;
    struct server *server = calloc(1, sizeof(*server));
    if (!server) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    server->store = store;
    server->options = *options;
    server->handlers = (struct server_handlers){.request = handle, .complete = complete, .connection = note_connection};
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_mutex_init(&server->daemon_lock, NULL);
    connections_init(&server->open_connections);
    metrics_init(&server->metrics);
    (void)pthread_mutex_init(&server->decode_budget.lock, NULL);
    (void)pthread_cond_init(&server->decode_budget.has_room, NULL);
    (void)pthread_mutex_init(&server->rates.lock, NULL);
    (void)pthread_cond_init(&server->maintenance_wakes, NULL);
    store_limit_disk(store, options->disk_bytes_max);
    enum status status = start_symbols(server, error);
    unsigned count = workers_start(&server->workers, http, worker_count(options), answer_request);
    if (count == 0 && status == STATUS_OK) status = error_set(error, STATUS_NO_MEMORY, 0, "cannot start a thread");
    if (status == STATUS_OK) status = listen_on(server, error);
    struct alerts *alerts = NULL;
    if (status == STATUS_OK) status = alerts_start(server, &alerts, error);
    server->alerts = alerts;
    if (status == STATUS_OK)
        server->has_maintenance_thread =
            pthread_create(&server->maintenance_thread, NULL, run_maintenance, server) == 0;
    if (status != STATUS_OK) {
        server_stop(server);
        return status;
    }
    *ret_server = server;
    return STATUS_OK;
}

const char *server_base_url(const struct server *server)
{
    return server->base_url;
}

uint16_t server_open_loopback(struct server *server)
{
    union any_address address;
    if (!parse_address("127.0.0.1", 0, &address)) return 0;
    if (!server->loopback) server->loopback = server_start_daemon(server, NULL, &address.any, -1);
    return server->loopback ? port_of(server->loopback) : 0;
}

/* Requests that arrived are answered: the workers empty the queue, and their connections get a moment to send. One that
 * waits for a cluster does not wait for long. */
static void finish_requests(struct server *server)
{
    enum { PAUSES_MAX = 1500, PATIENT_PAUSES = 25 };
    const struct timespec pause = {.tv_nsec = 20 * 1000000};
    for (int i = 0; i < PAUSES_MAX; i++) {
        bool is_idle = workers_are_idle(&server->workers);
        (void)nanosleep(&pause, NULL);
        if (is_idle) break;
        if (i == PATIENT_PAUSES) store_hurry(server->store);
    }
}

void server_stop(struct server *server)
{
    if (!server) return;
    (void)pthread_mutex_lock(&server->daemon_lock); /* no new certificate from here on */
    atomic_store(&server->is_ending, true);
    (void)pthread_mutex_unlock(&server->daemon_lock);
    if (server->daemon) {
        MHD_socket listening = http->quiesce_daemon(server->daemon);
        if (listening != MHD_INVALID_SOCKET) (void)close(listening);
        finish_requests(server);
    }
    (void)pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    (void)pthread_cond_broadcast(&server->maintenance_wakes);
    (void)pthread_mutex_unlock(&server->lock);
    workers_stop(&server->workers);
    store_hurry(server->store);
    if (server->has_maintenance_thread) (void)pthread_join(server->maintenance_thread, NULL);
    alerts_stop(server->alerts);
    if (server->loopback) http->stop_daemon(server->loopback);
    admin_stop(server);
    assembler_stop(server->assembler);
    symbols_free(server->symbols);
    if (server->daemon) http->stop_daemon(server->daemon);
    for (size_t i = 0; i < server->draining_count; i++) http->stop_daemon(server->draining[i]);
    pem_free(server->served);
    pem_free(server->unusable);
    workers_fini(&server->workers);
    (void)pthread_mutex_destroy(&server->daemon_lock);
    connections_fini(&server->open_connections);
    metrics_fini(&server->metrics);
    (void)pthread_mutex_destroy(&server->lock);
    (void)pthread_mutex_destroy(&server->decode_budget.lock);
    (void)pthread_cond_destroy(&server->decode_budget.has_room);
    (void)pthread_mutex_destroy(&server->rates.lock);
    (void)pthread_cond_destroy(&server->maintenance_wakes);
    free(server);
}
