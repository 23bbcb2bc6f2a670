/* Administration of a running server: the socket in the data folder, and the route.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void administer(struct request *request)
{
    const struct server *server = request->server;
    const struct admin_command *command = admin_command_find(request->path + strlen("/api/admin/"));
    const struct admin_call call = {.store = server->store,
                                    .base_url = server->base_url,
                                    .parameters = request->query.parameters,
                                    .parameter_count = request->query.parameter_count};
    struct error error = {0};
    if (!command) {
        answer_error(request, 404, "there is no such command; see doc/serve.md");
        return;
    }
    if (command->changes != request_is_post(request)) {
        answer_error(request, 405, "%s is not for this path", request->method);
        return;
    }
    enum status status = admin_run(command, &call, &request->answer, &error);
    if (status == STATUS_OK && command->changes) server_log(server, "admin: %s", command->name);
    answer_result(request, status, &error, "application/json");
}

enum status admin_listen(struct server *server, struct error *error)
{
    enum { WAITING_MAX = 16 };
    struct sockaddr_un address;
    int folder, file = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_open = admin_socket_address(server->options.admin_folder, &address, &folder);
    /* The store's lock says that no other server uses the folder. */
    (void)unlink(address.sun_path);
    bool is_bound = is_open && file >= 0 &&
                    bind(file, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0 &&
                    chmod(address.sun_path, 0600) == 0 && listen(file, WAITING_MAX) == 0;
    enum status status = is_bound ? STATUS_OK : error_set_errno(error, "cannot make the socket for administration");
    if (folder >= 0) (void)close(folder);
    if (is_bound) server->admin = server_start_daemon(server, NULL, NULL, file);
    if (is_bound && !server->admin) status = error_set_errno(error, "cannot serve the socket for administration");
    if (!server->admin && file >= 0) (void)close(file);
    return status;
}

void admin_stop(struct server *server)
{
    struct sockaddr_un address;
    int folder;
    if (!server->admin) return;
    if (admin_socket_address(server->options.admin_folder, &address, &folder)) {
        (void)unlink(address.sun_path);
        (void)close(folder);
    }
    server->workers.http->stop_daemon(server->admin);
}
