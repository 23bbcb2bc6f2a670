/* The connections of a server, and which of them are closed so that others are served.
 *
 * A connection is known once one of its requests had a right key or token. Unknown ones have a maximum together and
 * for each address, and little time for a header: a new one takes the place of the oldest one. So
 * clients that open connections and send nothing, or a byte now and then, lose them, and the others are served.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_CONNECTIONS_H
#define OFFBEAT_SERVE_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct connection;

struct connections {
    pthread_mutex_t lock;
    struct connection *first;
    size_t count_max;
    atomic_ullong closed; /* connections that lost their place or were too slow */
};

void connections_init(struct connections *connections);
void connections_fini(struct connections *connections);

/* Adds the connection of FILE with a client at ADDRESS. NULL without memory: then it has no limit. */
struct connection *connections_add(struct connections *connections, int file, const struct sockaddr *address);
/* Removes CONNECTION; before its file is closed. Accepts NULL. */
void connections_remove(struct connections *connections, struct connection *connection);
/* Notes that the header of a request is complete, or that the request is over and CONNECTION waits for the next one.
 * IS_KNOWN: the request had a right key or token. Accepts NULL. */
void connections_note(struct connections *connections, struct connection *connection, bool waits_for_header,
                      bool is_known);
/* Closes the connections whose header takes too long. */
void connections_close_slow(struct connections *connections);

#endif
