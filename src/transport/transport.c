/* The functions that other threads call; thread.c does the work.  SPDX-License-Identifier: MIT */
#include "transport/transport_private.h"

#include "base/invariant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define RETRY_FIRST_NS (5 * SECOND_NS)
#define REQUEST_TIMEOUT_NS (30 * SECOND_NS)
#define REPORT_INTERVAL_NS (30 * SECOND_NS)
/* Time for storing the rest and for computations of TLS. */
#define STOP_GRACE_NS (3 * SECOND_NS)

enum { COUNT_MAX_DEFAULT = 100, BYTES_MAX_DEFAULT = 100 << 20, STACK_BYTES = 512 << 10 };

static const char client[] = "offbeat/" OFFBEAT_VERSION;

static void set_defaults(struct transport_options *options)
{
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
    pthread_cond_init(&transport->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&transport->mutex, NULL);
    pthread_mutex_init(&transport->wake_mutex, NULL);
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
    uint64_t now = clock_monotonic_ns();
    transport->dsn = *dsn;
    transport->options = *options;
    set_defaults(&transport->options);
    options = &transport->options;
    transport->request.claim.file.number = -1;
    transport->spool.folder.number = -1;
    transport->inbox.count_max = transport->memory.count_max = options->queue_count_max;
    transport->inbox.bytes_max = transport->memory.bytes_max = options->queue_bytes_max;
    transport->limits = options->limits;
    transport->retry_ns = options->retry_first_ns;
    transport->report_wait_ns = options->report_interval_ns;
    transport->report_at_ns = later(now, options->report_interval_ns);
    transport->started_at_ns = clock_utc_ns();
    dsn_url(dsn, transport->url);
    dsn_auth(dsn, client, transport->auth);
    dsn_user_agent(client, transport->user_agent);
    init_locks(transport);
}

static bool start_thread(struct transport *transport)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    bool is_started = pthread_create(&transport->thread, &attributes, transport_run, transport) == 0;
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
    if (options->spool_folder && !init_spool(transport, options->spool_folder))
        transport_debug(transport, "spool: the path is too long; envelopes stay in memory");
    if (start_thread(transport)) return transport;
    (void)error_set_errno(error, "cannot start a thread to send");
    transport_free(transport);
    return NULL;
}

bool transport_send(struct transport *transport, struct buffer *envelope)
{
    size_t item_count = category_count_items(buffer_slice(envelope));
    pthread_mutex_lock(&transport->mutex);
    bool is_taken =
        !envelope->failed && envelope->size <= ENVELOPE_BYTES_MAX && queue_push(&transport->inbox, envelope);
    transport->counts.made += item_count;
    transport->is_idle = false;
    pthread_mutex_unlock(&transport->mutex);
    if (!is_taken) {
        transport_discard_envelope(transport, DISCARD_QUEUE_OVERFLOW, buffer_slice(envelope));
        buffer_fini(envelope);
    }
    transport_wake(transport);
    return is_taken;
}

void transport_discard(struct transport *transport, enum discard_reason reason, enum category category,
                       uint64_t quantity)
{
    struct discards discards = {0};
    discards_add(&discards, reason, category, quantity);
    transport_add_discards(transport, &discards);
    pthread_mutex_lock(&transport->mutex);
    transport->counts.made += discards_item_count(&discards);
    pthread_mutex_unlock(&transport->mutex);
    transport_wake(transport);
}

struct transport_counts transport_counts(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    struct transport_counts counts = transport->counts;
    pthread_mutex_unlock(&transport->mutex);
    return counts;
}

/* Waits until UNTIL_NS for a change, with the mutex held. False at UNTIL_NS. */
static bool wait_for_change(struct transport *transport, uint64_t until_ns)
{
    struct timespec until = timespec_of(until_ns);
    return pthread_cond_timedwait(&transport->changed, &transport->mutex, &until) != ETIMEDOUT;
}

void transport_look(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    transport->is_idle = false;
    pthread_mutex_unlock(&transport->mutex);
    transport_wake(transport);
}

void transport_hurry(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    transport->is_hurried = true;
    transport->is_idle = false;
    pthread_mutex_unlock(&transport->mutex);
    transport_wake(transport);
}

bool transport_await_idle(struct transport *transport, uint64_t timeout_ns)
{
    uint64_t until = later(clock_monotonic_ns(), timeout_ns);
    pthread_mutex_lock(&transport->mutex);
    transport->flusher_count++;
    while (!transport->is_idle && wait_for_change(transport, until)) continue;
    bool is_idle = transport->is_idle;
    if (INVARIANT(transport->flusher_count > 0)) transport->flusher_count--;
    pthread_mutex_unlock(&transport->mutex);
    return is_idle;
}

bool transport_is_concluding(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_concluding = transport->is_concluding;
    pthread_mutex_unlock(&transport->mutex);
    return is_concluding;
}

bool transport_flush(struct transport *transport, uint64_t timeout_ns)
{
    transport_hurry(transport);
    return transport_await_idle(transport, timeout_ns);
}

/* Ends the thread, by UNTIL_NS and the time that storing takes. True if nothing is left to send. */
static bool end_thread(struct transport *transport, uint64_t until_ns)
{
    pthread_mutex_lock(&transport->mutex);
    transport->is_stopping = true;
    transport->is_hurried = true;
    transport->is_idle = false;
    transport->stop_at_ns = until_ns;
    transport_wake(transport);
    while (!transport->is_ended && wait_for_change(transport, later(until_ns, STOP_GRACE_NS))) continue;
    bool is_done = transport->is_ended && transport->is_idle;
    pthread_mutex_unlock(&transport->mutex);
    return is_done;
}

/* Frees TRANSPORT, or leaves that to its thread. */
static void release(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool is_ended = transport->is_ended;
    transport->is_abandoned = !is_ended;
    pthread_t thread = transport->thread;
    pthread_mutex_unlock(&transport->mutex);
    if (is_ended) {
        (void)pthread_join(thread, NULL);
        transport_free(transport);
    } else {
        (void)pthread_detach(thread);
    }
}

bool transport_stop(struct transport *transport, uint64_t timeout_ns)
{
    if (!transport) return false;
    bool is_done = end_thread(transport, later(clock_monotonic_ns(), timeout_ns));
    release(transport);
    return is_done;
}
