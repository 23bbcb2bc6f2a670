/* Threads that take the next item until there is none.  SPDX-License-Identifier: MIT */
#include "symbolize/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct job {
    _Atomic size_t next;
    size_t count;
    void (*run)(void *context, unsigned thread, size_t item);
    void *context;
};

struct worker {
    struct job *job;
    pthread_t thread;
    unsigned number;
    bool is_started;
};

unsigned parallel_threads(void)
{
    cpu_set_t allowed;
    int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return count < 1 ? 1 : count > PARALLEL_THREADS_MAX ? PARALLEL_THREADS_MAX : (unsigned)count;
}

static void *run_items(void *argument)
{
    struct worker *worker = argument;
    struct job *job = worker->job;
    for (size_t item; (item = atomic_fetch_add(&job->next, 1)) < job->count;)
        job->run(job->context, worker->number, item);
    return NULL;
}

void parallel_run(unsigned threads, size_t count, void (*run)(void *context, unsigned thread, size_t item),
                  void *context)
{
    struct job job = {.count = count, .run = run, .context = context};
    struct worker workers[PARALLEL_THREADS_MAX] = {{.job = &job}};
    if (threads > PARALLEL_THREADS_MAX) threads = PARALLEL_THREADS_MAX;
    for (unsigned i = 1; i < threads && i < count; i++) {
        workers[i] = (struct worker){.job = &job, .number = i};
        workers[i].is_started = pthread_create(&workers[i].thread, NULL, run_items, &workers[i]) == 0;
    }
    (void)run_items(&workers[0]);
    for (unsigned i = 1; i < threads && i < count; i++)
        if (workers[i].is_started) (void)pthread_join(workers[i].thread, NULL);
}
