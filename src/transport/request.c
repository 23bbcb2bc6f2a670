/* One request, from the choice of an envelope to its outcome.  SPDX-License-Identifier: MIT */
#include "transport/transport_private.h"

#include "base/gzip.h"

#include <stdio.h>
#include <sys/random.h>

#define DRAIN_SPACING_NS (100 * MILLISECOND_NS) /* facts §3.7 */

enum { ATTEMPTS_MAX = 6, BODY_BYTES_MAX = ENVELOPE_BYTES_MAX + (1 << 20) };

/* --- The next request --------------------------------------------------------------------------------------------- */

void request_fini(struct request *request)
{
    queued_free(request->queued);
    buffer_fini(&request->stored);
    buffer_fini(&request->envelope);
    buffer_fini(&request->body);
    *request = (struct request){.claim.file.number = -1};
}

/* Deletes the file of an envelope that was sent or discarded: the first step after an answer, since a process that is
 * killed between the two sends it twice. */
static void delete_stored(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    transport->is_concluding = true;
    pthread_mutex_unlock(&transport->mutex);
    if (transport->request.is_spooled) spool_remove(&transport->spool, &transport->request.claim);
}

void request_put_back(struct transport *transport)
{
    struct request *request = &transport->request;
    if (request->is_spooled) spool_release(&request->claim);
    if (request->queued) queue_push_front(&transport->memory, request->queued);
    request->queued = NULL;
    request_fini(request);
}

static bool claim_since(struct transport *transport, uint64_t since_ns)
{
    struct request *request = &transport->request;
    struct error error = {0};
    buffer_init(&request->stored, ENVELOPE_BYTES_MAX);
    enum status status = spool_claim(&transport->spool, since_ns, &request->claim, &request->stored, &error);
    error.status = status;
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) transport_report_spool_error(transport, &error);
    request->is_spooled = status == STATUS_OK;
    return request->is_spooled;
}

/* Claims an envelope of the spool; those of this run do not wait for those of others. */
static bool claim_spooled(struct transport *transport)
{
    if (claim_since(transport, transport->started_at_ns)) return true;
    buffer_fini(&transport->request.stored);
    transport->has_nothing = clock_monotonic_ns() >= transport->drain_at_ns;
    return transport->has_nothing && claim_since(transport, 0);
}

/* Finds the next envelope to send; RET_ENVELOPE is empty if only a client report is sent. */
static bool choose(struct transport *transport, struct slice *ret_envelope)
{
    struct request *request = &transport->request;
    *ret_envelope = slice_of(NULL, 0);
    request->queued = queue_pop(&transport->memory);
    if (!request->queued && !transport->has_spool) request->queued = transport_take_from_inbox(transport);
    if (request->queued) {
        *ret_envelope = buffer_slice(&request->queued->bytes);
        return true;
    }
    if (transport->has_spool && claim_spooled(transport)) {
        *ret_envelope = buffer_slice(&request->stored);
        return true;
    }
    return transport_has_discards(transport) && clock_monotonic_ns() >= transport->report_at_ns;
}

/* Attaches the client reports that are due. */
static void attach_report(struct transport *transport)
{
    struct request *request = &transport->request;
    uint8_t memory[REPORT_BYTES_MAX];
    struct buffer payload = {.data = memory, .capacity = sizeof(memory), .maximum = sizeof(memory)};
    request->envelope_size = request->envelope.size;
    if (!transport_has_discards(transport)) return;
    request->reported = transport_take_report(transport, &payload);
    envelope_add_item(&request->envelope, "client_report", NULL, buffer_slice(&payload));
}

static enum status build(struct transport *transport, struct slice envelope, struct error *error)
{
    struct request *request = &transport->request;
    static const char empty_envelope[] = "{}";
    if (envelope.size == 0) envelope = slice_of_text(empty_envelope);
    pthread_mutex_lock(&transport->mutex);
    struct rate_limits limits = transport->limits;
    pthread_mutex_unlock(&transport->mutex);
    return outgoing_build(envelope, &limits, clock_monotonic_ns(), clock_utc_ns(), &request->envelope,
                          &request->outgoing, error);
}

