/* The server profiles itself through the public interface of liboffbeat, which is loaded for that and not linked. It
 * sends one request a minute, like any other client, over a separate port on 127.0.0.1: neither TLS nor the address
 * that the server listens on matter. The library's threads never wait for the server's.
 * SPDX-License-Identifier: MIT */
#include "cli/serve_self.h"

#include "cli/message.h"
#include "cli/record_library.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <offbeat.h>
#include <stdio.h>
#include <string.h>

#define PROJECT_NAME "offbeat serve"

enum { DSN_SIZE = 128 };

static __typeof__(offbeat_shutdown) *shut_down; /* NULL: nothing was started */

static bool is_other(void *context, const struct store_project *project)
{
    struct store_project *found = context;
    bool is_ours = strcmp(project->name, PROJECT_NAME) == 0;
    if (is_ours) *found = *project;
    return !is_ours;
}

static bool find_project(struct store *store, struct store_project *ret_project)
{
    struct error error = {0};
    *ret_project = (struct store_project){0};
    enum status status = store_each_project(store, is_other, ret_project, &error);
    if (status == STATUS_OK && ret_project->id == 0)
        status = store_add_project(store, PROJECT_NAME, ret_project, &error);
    if (status != STATUS_OK) message("serve: --profile-self: %s", error.message);
    return status == STATUS_OK;
}

static bool load_sampler(__typeof__(offbeat_init) **ret_init, __typeof__(offbeat_start_profiler) **ret_start)
{
    char path[PATH_MAX];
    if (!record_library_find(path)) return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *ret_init = (__typeof__(offbeat_init) *)dlsym(library, "offbeat_init");
        *ret_start = (__typeof__(offbeat_start_profiler) *)dlsym(library, "offbeat_start_profiler");
        shut_down = (__typeof__(offbeat_shutdown) *)dlsym(library, "offbeat_shutdown");
    }
    if (library && *ret_init && *ret_start && shut_down) return true;
    shut_down = NULL;
    message("serve: --profile-self: %s", dlerror());
    return false;
}

bool serve_self_start(struct store *store, struct server *server, const struct serve_options *serve)
{
    __typeof__(offbeat_init) *init = NULL;
    __typeof__(offbeat_start_profiler) *start = NULL;
    struct store_project project;
    char dsn[DSN_SIZE];
    if (!load_sampler(&init, &start) || !find_project(store, &project)) return false;
    unsigned port = server_open_loopback(server);
    (void)snprintf(dsn, sizeof(dsn), "http://%s@127.0.0.1:%u/%" PRIu64, project.key, port, project.id);
    const struct offbeat_options options = {.size = sizeof(options),
                                            .dsn = dsn,
                                            .release = "offbeat-serve@" OFFBEAT_VERSION,
                                            .profile_session_sample_rate = 1,
                                            .spool_directory = "",
                                            .proxy = "",
                                            .log = serve->log,
                                            .log_data = serve->log_context};
    if (port == 0 || !init(&options)) {
        shut_down = NULL;
        message("serve: --profile-self: the profiler cannot be started");
        return false;
    }
    start();
    return true;
}

void serve_self_stop(void)
{
    if (shut_down) shut_down();
    shut_down = NULL;
}
