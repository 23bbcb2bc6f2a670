/* SPDX-License-Identifier: MIT */
#include "sdk/sender.h"

#include "base/invariant.h"
#include "sdk/callbacks.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"

#include <stdio.h>
#include <string.h>

enum { ENVELOPES_WAITING_MAX = 1000 /* each transaction is one */, BYTES_WAITING_MAX = 100 << 20 };

struct sender {
    struct queue queue;
    struct discards discards;  /* counts that are not reported yet */
    struct item_counts counts; /* counts of the program, and of sessions that have ended */
    struct rate_limits limits; /* times are UTC */
    char session[PATH_MAX];    /* folder with the helper's counts; "": none */
};

#define NOTHING_WAITS                                                                                                  \
    {                                                                                                                  \
        .queue = {.count_max = ENVELOPES_WAITING_MAX, .bytes_max = BYTES_WAITING_MAX }                                 \
    }
static struct sender sender = NOTHING_WAITS;

/* --- Sending ------------------------------------------------------------------------------------------------------ */

bool sender_may_send(const char *type, enum category category, struct slice payload)
{
    const struct offbeat_options *options = sdk_options();
    if (!options->before_send) return true;
    struct buffer text = {.maximum = payload.size + 1};
    buffer_append(&text, payload.data, payload.size);
    buffer_append_byte(&text, 0);
    bool may = !text.failed && INVARIANT(!lock_any_is_held()) && callback_begin();
    if (may) {
        memory_sanitizer_written(text.data, text.size);
        memory_sanitizer_arguments();
        may = options->before_send(options->before_send_data, type, (const char *)text.data, payload.size);
        callback_end();
    }
    buffer_fini(&text);
    if (!may) sender_discard(DISCARD_BEFORE_SEND, category, 1);
    return may;
}

/* Logs what is dropped and why, except unsampled transactions, which have their own line. */
static void log_discards(const struct discards *discards)
{
    for (unsigned i = 0; i < DISCARD_REASON_COUNT; i++) {
        for (unsigned j = 0; j < CATEGORY_COUNT && i != DISCARD_SAMPLE_RATE; j++) {
            if (discards->counts[i][j] == 0) continue;
            sdk_debug("dropped: %llu of %s (%s)", (unsigned long long)discards->counts[i][j],
                      category_name((enum category)j), discard_reason_name((enum discard_reason)i));
        }
    }
}

/* Counts as discarded, under the lock. */
static void add_discards(const struct discards *discards)
{
    log_discards(discards);
    discards_add_all(&sender.discards, discards);
    sender.counts.discarded += discards_item_count(discards);
}

static void queue_envelope(struct buffer *envelope)
{
    HOLD_LOCK(LOCK_SENDER);
    struct discards lost = {0};
    sender.counts.made += category_count_items(buffer_slice(envelope));
    if (envelope->size <= ENVELOPE_BYTES_MAX && queue_push(&sender.queue, envelope)) return;
    discards_add_envelope(&lost, DISCARD_QUEUE_OVERFLOW, buffer_slice(envelope));
    add_discards(&lost);
}

void sender_send(struct buffer *envelope)
{
    if (!atomic_load(&library.is_on) || envelope->failed) return;
    queue_envelope(envelope);
    profiler_wake_worker();
}

static void count_discard(enum discard_reason reason, enum category category, uint64_t quantity)
{
    struct discards discards = {0};
    discards_add(&discards, reason, category, quantity);
    HOLD_LOCK(LOCK_SENDER);
    sender.counts.made += discards_item_count(&discards);
    add_discards(&discards);
}

void sender_discard(enum discard_reason reason, enum category category, uint64_t quantity)
{
    if (!atomic_load(&library.is_on)) return;
    count_discard(reason, category, quantity);
    profiler_wake_worker();
}

bool sender_is_limited(enum category category)
{
    HOLD_LOCK(LOCK_SENDER);
    return rate_limits_until(&sender.limits, clock_utc_ns(), category) != 0;
}

static struct item_counts sum_of(struct item_counts a, struct item_counts b)
{
    return (struct item_counts){.made = a.made + b.made,
                                .sent = a.sent + b.sent,
                                .limited = a.limited + b.limited,
                                .discarded = a.discarded + b.discarded};
}

struct item_counts sender_counts(void)
{
    HOLD_LOCK(LOCK_SENDER);
    return sender.session[0] ? sum_of(sender.counts, item_counts_read(sender.session)) : sender.counts;
}

void sender_reset_counts(void)
{
    HOLD_LOCK(LOCK_SENDER);
    sender.counts = (struct item_counts){0};
}

/* --- For the worker ----------------------------------------------------------------------------------------------- */

struct queued *sender_take(void)
{
    HOLD_LOCK(LOCK_SENDER);
    return queue_pop(&sender.queue);
}

void sender_give_back(struct queued *queued)
{
    HOLD_LOCK(LOCK_SENDER);
    queue_push_front(&sender.queue, queued);
}

bool sender_take_report(struct buffer *envelope, struct discards *ret_taken)
{
    enum { REPORT_BYTES_MAX = 4 << 10 };
    uint8_t memory[REPORT_BYTES_MAX];
    struct buffer payload = {.data = memory, .capacity = sizeof(memory), .maximum = sizeof(memory)};
    *ret_taken = (struct discards){0};
    lock_take(LOCK_SENDER);
    bool has = !discards_are_empty(&sender.discards);
    if (has) discards_take_report(&sender.discards, clock_utc_ns(), ret_taken, &payload);
    callbacks_give_lock(LOCK_SENDER);
    if (has) envelope_add_item(envelope, "client_report", NULL, buffer_slice(&payload));
    return has;
}

void sender_add_discards(const struct discards *discards, bool is_new)
{
    HOLD_LOCK(LOCK_SENDER);
    if (is_new)
        add_discards(discards);
    else
        discards_add_all(&sender.discards, discards);
}

bool sender_has_work(void)
{
    HOLD_LOCK(LOCK_SENDER);
    return sender.queue.count > 0 || !discards_are_empty(&sender.discards);
}

void sender_set_limits(const struct rate_limits *limits)
{
    HOLD_LOCK(LOCK_SENDER);
    sender.limits = *limits;
}

void sender_set_session(const char *folder)
{
    HOLD_LOCK(LOCK_SENDER);
    if (sender.session[0]) sender.counts = sum_of(sender.counts, item_counts_read(sender.session));
    (void)snprintf(sender.session, sizeof(sender.session), "%s", folder ? folder : "");
}

void sender_forget(void)
{
    static const struct sender nothing_waits = NOTHING_WAITS;
    memcpy(&sender, &nothing_waits, sizeof(sender));
}
