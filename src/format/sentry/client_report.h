/* Client reports: the numbers of items that a client did not send (facts §2.7). SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_CLIENT_REPORT_H
#define OFFBEAT_FORMAT_SENTRY_CLIENT_REPORT_H

#include "base/slice.h"
#include "base/status.h"

enum { DISCARDED_MAX = 1 << 12, DISCARDED_NAME_SIZE = 64 };

struct discarded {
    char reason[DISCARDED_NAME_SIZE]; /* the first characters of the reason; no known one is longer */
    char category[DISCARDED_NAME_SIZE];
    bool is_known_reason;
    uint64_t quantity;
};

struct client_report {
    uint64_t time_ns; /* UTC; 0 = not said */
    struct discarded *items;
    size_t count, capacity;
};

/* Reads the payload of a `client_report` item. STATUS_MALFORMED for other bytes, STATUS_TOO_LARGE over DISCARDED_MAX
 * entries. Sets RET_REPORT on success only. */
enum status client_report_decode(struct slice bytes, struct client_report *ret_report, struct error *error);
void client_report_fini(struct client_report *report); /* accepts {0} */

#endif
