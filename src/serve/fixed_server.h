/* A small server of files in memory, for a browser on this machine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_FIXED_SERVER_H
#define OFFBEAT_SERVE_FIXED_SERVER_H

#include "base/slice.h"
#include "base/status.h"

enum { FIXED_SERVER_CONNECTIONS_MAX = 64 };

struct fixed_file {
    const char *path; /* what follows the folder and its slash; "" */
    const char *content_type;
    struct slice bytes;
    bool is_compressed; /* BYTES are gzip, and the browser decompresses them */
};

struct fixed_server;

/* Listens on 127.0.0.1 and a free port. FOLDER is the first part of each path: who does not know it gets no file.
 * POLICY is the Content-Security-Policy of every answer. FILES and texts must outlive the server. */
enum status fixed_server_start(const char *folder, const char *policy, const struct fixed_file *files, size_t count,
                               struct fixed_server **ret_server, struct error *error);
uint16_t fixed_server_port(const struct fixed_server *server);
void fixed_server_stop(struct fixed_server *server); /* accepts NULL */

#endif
