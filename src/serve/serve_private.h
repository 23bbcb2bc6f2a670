/* A request on its way through the server.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SERVE_PRIVATE_H
#define OFFBEAT_SERVE_SERVE_PRIVATE_H

#include "base/clocks.h"
#include "base/json_writer.h"
#include "profile/profile.h"
#include "query/selection.h"
#include "serve/admin.h"
#include "serve/connections.h"
#include "serve/http_library.h"
#include "serve/metrics.h"
#include "serve/serve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { ANSWER_BYTES_MAX = 256 << 20, STATUS_CODES_MAX = 600 };

/* The form of errors that a route's clients read. */
enum error_form {
    ERRORS_AS_DETAIL,  /* {"detail": …} */
    ERRORS_OF_OTLP,    /* google.rpc.Status */
    ERRORS_OF_CONNECT, /* {"code": …, "message": …} */
};

enum request_state { REQUEST_ARRIVING, REQUEST_REJECTED, REQUEST_WAITING, REQUEST_ANSWERED };

struct request {
    struct server *server;
    struct MHD_Connection *connection;
    struct connection *place; /* CONNECTION among the server's; NULL: without a limit */
    int socket;               /* socket of the connection; -1: unknown */
    enum request_state state;
    char *method, *path;
    char *sentry_auth, *authorization, *encoding, *content; /* headers; NULL: not there */
    struct query query;                                     /* the question, with the parameters of the URL */
    uint64_t begun_ns, received_ns;                         /* monotonic; UTC */
    struct buffer body;
    size_t expected_bytes;   /* size of the body that the client announced */
    size_t body_bytes;       /* size of the body that arrived */
    size_t decoded_bytes;    /* size of the body, and of the file in it, when decompressed; 0: not yet known */
    size_t counted_bytes;    /* part of server.body_bytes */
    bool has_key;            /* a key that was counted in the rates, or the token of a reader who sends a file */
    bool is_local;           /* arrived at the socket for administration */
    bool is_known;           /* whether its key or token is right */
    bool is_unauthenticated; /* counted in server.unauthenticated_bytes */
    bool is_query;           /* see struct server */
    bool is_suspended;       /* a query that query_suspend was called for */
    bool is_large;           /* the one that is decoded now */
    size_t budget_bytes;     /* part of server.decode_budget */
    unsigned retry_seconds;  /* Retry-After of a rejection; 0: the default */

    uint64_t upload_scope; /* the project of an upload token; 0: all */
    uint64_t project;
    const char *route; /* rest of the path after /api/N/, without a slash at its end; "" */

    unsigned status;
    const char *content_type;
    struct buffer answer;
    enum error_form error_form;
    bool asks_for_login;
    bool allows_origins;   /* pages of other origins may send here */
    bool is_page, is_kept; /* a file of the page, compressed; browsers may keep it */
    struct request *next;
};

struct rate {
    uint64_t project, updated_ns;
    double requests, bytes; /* credit left; BYTES can be below 0 */
    uint64_t rejected;      /* requests that are not yet in the store's outcomes */
};

struct rates {
    pthread_mutex_t lock;
    struct rate items[SERVE_RATES_MAX];
    size_t count;
};

/* Bodies that are being decoded (body.c). */
struct decode_budget {
    pthread_mutex_t lock;
    pthread_cond_t has_room;
    size_t bytes; /* bytes of small bodies */
    bool has_large;
    unsigned waiting_large;
};

/* Requests that wait for a worker. */
struct queue {
    struct request *first, **end;
};

/* Threads that answer requests. Queries compute for long; workers remain for what is sent. */
struct workers {
    const struct http_library *http;
    void (*run)(struct request *request);
    pthread_mutex_t lock;
    pthread_cond_t has_jobs;
    struct queue ingest_queue, query_queue;
    size_t job_count, running, running_queries, queries_max;
    uint64_t suspended[SERVE_SUSPENDED_QUERIES_MAX]; /* projects of the suspended queries */
    size_t suspended_count;                          /* part of RUNNING and RUNNING_QUERIES */
    bool was_query;                                  /* the job that was started last */
    bool is_stopping;
    pthread_t threads[SERVE_WORKERS_MAX + SERVE_SUSPENDED_QUERIES_MAX];
    unsigned thread_count;
    unsigned worker_count; /* threads that may run at the same time, without the suspended queries */
};

