/* The figures of the server for Prometheus.  SPDX-License-Identifier: MIT */
#include "serve/metrics.h"

#include "serve/alerts.h"
#include "serve/serve_private.h"
#include "serve/symbolication.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The upper bounds of the buckets; the last bucket has none. */
static const uint64_t bucket_ends_ms[LATENCY_BUCKETS - 1] = {5, 20, 100, 500, 1000, 5000, 30000};

void metrics_init(struct metrics *metrics)
{
    (void)pthread_mutex_init(&metrics->lock, NULL);
    metrics->started_ns = clock_utc_ns();
}

void metrics_fini(struct metrics *metrics)
{
    (void)pthread_mutex_destroy(&metrics->lock);
}

void metrics_note_request(struct metrics *metrics, enum latency_kind kind, uint64_t duration_ns)
{
    struct latency *latency = &metrics->latencies[kind];
    size_t bucket = 0;
    while (bucket + 1 < LATENCY_BUCKETS && duration_ns > bucket_ends_ms[bucket] * 1000000) bucket++;
    atomic_fetch_add(&latency->buckets[bucket], 1);
    atomic_fetch_add(&latency->sum_ns, duration_ns);
}

void metrics_note_stored(struct metrics *metrics, const struct project_metrics *more)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&metrics->lock);
    while (i < metrics->project_count && metrics->projects[i].project != more->project) i++;
    if (i == metrics->project_count && i < METRICS_PROJECTS_MAX)
        metrics->projects[metrics->project_count++].project = more->project;
    if (i < METRICS_PROJECTS_MAX) {
        metrics->projects[i].chunks += more->chunks;
        metrics->projects[i].bytes += more->bytes;
        metrics->projects[i].rejected += more->rejected;
    }
    (void)pthread_mutex_unlock(&metrics->lock);
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void write_metric(struct buffer *out, const char *name, const char *type, const char *help, uint64_t value)
{
    buffer_append_format(out, "# HELP offbeat_%s %s\n# TYPE offbeat_%s %s\noffbeat_%s %llu\n", name, help, name, type,
                         name, (unsigned long long)value);
}

static void write_symbol_metrics(const struct server *server, struct buffer *out)
{
    struct symbol_counts counts;
    uint64_t files, bytes;
    symbols_count(server->symbols, &counts);
    store_debug_usage(server->store, &files, &bytes);
    write_metric(out, "symbols_named_total", "counter", "Places that were named from debug files.", counts.named);
    write_metric(out, "symbol_readers_total", "counter", "Processes that read a debug file.", counts.asked);
    write_metric(out, "symbol_readers_failed_total", "counter", "Those that failed, or found no usable file.",
                 counts.failed);
    write_metric(out, "debug_files", "gauge", "Debug files.", files);
    write_metric(out, "debug_file_bytes", "gauge", "Their size.", bytes);
}

/* Writes the histogram of each kind of requests; a bucket has all that the ones before it have. */
static void write_latencies(struct metrics *metrics, struct buffer *out)
{
    static const char *const kinds[] = {
        [LATENCY_INGEST] = "ingest", [LATENCY_QUERY] = "query", [LATENCY_OTHER] = "other"};
    buffer_append_text(out, "# HELP offbeat_request_seconds Time from a request's header to the end of its answer.\n"
                            "# TYPE offbeat_request_seconds histogram\n");
    for (size_t kind = 0; kind < LATENCY_KINDS; kind++) {
        const struct latency *latency = &metrics->latencies[kind];
        unsigned long long count = 0;
        for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
            count += latency->buckets[i];
            buffer_append_format(out, "offbeat_request_seconds_bucket{kind=\"%s\",le=\"", kinds[kind]);
            if (i + 1 < LATENCY_BUCKETS)
                buffer_append_format(out, "%g", (double)bucket_ends_ms[i] / 1000);
            else
                buffer_append_text(out, "+Inf");
            buffer_append_format(out, "\"} %llu\n", count);
        }
        buffer_append_format(out, "offbeat_request_seconds_sum{kind=\"%s\"} %.6f\n", kinds[kind],
                             (double)latency->sum_ns / 1e9);
        buffer_append_format(out, "offbeat_request_seconds_count{kind=\"%s\"} %llu\n", kinds[kind], count);
    }
}

