/* A table of counters.  SPDX-License-Identifier: MIT */
#include "spool/discards.h"

#include "base/invariant.h"
#include "base/json_writer.h"
#include "format/sentry/client_report.h"
#include "format/sentry/transaction.h"

enum { REPORT_ENTRIES_MAX = 40 }; /* 40 of at most 98 bytes, and the time, are less than 4 KiB */

static const char *const reason_names[DISCARD_REASON_COUNT] = {
    [DISCARD_BEFORE_SEND] = "before_send",
    [DISCARD_BUFFER_OVERFLOW] = "buffer_overflow",
    [DISCARD_CACHE_OVERFLOW] = "cache_overflow",
    [DISCARD_INSUFFICIENT_DATA] = "insufficient_data",
    [DISCARD_INTERNAL_SDK_ERROR] = "internal_sdk_error",
    [DISCARD_INVALID] = "invalid",
    [DISCARD_NETWORK_ERROR] = "network_error",
    [DISCARD_NO_PARENT_SPAN] = "no_parent_span",
    [DISCARD_QUEUE_OVERFLOW] = "queue_overflow",
    [DISCARD_RATELIMIT_BACKOFF] = "ratelimit_backoff",
    [DISCARD_SAMPLE_RATE] = "sample_rate",
    [DISCARD_SEND_ERROR] = "send_error",
};

const char *discard_reason_name(enum discard_reason reason)
{
    if (!INVARIANT(reason < DISCARD_REASON_COUNT)) reason = DISCARD_INTERNAL_SDK_ERROR;
    return reason_names[reason];
}

bool discard_reason_of_name(struct slice name, enum discard_reason *ret_reason)
{
    for (unsigned i = 0; i < DISCARD_REASON_COUNT; i++) {
        if (!slice_equals_text(name, reason_names[i])) continue;
        *ret_reason = (enum discard_reason)i;
        return true;
    }
    return false;
}

void discards_add(struct discards *discards, enum discard_reason reason, enum category category, uint64_t quantity)
{
    if (!INVARIANT(reason < DISCARD_REASON_COUNT) || !INVARIANT(category < CATEGORY_COUNT)) return;
    uint64_t *count = &discards->counts[reason][category];
    if (__builtin_add_overflow(*count, quantity, count)) *count = UINT64_MAX;
}

void discards_add_all(struct discards *discards, const struct discards *others)
{
    for (unsigned i = 0; i < DISCARD_REASON_COUNT; i++) {
        for (unsigned j = 0; j < CATEGORY_COUNT; j++)
            discards_add(discards, (enum discard_reason)i, (enum category)j, others->counts[i][j]);
    }
}

bool discards_are_empty(const struct discards *discards)
{
    static const struct discards empty;
    return memcmp(discards, &empty, sizeof(empty)) == 0;
}

uint64_t discards_item_count(const struct discards *discards)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < DISCARD_REASON_COUNT; i++) {
        for (unsigned j = 0; j < CATEGORY_COUNT; j++) count += j == CATEGORY_SPAN ? 0 : discards->counts[i][j];
    }
    return count;
}

/* The counts of a lost report are reported again. What we have no name for is of another program. */
static void add_report(struct discards *discards, struct slice payload)
{
    struct client_report report = {0};
    if (client_report_decode(payload, &report, NULL) != STATUS_OK) return;
    for (size_t i = 0; i < report.count; i++) {
        const struct discarded *entry = &report.items[i];
        enum discard_reason reason;
        enum category category;
        if (discard_reason_of_name(slice_of_text(entry->reason), &reason) &&
            category_of_name(slice_of_text(entry->category), &category))
            discards_add(discards, reason, category, entry->quantity);
    }
    client_report_fini(&report);
}

static uint64_t count_spans(struct slice payload)
{
    struct transaction transaction = {0};
    uint64_t count = 1;
    if (transaction_decode(payload, &transaction, NULL) == STATUS_OK) count += transaction.spans.count;
    transaction_fini(&transaction);
    return count;
}

void discards_add_item(struct discards *discards, enum discard_reason reason, const struct envelope_item *item)
{
    enum category category = category_of_item(item);
    if (category == CATEGORY_INTERNAL) {
        add_report(discards, item->payload);
        return;
    }
    discards_add(discards, reason, category, 1);
    if (category == CATEGORY_TRANSACTION) discards_add(discards, reason, CATEGORY_SPAN, count_spans(item->payload));
}

void discards_add_envelope(struct discards *discards, enum discard_reason reason, struct slice envelope)
{
    struct envelope_reader reader;
    struct envelope_item item;
    if (envelope_open(&reader, envelope, NULL) == STATUS_OK) {
        while (envelope_next(&reader, &item, NULL)) discards_add_item(discards, reason, &item);
    }
    envelope_close(&reader);
}

static void write_entry(struct json_writer *writer, unsigned reason, unsigned category, uint64_t quantity)
{
    json_begin_object(writer);
    json_member_text(writer, "reason", reason_names[reason]);
    json_member_text(writer, "category", category_name((enum category)category));
    json_member_u64(writer, "quantity", quantity);
    json_end_object(writer);
}

void discards_take_report(struct discards *discards, uint64_t time_ns, struct discards *ret_taken, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    unsigned entries = 0;
    *ret_taken = (struct discards){0};
    json_begin_object(&writer);
    json_member_time(&writer, "timestamp", time_ns);
    json_begin_array_member(&writer, "discarded_events");
    for (unsigned place = 0; place < DISCARD_REASON_COUNT * CATEGORY_COUNT && entries < REPORT_ENTRIES_MAX; place++) {
        unsigned reason = place / CATEGORY_COUNT, category = place % CATEGORY_COUNT;
        uint64_t *count = &discards->counts[reason][category];
        if (*count == 0) continue;
        write_entry(&writer, reason, category, *count);
        ret_taken->counts[reason][category] = *count;
        *count = 0;
        entries++;
    }
    json_end_array(&writer);
    json_end_object(&writer);
}