/* The functions that daemons call. */
struct server_handlers {
    MHD_AccessHandlerCallback request;
    MHD_RequestCompletedCallback complete;
    MHD_NotifyConnectionCallback connection;
};

struct server {
    struct store *store;
    struct serve_options options;
    pthread_mutex_t daemon_lock; /* lock of the daemons and certificates, after the start */
    struct MHD_Daemon *daemon;
    struct MHD_Daemon *draining[SERVE_DRAINING_MAX]; /* serve the connections that began with an earlier certificate */
    size_t draining_count;
    struct MHD_Daemon *admin; /* daemon of the socket for administration; NULL: none */
    char base_url[512];
    struct MHD_Daemon *loopback;   /* daemon without TLS; NULL: none, or DAEMON is it */
    struct pem *served, *unusable; /* certificates; NULL: none */
    uint16_t port;

    struct server_handlers handlers;
    struct workers workers;
    pthread_mutex_t lock; /* lock of IS_STOPPING */
    pthread_cond_t maintenance_wakes;
    bool is_stopping;
    pthread_t maintenance_thread;
    bool has_maintenance_thread;

    struct connections open_connections;
    struct decode_budget decode_budget;
    struct rates rates;
    struct metrics metrics;
    struct symbols *symbols;       /* NULL: there are no names from debug files */
    struct assembler *assembler;   /* NULL: the same */
    struct alerts *_Atomic alerts; /* NULL: there are no rules, or not yet */

    atomic_ullong failed_ns; /* monotonic time of the last line about what cannot be stored; 0: none */
    atomic_bool is_ending;   /* queries that compute give up */
    atomic_size_t body_bytes, unauthenticated_bytes, connections;
    atomic_ullong answers[STATUS_CODES_MAX], received_bytes, chunks, duplicates, rejected, cancelled, limited,
        rolled_up;
};

