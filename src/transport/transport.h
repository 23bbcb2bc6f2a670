/* Takes finished envelopes and sends them to a server (facts §2.3–2.7, §3.7).
 *
 * A separate thread, which blocks all signals, spools and sends. What happens to an envelope:
 *
 *   - It is added to the queue; if that is full, the newest is dropped (queue_overflow).
 *   - With a spool, it is stored there before it is sent; if the spool is full, the oldest is dropped (cache_overflow).
 *     A spool that cannot be written leaves envelopes in memory, and DEBUG is called. Envelopes that earlier runs left
 *     in the spool are sent too, 100 ms apart.
 *   - Items of a category under a rate limit are dropped when their turn comes (ratelimit_backoff).
 *   - A response 2xx: sent. 429: dropped, and counted by the server. Any other: dropped (send_error), never retried.
 *   - No response: all sending pauses, longer each time, up to RETRY_MAX_NS, with jitter; then it is tried again. An
 *     envelope that failed six times after a part of it was sent is dropped (network_error).
 *
 * The file is deleted as soon as the response is there, ahead of every count. An envelope is sent twice, with the same
 * ids, if the process dies or the connection ends while the response is on its way: `offbeat serve` drops the second
 * one.
 *
 * Dropped items are counted, and reported to the server with the next envelope, or alone after REPORT_INTERVAL_NS. A
 * report that does not arrive is reported again. At the end, unsent envelopes and unreported counts are stored in the
 * spool; without a spool, both are lost.
 *
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_TRANSPORT_H
#define OFFBEAT_TRANSPORT_TRANSPORT_H

#include "spool/discards.h"
#include "spool/rate_limits.h"

enum transport_outcome {
    TRANSPORT_SENT,      /* 2xx */
    TRANSPORT_REJECTED,  /* any other status but 429 */
    TRANSPORT_LIMITED,   /* 429 */
    TRANSPORT_WITHHELD,  /* no request: a rate limit was in force for all of it */
    TRANSPORT_BROKEN,    /* no request: it is no envelope */
    TRANSPORT_NO_ANSWER, /* is tried again */
    TRANSPORT_GIVEN_UP,  /* no answer for the last time */
};

/* Texts live as long as the call. */
struct transport_answer {
    enum transport_outcome outcome;
    bool is_report;            /* nothing but a client report */
    uint64_t withheld;         /* number of items that were left out because of a rate limit, or would have been */
    uint64_t item_count;       /* number of the other items, without client reports */
    const char *spool_name;    /* name of the envelope's file in the spool, or "" */
    uint64_t next_try_ns;      /* CLOCK_MONOTONIC time of the next request after TRANSPORT_NO_ANSWER */
    struct rate_limits limits; /* limits in force, of CLOCK_MONOTONIC */
    long status;               /* 0: no response */
    const char *body, *rate_limits, *retry_after;
    const char *failure; /* reason why there was no response, or "" */
};

/* Numbers that are 0 have the default named. PROXY, NO_PROXY and CA_FILE live as long as the transport. */
struct transport_options {
    const char *dsn;
    const char *spool_folder;    /* NULL: none. Its parent must exist; each server gets a folder in it */
    uint64_t spool_bytes_max;    /* 100 MiB */
    size_t spool_count_max;      /* 100 */
    size_t queue_bytes_max;      /* 100 MiB */
    size_t queue_count_max;      /* 100 */
    const char *proxy;           /* NULL: by http_proxy, https_proxy, all_proxy; "": none. no_proxy holds, too */
    const char *no_proxy;        /* NULL: by no_proxy */
    const char *ca_file;         /* PEM; NULL: the system's */
    uint64_t request_timeout_ns; /* longest time without a moved byte: 30 s */
    uint64_t retry_first_ns;     /* 5 s, doubled after each failure */
    uint64_t retry_max_ns;       /* 1 h */
    uint64_t report_interval_ns; /* 30 s */
    struct rate_limits limits;   /* limits that an earlier process knew, of CLOCK_MONOTONIC */
    /* Called by the thread, for people who debug. NULL: nobody. */
    void (*debug)(void *context, const char *message);
    /* Called by the thread for each request that ended. NULL: nobody. */
    void (*answered)(void *context, const struct transport_answer *answer);
    /* Called by the thread ahead of each request: changes PROXY, NO_PROXY, CA_FILE and the maximum of the
     * spool. True if it did.
     * NULL: they stay. */
    bool (*changed)(void *context, struct transport_options *options);
    void *context;
};

/* Numbers of items, without client reports. If no other process has the spool, MADE and the items in the spool at the
 * start are together the sum of the others and of the items that are left. */
struct transport_counts {
    uint64_t made;
    uint64_t sent;
    uint64_t limited;   /* dropped after a response 429 */
    uint64_t discarded; /* reported, or to be reported */
};

struct transport;

/* Starts a thread; libcurl is loaded with the first request. NULL: ERROR has the reason (a wrong DSN, no thread). */
struct transport *transport_start(const struct transport_options *options, struct error *error);

/* Takes the bytes out of ENVELOPE and returns at once. From any thread. False if it was discarded (and counted). */
bool transport_send(struct transport *transport, struct buffer *envelope);
/* Counts data that the caller did not make. From any thread. */
void transport_discard(struct transport *transport, enum discard_reason reason, enum category category,
                       uint64_t quantity);
/* Counts items of others that were dropped. From any thread. */
void transport_add_discards(struct transport *transport, const struct discards *discards);
struct transport_counts transport_counts(struct transport *transport);

/* Makes the thread look into the spool, where another process has put something. */
void transport_look(struct transport *transport);
/* Tries at once to send everything. */
void transport_hurry(struct transport *transport);
/* Waits until nothing is left to send, at most TIMEOUT_NS; true then. */
bool transport_await_idle(struct transport *transport, uint64_t timeout_ns);
/* True while an envelope may be gone from the spool, and ANSWERED was not told yet what became of it. */
bool transport_is_concluding(struct transport *transport);
/* Does both. From any thread. */
bool transport_flush(struct transport *transport, uint64_t timeout_ns);

/* Flushes TRANSPORT (which may be NULL), ends it, whatever the network does, and frees it. Call it once, when no other
 * thread uses it. False if it had to end before all was sent. Takes at most TIMEOUT_NS and three seconds, in which the
 * rest is stored and TLS finishes computing; less if the next try would come too late. A thread that is held up for
 * longer, for example by a disk, ends later on its own, and calls DEBUG until then. */
bool transport_stop(struct transport *transport, uint64_t timeout_ns);

#endif
