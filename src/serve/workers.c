/* The queue of requests, and the threads that answer them.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

bool workers_add(struct workers *workers, struct request *request)
{
    (void)pthread_mutex_lock(&workers->lock);
    bool has_room = workers->job_count < SERVE_JOBS_MAX && !workers->is_stopping;
    if (has_room) {
        workers->http->suspend_connection(request->connection);
        request->state = REQUEST_WAITING;
        struct queue *queue = request->is_query ? &workers->query_queue : &workers->ingest_queue;
        *queue->end = request;
        queue->end = &request->next;
        workers->job_count++;
        (void)pthread_cond_signal(&workers->has_jobs);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return has_room;
}

/* --- Workers ------------------------------------------------------------------------------------------------------ */

static struct request *dequeue(struct queue *queue)
{
    struct request *request = queue->first;
    queue->first = request->next;
    if (!queue->first) queue->end = &queue->first;
    return request;
}

/* NULL: nothing may start now. Queries are first while few of them run, and at least one worker is left for what is
 * sent; a single worker takes turns. */
static struct request *next_job(struct workers *workers)
{
    if (workers->running - workers->suspended_count >= workers->worker_count) return NULL;
    bool may_query =
        workers->query_queue.first && workers->running_queries - workers->suspended_count < workers->queries_max;
    workers->was_query = may_query && !(workers->was_query && workers->ingest_queue.first);
    if (workers->was_query) return dequeue(&workers->query_queue);
    return workers->ingest_queue.first ? dequeue(&workers->ingest_queue) : NULL;
}

static void end_suspension(struct request *request)
{
    struct workers *workers = &request->server->workers;
    size_t place = 0;
    if (!request->is_suspended) return;
    (void)pthread_mutex_lock(&workers->lock);
    while (workers->suspended[place] != request->project) place++;
    workers->suspended[place] = workers->suspended[--workers->suspended_count];
    (void)pthread_mutex_unlock(&workers->lock);
}

static void *work(void *context)
{
    struct workers *workers = context;
    (void)pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct request *request = next_job(workers);
        if (!request && workers->is_stopping && workers->job_count == 0) break;
        if (!request) {
            (void)pthread_cond_wait(&workers->has_jobs, &workers->lock);
            continue;
        }
        bool is_query = request->is_query;
        workers->job_count--;
        workers->running++;
        workers->running_queries += is_query;
        (void)pthread_mutex_unlock(&workers->lock);
        workers->run(request);
        end_suspension(request);
        request->state = REQUEST_ANSWERED;
        workers->http->resume_connection(request->connection);
        (void)pthread_mutex_lock(&workers->lock);
        workers->running--;
        workers->running_queries -= is_query;
        if (is_query) (void)pthread_cond_broadcast(&workers->has_jobs);
    }
    (void)pthread_cond_broadcast(&workers->has_jobs); /* others may have waited for this one */
    (void)pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Starts a worker; called with the lock. */
static bool add_thread(struct workers *workers)
{
    bool is_added = pthread_create(&workers->threads[workers->thread_count], NULL, work, workers) == 0;
    workers->thread_count += is_added;
    return is_added;
}

bool query_suspend(struct request *request)
{
    struct workers *workers = &request->server->workers;
    size_t of_project = 0;
    if (request->is_suspended) return true;
    (void)pthread_mutex_lock(&workers->lock);
    for (size_t i = 0; i < workers->suspended_count; i++) of_project += workers->suspended[i] == request->project;
    bool has_room = workers->suspended_count < SERVE_SUSPENDED_QUERIES_MAX &&
                    of_project < SERVE_SUSPENDED_QUERIES_MAX / 2 && !workers->is_stopping;
    bool has_thread = workers->thread_count > workers->worker_count + workers->suspended_count;
    request->is_suspended = has_room && (has_thread || add_thread(workers));
    if (request->is_suspended) {
        workers->suspended[workers->suspended_count++] = request->project;
        (void)pthread_cond_broadcast(&workers->has_jobs);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return request->is_suspended;
}

unsigned workers_start(struct workers *workers, const struct http_library *http, unsigned count,
                       void (*run)(struct request *request))
{
    workers->http = http;
    workers->run = run;
    workers->ingest_queue.end = &workers->ingest_queue.first;
    workers->query_queue.end = &workers->query_queue.first;
    workers->queries_max = count > SERVE_QUERIES_MAX ? SERVE_QUERIES_MAX : 1;
    (void)pthread_mutex_init(&workers->lock, NULL);
    (void)pthread_cond_init(&workers->has_jobs, NULL);
    (void)pthread_mutex_lock(&workers->lock);
    while (workers->thread_count < count && add_thread(workers)) {
    }
    workers->worker_count = workers->thread_count;
    (void)pthread_mutex_unlock(&workers->lock);
    return workers->worker_count;
}

bool workers_are_idle(struct workers *workers)
{
    (void)pthread_mutex_lock(&workers->lock);
    bool is_idle = workers->job_count == 0 && workers->running == 0;
    (void)pthread_mutex_unlock(&workers->lock);
    return is_idle;
}

void workers_stop(struct workers *workers)
{
    (void)pthread_mutex_lock(&workers->lock);
    workers->is_stopping = true;
    (void)pthread_cond_broadcast(&workers->has_jobs);
    (void)pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->thread_count; i++) (void)pthread_join(workers->threads[i], NULL);
}

void workers_fini(struct workers *workers)
{
    (void)pthread_mutex_destroy(&workers->lock);
    (void)pthread_cond_destroy(&workers->has_jobs);
}
