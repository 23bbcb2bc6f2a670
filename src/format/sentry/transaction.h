/* Transactions and spans: the parts that connect a profile with them (requirements LNK-1…3; facts §3.4).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_TRANSACTION_H
#define OFFBEAT_FORMAT_SENTRY_TRANSACTION_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"
#include "base/uuid.h"

enum { SPANS_MAX = 1 << 16 }; /* spans of one item */

/* Texts are empty where the source had none. Ids are as sent, a uuid as 32 lowercase hex digits. */
struct span {
    struct slice trace_id, span_id, parent_span_id;
    struct slice op, description, status;
    uint64_t start_ns, end_ns; /* UTC; 0 = not said */
    struct slice thread_id, thread_name;
    struct slice profiler_id;          /* "" = that of the transaction */
    struct slice release, environment; /* members of spans that are sent alone */
    bool is_segment;                   /* the span, sent alone, is the root of its part of the trace */
};

/* Spans, and the memory of their texts. */
struct span_list {
    struct span *items;
    size_t count, capacity;
    struct buffer texts;
};

struct transaction {
    char event_id[UUID_TEXT_SIZE];
    struct slice name, platform, release, environment;
    struct span root;        /* contexts.trace: the transaction's own span; profiler_id from contexts.profile */
    struct slice profile_id; /* contexts.profile, of V1 */
    struct span_list spans;
};

/* Reads the payload of a `transaction` item. Members of unexpected types are ignored, as servers do.
 * STATUS_MALFORMED if BYTES are not a JSON object, STATUS_TOO_LARGE over SPANS_MAX. TRANSACTION is set on success; it
 * keeps nothing of BYTES. */
enum status transaction_decode(struct slice bytes, struct transaction *ret_transaction, struct error *error);
void transaction_fini(struct transaction *transaction); /* accepts {0} */

/* The profiler of SPAN, one of TRANSACTION's: its own, else that of the transaction (LNK-5). "" = none. */
struct slice transaction_profiler_of(const struct transaction *transaction, const struct span *span);

/* Appends TRANSACTION as a payload, with the members that a server requires. */
void transaction_encode(const struct transaction *transaction, struct buffer *out);

/* Reads the payload of a `span` item: one span, or a container of spans of version 2, {"items": […]}. */
enum status spans_decode(struct slice bytes, struct span_list *ret_spans, struct error *error);
void spans_fini(struct span_list *spans); /* accepts {0} */

#endif
