/* One process for each spool folder, by a lock.
 *
 * The end: the helper removes the FIFO, by which programs find it, gives up the lock, and looks again. A program
 * writes its files first and looks for the FIFO then; if it finds none it starts a helper, which ends at once if the
 * lock is still taken. In each order, somebody looks after the files were written.  SPDX-License-Identifier: MIT */
#include "helper/service.h"

#include "base/clocks.h"
#include "base/timespec.h"
#include "helper/destination.h"
#include "helper/sessions.h"
#include "spool/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERVERS_MAX = 64, LOOK_MS = 1000, IDLE_SECONDS = 60 };

struct service {
    char root[PATH_MAX];
    int lock, fifo;
    struct server *servers[SERVERS_MAX];
    size_t server_count;
    uint64_t worked_at_ns; /* CLOCK_MONOTONIC time of the last work, and of the last search for servers */
    uint64_t looked_at_ns;
};

/* --- The lock and the FIFO ---------------------------------------------------------------------------------------- */

/* Takes the lock. False after a failure, with a message, and if another helper has it, with one if SAYS_TAKEN. */
static bool take_lock(struct service *service, bool says_taken)
{
    char path[PATH_MAX];
    if (!exchange_path(path, service->root, "helper.lock")) return false;
    service->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (service->lock < 0) {
        (void)fprintf(stderr, "offbeat-helper: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (flock(service->lock, LOCK_EX | LOCK_NB) == 0) return true;
    if (says_taken)
        (void)fprintf(stderr, "offbeat-helper: %s: another offbeat-helper sends what is there\n", service->root);
    (void)close(service->lock);
    service->lock = -1;
    return false;
}

static void open_fifo(struct service *service)
{
    char path[PATH_MAX];
    if (!exchange_path(path, service->root, "helper.wake")) return;
    (void)unlink(path);
    if (mkfifo(path, 0600) != 0) return; /* then it looks once a second */
    service->fifo = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

static void close_fifo(struct service *service)
{
    char path[PATH_MAX];
    if (service->fifo >= 0) (void)close(service->fifo);
    service->fifo = -1;
    if (exchange_path(path, service->root, "helper.wake")) (void)unlink(path);
}

static bool is_gone(const struct service *service)
{
    struct stat facts;
    return fstat(service->lock, &facts) != 0 || facts.st_nlink == 0;
}

/* True if a program has woken this one. */
static bool wait_for_news(const struct service *service, int timeout_ms)
{
    char bytes[256];
    struct pollfd wait = {.fd = service->fifo, .events = POLLIN};
    bool has_news = poll(&wait, 1, timeout_ms) > 0;
    while (has_news && read(service->fifo, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) continue;
    return has_news;
}

/* --- Servers ------------------------------------------------------------------------------------------------------ */

static bool is_known(const struct service *service, const char *folder)
{
    bool is_known = false;
    for (size_t i = 0; i < service->server_count; i++)
        is_known = is_known || strcmp(service->servers[i]->folder, folder) == 0;
    return is_known;
}

/* A server is needed later for what programs have left, and now by one that runs or waits. */
enum need { NEED_NONE, NEED_LATER, NEED_NOW };

static enum need need_of(const char *folder)
{
    char owner[SPOOL_OWNER_SIZE];
    enum need need = NEED_NONE;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && need < NEED_NOW && (entry = readdir(directory));) {
        bool is_session = session_is_name(entry->d_name, owner);
        bool is_open = is_session && !session_is_over(folder, entry->d_name);
        if (is_open || exchange_has_suffix(entry->d_name, ".flush"))
            need = NEED_NOW;
        else if (is_session || exchange_has_suffix(entry->d_name, ".envelope"))
            need = NEED_LATER;
    }
    if (directory) (void)closedir(directory);
    return need;
}

/* Makes room for a server with NEED: one that is needed less loses its place. False if there is none. */
static bool has_place(struct service *service, enum need need)
{
    if (service->server_count < SERVERS_MAX) return true;
    for (size_t i = 0; i < service->server_count; i++) {
        if (need_of(service->servers[i]->folder) >= need) continue;
        server_stop(service->servers[i], 0);
        service->servers[i] = service->servers[--service->server_count];
        return true;
    }
    return false;
}

/* Starts to send for each server that has a folder with something to do. */
static void find_servers(struct service *service)
{
    char folder[PATH_MAX], facts[PATH_MAX];
    struct error error;
    DIR *directory = opendir(service->root);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || !exchange_path(folder, service->root, entry->d_name)) continue;
        if (is_known(service, folder)) continue;
        if (!exchange_path(facts, folder, "server") || !exchange_is_there(facts)) continue;
        enum need need = need_of(folder);
        if (need == NEED_NONE || !has_place(service, need)) continue;
        struct server *server = server_start(service->root, entry->d_name, &error);
        if (server)
            service->servers[service->server_count++] = server;
        else
            (void)fprintf(stderr, "offbeat-helper: %s: %s\n", folder, error.message);
    }
    if (directory) (void)closedir(directory);
    service->looked_at_ns = clock_monotonic_ns();
}

/* --- Programs that wait ------------------------------------------------------------------------------------------- */

static bool is_listed(const struct server *server, const char *name)
{
    bool is_listed = false;
    for (size_t i = 0; i < server->flush_count; i++)
        is_listed = is_listed || strcmp(server->flushes[i].name, name) == 0;
    return is_listed;
}

/* Forgets the files that their programs have deleted. */
static void forget_flushes(struct server *server)
{
    size_t kept = 0;
    char path[PATH_MAX];
    for (size_t i = 0; i < server->flush_count; i++) {
        if (!exchange_path(path, server->folder, server->flushes[i].name) || !exchange_is_there(path)) continue;
        server->flushes[kept++] = server->flushes[i];
    }
    server->flush_count = kept;
}

/* Lists the files of programs that wait. True if there is a new one. */
static bool find_flushes(struct server *server)
{
    size_t before;
    forget_flushes(server);
    before = server->flush_count;
    DIR *directory = opendir(server->folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!exchange_has_suffix(entry->d_name, ".flush") || is_listed(server, entry->d_name)) continue;
        if (server->flush_count == SERVER_FLUSHES_MAX) break;
        struct server_flush *flush = &server->flushes[server->flush_count++];
        flush->until_ns = 0;
        (void)snprintf(flush->name, sizeof(flush->name), "%s", entry->d_name);
    }
    if (directory) (void)closedir(directory);
    return server->flush_count > before;
}

