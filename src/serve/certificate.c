/* A new certificate, without a pause.
 *
 * The library reads a certificate when a daemon starts. So a second daemon starts on the same listening socket, and the
 * first one accepts no more connections and ends when those that it has are closed.  SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "serve/serve_private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pem_free(struct pem *pem)
{
    if (!pem) return;
    free(pem->texts[0]);
    free(pem->texts[1]);
    free(pem);
}

struct pem *pem_of_texts(const char *certificate, const char *key)
{
    struct pem *pem = calloc(1, sizeof(*pem));
    if (!pem) return NULL;
    pem->texts[0] = strdup(certificate);
    pem->texts[1] = strdup(key);
    if (pem->texts[0] && pem->texts[1]) return pem;
    pem_free(pem);
    return NULL;
}

static bool is_same(const struct pem *a, const struct pem *b)
{
    return a && b && strcmp(a->texts[0], b->texts[0]) == 0 && strcmp(a->texts[1], b->texts[1]) == 0;
}

/* NULL if a file cannot be read now: it is tried again. */
static struct pem *read_files(const struct serve_options *options)
{
    const char *paths[2] = {options->certificate_path, options->key_path};
    struct buffer texts[2];
    bool is_read = true;
    for (size_t i = 0; i < 2; i++) {
        struct error ignored;
        buffer_init(&texts[i], SERVE_PEM_BYTES_MAX);
        is_read = is_read && file_read(paths[i], &texts[i], &ignored) == STATUS_OK;
        buffer_append(&texts[i], "", 1);
        is_read = is_read && !texts[i].failed;
    }
    struct pem *pem = is_read ? pem_of_texts((char *)texts[0].data, (char *)texts[1].data) : NULL;
    for (size_t i = 0; i < 2; i++) buffer_fini(&texts[i]);
    return pem;
}

static void stop_drained(struct server *server, const struct http_library *http)
{
    size_t kept = 0;
    for (size_t i = 0; i < server->draining_count; i++) {
        const union MHD_DaemonInfo *info =
            http->get_daemon_info(server->draining[i], MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        if (info && info->num_connections == 0)
            http->stop_daemon(server->draining[i]);
        else
            server->draining[kept++] = server->draining[i];
    }
    server->draining_count = kept;
}

/* Whether new connections have PEM from now on. It is tried without a socket first: after a failure the library would
 * have closed the one that others use. */
static bool replace_daemon(struct server *server, const struct http_library *http, const struct pem *pem)
{
    struct MHD_Daemon *trial = server_start_daemon(server, pem, NULL, -1);
    if (!trial) return false;
    http->stop_daemon(trial);
    const union MHD_DaemonInfo *info = http->get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    int listening = info ? fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 0) : -1;
    struct MHD_Daemon *next = listening >= 0 ? server_start_daemon(server, pem, NULL, listening) : NULL;
    if (!next) return false;
    MHD_socket old = http->quiesce_daemon(server->daemon);
    if (old != MHD_INVALID_SOCKET) (void)close(old);
    server->draining[server->draining_count++] = server->daemon;
    server->daemon = next;
    return true;
}

void certificate_reload(struct server *server)
{
    struct error ignored;
    const struct http_library *http = http_library_get(&ignored);
    if (!http || !server->options.certificate_path) return;
    struct pem *pem = read_files(&server->options);
    (void)pthread_mutex_lock(&server->daemon_lock);
    stop_drained(server, http);
    bool is_new = pem && !is_same(pem, server->served) && !is_same(pem, server->unusable);
    if (is_new && server->draining_count < SERVE_DRAINING_MAX && !atomic_load(&server->is_ending)) {
        bool is_served = replace_daemon(server, http, pem);
        struct pem **place = is_served ? &server->served : &server->unusable;
        struct pem *before = *place;
        *place = pem;
        pem = before;
        server_log(server, is_served ? "new connections have the new certificate"
                                     : "the new certificate or its key is not usable; the one before stays");
    }
    (void)pthread_mutex_unlock(&server->daemon_lock);
    pem_free(pem);
}
