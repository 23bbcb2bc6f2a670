/* SPDX-License-Identifier: MIT */
#include "serve/static_server.h"

#include "serve/http_library.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_SECONDS = 30, CONNECTION_BYTES_MAX = 32 << 10 };

struct static_server {
    const struct http_library *http;
    struct static_server_options options;
    struct MHD_Daemon *daemon;
};

/* Returns the part of PATH after "/FOLDER/", or NULL. The time of the comparison does not depend on where they
 * differ. */
static const char *find_path(const struct static_server *server, const char *path)
{
    const char *folder = server->options.folder;
    size_t size = strlen(folder);
    unsigned difference = 0;
    if (path[0] != '/' || strlen(path) < size + 2 || path[size + 1] != '/') return NULL;
    for (size_t i = 0; i < size; i++) difference |= (unsigned)(path[i + 1] ^ folder[i]);
    return difference == 0 ? path + size + 2 : NULL;
}

static void add_headers(const struct static_server *server, struct MHD_Response *response,
                        const struct static_answer *answer)
{
    const struct http_library *http = server->http;
    const char *const headers[][2] = {
        {"Content-Type", answer->content_type},
        {"Content-Security-Policy", server->options.policy},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)http->add_response_header(response, headers[i][0], headers[i][1]);
    if (answer->note) (void)http->add_response_header(response, "Offbeat-Page", answer->note);
    if (answer->version) {
        char tag[32];
        (void)snprintf(tag, sizeof(tag), "\"%llu\"", (unsigned long long)answer->version);
        (void)http->add_response_header(response, "ETag", tag);
    }
}

static enum MHD_Result send_answer(const struct static_server *server, struct MHD_Connection *connection,
                                   const struct static_answer *answer, bool is_compressed)
{
    const struct http_library *http = server->http;
    bool is_constant = answer->bytes.size > 0;
    struct slice bytes = is_constant ? answer->bytes : buffer_slice(&answer->body);
    union {
        const uint8_t *constant;
        void *bytes;
    } body = {.constant = bytes.data}; /* the library only reads it */
    struct MHD_Response *response = http->create_response_from_buffer(
        bytes.size, body.bytes, is_constant ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    add_headers(server, response, answer);
    if (is_compressed) (void)http->add_response_header(response, "Content-Encoding", "gzip");
    enum MHD_Result result = http->queue_response(connection, answer->status, response);
    http->destroy_response(response);
    return result;
}

static enum MHD_Result send_text(const struct static_server *server, struct MHD_Connection *connection, unsigned status,
                                 const char *text)
{
    const struct static_answer answer = {
        .status = status, .content_type = "text/plain; charset=utf-8", .bytes = slice_of_text(text)};
    return send_answer(server, connection, &answer, false);
}

static enum MHD_Result send_computed(const struct static_server *server, struct MHD_Connection *connection,
                                     const char *path)
{
    struct static_answer answer = {.status = 404, .body = {.maximum = SIZE_MAX}};
    const char *tag = server->http->lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    uint64_t known = tag && tag[0] == '"' ? strtoull(tag + 1, NULL, 10) : 0;
    server->options.answer(server->options.context, path, known, &answer);
    if (answer.body.failed) answer.status = 500;
    if (!answer.content_type) answer.content_type = "text/plain; charset=utf-8";
    enum MHD_Result result = send_answer(server, connection, &answer, false);
    buffer_fini(&answer.body);
    return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *bytes, size_t *size, void **of_connection)
{
    const struct static_server *server = context;
    const struct static_server_options *options = &server->options;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_text(server, connection, 405, "Only GET is answered.\n");
    const char *inner = find_path(server, path);
    for (size_t i = 0; inner && i < options->file_count; i++) {
        const struct static_file *file = &options->files[i];
        const struct static_answer answer = {.status = 200, .content_type = file->content_type, .bytes = file->bytes};
        if (strcmp(file->path, inner) == 0) return send_answer(server, connection, &answer, file->is_compressed);
    }
    if (inner && options->answer) return send_computed(server, connection, inner);
    return send_text(server, connection, 404,
                     "There is no such page. The URL that offbeat view prints has a secret part.\n");
}

enum status static_server_start(const struct static_server_options *options, struct static_server **ret_server,
                                struct error *error)
{
    const struct http_library *http = http_library_get(error);
    if (!http) return error->status;
    struct static_server *server = calloc(1, sizeof(*server));
    if (!server) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the server");
    *server = (struct static_server){.http = http, .options = *options};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(options->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server->daemon = http->start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, server, MHD_OPTION_SOCK_ADDR,
        (const struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)STATIC_SERVER_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_END);
    if (!server->daemon) {
        free(server);
        return error_set_errno(error, "cannot listen on 127.0.0.1:%u", options->port);
    }
    *ret_server = server;
    return STATUS_OK;
}

uint16_t static_server_port(const struct static_server *server)
{
    const union MHD_DaemonInfo *info = server->http->get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void static_server_stop(struct static_server *server)
{
    if (!server) return;
    server->http->stop_daemon(server->daemon);
    free(server);
}
