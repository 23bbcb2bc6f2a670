/* Debug files from the servers of DEBUGINFOD_URLS, by the client library of elfutils. It is loaded at the first use and
 * keeps what it fetched in its cache ($XDG_CACHE_HOME/debuginfod_client).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DEBUG_SERVER_H
#define OFFBEAT_SYMBOLIZE_DEBUG_SERVER_H

#include <stddef.h>

/* For all files of a profile together. When a limit is reached, no further file is asked for. */
enum {
    DEBUG_SERVER_SECONDS_MAX = 300,
    DEBUG_SERVER_FILES_MAX = 1000,
    DEBUG_SERVER_FILE_BYTES_MAX = 2000000000,
};

struct debug_server;

/* Called every now and then during a transfer. ALL is 0 as long as the size is not known. */
typedef void (*debug_server_progress)(void *context, size_t done, size_t all);

/* NULL if DEBUGINFOD_URLS is not set or is empty, the library is not installed, or memory is short. PROGRESS may be
 * NULL. For one thread. */
struct debug_server *debug_server_open(debug_server_progress progress, void *context);

/* The path of the debug file with BUILD_ID (hex), fetched unless it is in the cache; the caller frees. NULL if no
 * server has it or a limit is reached. */
char *debug_server_find(struct debug_server *server, const char *build_id);

void debug_server_close(struct debug_server *server); /* accepts NULL */

#endif
