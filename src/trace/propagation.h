/* The headers that a request carries from process to process (facts §3.8): `sentry-trace`, W3C's `traceparent` and
 * `baggage`. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_PROPAGATION_H
#define OFFBEAT_TRACE_PROPAGATION_H

#include "base/slice.h"
#include "base/uuid.h"
#include "trace/members.h"
#include "trace/sampling.h"

enum { TRACE_SPAN_ID_SIZE = 17, TRACE_HEADER_SIZE = 64 };

/* One span, as another process knows it. */
struct trace_parent {
    char trace_id[UUID_TEXT_SIZE];
    char span_id[TRACE_SPAN_ID_SIZE];
    enum trace_decision decision;
};

/* Reads `sentry-trace: TRACE-SPAN[-0|1]`; without the flag the decision is left open. False, with RET_PARENT unchanged,
 * if HEADER is broken or an id is all zero. */
bool trace_parent_read(struct slice header, struct trace_parent *ret_parent);
/* Reads `traceparent: 00-TRACE-SPAN-FLAGS`; of later versions, the part that they share with 00. Returns the same. */
bool trace_parent_read_w3c(struct slice header, struct trace_parent *ret_parent);
/* Write these headers. W3C has no open decision: it is written as not sampled. */
void trace_parent_write(const struct trace_parent *parent, char ret_header[TRACE_HEADER_SIZE]);
void trace_parent_write_w3c(const struct trace_parent *parent, char ret_header[TRACE_HEADER_SIZE]);

/* Headers of a request that came in; empty where it has none. */
struct trace_headers {
    struct slice sentry_trace, traceparent, baggage;
};

/* The traces that are continued. A host of the form o123.ingest.… in the DSN names the organisation. */
struct trace_continuation {
    const char *org_id; /* NULL or "" = unknown */
    bool is_strict;     /* rejects traces of which only one side names its organisation */
};

/* The trace that a request continues. Make it with {0}, fini always. */
struct trace_incoming {
    bool has_parent; /* false: a trace of our own begins, and the rest is empty */
    struct trace_parent parent;
    struct trace_members members; /* received members, never changed (frozen); empty if the caller sent none */
};

/* Reads HEADERS into INCOMING, which is {0}. `sentry-trace` takes precedence over `traceparent`. The baggage counts
 * only beside a parent of the same trace. Another organisation's trace is not continued. */
void trace_incoming_read(struct trace_incoming *incoming, const struct trace_headers *headers,
                         const struct trace_continuation *continuation);
/* Returns the number under KEY in the received trace, or -1. */
double trace_incoming_number(const struct trace_incoming *incoming, const char *key);
void trace_incoming_fini(struct trace_incoming *incoming);

#endif
