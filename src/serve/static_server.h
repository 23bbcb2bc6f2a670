/* A small server for a browser on this machine: files in memory, and answers that are computed.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_STATIC_SERVER_H
#define OFFBEAT_SERVE_STATIC_SERVER_H

#include "base/buffer.h"
#include "base/status.h"

enum { STATIC_SERVER_CONNECTIONS_MAX = 64 };

struct static_file {
    const char *path; /* path after the folder and its slash; "" */
    const char *content_type;
    struct slice bytes;
    bool is_compressed; /* BYTES are gzip, and the browser decompresses them */
};

/* The answer for a path that no file has. */
struct static_answer {
    unsigned status; /* status of HTTP; 404 before the call */
    const char *content_type;
    struct slice bytes; /* outlive the server; or empty, and BODY is sent */
    struct buffer body; /* the server frees it */
    uint64_t version;   /* value of the header ETag; 0: no such header */
    const char *note;   /* message for the page, value of the header Offbeat-Page; NULL: none */
};

struct static_server_options {
    uint16_t port;      /* TCP port; 0: a free one */
    const char *folder; /* first part of each path, a secret: other paths get 404 */
    const char *policy; /* the Content-Security-Policy of every answer */
    const struct static_file *files;
    size_t file_count;
    /* Fills ANSWER for PATH, without the folder. KNOWN is the version that the browser has, 0: none. Runs in the
     * server's only thread. May be NULL. */
    void (*answer)(void *context, const char *path, uint64_t known, struct static_answer *answer);
    void *context;
};

struct static_server;

/* Listens on 127.0.0.1. What OPTIONS points to must outlive the server. */
enum status static_server_start(const struct static_server_options *options, struct static_server **ret_server,
                                struct error *error);
uint16_t static_server_port(const struct static_server *server);
void static_server_stop(struct static_server *server); /* accepts NULL */

#endif
