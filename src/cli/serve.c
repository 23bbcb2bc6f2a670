/* offbeat serve: opens the store, prints where to send, and runs the server until a signal ends it.
 * SPDX-License-Identifier: MIT */
#include "serve/serve.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/public_url.h"
#include "cli/serve_admin.h"
#include "cli/serve_self.h"
#include "cli/store_folder.h"
#include "cluster/cluster.h"
#include "page/page.h"
#include "serve/alerts.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_PORT = 7117, ADDRESS_SIZE = 64, LOG_LINE_BYTES_MAX = 1 << 17, PEM_BYTES_MAX = 1 << 20 };

static void say(void *context, const char *text)
{
    message("serve: %s", text);
}

/* --- Logs as JSON: one object a line ---------------------------------------------------------------------------------
 */

static void begin_line(struct json_writer *json, uint64_t time_ns, const char *event)
{
    json_begin_object(json);
    json_member_time(json, "time", time_ns);
    json_member_text(json, "event", event);
}

/* One write: lines of several threads do not mix. */
static void end_line(struct json_writer *json)
{
    json_end_object(json);
    buffer_append_text(json->out, "\n");
    if (!json->out->failed) (void)fwrite(json->out->data, 1, json->out->size, stderr);
    buffer_fini(json->out);
}

static void say_json(void *context, const char *text)
{
    struct buffer out = {.maximum = LOG_LINE_BYTES_MAX};
    struct json_writer json = json_writer_of(&out);
    begin_line(&json, clock_utc_ns(), "message");
    json_member_text(&json, "text", text);
    end_line(&json);
}

static void log_request_json(const struct serve_event *event)
{
    struct buffer out = {.maximum = LOG_LINE_BYTES_MAX};
    struct json_writer json = json_writer_of(&out);
    begin_line(&json, event->time_ns, "request");
    json_member_text(&json, "method", event->method);
    json_member_text(&json, "path", event->path);
    json_member_u64(&json, "status", event->status);
    json_write_key(&json, "milliseconds");
    json_write_fixed(&json, event->duration_ns / 1000, 3);
    json_member_u64(&json, "body_bytes", event->body_bytes);
    end_line(&json);
}

/* "127.0.0.1:7117", "[::1]:7117", ":7117" or an address alone. */
static bool parse_listen(const char *text, char ret_address[ADDRESS_SIZE], uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':'), *end = text + strlen(text);
    bool has_brackets = text[0] == '[';
    if (has_brackets) {
        end = strchr(text, ']');
        if (!end || (end[1] != ':' && end[1] != '\0')) return false;
        colon = end[1] == ':' ? end + 1 : NULL;
        text++;
    } else if (colon) {
        end = colon;
    }
    if (end - text >= ADDRESS_SIZE) return false;
    if (end > text) (void)snprintf(ret_address, ADDRESS_SIZE, "%.*s", (int)(end - text), text);
    if (!colon) return true;
    char *rest;
    unsigned long port = strtoul(colon + 1, &rest, 10);
    if (colon[1] < '0' || colon[1] > '9' || *rest || port > UINT16_MAX) return false;
    *ret_port = (uint16_t)port;
    return true;
}

static bool take_first(void *context, const struct store_project *project)
{
    *(struct store_project *)context = *project;
    return false;
}

/* Tokens that a start prints. */
struct tokens {
    char read[STORE_KEY_SIZE], upload[STORE_KEY_SIZE];
};

/* The first start makes a project and tokens, but only where nobody else can reach them. */
static enum exit_status find_project(struct store *store, const char *address, struct store_project *project,
                                     struct tokens *tokens)
{
    struct error error = {0};
    *project = (struct store_project){0};
    enum status status = store_each_project(store, take_first, project, &error);
    if (status == STATUS_OK && project->id == 0 && !serve_is_loopback(address)) {
        message("serve: the store has no project and no keys, and %s can be reached from other machines; create them "
                "with offbeat serve admin add-project NAME",
                address);
        return EXIT_WRONG_USE;
    }
    if (status == STATUS_OK && project->id == 0) status = store_add_project(store, "default", project, &error);
    if (status == STATUS_OK) status = store_start_token(store, STORE_ROLE_READ, tokens->read, &error);
    if (status == STATUS_OK) status = store_start_token(store, STORE_ROLE_UPLOAD, tokens->upload, &error);
    if (status != STATUS_OK) {
        message("serve: %s", error.message);
        return EXIT_FAILED;
    }
    struct store_usage usage;
    store_usage(store, &usage);
    if (usage.is_in_cluster) (void)cluster_send_control(store, &error); /* the next server makes no project then */
    return EXIT_DONE;
}

