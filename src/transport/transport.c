/* The thread: it takes what is given into the spool, has at most one request under way, and otherwise sleeps until
 * there is something to do. SPDX-License-Identifier: MIT */
#include "transport/transport.h"

#include "base/gzip.h"
#include "base/json_writer.h"
#include "transport/dsn.h"
#include "transport/http.h"
#include "transport/outgoing.h"
#include "transport/queue.h"
#include "transport/spool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND_NS ((uint64_t)1000000)
#define SECOND_NS ((uint64_t)1000000000)
#define RETRY_FIRST_NS (5 * SECOND_NS)
#define RETRY_MAX_NS (3600 * SECOND_NS)
#define REQUEST_TIMEOUT_NS (30 * SECOND_NS)
#define REPORT_INTERVAL_NS (30 * SECOND_NS)
#define SPOOL_LOOK_NS (60 * SECOND_NS)          /* for what other processes left when they died */
#define DRAIN_SPACING_NS (100 * MILLISECOND_NS) /* facts §3.7 */
#define STOP_GRACE_NS (300 * MILLISECOND_NS)    /* for storing what is left */

enum {
    COUNT_MAX_DEFAULT = 100,
    BYTES_MAX_DEFAULT = 100 << 20,
    ATTEMPTS_MAX = 6,
    REPORT_BYTES_MAX = 4 << 10,
    STACK_BYTES = 512 << 10,
    STEP_MS_MAX = 1000,
    STORED_MAX = 8, /* between two steps of a request, which a stream of envelopes must not hold up */
    BODY_BYTES_MAX = ENVELOPE_BYTES_MAX + (1 << 20),
};

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
    pid_t owner;
    pthread_t thread;
    int wake_descriptor; /* an eventfd */

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
    uint64_t stop_at_ns;

    struct transport_options options; /* its texts are copies; of the thread alone, as all below */
    struct dsn dsn;
    char url[DSN_URL_SIZE], auth[DSN_AUTH_SIZE], user_agent[DSN_AUTH_SIZE];
    bool has_spool, spool_fails, network_fails;
    struct spool spool;
    struct queue memory; /* what the spool did not take */
    struct http *http;
    struct request request;
    char failing_name[SPOOL_NAME_SIZE]; /* of the spool, with FAILED_ATTEMPTS */
    unsigned failed_attempts;
    uint64_t retry_ns;       /* how long to rest after the next failure */
    uint64_t not_before_ns;  /* no request */
    uint64_t drain_at_ns;    /* nothing of what lay in the spool when we began */
    uint64_t report_wait_ns; /* after the next report */
    uint64_t report_at_ns;   /* no report of its own before that */
    uint64_t started_at_ns;  /* UTC */
    bool has_nothing;        /* to send, but perhaps a report: all places were looked at */
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t later(uint64_t now, uint64_t duration)
{
    return duration > UINT64_MAX - now ? UINT64_MAX : now + duration;
}

static void debug(const struct transport *transport, const char *message)
{
    if (transport->options.debug) transport->options.debug(transport->options.context, message);
}

static void wake(const struct transport *transport)
{
    uint64_t one = 1;
    (void)!write(transport->wake_descriptor, &one, sizeof(one));
}

/* --- What the thread counts --------------------------------------------------------------------------------------- */

static void add_discards(struct transport *transport, const struct discards *discards)
{
    pthread_mutex_lock(&transport->mutex);
    discards_add_all(&transport->discards, discards);
    transport->counts.discarded += discards_item_count(discards);
    pthread_mutex_unlock(&transport->mutex);
}

static void discard_envelope(struct transport *transport, enum discard_reason reason, struct slice envelope)
{
    struct discards discards = {0};
    discards_add_envelope(&discards, reason, envelope);
    add_discards(transport, &discards);
}

/* They were counted before. */
static void give_report_back(struct transport *transport, const struct discards *reported)
{
    pthread_mutex_lock(&transport->mutex);
    discards_add_all(&transport->discards, reported);
    pthread_mutex_unlock(&transport->mutex);
}

