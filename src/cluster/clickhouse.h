/* One request to one ClickHouse server over HTTP.
 *
 * STATUS_IO: another replica or a later time may do; a statement that was sent may have been executed. Anything else
 * stays until somebody changes it: STATUS_NOT_FOUND: no such database or table; STATUS_UNSUPPORTED: no such column or
 * syntax; STATUS_MALFORMED: the login is rejected. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_CLICKHOUSE_H
#define OFFBEAT_CLUSTER_CLICKHOUSE_H

#include "base/buffer.h"
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { PLACE_SIZE = 280, DATABASE_SIZE = 64, LOGIN_SIZE = 256, IDLE_CONNECTIONS_MAX = 16 };

/* The login and the connections for all servers of a cluster. */
struct clickhouse {
    const char *scheme; /* "http" or "https" */
    char database[DATABASE_SIZE];
    char user[LOGIN_SIZE], password[LOGIN_SIZE];
    const char *authority; /* PEM file; NULL: the system's */
    pthread_mutex_t lock;  /* lock of IDLE */
    void *idle[IDLE_CONNECTIONS_MAX];
    size_t idle_count;
    atomic_bool is_ending; /* requests end within a second, as if the server did not answer */
};

void clickhouse_init(struct clickhouse *clickhouse);
void clickhouse_fini(struct clickhouse *clickhouse);
/* Reads the two lines of the file PATH. */
enum status clickhouse_read_login(struct clickhouse *clickhouse, const char *path, struct error *error);

/* Takes bytes of an answer. False ends the request, which is no failure then. */
typedef bool clickhouse_receive(void *context, struct slice bytes);

struct clickhouse_request {
    const char *place;            /* HOST:PORT */
    struct slice statement, body; /* BODY: rows for an INSERT, or empty */
    clickhouse_receive *receive;  /* NULL: the answer does not matter */
    void *context;
    bool is_without_database;
    uint32_t answer_ms; /* longest time until the answer is whole; 0: no limit while the server is alive */
    uint32_t ping_ms;   /* longest time until a server that is asked something else answers; 0: ANSWER_MS counts */
    bool *is_silent;    /* set to true if the server did not answer in time; may be NULL */
    bool *has_answered; /* set to true if an answer is whole, also one that is a failure; may be NULL */
};

enum status clickhouse_run(struct clickhouse *clickhouse, const struct clickhouse_request *request,
                           struct error *error);

/* Appends TEXT as a literal of SQL. */
void sql_append_literal(struct buffer *out, struct slice text);
/* Appends BYTES as unhex('…'). */
void sql_append_bytes(struct buffer *out, struct slice bytes);

#endif
