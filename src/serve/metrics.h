/* The figures of the server that no other part has.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_METRICS_H
#define OFFBEAT_SERVE_METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { LATENCY_BUCKETS = 8, METRICS_PROJECTS_MAX = 1000 };

enum latency_kind { LATENCY_INGEST, LATENCY_QUERY, LATENCY_OTHER, LATENCY_KINDS };

struct latency {
    atomic_ullong buckets[LATENCY_BUCKETS], sum_ns;
};

/* Figures of a project since the start. */
struct project_metrics {
    uint64_t project, chunks, bytes, rejected;
};

struct metrics {
    uint64_t started_ns; /* UTC time of the start */
    struct latency latencies[LATENCY_KINDS];
    pthread_mutex_t lock; /* lock of the projects */
    struct project_metrics projects[METRICS_PROJECTS_MAX];
    size_t project_count;
};

void metrics_init(struct metrics *metrics);
void metrics_fini(struct metrics *metrics);
void metrics_note_request(struct metrics *metrics, enum latency_kind kind, uint64_t duration_ns);
/* Adds MORE to its project; above METRICS_PROJECTS_MAX of them, others are left out. */
void metrics_note_stored(struct metrics *metrics, const struct project_metrics *more);

#endif