static struct discards take_report(struct transport *transport, struct buffer *payload)
{
    struct discards taken;
    pthread_mutex_lock(&transport->mutex);
    discards_take_report(&transport->discards, clock_ns(CLOCK_REALTIME), &taken, payload);
    pthread_mutex_unlock(&transport->mutex);
    return taken;
}

static bool has_discards(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool has = !discards_are_empty(&transport->discards);
    pthread_mutex_unlock(&transport->mutex);
    return has;
}

/* --- From the queue into the spool -------------------------------------------------------------------------------- */

static void tell_of_spool(struct transport *transport, const struct error *error)
{
    bool fails = error->status != STATUS_OK && error->status != STATUS_NOT_FOUND;
    if (fails == transport->spool_fails) return;
    transport->spool_fails = fails;
    char message[300];
    (void)snprintf(message, sizeof(message), "%s", fails ? error->message : "spool: works again");
    if (fails) (void)snprintf(message, sizeof(message), "%s; envelopes stay in memory", error->message);
    debug(transport, message);
}

static bool store(struct transport *transport, struct slice envelope)
{
    struct error error = {0};
    struct discards dropped = {0};
    enum status status = spool_store(&transport->spool, envelope, &dropped, &error);
    if (!discards_are_empty(&dropped)) add_discards(transport, &dropped);
    error.status = status == STATUS_NOT_FOUND ? STATUS_IO : status;
    if (status != STATUS_TOO_LARGE) tell_of_spool(transport, &error);
    return status == STATUS_OK;
}

static struct queued *take_from_inbox(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    struct queued *queued = queue_pop(&transport->inbox);
    pthread_mutex_unlock(&transport->mutex);
    return queued;
}

/* Without a spool, they stay in the queue until they are sent. */
static void spool_inbox(struct transport *transport)
{
    uint64_t count;
    (void)!read(transport->wake_descriptor, &count, sizeof(count));
    if (!transport->has_spool) return;
    unsigned left = STORED_MAX;
    for (struct queued *queued = take_from_inbox(transport); queued; queued = take_from_inbox(transport)) {
        if (!store(transport, buffer_slice(&queued->bytes)) && !queue_push(&transport->memory, &queued->bytes))
            discard_envelope(transport, DISCARD_QUEUE_OVERFLOW, buffer_slice(&queued->bytes));
        queued_free(queued);
        if (--left == 0) {
            wake(transport); /* there may be more: do not sleep */
            return;
        }
    }
}

/* --- What is sent next -------------------------------------------------------------------------------------------- */

static void request_fini(struct request *request)
{
    queued_free(request->queued);
    buffer_fini(&request->stored);
    buffer_fini(&request->envelope);
    buffer_fini(&request->body);
    *request = (struct request){.claim.descriptor = -1};
}

/* It is sent or discarded. */
static void close_request(struct transport *transport)
{
    if (transport->request.is_spooled) spool_remove(&transport->spool, &transport->request.claim);
    request_fini(&transport->request);
}

/* It is tried again. */
static void put_back(struct transport *transport)
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
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) tell_of_spool(transport, &error);
    request->is_spooled = status == STATUS_OK;
    return request->is_spooled;
}

/* What was made in this run does not wait for what others left. */
static bool claim_spooled(struct transport *transport)
{
    if (claim_since(transport, transport->started_at_ns)) return true;
    buffer_fini(&transport->request.stored);
    transport->has_nothing = now_ns() >= transport->drain_at_ns;
    return transport->has_nothing && claim_since(transport, 0);
}

/* Finds what is to be sent next; RET_ENVELOPE is empty where that is nothing but a report. */
static bool choose(struct transport *transport, struct slice *ret_envelope)
{
    struct request *request = &transport->request;
    *ret_envelope = slice_of(NULL, 0);
    request->queued = queue_pop(&transport->memory);
    if (!request->queued && !transport->has_spool) request->queued = take_from_inbox(transport);
    if (request->queued) {
        *ret_envelope = buffer_slice(&request->queued->bytes);
        return true;
    }
    if (transport->has_spool && claim_spooled(transport)) {
        *ret_envelope = buffer_slice(&request->stored);
        return true;
    }
    return has_discards(transport) && now_ns() >= transport->report_at_ns;
}

