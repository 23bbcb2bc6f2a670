/* The fields of samples and of the kernel's other records.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_RECORD_H
#define OFFBEAT_FORMAT_PERF_PERF_RECORD_H

#include "format/perf/perf_events.h"
#include "format/perf/perf_layout.h"

struct perf_record {
    uint32_t type;
    uint16_t misc;
    struct slice bytes; /* bytes with the header of 8 bytes */
};

static inline struct cursor perf_record_body(const struct perf_record *record)
{
    return cursor_of(
        slice_of(record->bytes.data + PERF_RECORD_HEADER_SIZE, record->bytes.size - PERF_RECORD_HEADER_SIZE));
}

/* Returns the size that the header of RECORD has. */
static inline size_t perf_record_size(const struct perf_record *record)
{
    struct cursor cursor = cursor_of(record->bytes);
    cursor_skip(&cursor, sizeof(uint32_t) + sizeof(uint16_t));
    return cursor_u16(&cursor);
}

struct perf_sample {
    uint64_t ip, time_ns, period;
    uint32_t pid, tid, cpu;
    bool has_time, has_cpu, has_chain;
    uint64_t read_count;    /* counters that were read with it */
    struct slice reads;     /* bytes for perf_sample_read */
    struct slice chain;     /* addresses of 8 bytes each */
    struct slice calls;     /* branches of --call-graph lbr, PERF_BRANCH_SIZE bytes each, the innermost call first */
    uint64_t registers_abi; /* 0: none */
    struct slice registers; /* 8 bytes for each bit of the event's user_registers */
    uint64_t registers_mask;
    struct slice stack;   /* memory at the stack pointer and above */
    uint64_t stack_place; /* the offset in the record of the field that STACK is in */
    uint64_t cgroup;      /* 0: the event has none */
};

/* The event that RECORD belongs to; NULL if nobody knows. */
struct perf_event *perf_record_event(const struct perf_events *events, const struct perf_record *record);

/* Returns the time at which RECORD, one of the kernel's, was written; 0 if it has none. */
uint64_t perf_record_time(const struct perf_events *events, const struct perf_event *event,
                          const struct perf_record *record);

/* Counter I of those read with SAMPLE: what it has counted so far. */
struct perf_read {
    uint64_t id, value;
};
struct perf_read perf_sample_read(const struct perf_event *event, const struct perf_sample *sample, uint64_t i);

/* False if it is broken. The slices are parts of RECORD. */
bool perf_sample_parse(const struct perf_event *event, const struct perf_record *record,
                       struct perf_sample *ret_sample);

/* The same of a record that ends where the stack would begin, without the cgroup, which comes after it. */
bool perf_sample_parse_start(const struct perf_event *event, const struct perf_record *record,
                             struct perf_sample *ret_sample);

#endif