/* Notes that the recordings of programs that wait have become envelopes. */
static void note_time(struct server *server)
{
    for (size_t i = 0; i < server->flush_count; i++) {
        if (server->flushes[i].until_ns == 0) server->flushes[i].until_ns = clock_utc_ns();
    }
}

/* Deletes the files of programs whose envelopes are sent; others may follow all the time. */
static void answer_flushes(struct server *server)
{
    enum { WAIT_MS = 50 };
    char path[PATH_MAX];
    if (server->flush_count == 0) return;
    bool is_idle = transport_await_idle(server->transport, WAIT_MS * MILLISECOND_NS);
    uint64_t oldest_ns = is_idle ? UINT64_MAX : spool_oldest_ns(&server->spool);
    /* An envelope's file is deleted before its outcome is written, which the program reads after its flush. */
    if (!is_idle && transport_is_concluding(server->transport)) return;
    for (size_t i = 0; i < server->flush_count; i++) {
        bool is_sent = oldest_ns > server->flushes[i].until_ns;
        if (is_sent && exchange_path(path, server->folder, server->flushes[i].name)) (void)unlink(path);
    }
    forget_flushes(server);
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

/* True if a program needs SERVER, or something was done for it. */
static bool work_for(struct server *server, bool has_news)
{
    bool is_hurried = find_flushes(server);
    struct sessions_found found = sessions_work(server);
    if (has_news || found.has_done) transport_look(server->transport);
    if (is_hurried) transport_hurry(server->transport);
    note_time(server);
    answer_flushes(server);
    return found.has_programs || found.has_done || is_hurried;
}

/* Works once on everything. True if a program waits. */
static bool work(struct service *service, bool has_news)
{
    bool is_needed = false, is_awaited = false;
    if (has_news || clock_monotonic_ns() - service->looked_at_ns >= LOOK_MS * MILLISECOND_NS) find_servers(service);
    for (size_t i = 0; i < service->server_count; i++) {
        is_needed = work_for(service->servers[i], has_news) || is_needed;
        is_awaited = is_awaited || service->servers[i]->flush_count > 0;
    }
    if (is_needed) service->worked_at_ns = clock_monotonic_ns();
    return is_awaited;
}

static bool is_idle(const struct service *service)
{
    return clock_monotonic_ns() - service->worked_at_ns > IDLE_SECONDS * SECOND_NS;
}

static void work_until_idle(struct service *service, bool ends)
{
    bool has_news = true;
    service->worked_at_ns = clock_monotonic_ns();
    while (!is_gone(service) && !(ends && is_idle(service))) {
        bool is_awaited = work(service, has_news);
        has_news = wait_for_news(service, is_awaited ? 0 : LOOK_MS);
    }
}

bool service_run(const char *root, bool ends)
{
    struct service service = {.lock = -1, .fifo = -1};
    (void)snprintf(service.root, sizeof(service.root), "%s", root);
    if (!take_lock(&service, !ends)) return false;
    do {
        open_fifo(&service);
        work_until_idle(&service, ends);
        close_fifo(&service);
        bool is_over = is_gone(&service);
        (void)close(service.lock);
        if (is_over) break;
        /* The last look, see above. */
        uint64_t before_ns = service.worked_at_ns;
        (void)work(&service, true);
        if (service.worked_at_ns == before_ns) break;
    } while (take_lock(&service, false));
    for (size_t i = 0; i < service.server_count; i++) server_stop(service.servers[i], SECOND_NS);
    return true;
}