/* The reports that are due go with it. */
static void attach_report(struct transport *transport)
{
    struct request *request = &transport->request;
    uint8_t memory[REPORT_BYTES_MAX];
    struct buffer payload = {.data = memory, .capacity = sizeof(memory), .maximum = sizeof(memory)};
    request->envelope_size = request->envelope.size;
    if (!has_discards(transport)) return;
    request->reported = take_report(transport, &payload);
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
    return outgoing_build(envelope, &limits, now_ns(), clock_ns(CLOCK_REALTIME), &request->envelope, &request->outgoing,
                          error);
}

static void tell(struct transport *transport, enum transport_outcome outcome, const struct http_response *response,
                 const char *failure)
{
    const struct request *request = &transport->request;
    const struct transport_answer answer = {
        .outcome = outcome,
        .is_report = !request->is_spooled && !request->queued,
        .withheld = discards_item_count(&request->outgoing.limited),
        .status = response ? response->status : 0,
        .body = response ? response->body : "",
        .rate_limits = response ? response->rate_limits : "",
        .retry_after = response ? response->retry_after : "",
        .failure = failure,
    };
    if (transport->options.answered) transport->options.answered(transport->options.context, &answer);
}

/* --- What comes of it --------------------------------------------------------------------------------------------- */

/* Between half of DURATION and all of it, so that many who lost the same receiver do not come back together. */
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
    give_report_back(transport, &request->reported);
    transport->report_at_ns = later(now_ns(), transport->report_wait_ns);
    transport->report_wait_ns =
        transport->report_wait_ns * 2 < RETRY_MAX_NS ? transport->report_wait_ns * 2 : RETRY_MAX_NS;
}

static struct slice sent_envelope(const struct transport *transport)
{
    return slice_of(transport->request.envelope.data, transport->request.envelope_size);
}

/* Told when it changes. FAILURE: NULL if there was a response. */
static void tell_of_network(struct transport *transport, const char *failure)
{
    char message[300];
    if (transport->network_fails == (failure != NULL)) return;
    transport->network_fails = failure != NULL;
    (void)snprintf(message, sizeof(message), "sending: %.250s", failure ? failure : "works again");
    debug(transport, message);
}

static void fail_request(struct transport *transport, const char *failure, bool was_sent)
{
    tell_of_network(transport, failure);
    report_failed(transport);
    transport->not_before_ns = later(now_ns(), with_jitter(transport->retry_ns));
    transport->retry_ns *= 2;
    if (transport->retry_ns > transport->options.retry_max_ns) transport->retry_ns = transport->options.retry_max_ns;
    if (!was_sent || count_failure(transport) < ATTEMPTS_MAX) {
        tell(transport, TRANSPORT_NO_ANSWER, NULL, failure);
        put_back(transport);
        return;
    }
    add_discards(transport, &transport->request.outgoing.limited);
    discard_envelope(transport, DISCARD_NETWORK_ERROR, sent_envelope(transport));
    tell(transport, TRANSPORT_GIVEN_UP, NULL, failure);
    close_request(transport);
}

static enum transport_outcome outcome_of(long status)
{
    if (status >= 200 && status < 300) return TRANSPORT_SENT;
    return status == 429 ? TRANSPORT_LIMITED : TRANSPORT_REFUSED;
}

static bool is_in_hurry(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_in_hurry = transport->flusher_count > 0 || transport->is_stopping;
    pthread_mutex_unlock(&transport->mutex);
    return is_in_hurry;
}

/* After a response: the next request may come at once, but for what is drained. */
static void plan_next(struct transport *transport)
{
    uint64_t now = now_ns();
    const struct request *request = &transport->request;
    bool in_hurry = is_in_hurry(transport);
    bool is_old = request->is_spooled && request->claim.time_ns < transport->started_at_ns;
    transport->retry_ns = transport->options.retry_first_ns;
    transport->not_before_ns = 0;
    transport->drain_at_ns = is_old && !in_hurry ? now + DRAIN_SPACING_NS : 0;
    transport->failed_attempts = 0;
}

