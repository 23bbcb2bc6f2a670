/* Profiles from a web server: net/http/pprof of a Go program, or anything else that answers GET with a file.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_FETCH_H
#define OFFBEAT_CLI_FETCH_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* http://…, https://…, and https+insecure://… for a server whose certificate is not to be checked. */
bool fetch_is_url(const char *path);

/* Flags of pprof about all that is fetched. */
struct fetch_settings {
    uint64_t timeout_seconds;                  /* 0: as fetch() says */
    const char *certificate, *key, *authority; /* PEM files for https; NULL */
    bool keeps_copies;                         /* fetched_file.h */
};
void fetch_set(const struct fetch_settings *settings);

/* Parts that the answer of `offbeat serve` lacks, as its headers say. */
struct fetch_losses {
    char missing[256]; /* "shard 2, shard 3"; empty: none */
    bool is_damaged;
};

/* Appends what URL holds to OUT, up to OUT's maximum. Follows redirections. Waits for one and a half times as long as a
 * "seconds" in the query says, and for at least a minute. STATUS_IO, STATUS_TOO_LARGE, STATUS_UNSUPPORTED without
 * libcurl; the message does not repeat URL. */
enum status fetch(const char *url, struct buffer *out, struct fetch_losses *ret_losses, struct error *error);

/* Writes a line for the user about each of LOSSES, and returns their number. */
enum { FETCH_LINES_MAX = 2, FETCH_LINE_SIZE = 320 };
size_t fetch_losses_say(const struct fetch_losses *losses, char ret_lines[FETCH_LINES_MAX][FETCH_LINE_SIZE]);

/* Returns the URL or path that pprof makes of a source: "host:6060/debug/pprof/heap" is an http URL if there is no such
 * file, and a URL of either form gets a "seconds" if SECONDS is not 0. To be freed; NULL without memory. */
char *fetch_source(const char *source, uint64_t seconds);

#endif
