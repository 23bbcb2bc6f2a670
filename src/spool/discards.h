/* Counts of data that was made and not sent, by reason and category, as in client reports (facts §2.7).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_DISCARDS_H
#define OFFBEAT_SPOOL_DISCARDS_H

#include "spool/category.h"

enum discard_reason {
    DISCARD_BEFORE_SEND,
    DISCARD_BUFFER_OVERFLOW, /* a transaction has too many spans, or a process too many transactions */
    DISCARD_CACHE_OVERFLOW,  /* the spool is full: the oldest */
    DISCARD_INSUFFICIENT_DATA,
    DISCARD_INTERNAL_SDK_ERROR,
    DISCARD_INVALID,
    DISCARD_NETWORK_ERROR,
    DISCARD_NO_PARENT_SPAN, /* a span was unfinished when its transaction ended */
    DISCARD_QUEUE_OVERFLOW, /* the queue in memory is full: the newest */
    DISCARD_RATELIMIT_BACKOFF,
    DISCARD_SAMPLE_RATE,
    DISCARD_SEND_ERROR, /* the server rejected it */
    DISCARD_REASON_COUNT
};

/* {0} is empty. Counts stay at their maximum instead of wrapping. Not for several threads. */
struct discards {
    uint64_t counts[DISCARD_REASON_COUNT][CATEGORY_COUNT];
};

const char *discard_reason_name(enum discard_reason reason);
/* False if no reason that we know has this NAME. */
bool discard_reason_of_name(struct slice name, enum discard_reason *ret_reason);

void discards_add(struct discards *discards, enum discard_reason reason, enum category category, uint64_t quantity);
void discards_add_all(struct discards *discards, const struct discards *others);
bool discards_are_empty(const struct discards *discards);
/* Returns the number of items; spans are parts of items. */
uint64_t discards_item_count(const struct discards *discards);

/* Counts every item of ENVELOPE: a transaction also as its spans and itself; of a client report, what it reports. */
void discards_add_envelope(struct discards *discards, enum discard_reason reason, struct slice envelope);
void discards_add_item(struct discards *discards, enum discard_reason reason, const struct envelope_item *item);

/* Moves as many counts as one report may hold (4 KiB) from DISCARDS to RET_TAKEN and appends the payload that states
 * them to OUT. TIME_NS is UTC. */
void discards_take_report(struct discards *discards, uint64_t time_ns, struct discards *ret_taken, struct buffer *out);

#endif
