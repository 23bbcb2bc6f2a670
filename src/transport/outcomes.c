/* Counting, reporting and storing, for several parts of the transport.  SPDX-License-Identifier: MIT */
#include "transport/transport_private.h"

#include <stdio.h>

void transport_debug(const struct transport *transport, const char *message)
{
    if (transport->options.debug) transport->options.debug(transport->options.context, message);
}

void transport_wake(struct transport *transport)
{
    pthread_mutex_lock(&transport->wake_mutex);
    transport->is_woken = true;
    pthread_cond_signal(&transport->woken);
    pthread_mutex_unlock(&transport->wake_mutex);
}

/* --- What the thread counts --------------------------------------------------------------------------------------- */

void transport_add_discards(struct transport *transport, const struct discards *discards)
{
    pthread_mutex_lock(&transport->mutex);
    discards_add_all(&transport->discards, discards);
    transport->counts.discarded += discards_item_count(discards);
    pthread_mutex_unlock(&transport->mutex);
}

void transport_discard_envelope(struct transport *transport, enum discard_reason reason, struct slice envelope)
{
    struct discards discards = {0};
    discards_add_envelope(&discards, reason, envelope);
    transport_add_discards(transport, &discards);
}

void transport_give_report_back(struct transport *transport, const struct discards *reported)
{
    /* The counts of the transport have them already. */
    pthread_mutex_lock(&transport->mutex);
    discards_add_all(&transport->discards, reported);
    pthread_mutex_unlock(&transport->mutex);
}

struct discards transport_take_report(struct transport *transport, struct buffer *payload)
{
    struct discards taken;
    pthread_mutex_lock(&transport->mutex);
    discards_take_report(&transport->discards, clock_utc_ns(), &taken, payload);
    pthread_mutex_unlock(&transport->mutex);
    return taken;
}

bool transport_has_discards(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    bool has = !discards_are_empty(&transport->discards);
    pthread_mutex_unlock(&transport->mutex);
    return has;
}

/* --- From the queue into the spool -------------------------------------------------------------------------------- */

void transport_report_spool_error(struct transport *transport, const struct error *error)
{
    bool fails = error->status != STATUS_OK && error->status != STATUS_NOT_FOUND;
    if (fails == transport->spool_fails) return;
    transport->spool_fails = fails;
    char message[300];
    (void)snprintf(message, sizeof(message), "%s", fails ? error->message : "spool: works again");
    if (fails) (void)snprintf(message, sizeof(message), "%s; envelopes stay in memory", error->message);
    transport_debug(transport, message);
}

bool transport_store(struct transport *transport, struct slice envelope)
{
    struct error error = {0};
    struct discards dropped = {0};
    enum status status = spool_store(&transport->spool, envelope, &dropped, &error);
    if (!discards_are_empty(&dropped)) transport_add_discards(transport, &dropped);
    error.status = status == STATUS_NOT_FOUND ? STATUS_IO : status;
    if (status != STATUS_TOO_LARGE) transport_report_spool_error(transport, &error);
    return status == STATUS_OK;
}

struct queued *transport_take_from_inbox(struct transport *transport)
{
    pthread_mutex_lock(&transport->mutex);
    struct queued *queued = queue_pop(&transport->inbox);
    pthread_mutex_unlock(&transport->mutex);
    return queued;
}