/* Prints the URLs of SERVER, with NAME in front of the host: "http://KEY@127.0.0.1:7117". */
static void print_urls(const struct server *server, const struct store_project *project, const struct tokens *tokens)
{
    const char *url = server_base_url(server), *host = strstr(url, "://") + strlen("://");
    int scheme = (int)(host - url);
    if (project->key[0]) (void)printf("DSN: %.*s%s@%s/%" PRIu64 "\n", scheme, url, project->key, host, project->id);
    (void)printf("URL: %.*soffbeat:%s@%s/api/%" PRIu64 "/profile.pb.gz\n", scheme, url, tokens->read, host,
                 project->id);
    /* The part after # stays in the browser. */
    if (page_is_built())
        (void)printf("page: %s/#token=%s&key=%s&project=%" PRIu64 "\n", url, tokens->read, project->key, project->id);
    (void)printf("upload: %.*s%s@%s/%" PRIu64 "\n", scheme, url, tokens->upload, host, project->id);
    (void)fflush(stdout);
}

static enum exit_status run_server(struct store *store, const struct serve_options *options, bool profiles_self,
                                   const sigset_t *ends)
{
    struct store_project project;
    struct server *server;
    struct error error = {0};
    struct tokens tokens = {.read = ""};
    int signal_number;
    enum exit_status status = find_project(store, options->address, &project, &tokens);
    if (status != EXIT_DONE) return status;
    if (server_start(store, options, &server, &error) != STATUS_OK) {
        message("serve: %s", error.message);
        return EXIT_FAILED;
    }
    print_urls(server, &project, &tokens);
    if (!options->public_url && (strcmp(options->address, "0.0.0.0") == 0 || strcmp(options->address, "::") == 0))
        options->log(options->log_context, "other machines cannot use the host of these URLs; give the right URL with "
                                           "--public-url URL");
    if (profiles_self && !serve_self_start(store, server, options)) {
        server_stop(server);
        return EXIT_FAILED;
    }
    (void)sigwait(ends, &signal_number);
    /* A second signal ends the program at once; what was acknowledged is on disk. */
    (void)pthread_sigmask(SIG_UNBLOCK, ends, NULL);
    serve_self_stop();
    server_stop(server);
    return EXIT_DONE;
}

/* --- The command -----------------------------------------------------------------------------------------------------
 */

/* False after a message. */
static bool check_alerts(const struct option_texts *alerts, struct serve_options *serve)
{
    struct error error;
    for (size_t i = 0; i < alerts->count; i++) {
        if (alert_rule_check(alerts->items[i], &error) == STATUS_OK) continue;
        message("serve: --alert %.300s: %s", alerts->items[i], error.message);
        return false;
    }
    serve->alerts = alerts->items;
    serve->alert_count = alerts->count;
    return true;
}

/* PEM, as a text. False after a message. */
static bool read_pem(const char *path, struct buffer *pem)
{
    struct error error;
    buffer_init(pem, PEM_BYTES_MAX);
    if (file_read(path, pem, &error) != STATUS_OK) {
        message("serve: %s: %s", path, error.message);
        return false;
    }
    buffer_append(pem, "", 1);
    if (pem->failed) message("serve: %s is too large for a certificate or a key", path);
    return !pem->failed;
}

/* TLS needs both files. */
static bool read_certificate(const char *certificate, const char *key, struct buffer pem[2],
                             struct serve_options *serve)
{
    if (!certificate && !key) return true;
    if (!certificate || !key) {
        message("serve: --tls-cert and --tls-key are needed together");
        return false;
    }
    if (!read_pem(certificate, &pem[0]) || !read_pem(key, &pem[1])) return false;
    serve->certificate = (char *)pem[0].data;
    serve->private_key = (char *)pem[1].data;
    serve->certificate_path = certificate;
    serve->key_path = key;
    return true;
}

/* A request needs some blocks of the size of its body. The server reuses their memory: with a separate mapping for
 * each, as in the other commands, page faults took a fifth of its time. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 8 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 32 << 20);
    (void)mallopt(M_TOP_PAD, 4 << 20);
    (void)mallopt(M_ARENA_MAX, 4);
}

/* Opens the store in FOLDER, or in the cluster if one is named. */
static enum status open_store(const char *folder, const struct serve_options *serve,
                              const struct cluster_options *cluster, struct store **ret_store, struct error *error)
{
    uint64_t removed;
    if (cluster->address) return cluster_open(folder, cluster, ret_store, error);
    enum status status = store_trim(folder, serve->disk_bytes_max, &removed, error);
    return status == STATUS_OK ? store_open(folder, serve->log, NULL, ret_store, error) : status;
}