static void report_outcome(struct transport *transport, enum transport_outcome outcome,
                           const struct http_response *response, const char *failure)
{
    const struct request *request = &transport->request;
    pthread_mutex_lock(&transport->mutex);
    struct rate_limits limits = transport->limits;
    pthread_mutex_unlock(&transport->mutex);
    const struct transport_answer answer = {
        .outcome = outcome,
        .is_report = !request->is_spooled && !request->queued,
        .withheld = discards_item_count(&request->outgoing.limited),
        .item_count = request->outgoing.counted_count,
        .spool_name = request->is_spooled ? request->claim.name : "",
        .next_try_ns = transport->not_before_ns,
        .limits = limits,
        .status = response ? response->status : 0,
        .body = response ? response->body : "",
        .rate_limits = response ? response->rate_limits : "",
        .retry_after = response ? response->retry_after : "",
        .failure = failure,
    };
    if (transport->options.answered) transport->options.answered(transport->options.context, &answer);
    pthread_mutex_lock(&transport->mutex);
    transport->is_concluding = false;
    pthread_mutex_unlock(&transport->mutex);
}

/* --- Outcomes ----------------------------------------------------------------------------------------------------- */

/* Returns a time from half of DURATION to all of it, so that many clients of a lost server do not come back together.
 */
static uint64_t with_jitter(uint64_t duration)
{
    uint16_t random = 0;
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return duration / 2 + (uint64_t)((double)duration / 2 * random / UINT16_MAX);
}

static unsigned count_failure(struct transport *transport)
{
    struct request *request = &transport->request;
    if (request->queued) return ++request->queued->failed_attempts;
    if (!request->is_spooled) return 0;
    if (strcmp(transport->failing_name, request->claim.name) != 0) transport->failed_attempts = 0;
    memcpy(transport->failing_name, request->claim.name, sizeof(transport->failing_name));
    return ++transport->failed_attempts;
}

static void report_failed(struct transport *transport)
{
    struct request *request = &transport->request;
    if (discards_are_empty(&request->reported)) return;
    transport_give_report_back(transport, &request->reported);
    transport->report_at_ns = later(clock_monotonic_ns(), transport->report_wait_ns);
    transport->report_wait_ns =
        transport->report_wait_ns * 2 < RETRY_MAX_NS ? transport->report_wait_ns * 2 : RETRY_MAX_NS;
}

static struct slice sent_envelope(const struct transport *transport)
{
    return slice_of(transport->request.envelope.data, transport->request.envelope_size);
}

/* Calls DEBUG when the state changes. FAILURE: NULL if there was a response. */
static void report_network(struct transport *transport, const char *failure)
{
    char message[300];
    if (transport->network_fails == (failure != NULL)) return;
    transport->network_fails = failure != NULL;
    (void)snprintf(message, sizeof(message), "sending: %.250s", failure ? failure : "works again");
    transport_debug(transport, message);
}

void request_fail(struct transport *transport, const char *failure, bool was_sent)
{
    report_network(transport, failure);
    report_failed(transport);
    transport->not_before_ns = later(clock_monotonic_ns(), with_jitter(transport->retry_ns));
    transport->retry_ns *= 2;
    if (transport->retry_ns > transport->options.retry_max_ns) transport->retry_ns = transport->options.retry_max_ns;
    if (!was_sent || count_failure(transport) < ATTEMPTS_MAX) {
        report_outcome(transport, TRANSPORT_NO_ANSWER, NULL, failure);
        request_put_back(transport);
        return;
    }
    delete_stored(transport);
    transport_add_discards(transport, &transport->request.outgoing.limited);
    transport_discard_envelope(transport, DISCARD_NETWORK_ERROR, sent_envelope(transport));
    report_outcome(transport, TRANSPORT_GIVEN_UP, NULL, failure);
    request_fini(&transport->request);
}

static enum transport_outcome outcome_of(long status)
{
    if (status >= 200 && status < 300) return TRANSPORT_SENT;
    return status == 429 ? TRANSPORT_LIMITED : TRANSPORT_REJECTED;
}

static bool is_in_hurry(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_in_hurry = transport->flusher_count > 0 || transport->is_stopping;
    pthread_mutex_unlock(&transport->mutex);
    return is_in_hurry;
}

/* Plans the next request after a response: at once, unless envelopes of earlier runs are drained. */
static void plan_next(struct transport *transport)
{
    uint64_t now = clock_monotonic_ns();
    const struct request *request = &transport->request;
    bool in_hurry = is_in_hurry(transport);
    bool is_old = request->is_spooled && request->claim.time_ns < transport->started_at_ns;
    transport->retry_ns = transport->options.retry_first_ns;
    transport->not_before_ns = 0;
    transport->drain_at_ns = is_old && !in_hurry ? now + DRAIN_SPACING_NS : 0;
    transport->failed_attempts = 0;
}

