/* A server with threads: a transaction for each request, work that goes from one thread to another, and a trace that
 * comes in and continues by headers.
 *
 *     cc -g server.c -o server $(pkg-config --cflags --libs offbeat) -pthread
 *     OFFBEAT_DSN=https://KEY@HOST/PROJECT ./server
 *
 *   main ── "GET /album" ──▶ front (3 threads) ── "POST /thumbnails" ──▶ back (1 thread)
 *                              │      ▲
 *                              └ job ▶│ decoder (1 thread)
 *
 * All of it is one program and queues stand for the network, to keep it short; the headers are what they would be. It
 * answers 400 requests, or as many as the argument says.  SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FRONT_THREADS = 3, WAITING_MAX = 16 };

/* --- Requests, and a queue of them -------------------------------------------------------------------------------- */

struct request {
    unsigned number;
    struct offbeat_headers headers; /* sentry-trace, traceparent and baggage, as the client sent them */
    struct offbeat_span *parent;    /* the span of which a job is a part */
    bool is_done;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct request *waiting[WAITING_MAX];
    unsigned count;
    bool is_closed;
};

#define QUEUE                                                                                                          \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }
static struct queue front = QUEUE, back = QUEUE, decoder = QUEUE;

static void put(struct queue *queue, struct request *request)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == WAITING_MAX) pthread_cond_wait(&queue->changed, &queue->lock);
    queue->waiting[queue->count++] = request;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* NULL: there will be no more. */
static struct request *take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->is_closed) pthread_cond_wait(&queue->changed, &queue->lock);
    struct request *request = queue->count > 0 ? queue->waiting[--queue->count] : NULL;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return request;
}

static void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void finish(struct queue *queue, struct request *request)
{
    pthread_mutex_lock(&queue->lock);
    request->is_done = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void wait_for(struct queue *queue, const struct request *request)
{
    pthread_mutex_lock(&queue->lock);
    while (!request->is_done) pthread_cond_wait(&queue->changed, &queue->lock);
    pthread_mutex_unlock(&queue->lock);
}

__attribute__((noinline)) static unsigned decode_picture(unsigned seed)
{
    for (unsigned i = 0; i < 2000000; i++) seed = seed * 1664525 + 1013904223;
    return seed;
}

/* --- The service -------------------------------------------------------------------------------------------------- */

/* Continues the trace of the client that sent REQUEST: the transaction here becomes a child of the client's span. */
static struct offbeat_span *start_transaction(const struct request *request, const char *name)
{
    return offbeat_transaction_start_with(&(struct offbeat_transaction){
        .size = sizeof(struct offbeat_transaction),
        .name = name,
        .op = "http.server",
        .source = OFFBEAT_SOURCE_ROUTE,
        .sentry_trace = request->headers.sentry_trace,
        .traceparent = request->headers.traceparent,
        .baggage = request->headers.baggage,
    });
}

/* Work for another thread: it gets a reference to the span that the work is a part of. */
static void decode_elsewhere(struct offbeat_span *transaction, unsigned number)
{
    struct request job = {.number = number, .parent = offbeat_span_ref(transaction)};
    put(&decoder, &job);
    wait_for(&decoder, &job);
}

static void *run_decoder(void *unused)
{
    for (struct request *job; (job = take(&decoder));) {
        /* The thread that works starts the child, so that the child is linked to this thread's samples. */
        struct offbeat_span *span = offbeat_span_start_child(job->parent, "image.decode", "a picture of the album");
        job->number = decode_picture(job->number);
        offbeat_span_finish(span);
        offbeat_span_unref(job->parent);
        finish(&decoder, job);
    }
    return unused;
}

/* A request to another service. Its headers carry the trace, so that the service continues it. */
static void post_thumbnails(unsigned number)
{
    struct offbeat_span *span = offbeat_span_start("http.client", "POST /thumbnails");
    struct request request = {.number = number};
    offbeat_span_headers(span, NULL, &request.headers);
    put(&back, &request);
    wait_for(&back, &request);
    offbeat_span_finish(span);
}

static void *run_front(void *unused)
{
    for (struct request *request; (request = take(&front));) {
        struct offbeat_span *transaction = start_transaction(request, "GET /album");
        offbeat_span_enter(transaction); /* offbeat_span_start on this thread makes children of it */
        decode_elsewhere(transaction, request->number);
        post_thumbnails(request->number);
        offbeat_span_set_status(transaction, OFFBEAT_STATUS_OK);
        offbeat_span_finish(transaction);
        free(request);
    }
    return unused;
}

static void *run_back(void *unused)
{
    for (struct request *request; (request = take(&back));) {
        struct offbeat_span *transaction = start_transaction(request, "POST /thumbnails");
        request->number = decode_picture(request->number);
        offbeat_span_finish(transaction);
        finish(&back, request);
    }
    return unused;
}

/* --- Its client, and main ----------------------------------------------------------------------------------------- */

static void send_requests(unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        struct request *request = calloc(1, sizeof(*request));
        if (!request) break;
        request->number = i;
        /* As a browser that takes part in tracing does: a trace, one of its spans, and that it is sampled. */
        (void)snprintf(request->headers.sentry_trace, sizeof(request->headers.sentry_trace), "%032x-%016x-1", i, i);
        put(&front, request);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 400;
    pthread_t fronts[FRONT_THREADS], back_thread, decoder_thread;

    offbeat_init(&(struct offbeat_options){
        .size = sizeof(struct offbeat_options),
        .release = "server@1.0.0",
        .profile_session_sample_rate = 1.0,
        .profile_lifecycle = OFFBEAT_LIFECYCLE_TRACE, /* runs while there is a sampled request */
        .traces_sample_rate = 0.1,                    /* for requests whose client did not decide */
    });

    for (unsigned i = 0; i < FRONT_THREADS; i++) pthread_create(&fronts[i], NULL, run_front, NULL);
    pthread_create(&decoder_thread, NULL, run_decoder, NULL);
    pthread_create(&back_thread, NULL, run_back, NULL);

    send_requests(requests);

    close_queue(&front);
    for (unsigned i = 0; i < FRONT_THREADS; i++) pthread_join(fronts[i], NULL);
    close_queue(&decoder);
    close_queue(&back);
    pthread_join(decoder_thread, NULL);
    pthread_join(back_thread, NULL);
    printf("%u requests\n", requests);
    return 0;
}