static void answer_request(struct transport *transport, const struct http_response *response)
{
    struct request *request = &transport->request;
    enum transport_outcome outcome = outcome_of(response->status);
    uint64_t counted = request->outgoing.counted_count;
    const struct rate_limit_answer answer = {.status = response->status,
                                             .rate_limits = slice_of_text(response->rate_limits),
                                             .retry_after = slice_of_text(response->retry_after),
                                             .time_ns = clock_ns(CLOCK_REALTIME)};
    pthread_mutex_lock(&transport->mutex);
    rate_limits_update(&transport->limits, now_ns(), &answer);
    if (outcome == TRANSPORT_SENT) transport->counts.sent += counted;
    if (outcome == TRANSPORT_LIMITED) transport->counts.limited += counted;
    pthread_mutex_unlock(&transport->mutex);

    tell_of_network(transport, NULL);
    plan_next(transport);
    add_discards(transport, &request->outgoing.limited);
    if (outcome == TRANSPORT_REFUSED) discard_envelope(transport, DISCARD_SEND_ERROR, sent_envelope(transport));
    if (outcome != TRANSPORT_SENT) {
        report_failed(transport);
    } else if (!discards_are_empty(&request->reported)) {
        transport->report_wait_ns = transport->options.report_interval_ns;
        if (!is_in_hurry(transport)) transport->report_at_ns = later(now_ns(), transport->report_wait_ns);
    }
    tell(transport, outcome, response, "");
    close_request(transport);
}

/* Without a request: nothing of it may be sent, or nothing can be. */
static void withhold(struct transport *transport, enum transport_outcome outcome, const char *failure)
{
    tell(transport, outcome, NULL, failure);
    close_request(transport);
}

static bool send_body(struct transport *transport, struct error *error)
{
    struct request *request = &transport->request;
    const struct http_options options = {.url = transport->url,
                                         .auth = transport->auth,
                                         .user_agent = transport->user_agent,
                                         .proxy = transport->options.proxy,
                                         .ca_file = transport->options.ca_file,
                                         .timeout_ns = transport->options.request_timeout_ns};
    if (!transport->http) transport->http = http_new(&options, error);
    request->is_active =
        transport->http && http_begin(transport->http, buffer_slice(&request->body), error) == STATUS_OK;
    return request->is_active;
}

