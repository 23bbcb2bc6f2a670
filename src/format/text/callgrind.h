/* Files of callgrind and cachegrind, and of others that write callgrind's format: xdebug, offbeat graph.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_CALLGRIND_H
#define OFFBEAT_FORMAT_TEXT_CALLGRIND_H

#include "base/buffer.h"
#include "profile/profile.h"

enum {
    CALLGRIND_EVENTS_MAX = 32,
    CALLGRIND_NAMES_MAX = 1 << 24,    /* names of objects; the same for files and for functions */
    CALLGRIND_HEADER_LINES_MAX = 256, /* lines before "events:" */
};

/* True if BYTES begin with lines of a header, among them "events:". */
bool callgrind_detect(struct slice bytes);

/* Each event becomes a value type, functions and calls stated costs, see profile/stated_costs.h. A name such as
 * "Time_(10ns)" or "cpu(ms)" contains the unit. Errors have the offset of their line. See format_decode for the rest of
 * the contract. */
enum status callgrind_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Each value type becomes an event, the default one first. Functions are distinguished by object, file and name. A call
 * has its costs; how often it happened is not known. STATUS_UNSUPPORTED if there is no sample, or more value types than
 * CALLGRIND_EVENTS_MAX. */
enum status callgrind_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
