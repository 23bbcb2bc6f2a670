/* SPDX-License-Identifier: MIT */
#include "sdk/sender.h"

#include "base/invariant.h"
#include "sampler/sampler.h"
#include "sdk/callbacks.h"
#include "sdk/locks.h"
#include "sdk/sdk_private.h"

#include <string.h>

enum { ENVELOPES_WAITING_MAX = 1000 /* each transaction is one */ };

struct sender {
    pthread_cond_t changed; /* of FLUSHER_COUNT */
    struct transport *transport;
    struct transport *aside;        /* whose thread stepped aside */
    struct transport_counts counts; /* of the last transport */
    unsigned flusher_count;         /* threads that use TRANSPORT without the lock */
};

#define NO_TRANSPORT                                                                                                   \
    {                                                                                                                  \
        .changed = PTHREAD_COND_INITIALIZER                                                                            \
    }
static struct sender sender = NO_TRANSPORT;

static void lock(void)
{
    lock_take(LOCK_SENDER);
}

static void unlock(void)
{
    lock_give(LOCK_SENDER);
    callbacks_write_lines();
}

/* --- The transport ------------------------------------------------------------------------------------------------ */

static void transport_says(void *context, const char *message)
{
    sdk_debug("%s", message);
}

/* A limit may have begun. */
static void transport_answered(void *context, const struct transport_answer *answer)
{
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

/* Under the lock. NULL where the library is off or no transport can start. */
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
    lock();
    (void)started_transport();
    unlock();
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
    lock();
    struct transport *transport = started_transport();
    if (transport && !envelope->failed) (void)transport_send(transport, envelope);
    unlock();
}

void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity)
{
    lock();
    struct transport *transport = started_transport();
    if (transport) transport_discard(transport, reason, category, quantity);
    unlock();
}

bool sender_is_limited(enum category category)
{
    lock();
    bool is_limited = sender.transport && transport_is_limited(sender.transport, category);
    unlock();
    return is_limited;
}

struct transport_counts sender_counts(void)
{
    lock();
    struct transport_counts counts = sender.transport ? transport_counts(sender.transport) : sender.counts;
    unlock();
    return counts;
}

void sender_reset_counts(void)
{
    lock();
    sender.counts = (struct transport_counts){0};
    unlock();
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static uint64_t time_until(uint64_t deadline_ns)
{
    uint64_t now_ns = sdk_monotonic_ns();
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

bool sender_flush(uint64_t deadline_ns)
{
    lock();
    struct transport *transport = atomic_load(&library.is_on) ? sender.transport : NULL;
    if (transport) sender.flusher_count++;
    unlock();
    if (!transport) return true;
    bool is_done = transport_flush(transport, time_until(deadline_ns));
    lock();
    if (sender.flusher_count > 0) sender.flusher_count--; /* it is 0 in a child of a fork meanwhile */
    (void)pthread_cond_broadcast(&sender.changed);
    unlock();
    return is_done;
}

struct transport *sender_take_transport(void)
{
    lock();
    struct transport *transport = sender.transport;
    if (transport) sender.counts = transport_counts(transport);
    sender.transport = NULL;
    unlock();
    return transport;
}

void sender_end_transport(struct transport *transport, uint64_t deadline_ns)
{
    struct transport_counts counts;
    if (!transport || !INVARIANT(!atomic_load(&library.is_on))) return;
    (void)transport_end(transport, time_until(deadline_ns), &counts);
    lock();
    sender.counts = counts;
    unlock();
}

void sender_wait_for_flushers(void)
{
    static const uint64_t second_ns = 1000000000;
    lock();
    while (sender.flusher_count > 0) (void)lock_wait(LOCK_SENDER, &sender.changed, sdk_monotonic_ns() + second_ns);
    unlock();
}

/* --- Stepping aside, forks ---------------------------------------------------------------------------------------- */

void sender_step_aside(bool for_good)
{
    lock();
    sender.aside = sender.transport;
    if (sender.aside) transport_step_aside(sender.aside, for_good);
    unlock();
}

bool sender_come_back(void)
{
    lock();
    bool is_back = !sender.aside || transport_come_back(sender.aside);
    if (is_back) sender.aside = NULL;
    unlock();
    return is_back;
}

void sender_keep(void)
{
    lock();
    struct transport *kept = sender.aside;
    if (kept) sender.counts = transport_counts(kept);
    sender.aside = NULL;
    unlock();
    if (kept) transport_keep(kept);
}

void sender_forget(void)
{
    static const struct sender no_transport = NO_TRANSPORT;
    memcpy(&sender, &no_transport, sizeof(sender));
}