/* True if there was something to do. */
static bool begin_request(struct transport *transport)
{
    struct request *request = &transport->request;
    struct slice envelope;
    struct error error = {0};
    request_fini(request);
    transport->has_nothing = false;
    if (now_ns() < transport->not_before_ns) return false;
    transport->has_nothing = true;
    if (!choose(transport, &envelope)) return false;
    buffer_init(&request->envelope, BODY_BYTES_MAX);
    buffer_init(&request->body, BODY_BYTES_MAX);
    enum status status = build(transport, envelope, &error);
    if (status == STATUS_MALFORMED || status == STATUS_NOT_THIS_FORMAT) {
        discard_envelope(transport, DISCARD_INVALID, envelope); /* what can be read of it */
        withhold(transport, TRANSPORT_BROKEN, error.message);
        return true;
    }
    if (envelope.size && status == STATUS_OK && request->outgoing.item_count == 0) {
        add_discards(transport, &request->outgoing.limited);
        withhold(transport, TRANSPORT_WITHHELD, "a rate limit is in force");
        return true;
    }
    buffer_fini(&request->stored); /* it may be large, and lies on disk */
    attach_report(transport);
    if (status == STATUS_OK)
        status = request->envelope.failed
                     ? error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory to send")
                     : gzip_compress(buffer_slice(&request->envelope), GZIP_LEVEL_DEFAULT, &request->body, &error);
    if (status != STATUS_OK || !send_body(transport, &error)) fail_request(transport, error.message, false);
    return true;
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static int milliseconds_until(uint64_t time_ns)
{
    uint64_t now = now_ns();
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
    if (!http_step(transport->http, transport->wake_descriptor, timeout_ms < STEP_MS_MAX ? timeout_ms : STEP_MS_MAX))
        return;
    const struct http_response *response = http_last_response(transport->http);
    if (response->status) {
        answer_request(transport, response);
    } else {
        fail_request(transport, response->failure, response->was_sent);
    }
}

/* Nothing to do now: those who wait for that are told, and the thread sleeps. */
static void rest(struct transport *transport)
{
    uint64_t now = now_ns(), until = UINT64_MAX;
    if (!transport->has_nothing)
        until = transport->not_before_ns > now ? transport->not_before_ns : transport->drain_at_ns;
    else if (transport->has_spool)
        until = now + SPOOL_LOOK_NS;
    if (until > transport->report_at_ns && transport->report_at_ns > now && has_discards(transport))
        until = transport->report_at_ns;
    pthread_mutex_lock(&transport->mutex);
    transport->is_idle = transport->has_nothing && !transport->is_hurried && transport->inbox.count == 0;
    if (transport->is_idle) pthread_cond_broadcast(&transport->changed);
    bool sleeps = !transport->is_hurried && !(transport->is_idle && transport->is_stopping);
    if (transport->is_stopping && until > transport->stop_at_ns) until = transport->stop_at_ns;
    pthread_mutex_unlock(&transport->mutex);
    struct pollfd descriptor = {.fd = transport->wake_descriptor, .events = POLLIN};
    if (sleeps) (void)poll(&descriptor, 1, until == UINT64_MAX ? -1 : milliseconds_until(until));
}

/* Somebody began to wait: what rests is tried at once. */
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

static bool is_over(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_over =
        transport->is_stopping && !transport->is_hurried && (transport->is_idle || now_ns() >= transport->stop_at_ns);
    pthread_mutex_unlock(&transport->mutex);
    return is_over;
}

/* What is not reported is told by whoever has the spool next. */
static void store_reports(struct transport *transport)
{
    while (has_discards(transport)) {
        uint8_t memory[REPORT_BYTES_MAX];
        struct buffer payload = {.data = memory, .capacity = sizeof(memory), .maximum = sizeof(memory)};
        struct buffer envelope = {.maximum = 2 * REPORT_BYTES_MAX};
        struct discards taken = take_report(transport, &payload);
        envelope_begin_with(&envelope, slice_of_text("{}"));
        envelope_add_item(&envelope, "client_report", NULL, buffer_slice(&payload));
        bool is_stored = !envelope.failed && store(transport, buffer_slice(&envelope));
        buffer_fini(&envelope);
        if (is_stored) continue;
        give_report_back(transport, &taken);
        return;
    }
}

/* What could not be sent until the end. */
static void keep_or_discard(struct transport *transport)
{
    if (transport->request.is_active) {
        http_cancel(transport->http);
        give_report_back(transport, &transport->request.reported);
        put_back(transport);
    }
    struct queued *queued;
    while ((queued = queue_pop(&transport->memory)) || (queued = take_from_inbox(transport))) {
        if (!transport->has_spool || !store(transport, buffer_slice(&queued->bytes)))
            discard_envelope(transport, DISCARD_NETWORK_ERROR, buffer_slice(&queued->bytes));
        queued_free(queued);
    }
    if (transport->has_spool) store_reports(transport);
    if (has_discards(transport)) debug(transport, "what was discarded could not be reported");
}

static void transport_free(struct transport *transport)
{
    if (!transport) return;
    http_free(transport->http);
    request_fini(&transport->request);
    queue_fini(&transport->inbox);
    queue_fini(&transport->memory);
    spool_fini(&transport->spool);
    if (transport->wake_descriptor >= 0) (void)close(transport->wake_descriptor);
    pthread_cond_destroy(&transport->changed);
    pthread_mutex_destroy(&transport->mutex);
    free((char *)(uintptr_t)transport->options.proxy);
    free((char *)(uintptr_t)transport->options.ca_file);
    free(transport);
}

static void *run(void *context)
{
    struct transport *transport = context;
    while (!is_over(transport)) {
        spool_inbox(transport);
        hurry(transport);
        if (transport->request.is_active) {
            step_request(transport);
        } else if (!begin_request(transport)) {
            rest(transport);
        }
    }
    keep_or_discard(transport);
    pthread_mutex_lock(&transport->mutex);
    transport->is_ended = true;
    bool is_abandoned = transport->is_abandoned;
    pthread_cond_broadcast(&transport->changed);
    pthread_mutex_unlock(&transport->mutex);
    if (is_abandoned) transport_free(transport);
    return NULL;
}

/* --- For other threads -------------------------------------------------------------------------------------------- */

static bool is_child(const struct transport *transport)
{
    return getpid() != transport->owner;
}

static bool copy_text(const char **text)
{
    if (!*text) return true;
    *text = strdup(*text);
    return *text != NULL;
}

static void set_defaults(struct transport_options *options)
{
    if (!options->client) options->client = "offbeat/" OFFBEAT_VERSION;
    if (!options->spool_bytes_max) options->spool_bytes_max = BYTES_MAX_DEFAULT;
    if (!options->spool_count_max) options->spool_count_max = COUNT_MAX_DEFAULT;
    if (options->spool_count_max > SPOOL_FILES_MAX) options->spool_count_max = SPOOL_FILES_MAX;
    if (!options->queue_bytes_max) options->queue_bytes_max = BYTES_MAX_DEFAULT;
    if (!options->queue_count_max) options->queue_count_max = COUNT_MAX_DEFAULT;
    if (!options->request_timeout_ns) options->request_timeout_ns = REQUEST_TIMEOUT_NS;
    if (!options->retry_first_ns) options->retry_first_ns = RETRY_FIRST_NS;
    if (!options->retry_max_ns) options->retry_max_ns = RETRY_MAX_NS;
    if (!options->report_interval_ns) options->report_interval_ns = REPORT_INTERVAL_NS;
}

static void init_locks(struct transport *transport)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&transport->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&transport->mutex, NULL);
}

