/* Any bytes as the headers of a request: what is taken out of them is written so that it reads the same, within the
 * maxima, and of what is broken nothing is taken.  SPDX-License-Identifier: MIT */
#include "trace/propagation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) __builtin_trap();
}

static void must_be_same(const struct trace_parent *parent, const struct trace_parent *again)
{
    must(strlen(parent->trace_id) == 32 && strlen(parent->span_id) == 16);
    must(strcmp(parent->trace_id, again->trace_id) == 0 && strcmp(parent->span_id, again->span_id) == 0);
    must(parent->decision == again->decision);
}

static void try_parents(struct slice bytes)
{
    struct trace_parent parent, again;
    char header[TRACE_HEADER_SIZE];
    if (trace_parent_read(bytes, &parent)) {
        trace_parent_write(&parent, header);
        must(trace_parent_read(slice_of_text(header), &again));
        must_be_same(&parent, &again);
    }
    if (trace_parent_read_w3c(bytes, &parent)) {
        trace_parent_write_w3c(&parent, header);
        must(trace_parent_read_w3c(slice_of_text(header), &again));
        must_be_same(&parent, &again);
    }
}

static void try_baggage(struct slice bytes)
{
    struct trace_members members = {0}, again = {0};
    struct buffer first = {.maximum = TRACE_BAGGAGE_BYTES_MAX}, second = {.maximum = TRACE_BAGGAGE_BYTES_MAX};
    trace_members_read_baggage(&members, bytes);
    must(members.count <= TRACE_MEMBERS_MAX && members.texts.size <= TRACE_BAGGAGE_BYTES_MAX);
    trace_members_write_baggage(&members, (struct slice){0}, &first);
    must(!first.failed);
    trace_members_read_baggage(&again, buffer_slice(&first));
    must(again.count <= members.count);
    trace_members_write_baggage(&again, bytes, &second); /* beside what others have in it */
    must(!second.failed && second.size >= first.size);
    must(first.size == 0 || memcmp(second.data + second.size - first.size, first.data, first.size) == 0);
    trace_members_fini(&members);
    trace_members_fini(&again);
    buffer_fini(&first);
    buffer_fini(&second);
}

static void try_request(struct slice bytes)
{
    struct trace_incoming incoming = {0};
    struct trace_headers headers = {.sentry_trace = bytes, .traceparent = bytes, .baggage = bytes};
    trace_incoming_read(&incoming, &headers, &(struct trace_continuation){.org_id = "1"});
    must(incoming.has_parent || (incoming.members.count == 0 && !incoming.parent.trace_id[0]));
    trace_incoming_fini(&incoming);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = slice_of(data, size);
    try_parents(bytes);
    try_baggage(bytes);
    try_request(bytes);
    return 0;
}
