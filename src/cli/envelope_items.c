/* Walks an envelope and asks the decoder of each known type for what links its item to others.
 * SPDX-License-Identifier: MIT */
#include "cli/envelope_items.h"

#include "base/array.h"
#include "format/sentry/client_report.h"
#include "format/sentry/envelope.h"
#include "format/sentry/transaction.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS_MAX = 1 << 20, FACTS_MAX = 1 << 13 };

/* The item that facts are added to. */
struct listing {
    struct profile *profile;
    struct info_item *item;
    bool no_memory;
};

static struct info_item_fact *add_fact(struct listing *listing, const char *key)
{
    static struct info_item_fact nowhere;
    struct info_item *item = listing->item;
    if (!array_reserve(&item->facts, &item->fact_capacity, item->fact_count + 1, sizeof(*item->facts), FACTS_MAX)) {
        listing->no_memory = true;
        return &nowhere;
    }
    struct info_item_fact *fact = &item->facts[item->fact_count++];
    *fact = (struct info_item_fact){.key = profile_text(listing->profile, key)};
    return fact;
}

static void add_text(struct listing *listing, const char *key, struct slice text)
{
    if (text.size == 0) return;
    struct string_id id = profile_string(listing->profile, text);
    add_fact(listing, key)->text = id;
}

static void add_number(struct listing *listing, const char *key, int kind, uint64_t number)
{
    if (number == 0) return;
    struct info_item_fact *fact = add_fact(listing, key);
    fact->kind = (__typeof__(fact->kind))kind;
    fact->number = number;
}

static void add_span(struct listing *listing, struct slice name, const struct span *span)
{
    add_text(listing, "name", name);
    add_text(listing, "op", span->op);
    add_text(listing, "status", span->status);
    add_number(listing, "start", INFO_TIME, span->start_ns);
    add_number(listing, "duration", INFO_DURATION, span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    add_text(listing, "trace_id", span->trace_id);
    add_text(listing, "span_id", span->span_id);
    add_text(listing, "parent_span_id", span->parent_span_id);
    add_text(listing, "profiler_id", span->profiler_id);
    add_text(listing, "thread_id", span->thread_id);
    add_text(listing, "thread_name", span->thread_name);
}

/* Spans whose profile is not that of the transaction (LNK-5): the profiler was restarted within it. */
static uint64_t count_of_other_profilers(const struct transaction *transaction)
{
    uint64_t count = 0;
    for (size_t i = 0; i < transaction->spans.count; i++) {
        struct slice profiler = transaction_profiler_of(transaction, &transaction->spans.items[i]);
        count += !slice_equal(profiler, transaction->root.profiler_id);
    }
    return count;
}

static void list_transaction(struct listing *listing, struct slice payload)
{
    struct transaction transaction;
    if (transaction_decode(payload, &transaction, NULL) != STATUS_OK) return;
    add_text(listing, "event_id", slice_of_text(transaction.event_id));
    add_span(listing, transaction.name, &transaction.root);
    add_text(listing, "profile_id", transaction.profile_id);
    add_number(listing, "spans", INFO_COUNT, transaction.spans.count);
    add_number(listing, "spans_of_other_profilers", INFO_COUNT, count_of_other_profilers(&transaction));
    transaction_fini(&transaction);
}

/* Finds the span that the others hang from, or else the first. */
static void list_spans(struct listing *listing, struct slice payload)
{
    struct span_list spans;
    if (spans_decode(payload, &spans, NULL) != STATUS_OK) return;
    const struct span *root = spans.items;
    for (size_t i = 0; i < spans.count; i++) {
        if (spans.items[i].is_segment) {
            root = &spans.items[i];
            break;
        }
    }
    if (root) add_span(listing, root->description, root);
    add_number(listing, "spans", INFO_COUNT, spans.count);
    spans_fini(&spans);
}

static void list_client_report(struct listing *listing, struct slice payload)
{
    struct client_report report;
    char key[2 * DISCARDED_NAME_SIZE + 2];
    if (client_report_decode(payload, &report, NULL) != STATUS_OK) return;
    add_number(listing, "time", INFO_TIME, report.time_ns);
    for (size_t i = 0; i < report.count; i++) {
        (void)snprintf(key, sizeof(key), "%s:%s", report.items[i].category, report.items[i].reason);
        add_number(listing, key, INFO_COUNT, report.items[i].quantity);
    }
    client_report_fini(&report);
}

static void list_item(struct listing *listing, const struct envelope_item *item)
{
    add_text(listing, "platform", item->platform);
    add_text(listing, "content_type", item->content_type);
    if (slice_equals_text(item->type, "transaction")) {
        list_transaction(listing, item->payload);
    } else if (slice_equals_text(item->type, "span")) {
        list_spans(listing, item->payload);
    } else if (slice_equals_text(item->type, "client_report")) {
        list_client_report(listing, item->payload);
    } else {
        add_number(listing, "item_count", INFO_COUNT, item->item_count);
    }
}

static enum status list_items(struct envelope_reader *reader, struct listing *listing, struct envelope_items *items,
                              struct error *error)
{
    struct envelope_item item;
    struct error framing = {.status = STATUS_OK};
    while (!listing->no_memory && envelope_next(reader, &item, &framing)) {
        if (!array_reserve(&items->items, &items->capacity, items->count + 1, sizeof(*items->items), ITEMS_MAX)) {
            listing->no_memory = true;
            break;
        }
        listing->item = &items->items[items->count++];
        *listing->item =
            (struct info_item){.type = profile_string(listing->profile, item.type), .size_bytes = item.payload.size};
        items->profile_count += envelope_item_is_chunk(&item) || slice_equals_text(item.type, "profile");
        list_item(listing, &item);
    }
    if (listing->no_memory) return error_set(error, STATUS_NO_MEMORY, 0, "more items than are listed, or no memory");
    if (framing.status != STATUS_OK) return error_set(error, framing.status, framing.offset, "%s", framing.message);
    return profile_failed(listing->profile, error);
}

enum status envelope_items_read(struct slice bytes, struct profile *profile, struct envelope_items *items,
                                struct error *error)
{
    struct envelope_reader reader;
    struct listing listing = {.profile = profile};
    enum status status = envelope_open_lenient(&reader, bytes, error);
    if (status == STATUS_OK) status = list_items(&reader, &listing, items, error);
    envelope_close(&reader);
    return status;
}

void envelope_items_fini(struct envelope_items *items)
{
    for (size_t i = 0; i < items->count; i++) free(items->items[i].facts);
    free(items->items);
    *items = (struct envelope_items){0};
}
