/* SPDX-License-Identifier: MIT */
#include "serve/fixed_server.h"

#include "serve/http_library.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_SECONDS = 30, CONNECTION_BYTES_MAX = 32 << 10 };

struct fixed_server {
    const struct http_library *http;
    const char *folder, *policy;
    const struct fixed_file *files;
    size_t count;
    struct MHD_Daemon *daemon;
};

/* PATH is "/FOLDER/NAME". The folder is compared in a time that does not depend on where it differs. */
static const struct fixed_file *find_file(const struct fixed_server *server, const char *path)
{
    size_t size = strlen(server->folder);
    unsigned difference = 0;
    if (path[0] != '/' || strlen(path) < size + 2 || path[size + 1] != '/') return NULL;
    for (size_t i = 0; i < size; i++) difference |= (unsigned)(path[i + 1] ^ server->folder[i]);
    for (size_t i = 0; i < server->count && difference == 0; i++) {
        if (strcmp(server->files[i].path, path + size + 2) == 0) return &server->files[i];
    }
    return NULL;
}

static enum MHD_Result answer(const struct fixed_server *server, struct MHD_Connection *connection, unsigned status,
                              const struct fixed_file *file)
{
    const struct http_library *http = server->http;
    union {
        const uint8_t *constant;
        void *bytes;
    } body = {.constant = file->bytes.data}; /* the library only reads it */
    struct MHD_Response *response =
        http->create_response_from_buffer(file->bytes.size, body.bytes, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    const char *const headers[][2] = {
        {"Content-Type", file->content_type},
        {"Content-Security-Policy", server->policy},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        (void)http->add_response_header(response, headers[i][0], headers[i][1]);
    if (file->is_compressed) (void)http->add_response_header(response, "Content-Encoding", "gzip");
    enum MHD_Result result = http->queue_response(connection, status, response);
    http->destroy_response(response);
    return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *bytes, size_t *size, void **of_connection)
{
    static const char missing[] = "There is no such page. The URL that offbeat view prints has a secret part.\n";
    static const char wrong[] = "Only GET is answered.\n";
    const struct fixed_server *server = context;
    const struct fixed_file text = {.content_type = "text/plain; charset=utf-8",
                                    .bytes = slice_of((const uint8_t *)missing, sizeof(missing) - 1)};
    const struct fixed_file *file = find_file(server, path);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        struct fixed_file rejection = text;
        rejection.bytes = slice_of((const uint8_t *)wrong, sizeof(wrong) - 1);
        return answer(server, connection, 405, &rejection);
    }
    return file ? answer(server, connection, 200, file) : answer(server, connection, 404, &text);
}

enum status fixed_server_start(const char *folder, const char *policy, const struct fixed_file *files, size_t count,
                               struct fixed_server **ret_server, struct error *error)
{
    const struct http_library *http = http_library_get(error);
    if (!http) return error->status;
    struct fixed_server *server = calloc(1, sizeof(*server));
    if (!server) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the server");
    *server = (struct fixed_server){.http = http, .folder = folder, .policy = policy, .files = files, .count = count};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server->daemon = http->start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, server, MHD_OPTION_SOCK_ADDR,
        (const struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)FIXED_SERVER_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_END);
    if (!server->daemon) {
        free(server);
        return error_set_errno(error, "cannot listen on 127.0.0.1");
    }
    *ret_server = server;
    return STATUS_OK;
}

uint16_t fixed_server_port(const struct fixed_server *server)
{
    const union MHD_DaemonInfo *info = server->http->get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void fixed_server_stop(struct fixed_server *server)
{
    if (!server) return;
    server->http->stop_daemon(server->daemon);
    free(server);
}
