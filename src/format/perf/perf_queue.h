/* Records in the order of their times. perf record writes what each processor's buffer holds, buffer after buffer, and
 * a mark (FINISHED_ROUND) after each pass: what was written before the last pass but one is older than all that
 * follows. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PERF_PERF_QUEUE_H
#define OFFBEAT_FORMAT_PERF_PERF_QUEUE_H

#include "base/array.h"
#include "format/perf/perf_record.h"

enum { PERF_QUEUE_BYTES_MAX = 32 << 20 }; /* with more, the oldest records leave before their round is over */

/* When and where a record was. */
struct perf_place {
    uint64_t time_ns, offset;
    uint32_t source;
};

struct perf_queued {
    uint64_t time_ns, number; /* NUMBER: records of one time keep their order */
    uint64_t offset;          /* offset in the file */
    uint32_t source;          /* the number of that file */
    uint8_t *bytes;           /* the record, then, at the next multiple of 8, what belongs to it */
    uint32_t size, more_size, capacity;
};

/* A heap whose first item is the oldest. {0} is valid and empty. */
struct perf_queue {
    struct perf_queued *items;
    size_t count, capacity;
    size_t bytes;
    uint64_t pushed;
    ARRAY_OF(struct perf_queued) spare; /* blocks for the next records: most have the same size */
    size_t spare_bytes;
};

/* Copies RECORD and MORE, which belongs to it and may be empty. False without memory. */
bool perf_queue_push(struct perf_queue *queue, const struct perf_place *place, const struct perf_record *record,
                     struct slice more);

/* Takes the oldest off; its bytes are the caller's to give back. QUEUE must not be empty. */
struct perf_queued perf_queue_pop(struct perf_queue *queue);
struct slice perf_queued_more(const struct perf_queued *queued);
void perf_queue_give_back(struct perf_queue *queue, struct perf_queued taken);

void perf_queue_fini(struct perf_queue *queue);

#endif
