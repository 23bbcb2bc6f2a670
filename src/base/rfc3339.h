/* Points in time as text, "2023-11-14T22:13:20.123456Z" (RFC 3339).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_RFC3339_H
#define OFFBEAT_BASE_RFC3339_H

#include "base/slice.h"

enum { RFC3339_TEXT_SIZE = 32 };

/* Nanoseconds since 1970, UTC. A time without a zone is taken for UTC, a blank for the T, digits after the ninth are
 * cut off. False if TEXT is no such time, or one before 1970 or after 2554. */
bool rfc3339_parse(struct slice text, uint64_t *ret_time_ns);
/* The same, or seconds since 1970: "1795407529.5". */
bool time_parse(const char *text, uint64_t *ret_time_ns);
/* A time before NOW_NS: "now", "now-10s", "now-5m", "now-2h", "now-1d". */
bool time_before_parse(const char *text, uint64_t now_ns, uint64_t *ret_time_ns);

/* UTC with six decimals, nine where that is not all, and a NUL. */
void rfc3339_format(uint64_t time_ns, char ret_text[RFC3339_TEXT_SIZE]);

#endif