static bool init_spool(struct transport *transport, const char *folder)
{
    char name[DSN_HOST_SIZE];
    dsn_folder_name(&transport->dsn, name);
    if (!spool_init(&transport->spool, folder, name)) return false;
    transport->spool.bytes_max = transport->options.spool_bytes_max;
    transport->spool.count_max = transport->options.spool_count_max;
    transport->has_spool = true;
    return true;
}

static void set_up(struct transport *transport, const struct dsn *dsn, const struct transport_options *options)
{
    uint64_t now = now_ns();
    transport->owner = getpid();
    transport->dsn = *dsn;
    transport->options = *options;
    set_defaults(&transport->options);
    options = &transport->options;
    transport->request.claim.descriptor = -1;
    transport->spool.folder = -1;
    transport->inbox.count_max = transport->memory.count_max = options->queue_count_max;
    transport->inbox.bytes_max = transport->memory.bytes_max = options->queue_bytes_max;
    transport->retry_ns = options->retry_first_ns;
    transport->report_wait_ns = options->report_interval_ns;
    transport->report_at_ns = later(now, options->report_interval_ns);
    transport->started_at_ns = clock_ns(CLOCK_REALTIME);
    dsn_url(dsn, transport->url);
    dsn_auth(dsn, options->client, transport->auth);
    (void)snprintf(transport->user_agent, sizeof(transport->user_agent), "%s", options->client);
    init_locks(transport);
    transport->wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* Signals of the program are for its own threads. */
static bool start_thread(struct transport *transport)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    (void)sigfillset(&all);
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&transport->thread, &attributes, run, transport) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (is_started) (void)pthread_setname_np(transport->thread, "offbeat-send");
    return is_started;
}

struct transport *transport_start(const struct transport_options *options, struct error *error)
{
    struct dsn dsn;
    if (dsn_parse(options->dsn ? options->dsn : "", &dsn, error) != STATUS_OK) return NULL;
    struct transport *transport = calloc(1, sizeof(*transport));
    if (!transport) {
        (void)error_set(error, STATUS_NO_MEMORY, 0, "no memory to send");
        return NULL;
    }
    set_up(transport, &dsn, options);
    bool has_texts = copy_text(&transport->options.proxy);
    has_texts = copy_text(&transport->options.ca_file) && has_texts;
    if (options->spool_folder && !init_spool(transport, options->spool_folder))
        debug(transport, "spool: the path is too long; envelopes stay in memory");
    if (has_texts && transport->wake_descriptor >= 0 && start_thread(transport)) return transport;
    (void)error_set_errno(error, "cannot start a thread to send");
    transport_free(transport);
    return NULL;
}