void request_answer(struct transport *transport, const struct http_response *response)
{
    struct request *request = &transport->request;
    enum transport_outcome outcome = outcome_of(response->status);
    uint64_t counted = request->outgoing.counted_count;
    delete_stored(transport);
    const struct rate_limit_answer answer = {.status = response->status,
                                             .rate_limits = slice_of_text(response->rate_limits),
                                             .retry_after = slice_of_text(response->retry_after),
                                             .time_ns = clock_utc_ns()};
    pthread_mutex_lock(&transport->mutex);
    rate_limits_update(&transport->limits, clock_monotonic_ns(), &answer);
    if (outcome == TRANSPORT_SENT) transport->counts.sent += counted;
    if (outcome == TRANSPORT_LIMITED) transport->counts.limited += counted;
    pthread_mutex_unlock(&transport->mutex);

    report_network(transport, NULL);
    plan_next(transport);
    transport_add_discards(transport, &request->outgoing.limited);
    if (outcome == TRANSPORT_REJECTED)
        transport_discard_envelope(transport, DISCARD_SEND_ERROR, sent_envelope(transport));
    if (outcome != TRANSPORT_SENT) {
        report_failed(transport);
    } else if (!discards_are_empty(&request->reported)) {
        transport->report_wait_ns = transport->options.report_interval_ns;
        if (!is_in_hurry(transport)) transport->report_at_ns = later(clock_monotonic_ns(), transport->report_wait_ns);
    }
    report_outcome(transport, outcome, response, "");
    request_fini(request);
}

/* Ends an envelope without a request: a limit holds for all of it, or it is malformed. */
static void withhold(struct transport *transport, enum transport_outcome outcome, const char *failure)
{
    delete_stored(transport);
    report_outcome(transport, outcome, NULL, failure);
    request_fini(&transport->request);
}

/* Begins with a new connection if the server is to be reached in another way. */
static void follow_changes(struct transport *transport)
{
    if (!transport->options.changed || !transport->options.changed(transport->options.context, &transport->options))
        return;
    transport->spool.bytes_max = transport->options.spool_bytes_max;
    http_free(transport->http);
    transport->http = NULL;
}

static bool send_body(struct transport *transport, struct error *error)
{
    follow_changes(transport);
    struct request *request = &transport->request;
    const struct http_options options = {.url = transport->url,
                                         .auth = transport->auth,
                                         .user_agent = transport->user_agent,
                                         .proxy = transport->options.proxy,
                                         .no_proxy = transport->options.no_proxy,
                                         .ca_file = transport->options.ca_file,
                                         .timeout_ns = transport->options.request_timeout_ns};
    if (!transport->http) transport->http = http_new(&options, error);
    request->is_active =
        transport->http && http_begin(transport->http, buffer_slice(&request->body), error) == STATUS_OK;
    return request->is_active;
}

bool request_begin(struct transport *transport)
{
    struct request *request = &transport->request;
    struct slice envelope;
    struct error error = {0};
    request_fini(request);
    transport->has_nothing = false;
    if (clock_monotonic_ns() < transport->not_before_ns) return false;
    transport->has_nothing = true;
    if (!choose(transport, &envelope)) return false;
    buffer_init(&request->envelope, BODY_BYTES_MAX);
    buffer_init(&request->body, BODY_BYTES_MAX);
    enum status status = build(transport, envelope, &error);
    if (status == STATUS_MALFORMED || status == STATUS_NOT_THIS_FORMAT) {
        transport_discard_envelope(transport, DISCARD_INVALID, envelope); /* counts its readable part */
        withhold(transport, TRANSPORT_BROKEN, error.message);
        return true;
    }
    if (envelope.size && status == STATUS_OK && request->outgoing.item_count == 0) {
        transport_add_discards(transport, &request->outgoing.limited);
        withhold(transport, TRANSPORT_WITHHELD, "a rate limit is in force");
        return true;
    }
    buffer_fini(&request->stored); /* it may be large, and is on disk */
    attach_report(transport);
    if (status == STATUS_OK)
        status = request->envelope.failed
                     ? error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory to send")
                     : gzip_compress(buffer_slice(&request->envelope), GZIP_LEVEL_DEFAULT, &request->body, &error);
    if (status != STATUS_OK || !send_body(transport, &error)) request_fail(transport, error.message, false);
    return true;
}
