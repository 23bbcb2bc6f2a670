/* The state of a transport, and what its files share.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_TRANSPORT_PRIVATE_H
#define OFFBEAT_TRANSPORT_TRANSPORT_PRIVATE_H

#include "base/timespec.h"
#include "transport/dsn.h"
#include "transport/http.h"
#include "transport/outgoing.h"
#include "transport/queue.h"
#include "transport/spool.h"
#include "transport/transport.h"

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#define MILLISECOND_NS ((uint64_t)1000000)
#define SECOND_NS ((uint64_t)1000000000)
#define RETRY_MAX_NS (3600 * SECOND_NS)

enum { REPORT_BYTES_MAX = 4 << 10 };

/* What is being sent, or is about to be. Of the thread alone. */
struct request {
    bool is_active;
    bool is_spooled; /* it is CLAIM, else QUEUED; neither if it is nothing but a report */
    struct spool_claim claim;
    struct queued *queued;  /* NULL or owned */
    struct buffer stored;   /* what CLAIM holds */
    struct buffer envelope; /* as it is sent, before compression; the report, if there is one, comes last */
    size_t envelope_size;   /* without the report */
    struct buffer body;     /* gzip of that */
    struct outgoing outgoing;
    struct discards reported; /* in the report that comes last */
};

struct transport {
    unsigned owner; /* process_number() */
    pthread_t thread;

    pthread_mutex_t wake_mutex; /* for these; may be taken with MUTEX held */
    pthread_cond_t woken;
    bool is_woken;

    pthread_mutex_t mutex; /* for what follows, up to the thread's own */
    pthread_cond_t changed;
    struct queue inbox;
    struct rate_limits limits;
    struct discards discards; /* not reported yet */
    struct transport_counts counts;
    unsigned flusher_count;
    bool is_hurried; /* somebody began to wait: do not rest any longer */
    bool is_idle;    /* nothing left to send */
    bool is_stopping, is_ended, is_abandoned;
    bool is_leaving, leaves_for_good, has_left; /* stepping aside */
    bool is_given_up;                           /* transport_end waits no longer, nor shall a flush */
    uint64_t stop_at_ns;

    struct transport_options options; /* its texts are copies; of the thread alone, as all below */
    struct dsn dsn;
    char url[DSN_URL_SIZE], auth[DSN_AUTH_SIZE], user_agent[DSN_CLIENT_SIZE];
    bool has_spool, spool_fails, network_fails;
    struct spool spool;
    struct queue memory; /* what the spool did not take */
    struct http *http;
    struct own_descriptor witness; /* open until the program closes what it did not open; never readable */
    struct request request;
    char failing_name[SPOOL_NAME_SIZE]; /* of the spool, with FAILED_ATTEMPTS */
    unsigned failed_attempts;
    uint64_t retry_ns;       /* how long to wait after the next failure */
    uint64_t not_before_ns;  /* no request before that */
    uint64_t drain_at_ns;    /* nothing that was in the spool when we began is sent before that */
    uint64_t report_wait_ns; /* how long to wait after the next report */
    uint64_t report_at_ns;   /* no separate report before that */
    uint64_t started_at_ns;  /* UTC */
    bool has_nothing;        /* nothing to send, except perhaps a report: all sources were checked */
};

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t later(uint64_t now, uint64_t duration)
{
    return duration > UINT64_MAX - now ? UINT64_MAX : now + duration;
}

/* --- outcomes.c: from any thread where it says so, else from the transport's alone ----------------------------- */

void transport_debug(const struct transport *transport, const char *message);
void transport_wake(struct transport *transport); /* from any thread */

/* From any thread. */
void transport_add_discards(struct transport *transport, const struct discards *discards);
void transport_discard_envelope(struct transport *transport, enum discard_reason reason, struct slice envelope);
bool transport_has_discards(struct transport *transport);

/* Moves counts into a report, and back where it did not arrive. */
struct discards transport_take_report(struct transport *transport, struct buffer *payload);
void transport_give_report_back(struct transport *transport, const struct discards *reported);

struct queued *transport_take_from_inbox(struct transport *transport);
/* Into the spool. False if it must stay in memory. */
bool transport_store(struct transport *transport, struct slice envelope);
/* Calls DEBUG when the spool begins to fail, or works again. */
void transport_report_spool_error(struct transport *transport, const struct error *error);

/* --- request.c: of the thread ------------------------------------------------------------------------------------- */

void request_fini(struct request *request);
/* Begins with what is to be sent next. False if there is nothing, or nothing yet (see HAS_NOTHING). */
bool request_begin(struct transport *transport);
/* The request ended with a response, or without one; WAS_SENT: at least a part of it was sent. */
void request_answer(struct transport *transport, const struct http_response *response);
void request_fail(struct transport *transport, const char *failure, bool was_sent);
/* The envelope returns to the queue or the spool, and is tried again. */
void request_put_back(struct transport *transport);

/* --- thread.c ----------------------------------------------------------------------------------------------------- */

/* What could not be sent is stored, or discarded. */
void transport_keep_or_discard(struct transport *transport);
/* By the thread that opened what is open: it may have a separate table of descriptors. */
void transport_close_all(struct transport *transport);
/* The thread; CONTEXT is the transport. */
void *transport_run(void *context);
/* Of a transport without a thread; accepts one that is half made. */
void transport_free(struct transport *transport);

#endif
