/* The thread: it takes what is given into the spool, has at most one request under way, and otherwise sleeps until
 * there is something to do. SPDX-License-Identifier: MIT */
#include "transport/transport_private.h"

#include <stdlib.h>

#define SPOOL_LOOK_NS (60 * SECOND_NS) /* interval of checks for files of processes that died */

enum {
    STEP_MS_MAX = 50, /* poll does not wait for the requests of other threads, which are in memory */
    STORED_MAX = 8,   /* envelopes between two steps of a request, which a stream of them must not hold up */
};

/* --- Small things ------------------------------------------------------------------------------------------------- */

static void clear_wake(struct transport *transport)
{
    pthread_mutex_lock(&transport->wake_mutex);
    transport->is_woken = false;
    pthread_mutex_unlock(&transport->wake_mutex);
}

static void sleep_until_woken(struct transport *transport, uint64_t until_ns)
{
    struct timespec until = timespec_of(until_ns);
    pthread_mutex_lock(&transport->wake_mutex);
    while (!transport->is_woken && pthread_cond_timedwait(&transport->woken, &transport->wake_mutex, &until) == 0)
        continue;
    pthread_mutex_unlock(&transport->wake_mutex);
}

static void put_back_active(struct transport *transport)
{
    if (!transport->request.is_active) return;
    transport_give_report_back(transport, &transport->request.reported);
    request_put_back(transport);
}

static void close_all(struct transport *transport)
{
    if (transport->request.is_active) http_cancel(transport->http);
    put_back_active(transport);
    http_free(transport->http);
    transport->http = NULL;
    spool_fini(&transport->spool);
}

/* --- The inbox ---------------------------------------------------------------------------------------------------- */

/* Moves envelopes from the queue to the spool, if there is one. */
static void spool_inbox(struct transport *transport)
{
    clear_wake(transport);
    if (!transport->has_spool) return;
    unsigned left = STORED_MAX;
    for (struct queued *queued = transport_take_from_inbox(transport); queued;
         queued = transport_take_from_inbox(transport)) {
        if (!transport_store(transport, buffer_slice(&queued->bytes)) &&
            !queue_push(&transport->memory, &queued->bytes))
            transport_discard_envelope(transport, DISCARD_QUEUE_OVERFLOW, buffer_slice(&queued->bytes));
        queued_free(queued);
        if (--left == 0) {
            transport_wake(transport); /* there may be more: do not sleep */
            return;
        }
    }
}

static int milliseconds_until(uint64_t time_ns)
{
    uint64_t now = clock_monotonic_ns();
    if (time_ns <= now) return 0;
    uint64_t left = (time_ns - now) / MILLISECOND_NS + 1;
    return left < 60 * 1000 ? (int)left : 60 * 1000;
}

static uint64_t stop_time(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    uint64_t time = transport->is_stopping ? transport->stop_at_ns : UINT64_MAX;
    pthread_mutex_unlock(&transport->mutex);
    return time;
}

static void step_request(struct transport *transport)
{
    int timeout_ms = milliseconds_until(stop_time(transport));
    if (!http_step(transport->http, timeout_ms < STEP_MS_MAX ? timeout_ms : STEP_MS_MAX)) return;
    const struct http_response *response = http_last_response(transport->http);
    if (response->status) {
        request_answer(transport, response);
    } else {
        request_fail(transport, response->failure, response->was_sent);
    }
}

/* Sleeps until there is something to do, after waking the threads that wait for that. */
static void rest(struct transport *transport)
{
    uint64_t now = clock_monotonic_ns(), until = UINT64_MAX;
    if (!transport->has_nothing)
        until = transport->not_before_ns > now ? transport->not_before_ns : transport->drain_at_ns;
    else if (transport->has_spool)
        until = now + SPOOL_LOOK_NS;
    if (until > transport->report_at_ns && transport->report_at_ns > now && transport_has_discards(transport))
        until = transport->report_at_ns;
    pthread_mutex_lock(&transport->mutex);
    transport->is_idle = transport->has_nothing && !transport->is_hurried && transport->inbox.count == 0;
    if (transport->is_idle) pthread_cond_broadcast(&transport->changed);
    bool sleeps = !transport->is_hurried && !(transport->is_idle && transport->is_stopping);
    if (transport->is_stopping && until > transport->stop_at_ns) until = transport->stop_at_ns;
    pthread_mutex_unlock(&transport->mutex);
    if (sleeps) sleep_until_woken(transport, until);
}

