/* The state of a transport, and the functions that its files share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_TRANSPORT_PRIVATE_H
#define OFFBEAT_TRANSPORT_TRANSPORT_PRIVATE_H

#include "base/clocks.h"
#include "base/timespec.h"
#include "spool/dsn.h"
#include "transport/http.h"
#include "transport/outgoing.h"
#include "spool/queue.h"
#include "spool/spool.h"
#include "transport/transport.h"

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#define RETRY_MAX_NS (3600 * SECOND_NS)

enum { REPORT_BYTES_MAX = 4 << 10 };

/* The current or next request. Used by the thread only. */
struct request {
    bool is_active;
    bool is_spooled; /* true: the envelope is CLAIM; otherwise QUEUED, or NULL for a mere report */
    struct spool_claim claim;
    struct queued *queued;  /* NULL or owned */
    struct buffer stored;   /* bytes of CLAIM */
    struct buffer envelope; /* the sent envelope, uncompressed; a report comes last */
    size_t envelope_size;   /* size without the report */
    struct buffer body;     /* ENVELOPE, compressed with gzip */
    struct outgoing outgoing;
    struct discards reported; /* counts in the report */
};

struct transport {
    pthread_t thread;

    pthread_mutex_t wake_mutex; /* guards the next two members; may be taken with MUTEX held */
    pthread_cond_t woken;
    bool is_woken;

    pthread_mutex_t mutex; /* guards the next members, up to OPTIONS */
    pthread_cond_t changed;
    struct queue inbox;
    struct rate_limits limits;
    struct discards discards; /* counts that are not reported yet */
    struct transport_counts counts;
    unsigned flusher_count;
    bool is_hurried;    /* a thread began to wait: do not rest */
    bool is_idle;       /* nothing left to send */
    bool is_concluding; /* an envelope is gone, and ANSWERED does not know its outcome yet */
    bool is_stopping, is_ended, is_abandoned;
    uint64_t stop_at_ns;

    struct transport_options options; /* texts are copies. Used by the thread only, as are the members below */
    struct dsn dsn;
    char url[DSN_URL_SIZE], auth[DSN_AUTH_SIZE], user_agent[DSN_CLIENT_SIZE];
    bool has_spool, spool_fails, network_fails;
    struct spool spool;
    struct queue memory; /* envelopes that the spool did not take */
    struct http *http;
    struct request request;
    char failing_name[SPOOL_NAME_SIZE]; /* name in the spool of the envelope with FAILED_ATTEMPTS */
    unsigned failed_attempts;
    uint64_t retry_ns;       /* wait after the next failure, ns */
    uint64_t not_before_ns;  /* time of the next request */
    uint64_t drain_at_ns;    /* time of the next envelope of an earlier run */
    uint64_t report_wait_ns; /* wait after the next report, ns */
    uint64_t report_at_ns;   /* time of the next separate report */
    uint64_t started_at_ns;  /* UTC */
    bool has_nothing;        /* nothing to send, except perhaps a report: all sources were checked */
};

static inline uint64_t later(uint64_t now, uint64_t duration)
{
    return duration > UINT64_MAX - now ? UINT64_MAX : now + duration;
}

/* --- outcomes.c: called by any thread ----------------------------------------------------------------------------- */

void transport_wake(struct transport *transport);
void transport_discard_envelope(struct transport *transport, enum discard_reason reason, struct slice envelope);
bool transport_has_discards(struct transport *transport);

/* --- outcomes.c: called by the transport's thread ----------------------------------------------------------------- */

void transport_debug(const struct transport *transport, const char *message);

/* Moves counts into a report, and back if it did not arrive. */
struct discards transport_take_report(struct transport *transport, struct buffer *payload);
void transport_give_report_back(struct transport *transport, const struct discards *reported);

struct queued *transport_take_from_inbox(struct transport *transport);
/* Stores ENVELOPE in the spool. False if it must stay in memory. */
bool transport_store(struct transport *transport, struct slice envelope);
/* Calls DEBUG when the spool begins to fail, or works again. */
void transport_report_spool_error(struct transport *transport, const struct error *error);

/* --- request.c: called by the thread ------------------------------------------------------------------------------ */

void request_fini(struct request *request);
/* Begins with the next envelope or report. False if there is none, or none yet (see HAS_NOTHING). */
bool request_begin(struct transport *transport);
/* End a request with a response, or without one; WAS_SENT: at least a part of it was sent. */
void request_answer(struct transport *transport, const struct http_response *response);
void request_fail(struct transport *transport, const char *failure, bool was_sent);
/* Puts the envelope back into the queue or the spool: it is tried again. */
void request_put_back(struct transport *transport);

/* --- thread.c ----------------------------------------------------------------------------------------------------- */

/* Runs the thread; CONTEXT is the transport. */
void *transport_run(void *context);
/* Frees a transport without a thread; accepts a half-built one. */
void transport_free(struct transport *transport);

#endif
