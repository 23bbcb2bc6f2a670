/* Rate limits of a server (facts §2.6).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_RATE_LIMITS_H
#define OFFBEAT_SPOOL_RATE_LIMITS_H

#include "spool/category.h"

/* Limits of one DSN. {0} has none. Times are of any clock that never goes back, the same for all calls. Not for several
 * threads. A limit is never shortened by a later one, and none is longer than 24 hours. */
struct rate_limits {
    uint64_t until_ns[CATEGORY_COUNT];
    uint64_t all_until_ns;
};

/* The parts of a response that state limits. Headers that did not come are empty. */
struct rate_limit_answer {
    long status;
    struct slice rate_limits; /* X-Sentry-Rate-Limits; several are joined by commas */
    struct slice retry_after; /* Retry-After: seconds, or a date of HTTP */
    uint64_t time_ns;         /* UTC, now: what a date is held against */
};

/* Call it for every response. The first header counts on any status; else, with status 429 alone, Retry-After, or 60
 * seconds, hold for everything. Limits for nothing but categories that we do not know are ignored, and seconds that
 * cannot be read are 60. */
void rate_limits_update(struct rate_limits *limits, uint64_t now_ns, const struct rate_limit_answer *answer);

/* Returns the end of the limit of CATEGORY; 0 if it may be sent. Chunks are under the limit of their durations too,
 * client reports under none. */
uint64_t rate_limits_until(const struct rate_limits *limits, uint64_t now_ns, enum category category);

#endif
