/* The bundled example: a small service that indexes web server logs, built to be looked at with a profiler.
 *
 * A thread "reader" makes log lines and puts batches of them into a queue; three threads "worker-N" parse the lines,
 * hash the paths and count them in a table that all share under one lock; a thread "ranker" sorts the table every now
 * and then; a thread "reporter" sleeps nearly all of the time. Runs for about five seconds, or for as many as the
 * argument says.  SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORKERS = 3,
    LINES_A_BATCH = 256,
    LINE_BYTES_MAX = 96,
    QUEUE_BATCHES_MAX = 16,
    TABLE_ROWS = 1 << 14,
    PATHS = 9000,
};

struct batch {
    char lines[LINES_A_BATCH][LINE_BYTES_MAX];
};

struct row {
    uint64_t hash; /* 0: empty */
    uint64_t requests;
    uint64_t bytes;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct batch *batches[QUEUE_BATCHES_MAX];
    unsigned count;
    bool closed;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .not_empty = PTHREAD_COND_INITIALIZER, .not_full = PTHREAD_COND_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    struct row rows[TABLE_ROWS];
    uint64_t lines;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double seconds_to_run = 5;
static struct timespec started;

static double seconds_since_start(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - started.tv_sec) + 1e-9 * (double)(now.tv_nsec - started.tv_nsec);
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* --- reader ------------------------------------------------------------------------------------------------------- */

static void format_line(char line[LINE_BYTES_MAX], uint64_t *random)
{
    static const char *const methods[] = {"GET", "PUT", "POST", "HEAD"};
    unsigned path = next_random(random) % PATHS;
    if (next_random(random) % 4) path %= 50; /* a few pages are read far more often than the rest */
    snprintf(line, LINE_BYTES_MAX, "10.0.%u.%u %s /page/%u/index.html 200 %u", next_random(random) % 256,
             next_random(random) % 256, methods[next_random(random) % 4], path, next_random(random) % 100000);
}

static struct batch *read_batch(uint64_t *random)
{
    struct batch *batch = malloc(sizeof(*batch));
    if (!batch) exit(1);
    for (unsigned i = 0; i < LINES_A_BATCH; i++) format_line(batch->lines[i], random);
    return batch;
}

static void queue_put(struct batch *batch)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == QUEUE_BATCHES_MAX) pthread_cond_wait(&queue.not_full, &queue.lock);
    queue.batches[queue.count++] = batch;
    pthread_cond_signal(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
}

static void queue_close(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_cond_broadcast(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
}

/* NULL when the queue is closed and empty. */
static struct batch *queue_take(void)
{
    struct batch *batch = NULL;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.closed) pthread_cond_wait(&queue.not_empty, &queue.lock);
    if (queue.count > 0) batch = queue.batches[--queue.count];
    pthread_cond_signal(&queue.not_full);
    pthread_mutex_unlock(&queue.lock);
    return batch;
}

static void *reader(void *unused)
{
    uint64_t random = 1;
    while (seconds_since_start() < seconds_to_run) queue_put(read_batch(&random));
    queue_close();
    return NULL;
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

struct request {
    char path[LINE_BYTES_MAX];
    unsigned long bytes;
};

static bool parse_line(const char *line, struct request *ret_request)
{
    char address[LINE_BYTES_MAX], method[LINE_BYTES_MAX];
    unsigned status;
    return sscanf(line, "%95s %95s %95s %u %lu", address, method, ret_request->path, &status, &ret_request->bytes) == 5;
}

/* Slow on purpose, thirty rounds, so that there is something to find. */
static uint64_t hash_path(const char *path)
{
    uint64_t hash = 14695981039346656037u;
    for (unsigned round = 0; round < 30; round++)
        for (const char *byte = path; *byte; byte++) hash = (hash ^ (uint8_t)*byte) * 1099511628211u;
    return hash | 1;
}

static void count_request(uint64_t hash, unsigned long bytes)
{
    pthread_mutex_lock(&table.lock);
    size_t place = hash % TABLE_ROWS;
    while (table.rows[place].hash != 0 && table.rows[place].hash != hash) place = (place + 1) % TABLE_ROWS;
    table.rows[place].hash = hash;
    table.rows[place].requests++;
    table.rows[place].bytes += bytes;
    table.lines++;
    pthread_mutex_unlock(&table.lock);
}

static void index_batch(const struct batch *batch)
{
    for (unsigned i = 0; i < LINES_A_BATCH; i++) {
        struct request request;
        if (parse_line(batch->lines[i], &request)) count_request(hash_path(request.path), request.bytes);
    }
}

static void *worker(void *unused)
{
    struct batch *batch;
    while ((batch = queue_take())) {
        index_batch(batch);
        free(batch);
    }
    return NULL;
}

/* --- ranker and reporter ------------------------------------------------------------------------------------------ */

static int by_requests(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    return (left->requests < right->requests) - (left->requests > right->requests);
}

static struct row rank_rows(void)
{
    static struct row copy[TABLE_ROWS];
    pthread_mutex_lock(&table.lock);
    memcpy(copy, table.rows, sizeof(copy));
    pthread_mutex_unlock(&table.lock);
    qsort(copy, TABLE_ROWS, sizeof(copy[0]), by_requests);
    return copy[0];
}

static void sleep_ms(long milliseconds)
{
    struct timespec rest = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    nanosleep(&rest, NULL);
}

static void *ranker(void *unused)
{
    while (seconds_since_start() < seconds_to_run) {
        (void)rank_rows();
        sleep_ms(5);
    }
    return NULL;
}

static void *reporter(void *unused)
{
    while (seconds_since_start() < seconds_to_run) {
        sleep_ms(1000);
        pthread_mutex_lock(&table.lock);
        printf("%llu lines\n", (unsigned long long)table.lines);
        pthread_mutex_unlock(&table.lock);
    }
    return NULL;
}

static pthread_t start(void *(*run)(void *), const char *name)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0) exit(1);
    pthread_setname_np(thread, name);
    return thread;
}

int main(int argc, char **argv)
{
    static const char *const worker_names[WORKERS] = {"worker-1", "worker-2", "worker-3"};
    pthread_t threads[WORKERS + 3];
    unsigned count = 0;

    if (argc > 1) seconds_to_run = strtod(argv[1], NULL);
    clock_gettime(CLOCK_MONOTONIC, &started);
    threads[count++] = start(reader, "reader");
    for (unsigned i = 0; i < WORKERS; i++) threads[count++] = start(worker, worker_names[i]);
    threads[count++] = start(ranker, "ranker");
    threads[count++] = start(reporter, "reporter");
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);

    struct row first = rank_rows();
    printf("%llu lines; the first page was read %llu times\n", (unsigned long long)table.lines,
           (unsigned long long)first.requests);
    return 0;
}
