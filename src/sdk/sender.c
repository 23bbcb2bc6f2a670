/* SPDX-License-Identifier: MIT */
#include "sdk/sender.h"

#include "base/invariant.h"
#include "sampler/sampler.h"
#include "sdk/callbacks.h"
#include "sdk/sdk_private.h"

#include <string.h>

enum { ENVELOPES_WAITING_MAX = 1000 /* each transaction is one */ };

struct sender {
    pthread_cond_t changed; /* signalled after changes of FLUSHER_COUNT */
    struct transport *transport;
    struct transport *aside;        /* transport whose thread stepped aside */
    struct transport_counts counts; /* counts of the last transport */
    unsigned flusher_count;         /* number of threads that use TRANSPORT without the lock */
};

#define NO_TRANSPORT                                                                                                   \
    {                                                                                                                  \
        .changed = PTHREAD_COND_INITIALIZER                                                                            \
    }
static struct sender sender = NO_TRANSPORT;

/* --- The transport ------------------------------------------------------------------------------------------------ */

static void transport_says(void *context, const char *message)
{
    sdk_debug("%s", message);
}

static void transport_answered(void *context, const struct transport_answer *answer)
{
    /* A limit may have begun. */
    if (answer->status == 429 || answer->rate_limits[0] || answer->retry_after[0]) sampler_wake();
}

static void transport_will_start(void *context)
{
    own_threads_expect();
}

static void transport_started(void *context)
{
    own_threads_begin("offbeat-send");
    own_threads_take_descriptors();
}

static void transport_ended(void *context)
{
    own_threads_end_one();
}

static struct transport *start_transport(struct error *error)
{
    const struct offbeat_options *options = sdk_options();
    const char *spool =
        options->spool_directory && options->spool_directory[0] == '/' ? options->spool_directory : NULL;
    const struct transport_options transport = {
        .dsn = options->dsn,
        .client = "offbeat/" OFFBEAT_VERSION,
        .spool_folder = spool,
        .spool_bytes_max = options->spool_bytes_max,
        .spool_count_max = ENVELOPES_WAITING_MAX,
        .queue_count_max = ENVELOPES_WAITING_MAX,
        .proxy = options->proxy,
        .ca_file = options->ca_file,
        .debug = transport_says,
        .answered = transport_answered,
        .will_start = transport_will_start,
        .started = transport_started,
        .ended = transport_ended,
    };
    (void)at_exit_prepare();
    return transport_start(&transport, error);
}

/* Returns the transport, which it starts if need be, under the lock. NULL if the library is off or no transport can
 * start. */
static struct transport *started_transport(void)
{
    struct error error;
    if (!atomic_load(&library.is_on)) return NULL;
    if (sender.transport) return sender.transport;
    sender.transport = start_transport(&error);
    if (!sender.transport) sdk_say("nothing can be sent: %s", error.message);
    return sender.transport;
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

void sender_start(void)
{
    HOLD_LOCK(LOCK_SENDER);
    (void)started_transport();
}

bool sender_may_send(const char *type, enum category category, struct slice payload)
{
    const struct offbeat_options *options = sdk_options();
    if (!options->before_send) return true;
    struct buffer text = {.maximum = payload.size + 1};
    buffer_append(&text, payload.data, payload.size);
    buffer_append_byte(&text, 0);
    bool may = !text.failed && INVARIANT(!lock_any_is_held()) && callback_begin();
    if (may) {
        may = options->before_send(options->before_send_data, type, (const char *)text.data, payload.size);
        callback_end();
    }
    buffer_fini(&text);
    if (!may) sender_discard(DISCARD_BEFORE_SEND, category, 1);
    return may;
}

void sender_send(struct buffer *envelope)
{
    HOLD_LOCK(LOCK_SENDER);
    struct transport *transport = started_transport();
    if (transport && !envelope->failed) (void)transport_send(transport, envelope);
}

void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity)
{
    HOLD_LOCK(LOCK_SENDER);
    struct transport *transport = started_transport();
    if (transport) transport_discard(transport, reason, category, quantity);
}

bool sender_is_limited(enum category category)
{
    HOLD_LOCK(LOCK_SENDER);
    return sender.transport && transport_is_limited(sender.transport, category);
}

struct transport_counts sender_counts(void)
{
    HOLD_LOCK(LOCK_SENDER);
    return sender.transport ? transport_counts(sender.transport) : sender.counts;
}

void sender_reset_counts(void)
{
    HOLD_LOCK(LOCK_SENDER);
    sender.counts = (struct transport_counts){0};
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static uint64_t time_until(uint64_t deadline_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

bool sender_flush(uint64_t deadline_ns)
{
    lock_take(LOCK_SENDER);
    struct transport *transport = atomic_load(&library.is_on) ? sender.transport : NULL;
    if (transport) sender.flusher_count++;
    callbacks_give_lock(LOCK_SENDER);
    if (!transport) return true;
    bool is_done = transport_flush(transport, time_until(deadline_ns));
    HOLD_LOCK(LOCK_SENDER);
    if (sender.flusher_count > 0) sender.flusher_count--; /* it is 0 in a child of a fork meanwhile */
    (void)pthread_cond_broadcast(&sender.changed);
    return is_done;
}

struct transport *sender_take_transport(void)
{
    HOLD_LOCK(LOCK_SENDER);
    struct transport *transport = sender.transport;
    if (transport) sender.counts = transport_counts(transport);
    sender.transport = NULL;
    return transport;
}

void sender_end_transport(struct transport *transport, uint64_t deadline_ns)
{
    struct transport_counts counts;
    if (!transport || !INVARIANT(!atomic_load(&library.is_on))) return;
    (void)transport_end(transport, time_until(deadline_ns), &counts);
    HOLD_LOCK(LOCK_SENDER);
    sender.counts = counts;
}

void sender_wait_for_flushers(void)
{
    HOLD_LOCK(LOCK_SENDER);
    while (sender.flusher_count > 0) (void)lock_wait(LOCK_SENDER, &sender.changed, clock_monotonic_ns() + SECOND_NS);
}

/* --- Stepping aside, forks ---------------------------------------------------------------------------------------- */

void sender_step_aside(bool for_good)
{
    HOLD_LOCK(LOCK_SENDER);
    sender.aside = sender.transport;
    if (sender.aside) transport_step_aside(sender.aside, for_good);
}

bool sender_come_back(void)
{
    HOLD_LOCK(LOCK_SENDER);
    bool is_back = !sender.aside || transport_come_back(sender.aside);
    if (is_back) sender.aside = NULL;
    return is_back;
}

void sender_keep(void)
{
    lock_take(LOCK_SENDER);
    struct transport *kept = sender.aside;
    if (kept) sender.counts = transport_counts(kept);
    sender.aside = NULL;
    callbacks_give_lock(LOCK_SENDER);
    if (kept) transport_keep(kept);
}

void sender_forget(void)
{
    static const struct sender no_transport = NO_TRANSPORT;
    memcpy(&sender, &no_transport, sizeof(sender));
}
