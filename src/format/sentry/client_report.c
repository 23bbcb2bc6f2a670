/* Client reports: {"timestamp": …, "discarded_events": [{"reason", "category", "quantity"}]}.
 * SPDX-License-Identifier: MIT */
#include "format/sentry/client_report.h"

#include "base/array.h"
#include "base/json_time.h"

#include <stdlib.h>

static bool is_known_reason(const char *reason)
{
    static const char *const known[] = {
        "backpressure",   "before_send",       "buffer_overflow",    "cache_overflow", "event_processor",
        "ignored",        "insufficient_data", "internal_sdk_error", "invalid",        "network_error",
        "no_parent_span", "queue_overflow",    "ratelimit_backoff",  "sample_rate",    "send_error",
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(reason, known[i]) == 0) return true;
    }
    return false;
}

static void copy_name(char name[DISCARDED_NAME_SIZE], struct slice text)
{
    size_t size = text.size < DISCARDED_NAME_SIZE ? text.size : DISCARDED_NAME_SIZE - 1;
    if (size) memcpy(name, text.data, size);
    name[size] = 0;
}

static void read_entry(struct json_reader *reader, struct client_report *report)
{
    struct discarded *entry = ARRAY_ADD(report, DISCARDED_MAX);
    struct slice key;
    if (!entry) {
        json_reader_reject(reader, report->count == DISCARDED_MAX ? STATUS_TOO_LARGE : STATUS_NO_MEMORY,
                           "more entries than are accepted");
        return;
    }
    *entry = (struct discarded){0};
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "reason")) {
            copy_name(entry->reason, json_string(reader));
        } else if (slice_equals_text(key, "category")) {
            copy_name(entry->category, json_string(reader));
        } else if (slice_equals_text(key, "quantity")) {
            entry->quantity = json_u64(reader);
        } else {
            json_skip(reader);
        }
    }
    entry->is_known_reason = is_known_reason(entry->reason);
}

static void read_report(struct json_reader *reader, struct client_report *report)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "timestamp")) {
            report->time_ns = json_time_ns(reader);
        } else if (slice_equals_text(key, "discarded_events")) {
            json_array_begin(reader);
            while (json_array_next(reader)) read_entry(reader, report);
        } else {
            json_skip(reader);
        }
    }
}

enum status client_report_decode(struct slice bytes, struct client_report *ret_report, struct error *error)
{
    struct client_report report = {0};
    struct json_reader reader;
    json_reader_init(&reader, bytes);
    read_report(&reader, &report);
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    if (status == STATUS_OK) {
        *ret_report = report;
    } else {
        client_report_fini(&report);
    }
    return status;
}

void client_report_fini(struct client_report *report)
{
    free(report->items);
    *report = (struct client_report){0};
}
