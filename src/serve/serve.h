/* The server of `offbeat serve`: receives profiles over HTTP, and answers questions about them (doc/serve.md).
 *
 * One thread of libmicrohttpd moves bytes; a request whose body has arrived waits for one of the workers, and its
 * connection sleeps meanwhile. So slow clients cost memory only, which the maxima below bound.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SERVE_H
#define OFFBEAT_SERVE_SERVE_H

#include "store/store.h"

enum {
    SERVE_CONNECTIONS_MAX = 1100,
    SERVE_KNOWN_CONNECTIONS_PART = 4,           /* a quarter of them is kept for clients with a key or token */
    SERVE_ADDRESS_CONNECTIONS_PART = 4,         /* a quarter of them is the most that one address has without a key */
    SERVE_HEADER_SECONDS = 10,                  /* a client without a key must send its header within that time */
    SERVE_IDLE_SECONDS = 30,                    /* without a byte, a connection is closed */
    SERVE_REQUEST_SECONDS = 120,                /* a request must arrive within that time */
    SERVE_BODY_BYTES_MAX = 40 << 20,            /* compressed, as Sentry's own edge has it (facts §2.2) */
    SERVE_BODIES_BYTES_MAX = 128 << 20,         /* bytes of all bodies that are arriving or wait */
    SERVE_UNAUTHENTICATED_BYTES_MAX = 32 << 20, /* bytes of those whose key, if any, is in the body */
    SERVE_EXPECTED_BYTES_MAX = 2 << 20,   /* reserved for a body at once, if its client says that it has so many */
    SERVE_RATES_MAX = 4096,               /* projects whose rates are limited */
    SERVE_SMALL_BYTES_MAX = 8 << 20,      /* decompressed: larger bodies are decoded one at a time */
    SERVE_DECODE_BUDGET_BYTES = 24 << 20, /* bytes of smaller ones that are decoded at the same time */
    SERVE_FILE_BYTES_MAX = 32 << 20,      /* decompressed, of a profile that is not in an envelope */
    SERVE_JOBS_MAX = 1024,
    SERVE_WORKERS_MAX = 64,
    SERVE_QUERIES_MAX = 2, /* queries that compute at the same time; others wait */
    SERVE_SUSPENDED_QUERIES_MAX =
        8, /* queries beside those that wait for slow debug files; half of them may be of one project */
    SERVE_LIST_MAX = 10000, /* entries of a list */
    SERVE_DRAINING_MAX = 8, /* certificates whose connections are still open */
    SERVE_PEM_BYTES_MAX = 1 << 20,
    SERVE_ALERTS_MAX = 16,
};

/* A request that was answered. Without its parameters and headers: keys are among them. */
struct serve_event {
    const char *method, *path;
    unsigned status;
    uint64_t time_ns, duration_ns; /* UTC when it began */
    size_t body_bytes;
};

struct serve_options {
    const char *address;                     /* "127.0.0.1"; an IPv6 address without brackets */
    uint16_t port;                           /* 0: any */
    unsigned workers;                        /* 0: four for each processor, at most 16 */
    char *certificate, *private_key;         /* PEM texts, for TLS; NULL: without */
    const char *certificate_path, *key_path; /* files that are read again; NULL: none */
    const char *public_url;                  /* URL that clients use, without a slash at its end; NULL: the address */
    const char *admin_folder;                /* folder where the socket for administration is; NULL: none */
    uint64_t keep_ns, disk_bytes_max;        /* 0: no limit */
    uint64_t requests_max, bytes_max;        /* limits of a project, each minute; 0: no limit */
    const char *symbol_reader;               /* the program that reads debug files; NULL: they are not accepted */
    uint64_t debug_keep_ns,
        debug_bytes_max;       /* time since the last use of a debug file; bytes of a project's files; 0: no limit */
    const char *const *alerts; /* texts of rules (alerts.h) */
    size_t alert_count;
    uint64_t alert_seconds;    /* time between two checks of a rule */
    const char *alert_webhook; /* URL that is told when a rule begins or ends to hold; NULL: none */
    /* One line of what the server does; not for requests that are answered as usual. */
    void (*log)(void *context, const char *text);
    void *log_context;
    /* NULL: requests are not logged. Called by one thread. */
    void (*log_request)(const struct serve_event *event);
};

struct server;

/* STATUS_IO if the address cannot be used. STORE must outlive the server. */
enum status server_start(struct store *store, const struct serve_options *options, struct server **ret_server,
                         struct error *error);
/* The URL that clients use: without a slash at its end. */
const char *server_base_url(const struct server *server);
/* A port of 127.0.0.1 where SERVER speaks HTTP without TLS, for programs of this machine. 0 if there is none. */
uint16_t server_open_loopback(struct server *server);
/* Accepts no more connections, stores what has arrived, answers queries that still compute with 503, and ends. Accepts
 * NULL. */
void server_stop(struct server *server);

bool serve_is_address(const char *text);
/* Whether only programs of this machine can reach ADDRESS. */
bool serve_is_loopback(const char *address);

#endif