static void write_projects(struct metrics *metrics, struct buffer *out)
{
    static const struct {
        const char *name, *help;
        size_t place;
    } figures[] = {
        {"chunks", "Chunks that a project stored.", offsetof(struct project_metrics, chunks)},
        {"payload_bytes", "Bytes of their payloads.", offsetof(struct project_metrics, bytes)},
        {"rejected", "Items of a project that the rules rejected.", offsetof(struct project_metrics, rejected)}};
    (void)pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        buffer_append_format(out, "# HELP offbeat_project_%s_total %s\n# TYPE offbeat_project_%s_total counter\n",
                             figures[i].name, figures[i].help, figures[i].name);
        for (size_t k = 0; k < metrics->project_count; k++) {
            const struct project_metrics *project = &metrics->projects[k];
            uint64_t value;
            (void)memcpy(&value, (const char *)project + figures[i].place, sizeof(value));
            buffer_append_format(out, "offbeat_project_%s_total{project=\"%" PRIu64 "\"} %" PRIu64 "\n",
                                 figures[i].name, project->project, value);
        }
    }
    (void)pthread_mutex_unlock(&metrics->lock);
}

/* Writes the version, and what the names of Prometheus for any process are. */
static void write_process(const struct server *server, struct buffer *out)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu %llu", &pages, &resident) != 2) resident = 0;
    if (file) (void)fclose(file);
    buffer_append_format(out,
                         "# HELP offbeat_build_info The version of the program.\n# TYPE offbeat_build_info gauge\n"
                         "offbeat_build_info{version=\"%s\"} 1\n"
                         "# HELP process_resident_memory_bytes Resident memory.\n"
                         "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %llu\n"
                         "# HELP process_start_time_seconds UNIX time of the start.\n"
                         "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n",
                         OFFBEAT_VERSION, resident * (unsigned long long)sysconf(_SC_PAGESIZE),
                         (double)server->metrics.started_ns / 1e9);
}

/* Writes how far the cluster is behind what has arrived here. */
static void write_spool(const struct store_usage *usage, struct buffer *out)
{
    uint64_t now_ns = clock_utc_ns(), oldest_ns = usage->spool_oldest_ns;
    write_metric(out, "spool_bytes", "gauge", "Bytes that the cluster has not taken.", usage->spool_bytes);
    write_metric(out, "spool_age_seconds", "gauge", "Age of the oldest of them.",
                 oldest_ns && now_ns > oldest_ns ? (now_ns - oldest_ns) / SECOND_NS : 0);
}

/* The text format of Prometheus, version 0.0.4. */
void show_metrics(struct request *request)
{
    struct server *server = request->server;
    struct buffer *out = &request->answer;
    struct store_usage usage;
    store_usage(server->store, &usage);
    write_metric(out, "chunks_stored_total", "counter", "Chunks and profiles that were stored.", server->chunks);
    write_metric(out, "chunks_duplicate_total", "counter", "Chunks that were sent again.", server->duplicates);
    write_metric(out, "items_rejected_total", "counter", "Items that the rules rejected.", server->rejected);
    write_metric(out, "received_bytes_total", "counter", "Bytes of request bodies.", server->received_bytes);
    write_metric(out, "roll_ups_total", "counter", "Sums of 10 minutes, hours and days that were made.",
                 server->rolled_up);
    write_metric(out, "queries_cancelled_total", "counter", "Queries whose client closed the connection.",
                 server->cancelled);
    write_metric(out, "requests_limited_total", "counter", "Requests above the rate of their project.",
                 server->limited);
    write_symbol_metrics(server, out);
    write_metric(out, "requests_open", "gauge", "Requests that are arriving, waiting or answered.",
                 server->connections);
    write_metric(out, "connections_closed_total", "counter", "Connections that were too slow, or gave way to others.",
                 server->open_connections.closed);
    write_metric(out, "body_bytes", "gauge", "Bytes of bodies in memory.", server->body_bytes);
    write_metric(out, "store_bytes", "gauge", "Size of the data files.", usage.bytes);
    write_metric(out, "store_free_bytes", "gauge", "Room on the disk of the data files.", usage.free_bytes);
    write_metric(out, "store_days", "gauge", "Data files.", usage.days);
    write_metric(out, "store_commits_total", "counter", "Commits of the store.", usage.commits);
    write_metric(out, "store_batches_total", "counter", "Requests that those commits stored.", usage.batches);
    if (usage.is_in_cluster) write_spool(&usage, out);
    write_latencies(&server->metrics, out);
    write_projects(&server->metrics, out);
    write_process(server, out);
    alerts_write_metrics(server->alerts, out);
    buffer_append_text(out,
                       "# HELP offbeat_answers_total Answers by status code.\n# TYPE offbeat_answers_total counter\n");
    for (int i = 0; i < STATUS_CODES_MAX; i++) {
        unsigned long long count = server->answers[i];
        if (count) buffer_append_format(out, "offbeat_answers_total{code=\"%d\"} %llu\n", i, count);
    }
    answer_finish(request, "text/plain; version=0.0.4");
}
