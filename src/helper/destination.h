/* One server that programs send to, and its folder in the spool.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_HELPER_DESTINATION_H
#define OFFBEAT_HELPER_DESTINATION_H

#include "spool/exchange.h"
#include "spool/session.h"
#include "transport/transport.h"

enum { SERVER_FLUSHES_MAX = 64 };

/* A file of a program that waits. */
struct server_flush {
    char name[NAME_MAX + 1];
    uint64_t until_ns; /* UTC: envelopes that were stored until then are sent ahead of the answer; 0: not known yet */
};

struct server {
    char folder[PATH_MAX];
    struct spool spool;         /* the folder's envelopes, for the main thread */
    struct buffer facts, texts; /* content of the file "server", and its strings; used by the transport's thread */
    struct transport *transport;
    struct server_flush flushes[SERVER_FLUSHES_MAX];
    size_t flush_count;
};

/* Starts to send what is in ROOT/NAME, the folder of a server. NULL: ERROR says why. */
struct server *server_start(const char *root, const char *name, struct error *error);
/* Ends sending within TIMEOUT_NS, and frees SERVER; accepts NULL. */
void server_stop(struct server *server, uint64_t timeout_ns);

/* Adds CHANGE to the counts of the process that has the session in FOLDER. From any thread. */
void server_count(const char *session_folder, const struct item_counts *change);
/* Counts and reports an item that was not made, for that process. */
void server_discard(struct server *server, const char *session_folder, enum discard_reason reason,
                    enum category category);

/* Adds a line to the log of the program with the session in FOLDER, if it debugs. */
void server_log(const char *session_folder, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