static enum exit_status open_and_run(const char *folder, bool profiles_self, const struct serve_options *serve,
                                     const struct cluster_options *cluster)
{
    enum exit_status status;
    sigset_t ends;
    struct store *store;
    struct error error = {0};
    keep_memory();
    /* Every thread that is started from here on leaves these signals to this one. */
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a full disk */
    if (open_store(folder, serve, cluster, &store, &error) != STATUS_OK) {
        message("serve: %s", error.message);
        return EXIT_FAILED;
    }
    status = run_server(store, serve, profiles_self, &ends);
    store_close(store);
    return status;
}

/* False after a message. */
static bool take_cluster(struct cluster_options *cluster, const char *ack)
{
    cluster->waits_for_cluster = strcmp(ack, "cluster") == 0;
    if (cluster->address && !cluster_is_address(cluster->address)) {
        message("serve: --store %s: an address as in clickhouse://ch1:8123,ch2:8123/offbeat is needed",
                cluster->address);
        return false;
    }
    if (cluster->waits_for_cluster || strcmp(ack, "spool") == 0) return true;
    message("serve: --ack %s: \"spool\" or \"cluster\" is needed", ack);
    return false;
}

int command_serve(int argc, char **argv)
{
    const char *listen = "127.0.0.1", *folder = NULL, *certificate = NULL, *key = NULL, *public_url = NULL,
               *config = NULL;
    struct buffer pem[2] = {0};
    if (argc > 1 && strcmp(argv[1], "admin") == 0) return serve_admin(argc - 1, argv + 1);
    uint64_t keep_days = 14, disk_megabytes = 0, workers = 0, requests = 0, megabytes = 0;
    bool logs_json = false;
    uint64_t debug_days = 90, debug_megabytes = 10240;
    bool profiles_self = false;
    char address[ADDRESS_SIZE] = "127.0.0.1";
    struct option_texts alerts = {.count = 0};
    struct cluster_options cluster = {.report = say};
    const char *ack = "spool";
    uint64_t spool_megabytes = 4096;
    struct serve_options serve = {
        .address = address, .port = DEFAULT_PORT, .log = say, .symbol_reader = "/proc/self/exe", .alert_seconds = 60};
    const struct option options[] = {
        {"listen", 0, OPTION_TEXT, &listen, .argument = "ADDR:PORT",
         .help = "where to listen; port 0 is any free one (default: 127.0.0.1:7117)"},
        {"data", 0, OPTION_TEXT, &folder, .argument = "DIR",
         .help = "where the data is (default: $XDG_STATE_HOME/offbeat)"},
        {"store", 0, OPTION_TEXT, &cluster.address, .argument = "clickhouse://HOST:PORT,…/DATABASE",
         .help = "keep the data in a ClickHouse cluster, of which DIR has keys and what waits (doc/operations.md)"},
        {"store-login", 0, OPTION_TEXT, &cluster.login_path, .argument = "FILE",
         .help = "two lines: the user and the password for the cluster"},
        {"store-ca", 0, OPTION_TEXT, &cluster.authority, .argument = "FILE",
         .help = "the authority of the certificates of clickhouses:// (PEM)"},
        {"ack", 0, OPTION_TEXT, &ack, .argument = "spool|cluster",
         .help = "answer when DIR has what was sent, or when the cluster has it (default: spool)"},
        {"spool", 0, OPTION_NUMBER, &spool_megabytes, .argument = "MEGABYTES",
         .help = "the most that waits for the cluster (default: 4096)", .minimum = 1, .maximum = 1 << 30},
        {"keep", 0, OPTION_NUMBER, &keep_days, .argument = "DAYS",
         .help = "remove data that is older, 0 for never (default: 14)", .maximum = 36500},
        {"disk", 0, OPTION_NUMBER, &disk_megabytes, .argument = "MEGABYTES",
         .help = "remove the oldest data above that size, 0 for no limit (default: 0)", .maximum = 1 << 30},
        {"debug-keep", 0, OPTION_NUMBER, &debug_days, .argument = "DAYS",
         .help = "remove debug files that were not used for longer, 0 for never (default: 90)", .maximum = 36500},
        {"debug-disk", 0, OPTION_NUMBER, &debug_megabytes, .argument = "MEGABYTES",
         .help = "the same above that size of a project's debug files, 0 for no limit (default: 10240)",
         .maximum = 1 << 30},
        {"workers", 0, OPTION_NUMBER, &workers, .argument = "N",
         .help = "requests that are handled at the same time (default: four for each processor)", .minimum = 1,
         .maximum = SERVE_WORKERS_MAX},
        {"tls-cert", 0, OPTION_TEXT, &certificate, .argument = "FILE",
         .help = "speak TLS with this certificate (PEM, with its chain); read again when it changes"},
        {"tls-key", 0, OPTION_TEXT, &key, .argument = "FILE", .help = "the private key of that certificate (PEM)"},
        {"rate", 0, OPTION_NUMBER, &requests, .argument = "REQUESTS",
         .help = "what a project may send in a minute, 0 for no limit (default: 0)", .maximum = 1 << 30},
        {"rate-megabytes", 0, OPTION_NUMBER, &megabytes, .argument = "MEGABYTES",
         .help = "the same, of bodies when decompressed (default: 0)", .maximum = 1 << 30},
        {"log-json", 0, OPTION_SWITCH, &logs_json,
         .help = "log each request, and all messages, as JSON on standard error"},
        {"profile-self", 0, OPTION_SWITCH, &profiles_self,
         .help = "profile the server itself, into a project called \"offbeat serve\""},
        {"public-url", 0, OPTION_TEXT, &public_url, .argument = "URL",
         .help = "where clients reach the server, for the URLs that it prints (default: the address)"},
        {"alert", 0, OPTION_TEXTS, &alerts, .argument = "RULE",
         .help = "watch a service: \"name=slow service=shop function=parse share>20 minutes=10\", or regression; may "
                 "be given "
                 "several times"},
        {"alert-webhook", 0, OPTION_TEXT, &serve.alert_webhook, .argument = "URL",
         .help = "POST JSON there when a rule begins or ends to hold"},
        {"alert-seconds", 0, OPTION_NUMBER, &serve.alert_seconds, .argument = "SECONDS",
         .help = "time between two checks of the rules (default: 60)", .minimum = 1, .maximum = 86400},
        {"config", 0, OPTION_TEXT, &config, .argument = "FILE",
         .help = "read options from lines NAME = VALUE; variables OFFBEAT_SERVE_… and options take precedence"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "serve",
        .usage = "[options], or: admin COMMAND",
        .example = "offbeat serve --data /var/lib/offbeat",
        .about = "Stores the profiles that Sentry SDKs, pprof producers and offbeat send, and answers over HTTP.\n"
                 "The first start creates a project. Each start prints its DSN, a URL with a read token, and a page:\n"
                 "OFFBEAT_DSN=DSN LD_PRELOAD=liboffbeat.so PROGRAM sends, `go tool pprof URL` reads, and a browser\n"
                 "opens the page. doc/serve.md describes the routes. SIGTERM and Ctrl-C end the server without loss.\n"
                 "offbeat serve admin --help: projects, keys, and deletion of data.",
        .options = options,
        .variables = "OFFBEAT_SERVE_",
        .file = &config,
    };
    struct operands operands;
    enum exit_status status;
    char path[PATH_MAX], public[PUBLIC_URL_SIZE];
    if (!options_parse(&syntax, argc, argv, &operands, &status)) return (int)status;
    if (!parse_listen(listen, address, &serve.port) || !serve_is_address(address)) {
        message("serve: --listen %s: an address in numbers and a port are needed, as in 127.0.0.1:7117", listen);
        return EXIT_WRONG_USE;
    }
    if (!check_alerts(&alerts, &serve)) return EXIT_WRONG_USE;
    if (!public_url_take("serve", &public_url, public)) return EXIT_WRONG_USE;
    folder = store_folder_choose("serve", folder, path);
    if (!folder || !take_cluster(&cluster, ack)) return EXIT_WRONG_USE;
    cluster.spool_bytes_max = spool_megabytes << 20;
    serve.public_url = public_url;
    serve.admin_folder = folder;
    serve.keep_ns = keep_days * 86400 * SECOND_NS;
    serve.disk_bytes_max = disk_megabytes << 20;
    serve.workers = (unsigned)workers;
    serve.debug_keep_ns = debug_days * 86400 * SECOND_NS;
    serve.debug_bytes_max = debug_megabytes << 20;
    if (logs_json) {
        serve.log = say_json;
        cluster.report = say_json;
        serve.log_request = log_request_json;
    }
    serve.requests_max = requests;
    serve.bytes_max = megabytes << 20;
    status = EXIT_WRONG_USE;
    if (read_certificate(certificate, key, pem, &serve)) status = open_and_run(folder, profiles_self, &serve, &cluster);
    buffer_fini(&pem[0]);
    buffer_fini(&pem[1]);
    return (int)status;
}
