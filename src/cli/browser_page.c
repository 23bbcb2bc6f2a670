/* SPDX-License-Identifier: MIT */
#include "cli/browser_page.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/uuid.h"
#include "cli/message.h"
#include "cli/options.h"
#include "page/page.h"
#include "serve/static_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { URL_SIZE = 96, SOURCE_BYTES_MAX = 16 << 20 };

struct browser_page {
    char token[UUID_TEXT_SIZE];
    char redirect[PATH_MAX]; /* path of the file that leads a browser to the page; "": there is none */
    struct static_file files[PAGE_ASSETS_MAX];
    struct static_server *server;
    bool is_live;
    sigset_t ends, before;    /* signals: that end the page; that were blocked */
    pthread_mutex_t lock;     /* lock of the members below, which the server's thread reads */
    struct buffer data, base; /* BASE is empty unless it is compared */
    uint64_t version;         /* version of DATA; 0: there is none yet */
    bool is_final;
    browser_page_source *source;
    void *source_context;
};

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static void answer_data(struct browser_page *page, uint64_t known, struct static_answer *answer)
{
    (void)pthread_mutex_lock(&page->lock);
    *answer = (struct static_answer){.status = page->version == 0       ? 202
                                               : page->version == known ? 304
                                                                        : 200,
                                     .content_type = "application/octet-stream",
                                     .body = answer->body,
                                     .version = page->version,
                                     .note = !page->is_final       ? "live"
                                             : page->base.size > 0 ? "compared"
                                                                   : NULL};
    if (answer->status == 200 && page->is_final) answer->bytes = buffer_slice(&page->data);
    if (answer->status == 200 && !page->is_final) buffer_append(&answer->body, page->data.data, page->data.size);
    (void)pthread_mutex_unlock(&page->lock);
}

/* "source/TYPE/NAME" */
static void answer_source(struct browser_page *page, const char *words, struct static_answer *answer)
{
    char *name;
    unsigned long type = strtoul(words, &name, 10);
    (void)pthread_mutex_lock(&page->lock);
    browser_page_source *source = page->source;
    void *context = page->source_context;
    (void)pthread_mutex_unlock(&page->lock);
    answer->body.maximum = SOURCE_BYTES_MAX;
    answer->status = 200;
    answer->content_type = "application/json";
    if (!source || *name != '/' || !source(context, name + 1, type, &answer->body))
        buffer_append_text(&answer->body, "[]");
}

static void answer(void *context, const char *path, uint64_t known, struct static_answer *answer)
{
    static const char source[] = "source/";
    struct browser_page *page = context;
    if (strcmp(path, "data") == 0) answer_data(page, known, answer);
    if (strcmp(path, "base") == 0 && page->base.size > 0)
        *answer = (struct static_answer){
            .status = 200, .content_type = "application/octet-stream", .bytes = buffer_slice(&page->base)};
    if (strncmp(path, source, strlen(source)) == 0) answer_source(page, path + strlen(source), answer);
}

void browser_page_compare(struct browser_page *page, struct buffer *data)
{
    page->base = *data;
    *data = (struct buffer){.maximum = data->maximum};
}

void browser_page_publish(struct browser_page *page, struct buffer *data, bool is_final)
{
    (void)pthread_mutex_lock(&page->lock);
    struct buffer old = page->data;
    page->data = *data;
    page->version++;
    page->is_final = is_final;
    (void)pthread_mutex_unlock(&page->lock);
    *data = (struct buffer){.maximum = data->maximum};
    buffer_fini(&old);
}

void browser_page_give_source(struct browser_page *page, browser_page_source *source, void *context)
{
    (void)pthread_mutex_lock(&page->lock);
    page->source = source;
    page->source_context = context;
    (void)pthread_mutex_unlock(&page->lock);
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

/* Writes a page that leads to URL into a new file that only this user can read: everybody can read the arguments of
 * xdg-open and of the browser. */
static bool write_redirect(struct browser_page *page, const char *url)
{
    char text[URL_SIZE * 2 + 256];
    const char *runtime = environment_get("XDG_RUNTIME_DIR"), *temporary = environment_get("TMPDIR");
    const char *folder = runtime && runtime[0] == '/' ? runtime : temporary && temporary[0] == '/' ? temporary : "/tmp";
    (void)snprintf(page->redirect, sizeof(page->redirect), "%s/offbeat-view-XXXXXX.html", folder);
    int file = mkostemps(page->redirect, strlen(".html"), O_CLOEXEC);
    if (file < 0) {
        page->redirect[0] = '\0';
        return false;
    }
    int size = snprintf(text, sizeof(text),
                        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"
                        "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>offbeat</title><a href=\"%s\">the "
                        "profile</a>\n",
                        url, url);
    bool is_written = file_write_descriptor(file, slice_of(text, (size_t)size), NULL) == STATUS_OK;
    (void)close(file);
    return is_written;
}

/* Starts xdg-open, which may run as long as the browser: in its own session, so that Ctrl-C does not end it. If it
 * fails, people still have the URL. */
static void open_browser(struct browser_page *page, const char *url, const sigset_t *mask)
{
    if (!write_redirect(page, url)) {
        message("cannot write a file that leads the browser to the page: %s; open the URL in a browser",
                strerror(errno));
        return;
    }
    pid_t process = fork();
    if (process < 0) message("cannot start xdg-open; open the URL in a browser");
    if (process != 0) return;
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)setsid();
    (void)execlp("xdg-open", "xdg-open", page->redirect, (char *)NULL);
    message("cannot start xdg-open; open the URL in a browser");
    _exit(EXIT_FAILED);
}

