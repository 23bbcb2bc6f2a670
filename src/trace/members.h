/* The dynamic sampling context: data that all parts of a trace share, as names and strings ("release", "a@1"), in the
 * order in which they were set. It travels in the header `baggage` and in the envelope's header `trace` (facts §3.8).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_MEMBERS_H
#define OFFBEAT_TRACE_MEMBERS_H

#include "base/buffer.h"
#include "base/json_writer.h"

/* Maxima of one header in W3C Baggage; members beyond them are left out, whole. */
enum { TRACE_MEMBERS_MAX = 64, TRACE_BAGGAGE_BYTES_MAX = 8192 };

/* {0} is empty. Not for several threads. */
struct trace_members {
    struct buffer texts; /* KEY NUL VALUE NUL, again and again */
    size_t count;
};

void trace_members_fini(struct trace_members *members);
/* Copies FROM to INTO, which is empty. False without memory. */
bool trace_members_copy(struct trace_members *into, const struct trace_members *from);

/* Sets or replaces a member. False, with nothing changed, over the maxima, without memory, if VALUE holds NUL, or if
 * KEY is empty or has other characters than letters, digits, '-', '.', '_' and '~'. */
bool trace_members_set(struct trace_members *members, struct slice key, struct slice value);
/* Returns the value, which the next change of MEMBERS may move; NULL if there is none. */
const char *trace_members_find(const struct trace_members *members, const char *key);

/* Adds the members of a `baggage` header that have the prefix sentry-, decoded. Broken members and members of other
 * vendors are skipped; of two with one name the last counts. */
void trace_members_read_baggage(struct trace_members *members, struct slice header);
/* Appends a `baggage` header: those members of OTHERS (a header that the request has already, or empty) that are not
 * Sentry's, as they are, then MEMBERS. Members of OTHERS that do not follow the grammar of W3C Baggage are left out.
 * Where both do not fit into the maxima, the last of OTHERS give way. */
void trace_members_write_baggage(const struct trace_members *members, struct slice others, struct buffer *out);
/* Writes the object of the envelope's header. */
void trace_members_write_json(const struct trace_members *members, struct json_writer *writer);

#endif
