/* SPDX-License-Identifier: MIT */
#include "cli/report_page.h"

#include "base/uuid.h"
#include "cli/message.h"
#include "page/page.h"
#include "serve/fixed_server.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { URL_SIZE = 96 };

static enum status encode(const struct report_request *request, const struct report *report, struct buffer *data,
                          struct error *error)
{
    struct grouping grouping;
    const struct grouping_options grouping_options = {.granularity = (enum granularity)request->granularity,
                                                      .no_inlines = request->no_inlines,
                                                      .has_columns = request->columns,
                                                      .names_places = true};
    const struct page_options options = {.title = report->title, .column = report->choice.index};
    enum status status = grouping_init(&grouping, report->profile, &grouping_options, error);
    if (status == STATUS_OK) status = page_data_encode(report->profile, &grouping, &options, data, error);
    grouping_fini(&grouping);
    return status;
}

static enum exit_status finish(enum status status, const struct error *error)
{
    if (status == STATUS_OK) return EXIT_DONE;
    message("%s", error->message);
    return EXIT_FAILED;
}

enum exit_status report_page_write(const struct report_request *request, const struct report *report,
                                   struct buffer *out)
{
    struct buffer data;
    struct error error = {0};
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    enum status status = encode(request, report, &data, &error);
    if (status == STATUS_OK) status = page_file_write(buffer_slice(&data), out, &error);
    buffer_fini(&data);
    return finish(status, &error);
}

/* Starts xdg-open, which may run as long as the browser. If it fails, people still have the URL. */
static void open_browser(const char *url, const sigset_t *blocked)
{
    pid_t process = fork();
    if (process < 0) message("cannot start xdg-open; open the URL in a browser");
    if (process != 0) return;
    (void)sigprocmask(SIG_UNBLOCK, blocked, NULL);
    (void)execlp("xdg-open", "xdg-open", url, (char *)NULL);
    message("cannot start xdg-open; open the URL in a browser");
    _exit(EXIT_FAILED);
}

static void wait_for_end(const sigset_t *ends)
{
    int number;
    do {
        (void)sigwait(ends, &number);
        if (number == SIGCHLD) (void)waitpid(-1, NULL, WNOHANG); /* xdg-open */
    } while (number == SIGCHLD);
}

static enum status serve(const struct report_request *request, struct slice data, struct error *error)
{
    char token[UUID_TEXT_SIZE], url[URL_SIZE];
    struct page_asset assets[PAGE_ASSETS_MAX];
    struct fixed_file files[PAGE_ASSETS_MAX + 1] = {
        {.path = "data", .content_type = "application/octet-stream", .bytes = data}};
    size_t count = page_assets(assets);
    for (size_t i = 0; i < count; i++)
        files[i + 1] = (struct fixed_file){.path = assets[i].path,
                                           .content_type = assets[i].content_type,
                                           .bytes = assets[i].gzip,
                                           .is_compressed = true};
    if (!uuid_new(token)) return error_set(error, STATUS_IO, 0, "the system has no random bytes for the URL");
    sigset_t ends;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGHUP);
    (void)sigaddset(&ends, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL); /* the server's thread leaves them to this one */
    struct fixed_server *server;
    enum status status = fixed_server_start(token, PAGE_POLICY, files, count + 1, &server, error);
    if (status != STATUS_OK) return status;
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s/", fixed_server_port(server), token);
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    message("the profile is at this URL until Ctrl-C");
    if (!request->no_browser) open_browser(url, &ends);
    wait_for_end(&ends);
    fixed_server_stop(server);
    return STATUS_OK;
}

enum exit_status report_page_serve(const struct report_request *request, const struct report *report)
{
    struct buffer data;
    struct error error = {0};
    buffer_init(&data, PAGE_DATA_BYTES_MAX);
    enum status status = encode(request, report, &data, &error);
    if (status == STATUS_OK) status = serve(request, buffer_slice(&data), &error);
    buffer_fini(&data);
    return finish(status, &error);
}