static size_t count_items(struct slice envelope)
{
    struct envelope_reader reader;
    struct envelope_item item;
    size_t count = 0;
    if (envelope_open(&reader, envelope, NULL) == STATUS_OK) {
        while (envelope_next(&reader, &item, NULL)) count += category_of_item(&item) != CATEGORY_INTERNAL;
    }
    envelope_close(&reader);
    return count;
}

bool transport_send(struct transport *transport, struct buffer *envelope)
{
    if (is_child(transport)) return false;
    size_t item_count = count_items(buffer_slice(envelope));
    pthread_mutex_lock(&transport->mutex);
    bool is_taken =
        !envelope->failed && envelope->size <= ENVELOPE_BYTES_MAX && queue_push(&transport->inbox, envelope);
    transport->counts.made += item_count;
    transport->is_idle = false;
    pthread_mutex_unlock(&transport->mutex);
    if (!is_taken) {
        discard_envelope(transport, DISCARD_QUEUE_OVERFLOW, buffer_slice(envelope));
        buffer_fini(envelope);
    }
    wake(transport);
    return is_taken;
}

void transport_discard(struct transport *transport, enum discard_reason reason, enum category category,
                       uint64_t quantity)
{
    if (is_child(transport)) return;
    struct discards discards = {0};
    discards_add(&discards, reason, category, quantity);
    add_discards(transport, &discards);
    pthread_mutex_lock(&transport->mutex);
    transport->counts.made += discards_item_count(&discards);
    pthread_mutex_unlock(&transport->mutex);
    wake(transport);
}

bool transport_is_limited(struct transport *transport, enum category category)
{
    if (is_child(transport)) return false;
    pthread_mutex_lock(&transport->mutex);
    bool is_limited = rate_limits_until(&transport->limits, now_ns(), category) != 0;
    pthread_mutex_unlock(&transport->mutex);
    return is_limited;
}

struct transport_counts transport_counts(struct transport *transport)
{
    struct transport_counts counts = {0};
    if (is_child(transport)) return counts;
    pthread_mutex_lock(&transport->mutex);
    counts = transport->counts;
    pthread_mutex_unlock(&transport->mutex);
    return counts;
}

/* With the mutex held. False when it is UNTIL_NS. */
static bool wait_for_change(struct transport *transport, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND_NS), .tv_nsec = (long)(until_ns % SECOND_NS)};
    if (until_ns > (uint64_t)INT64_MAX) until = (struct timespec){.tv_sec = INT64_MAX / (int64_t)SECOND_NS};
    return pthread_cond_timedwait(&transport->changed, &transport->mutex, &until) != ETIMEDOUT;
}

bool transport_flush(struct transport *transport, uint64_t timeout_ns)
{
    if (is_child(transport)) return false;
    uint64_t until = later(now_ns(), timeout_ns);
    pthread_mutex_lock(&transport->mutex);
    transport->flusher_count++;
    transport->is_hurried = true;
    transport->is_idle = false;
    wake(transport);
    while (!transport->is_idle && wait_for_change(transport, until)) continue;
    bool is_idle = transport->is_idle;
    transport->flusher_count--;
    pthread_mutex_unlock(&transport->mutex);
    return is_idle;
}

bool transport_stop(struct transport *transport, uint64_t timeout_ns)
{
    if (!transport || is_child(transport)) return false;
    uint64_t until = later(now_ns(), timeout_ns);
    pthread_mutex_lock(&transport->mutex);
    transport->is_stopping = true;
    transport->is_hurried = true;
    transport->is_idle = false;
    transport->stop_at_ns = until;
    wake(transport);
    while (!transport->is_ended && wait_for_change(transport, later(until, STOP_GRACE_NS))) continue;
    bool is_ended = transport->is_ended, is_idle = transport->is_idle;
    transport->is_abandoned = !is_ended;
    pthread_t thread = transport->thread;
    pthread_mutex_unlock(&transport->mutex);
    if (is_ended) {
        (void)pthread_join(thread, NULL);
        transport_free(transport);
    } else {
        (void)pthread_detach(thread);
    }
    return is_ended && is_idle;
}
