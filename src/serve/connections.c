/* SPDX-License-Identifier: MIT */
#include "serve/connections.h"

#include "base/clocks.h"
#include "serve/serve.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { OTHER_FILES = 200, ADDRESS_BYTES = 8 };

struct connection {
    struct connection *next, **of_next; /* list of all; the pointer to this one */
    int file;
    uint64_t address;  /* IPv4 address, or the network (/64) of an IPv6 address */
    uint64_t since_ns; /* start of the wait for a header, or of the request */
    bool waits_for_header, is_known, is_closing;
};

/* Each connection needs a file: raises the limit of the process as far as it may. */
static size_t connections_possible(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return SERVE_CONNECTIONS_MAX;
    rlim_t wanted = SERVE_CONNECTIONS_MAX + 2 * OTHER_FILES;
    if (files.rlim_cur < wanted) {
        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= wanted) return SERVE_CONNECTIONS_MAX;
    return files.rlim_cur > 2 * OTHER_FILES ? (size_t)files.rlim_cur - OTHER_FILES : OTHER_FILES;
}

void connections_init(struct connections *connections)
{
    *connections = (struct connections){.count_max = connections_possible()};
    (void)pthread_mutex_init(&connections->lock, NULL);
}

void connections_fini(struct connections *connections)
{
    (void)pthread_mutex_destroy(&connections->lock);
}

static uint64_t address_number(const struct sockaddr *address)
{
    uint64_t number = 0;
    if (address && address->sa_family == AF_INET)
        number = ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
    if (address && address->sa_family == AF_INET6)
        (void)memcpy(&number, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, ADDRESS_BYTES);
    return number;
}

/* The library sees the end of the stream, and removes the connection. */
static void close_connection(struct connections *connections, struct connection *connection)
{
    connection->is_closing = true;
    atomic_fetch_add(&connections->closed, 1);
    (void)shutdown(connection->file, SHUT_RDWR);
}

/* Closes an unknown connection, of the address of NEXT if that has too many of them. */
static void make_room(struct connections *connections, const struct connection *next)
{
    struct connection *of_address = NULL, *of_all = NULL;
    size_t address_count = 0, unknown_count = 0, count = 0;
    for (struct connection *one = connections->first; one; one = one->next) {
        if (one->is_closing) continue;
        count++;
        if (one->is_known) continue;
        unknown_count++;
        if (!of_all || one->since_ns < of_all->since_ns) of_all = one;
        if (one->address != next->address) continue;
        address_count++;
        if (!of_address || one->since_ns < of_address->since_ns) of_address = one;
    }
    size_t known_places = connections->count_max / SERVE_KNOWN_CONNECTIONS_PART;
    if (address_count > connections->count_max / SERVE_ADDRESS_CONNECTIONS_PART)
        close_connection(connections, of_address);
    else if (of_all && (count > connections->count_max || unknown_count > connections->count_max - known_places))
        close_connection(connections, of_all);
}

struct connection *connections_add(struct connections *connections, int file, const struct sockaddr *address)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    if (!connection) return NULL;
    connection->file = file;
    connection->address = address_number(address);
    connection->since_ns = clock_monotonic_ns();
    connection->waits_for_header = true;
    (void)pthread_mutex_lock(&connections->lock);
    connection->next = connections->first;
    connection->of_next = &connections->first;
    if (connection->next) connection->next->of_next = &connection->next;
    connections->first = connection;
    make_room(connections, connection);
    (void)pthread_mutex_unlock(&connections->lock);
    return connection;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
    if (!connection) return;
    (void)pthread_mutex_lock(&connections->lock);
    *connection->of_next = connection->next;
    if (connection->next) connection->next->of_next = connection->of_next;
    (void)pthread_mutex_unlock(&connections->lock);
    free(connection);
}

void connections_note(struct connections *connections, struct connection *connection, bool waits_for_header,
                      bool is_known)
{
    if (!connection) return;
    (void)pthread_mutex_lock(&connections->lock);
    connection->waits_for_header = waits_for_header;
    connection->is_known |= is_known;
    connection->since_ns = clock_monotonic_ns();
    (void)pthread_mutex_unlock(&connections->lock);
}

void connections_close_slow(struct connections *connections)
{
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&connections->lock);
    for (struct connection *one = connections->first; one; one = one->next) {
        uint64_t seconds = one->is_known ? SERVE_REQUEST_SECONDS : SERVE_HEADER_SECONDS;
        bool is_slow = one->waits_for_header && now_ns - one->since_ns > seconds * SECOND_NS;
        if (is_slow && !one->is_closing) close_connection(connections, one);
    }
    (void)pthread_mutex_unlock(&connections->lock);
}
