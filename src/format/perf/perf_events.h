/* The events of a perf.data file: what each counts, and what its samples contain.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_EVENTS_H
#define OFFBEAT_FORMAT_PERF_PERF_EVENTS_H

#include "base/cursor.h"
#include "base/index_table.h"
#include "base/status.h"
#include "profile/profile.h"

enum {
    PERF_EVENTS_MAX = 4096,
    PERF_EVENT_IDS_MAX = 1 << 20,
    PERF_COUNTERS_MAX = 4 << 20,
    PERF_EVENT_NAME_BYTES_MAX = 1024,
};

struct perf_event {
    uint32_t type;
    uint64_t config, period, sample_type, read_format, branch_type, user_registers, interrupt_registers;
    bool has_sample_id_all;
    bool is_inherited;     /* each thread has its own counter */
    struct string_id name; /* "": perf gave none */
    unsigned column;       /* column of the profile's values; 0: none */
};

struct perf_event_id {
    uint64_t id;
    uint32_t event;
};

/* The value of a counter at its last reading. */
struct perf_counter {
    uint64_t id, value;
    uint32_t tid; /* 0: it is one for all threads */
};

/* {0} is valid and empty. */
struct perf_events {
    struct perf_event *items;
    size_t count, capacity;
    INDEXED_ARRAY_OF(struct perf_event_id) ids;
    INDEXED_ARRAY_OF(struct perf_counter) counters;
    bool has_columns;
};

/* Parses one perf_event_attr of SIZE bytes, which is taken whole. False if it is broken. */
bool perf_event_parse(struct cursor *cursor, uint64_t size, struct perf_event *ret_event);

/* STATUS_TOO_LARGE or STATUS_NO_MEMORY where that fails. */
enum status perf_events_add(struct perf_events *events, const struct perf_event *event);
enum status perf_events_add_id(struct perf_events *events, uint64_t id, size_t event);

/* The event of ID, or NULL. */
struct perf_event *perf_events_find(const struct perf_events *events, uint64_t id);

/* Finds how much the counter ID, read in thread TID, has grown since its last reading. *RET_EVENT is its event, or
 * NULL. */
enum status perf_events_count(struct perf_events *events, uint64_t id, uint32_t tid, uint64_t value,
                              struct perf_event **ret_event, uint64_t *ret_growth);

/* Adds the value types of PROFILE: "samples", and one for each name. False if there are too many. */
bool perf_events_give_columns(struct perf_events *events, struct profile *profile);

void perf_events_fini(struct perf_events *events);

#endif