void server_log(const struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs that something cannot be stored, and MESSAGE why, once in a minute. */
void server_log_failure(struct server *server, const char *message);

/* Starts COUNT threads, each of which calls RUN for a request. Returns their number. */
unsigned workers_start(struct workers *workers, const struct http_library *http, unsigned count,
                       void (*run)(struct request *request));
/* Adds REQUEST and suspends its connection until it is answered. False if too many wait. */
bool workers_add(struct workers *workers, struct request *request);
bool workers_are_idle(struct workers *workers);
/* Returns when all requests that were added are answered. Others are refused until workers_fini. */
void workers_stop(struct workers *workers);
void workers_fini(struct workers *workers);

/* Suspends a query that is about to wait for long: until it is answered it counts neither as a worker nor as a query
 * that computes, so that others run. False if too many are suspended, or without a thread for the others. */
bool query_suspend(struct request *request);
/* Whether its client has closed the connection: nobody waits for the answer. */
bool request_is_abandoned(struct request *request);

/* NULL if REQUEST has no such parameter. */
const char *request_parameter(const struct request *request, const char *name);
struct slice request_slice(const struct request *request, const char *name); /* empty: not there */

/* Replaces the answer by STATUS and {"detail": …}. */
void answer_error(struct request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for STATUS of a function of ours. */
void answer_failure(struct request *request, const struct error *error);
/* Ends an answer that was written into REQUEST->answer. */
void answer_finish(struct request *request, const char *content_type);
/* Does the same, or answers ERROR if STATUS is not STATUS_OK. */
void answer_result(struct request *request, enum status status, const struct error *error, const char *content_type);
/* Returns whether the Content-Type begins with TYPE, in any case. */
bool request_has_type(const struct request *request, const char *type);

/* --- Access: each answers the request and returns false if it is rejected. ---------------------------------------- */

/* Whether the request names a key at all in its header or query. */
bool access_names_key(const struct request *request);
/* DSN: that of the envelope's header; empty: none. The key may also be a Bearer token or the password of Basic
 * authentication. */
bool access_may_write(struct request *request, struct slice dsn);
/* The same where the path names no project: it is the key's. */
bool access_may_write_by_key(struct request *request);
/* Checks the upload token. A path /api/0/projects/ORGANIZATION/PROJECT/… names a project by its number or its name. */
bool access_may_upload(struct request *request);
bool access_may_read(struct request *request, enum store_role role, uint64_t project);
/* The socket for administration needs no token: only the owner of the data folder reaches it. */
bool access_may_administer(struct request *request);

/* --- Rates (rates.c) ---------------------------------------------------------------------------------------------- */

/* 0 if PROJECT may send one more request, else the seconds until it may. */
unsigned rates_take(struct server *server, uint64_t project);
void rates_add_bytes(struct server *server, uint64_t project, size_t bytes);
/* Adds what was rejected to the outcomes. */
void rates_report(struct server *server);

/* --- Connections -------------------------------------------------------------------------------------------------- */

/* A certificate and its key, as texts. */
struct pem {
    char *texts[2];
};

/* LISTENING: a socket, or -1 to open one at ADDRESS; both none: the daemon only shows whether PEM can be used. NULL on
 * failure. PEM NULL: without TLS. */
struct MHD_Daemon *server_start_daemon(struct server *server, const struct pem *pem, const struct sockaddr *address,
                                       int listening);
/* Gives new connections the certificate in the files (certificate.c). */
void certificate_reload(struct server *server);
struct pem *pem_of_texts(const char *certificate, const char *key); /* NULL: no memory */
void pem_free(struct pem *pem);                                     /* accepts NULL */

/* --- What is done ------------------------------------------------------------------------------------------------- */

void request_run(struct request *request); /* routes.c; in a worker */
/* False, and REQUEST answered, if its path, method or key is rejected before its body arrives. */
bool request_check_early(struct request *request);
bool request_is_post(const struct request *request);

void ingest_envelope(struct request *request);
void ingest_profile(struct request *request);
void ingest_pyroscope(struct request *request);
void ingest_push(struct request *request);
void ingest_otlp(struct request *request);

/* Decompresses the body, of at most BYTES_MAX, into OUT, counts it in the rate, and waits until it may be decoded.
 * False: answered. */
bool body_decompress(struct request *request, size_t bytes_max, struct buffer *out);
/* The same for a file in the body that may be compressed itself; STORAGE and RET_RAW as format_decompress has them. */
enum status body_open_file(struct request *request, struct slice bytes, struct buffer *storage, struct slice *ret_raw,
                           struct error *error);
void decode_budget_release(struct request *request); /* releases the whole budget of REQUEST */

/* Frees what receiving and answering REQUEST took; the parameters and headers are the caller's. */
void request_free_answer(struct request *request);
/* Answers with what ANSWER computes from the request's query. */
void request_query(struct request *request, query_answer *answer, const char *content_type);
/* Reads the selection of a list, limited to a kind that the parameter "type" names; false: answered. */
bool request_select(struct request *request, struct selection *ret_selection);

void list_projects(struct request *request);
void list_chunks(struct request *request);
void list_values(struct request *request);
void list_spans(struct request *request);
void list_rejected(struct request *request);
void list_outcomes(struct request *request);
void show_raw(struct request *request);
void show_metrics(struct request *request);
void list_activity(struct request *request);
void open_file(struct request *request);

/* Debug files (debug_uploads.c). */
void debug_show_version(struct request *request);
void debug_show_options(struct request *request);
void debug_take_chunks(struct request *request);
void debug_assemble(struct request *request);
void debug_list(struct request *request);

/* Runs the command of /api/admin/COMMAND (admin_route.c). */
void administer(struct request *request);
/* Opens the socket in options.admin_folder, and serves it. */
enum status admin_listen(struct server *server, struct error *error);
/* Removes the socket, and ends its daemon, if there is one. */
void admin_stop(struct server *server);

/* Whether PATH is a file of the page. */
bool page_host_has(const char *path);
void show_page(struct request *request);

#endif
