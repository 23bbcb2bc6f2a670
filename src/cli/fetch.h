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

/* Appends what URL holds to OUT, up to OUT's maximum. Follows redirections. Waits for one and a half times as long as a
 * "seconds" in the query says, and for at least a minute. STATUS_IO, STATUS_TOO_LARGE, STATUS_UNSUPPORTED without
 * libcurl; the message does not repeat URL. */
enum status fetch(const char *url, struct buffer *out, struct error *error);

/* Returns the URL or path that pprof makes of a source: "host:6060/debug/pprof/heap" is an http URL if there is no such
 * file, and a URL of either form gets a "seconds" if SECONDS is not 0. To be freed; NULL without memory. */
char *fetch_source(const char *source, uint64_t seconds);

#endif