/* Tries everything at once if a thread began to wait. */
static void hurry(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_hurried = transport->is_hurried;
    transport->is_hurried = false;
    pthread_mutex_unlock(&transport->mutex);
    if (!is_hurried) return;
    transport->not_before_ns = 0;
    transport->drain_at_ns = 0;
    transport->report_at_ns = 0;
}

/* True if the thread shall end: it stops and is idle, or the next try would come too late. */
static bool is_over(struct transport *transport)
{
    bool rests = !transport->request.is_active;
    pthread_mutex_lock(&transport->mutex);
    uint64_t next_ns =
        rests && transport->not_before_ns > clock_monotonic_ns() ? transport->not_before_ns : clock_monotonic_ns();
    bool is_over =
        transport->is_stopping && !transport->is_hurried && (transport->is_idle || next_ns >= transport->stop_at_ns);
    pthread_mutex_unlock(&transport->mutex);
    return is_over;
}

/* Stores counts that are not reported yet: the next owner of the spool reports them. */
static void store_reports(struct transport *transport)
{
    while (transport_has_discards(transport)) {
        uint8_t memory[REPORT_BYTES_MAX];
        struct buffer payload = {.data = memory, .capacity = sizeof(memory), .maximum = sizeof(memory)};
        struct buffer envelope = {.maximum = 2 * REPORT_BYTES_MAX};
        struct discards taken = transport_take_report(transport, &payload);
        envelope_begin_with(&envelope, slice_of_text("{}"));
        envelope_add_item(&envelope, "client_report", NULL, buffer_slice(&payload));
        bool is_stored = !envelope.failed && transport_store(transport, buffer_slice(&envelope));
        buffer_fini(&envelope);
        if (is_stored) continue;
        transport_give_report_back(transport, &taken);
        return;
    }
}

static void keep_or_discard(struct transport *transport)
{
    if (transport->request.is_active) http_cancel(transport->http);
    put_back_active(transport);
    struct queued *queued;
    while ((queued = queue_pop(&transport->memory)) || (queued = transport_take_from_inbox(transport))) {
        if (!transport->has_spool || !transport_store(transport, buffer_slice(&queued->bytes)))
            transport_discard_envelope(transport, DISCARD_NETWORK_ERROR, buffer_slice(&queued->bytes));
        queued_free(queued);
    }
    if (transport->has_spool) store_reports(transport);
    if (transport_has_discards(transport)) transport_debug(transport, "what was discarded could not be reported");
}

/* --- Its life ----------------------------------------------------------------------------------------------------- */

void transport_free(struct transport *transport)
{
    if (!transport) return;
    request_fini(&transport->request);
    queue_fini(&transport->inbox);
    queue_fini(&transport->memory);
    pthread_cond_destroy(&transport->changed);
    pthread_mutex_destroy(&transport->mutex);
    pthread_mutex_destroy(&transport->wake_mutex);
    pthread_cond_destroy(&transport->woken);
    free(transport);
}

void *transport_run(void *context)
{
    struct transport *transport = context;
    while (!is_over(transport)) {
        spool_inbox(transport);
        hurry(transport);
        if (transport->request.is_active) {
            step_request(transport);
        } else if (!request_begin(transport)) {
            rest(transport);
        }
    }
    keep_or_discard(transport);
    close_all(transport);
    pthread_mutex_lock(&transport->mutex);
    transport->is_ended = true;
    bool is_abandoned = transport->is_abandoned;
    pthread_cond_broadcast(&transport->changed);
    pthread_mutex_unlock(&transport->mutex);
    if (is_abandoned) transport_free(transport);
    return NULL;
}