static bool is_set(const char *name)
{
    const char *value = environment_get(name);
    return value && value[0];
}

/* Returns whether there is a screen. Without one, xdg-open would start a browser for text in this terminal. */
static bool has_screen(void)
{
    return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || is_set("BROWSER");
}

/* Prints how the browser of the machine from which somebody came over SSH reaches PORT. SSH_CONNECTION has the address
 * and the port of both sides. */
static void print_tunnel(unsigned port)
{
    char address[INET6_ADDRSTRLEN], server_port[6], option[16] = "";
    const char *connection = environment_get("SSH_CONNECTION");
    if (!connection || sscanf(connection, "%*s %*s %45s %5s", address, server_port) != 2) return;
    if (strcmp(server_port, "22") != 0) (void)snprintf(option, sizeof(option), "-p %s ", server_port);
    const struct passwd *user = getpwuid(geteuid());
    message("from the machine that you came from: ssh -N %s-L %u:127.0.0.1:%u %s%s%s, then open the URL there", option,
            port, port, user ? user->pw_name : "", user ? "@" : "", address);
}

static void print_url(const struct browser_page *page, const char *url)
{
    if (page->is_live) {
        message("the profile is at %s while it is recorded, and then until Ctrl-C", url);
        return;
    }
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    message("the profile is at this URL until Ctrl-C");
}

enum status browser_page_open(const struct browser_page_options *options, struct browser_page **ret_page,
                              struct error *error)
{
    char url[URL_SIZE];
    struct browser_page *page = calloc(1, sizeof(*page));
    if (!page) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the page");
    page->is_live = options->is_live;
    struct static_server_options server = {
        .port = options->port, .folder = page->token, .policy = PAGE_POLICY, .answer = answer, .context = page};
    (void)pthread_mutex_init(&page->lock, NULL);
    struct page_asset assets[PAGE_ASSETS_MAX];
    server.file_count = page_assets(assets);
    for (size_t i = 0; i < server.file_count; i++)
        page->files[i] = (struct static_file){.path = assets[i].path,
                                              .content_type = assets[i].content_type,
                                              .bytes = assets[i].gzip,
                                              .is_compressed = true};
    server.files = page->files;
    enum status status = STATUS_OK;
    if (!uuid_new(page->token)) status = error_set(error, STATUS_IO, 0, "the system has no random bytes for the URL");
    /* The server's thread leaves the signals to this one. */
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    (void)sigemptyset(&page->ends);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) (void)sigaddset(&page->ends, ends[i]);
    (void)pthread_sigmask(SIG_BLOCK, &page->ends, &page->before);
    if (status == STATUS_OK) status = static_server_start(&server, &page->server, error);
    if (status != STATUS_OK) {
        (void)pthread_sigmask(SIG_SETMASK, &page->before, NULL);
        browser_page_close(page);
        return status;
    }
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s/", static_server_port(page->server), page->token);
    print_url(page, url);
    if (options->opens_browser && has_screen())
        open_browser(page, url, &page->before);
    else
        print_tunnel(static_server_port(page->server));
    *ret_page = page;
    return STATUS_OK;
}

void browser_page_wait(struct browser_page *page)
{
    int number;
    (void)pthread_sigmask(SIG_BLOCK, &page->ends, NULL);
    do {
        (void)sigwait(&page->ends, &number);
        if (number == SIGCHLD) (void)waitpid(-1, NULL, WNOHANG); /* xdg-open */
    } while (number == SIGCHLD);
}

void browser_page_close(struct browser_page *page)
{
    if (!page) return;
    static_server_stop(page->server);
    if (page->redirect[0]) (void)unlink(page->redirect);
    buffer_fini(&page->data);
    buffer_fini(&page->base);
    (void)pthread_mutex_destroy(&page->lock);
    free(page);
}
