/* The library's functions are declared here: its header is in a package that nothing else needs.
 * SPDX-License-Identifier: MIT */
#include "symbolize/debug_server.h"

#include "base/clocks.h"
#include "base/environment.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct debuginfod_client;
typedef int debuginfod_progress(struct debuginfod_client *client, long done, long all);

/* Functions of libdebuginfod; debuginfod_find_debuginfo(3) describes them. */
struct client_library {
    struct debuginfod_client *(*begin)(void);
    void (*end)(struct debuginfod_client *client);
    void (*set_user_data)(struct debuginfod_client *client, void *data);
    void *(*get_user_data)(struct debuginfod_client *client);
    void (*set_progressfn)(struct debuginfod_client *client, debuginfod_progress *progress);
    int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *build_id, int size, char **ret_path);
};

struct debug_server {
    struct client_library library;
    struct debuginfod_client *client;
    debug_server_progress progress;
    void *context;
    time_t end_seconds; /* CLOCK_MONOTONIC */
    unsigned file_count;
};

/* Loads the library, which stays loaded: those that it loads itself cannot all be unloaded. */
static bool load_library(struct client_library *library)
{
    void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return false;
    bool is_loaded = true;
#define LOAD(name)                                                                                                     \
    library->name = (__typeof__(library->name))dlsym(handle, "debuginfod_" #name);                                     \
    is_loaded = is_loaded && library->name;
    LOAD(begin)
    LOAD(end)
    LOAD(set_user_data)
    LOAD(get_user_data)
    LOAD(set_progressfn)
    LOAD(find_debuginfo)
#undef LOAD
    return is_loaded;
}

/* The client calls this function without a context, and only the library knows the client's user data. */
static void *(*get_user_data)(struct debuginfod_client *client);

/* The client gives up if the result is not 0. */
static int report_progress(struct debuginfod_client *client, long done, long all)
{
    const struct debug_server *server = get_user_data(client);
    if (done > DEBUG_SERVER_FILE_BYTES_MAX || all > DEBUG_SERVER_FILE_BYTES_MAX) return 1;
    if ((time_t)(clock_monotonic_ns() / SECOND_NS) >= server->end_seconds) return 1;
    if (server->progress && done >= 0) server->progress(server->context, (size_t)done, all > 0 ? (size_t)all : 0);
    return 0;
}

struct debug_server *debug_server_open(debug_server_progress progress, void *context)
{
    const char *urls = environment_get("DEBUGINFOD_URLS");
    if (!urls || !*urls) return NULL;
    struct debug_server *server = calloc(1, sizeof(*server));
    if (server && load_library(&server->library)) server->client = server->library.begin();
    if (!server || !server->client) {
        free(server);
        return NULL;
    }
    server->progress = progress;
    server->context = context;
    server->end_seconds = (time_t)(clock_monotonic_ns() / SECOND_NS) + DEBUG_SERVER_SECONDS_MAX;
    get_user_data = server->library.get_user_data;
    server->library.set_user_data(server->client, server);
    server->library.set_progressfn(server->client, report_progress);
    return server;
}

char *debug_server_find(struct debug_server *server, const char *build_id)
{
    char *path = NULL;
    if (!*build_id || server->file_count >= DEBUG_SERVER_FILES_MAX ||
        (time_t)(clock_monotonic_ns() / SECOND_NS) >= server->end_seconds)
        return NULL;
    server->file_count++;
    /* A size of 0 says that the build id is a string of hex digits. */
    int descriptor = server->library.find_debuginfo(server->client, (const unsigned char *)build_id, 0, &path);
    if (descriptor < 0) return NULL;
    (void)close(descriptor);
    return path;
}

void debug_server_close(struct debug_server *server)
{
    if (!server) return;
    server->library.end(server->client);
    free(server);
}
