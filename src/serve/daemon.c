/* The daemons of libmicrohttpd that a server has.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

struct MHD_Daemon *server_start_daemon(struct server *server, const struct pem *pem, const struct sockaddr *address,
                                       int listening)
{
    enum { ACCEPTED_AHEAD = 100 }; /* connections beside those that are being closed for them */
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (pem ? MHD_USE_TLS : 0U);
    if (address && address->sa_family == AF_INET6) flags |= MHD_USE_IPv6;
    if (!address && listening < 0) flags |= MHD_USE_NO_LISTEN_SOCKET;
    struct MHD_OptionItem more[6];
    size_t count = 0;
    if (pem) {
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, pem->texts[0]};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, pem->texts[1]};
    }
    if (address) more[count++] = (struct MHD_OptionItem){MHD_OPTION_SOCK_ADDR, 0, (void *)(uintptr_t)address};
    if (listening >= 0) more[count++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, listening, NULL};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    const struct server_handlers *handlers = &server->handlers;
    return server->workers.http->start_daemon(
        flags, server->options.port, NULL, NULL, handlers->request, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(server->open_connections.count_max + ACCEPTED_AHEAD), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)SERVE_IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32 << 10, MHD_OPTION_NOTIFY_COMPLETED,
        handlers->complete, NULL, MHD_OPTION_NOTIFY_CONNECTION, handlers->connection, server, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
}
