/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_threads.h"

#include "base/array.h"
#include "base/hash.h"

static bool is_tid(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_threads *)context)->items[index].tid == *(const uint32_t *)key;
}

struct perf_thread *perf_threads_get(struct perf_threads *threads, uint32_t tid)
{
    uint64_t hash = hash_mix(tid, 3);
    uint32_t found = index_table_find(&threads->by_tid, hash, is_tid, threads, &tid);
    if (found != INDEX_NONE) return &threads->items[found];
    if (!array_reserve(&threads->items, &threads->capacity, threads->count + 1, sizeof(*threads->items),
                       PERF_THREADS_MAX) ||
        !index_table_add(&threads->by_tid, hash, (uint32_t)threads->count))
        return NULL;
    struct perf_thread *thread = &threads->items[threads->count++];
    *thread = (struct perf_thread){.tid = tid};
    return thread;
}

void perf_threads_fini(struct perf_threads *threads)
{
    free(threads->items);
    index_table_fini(&threads->by_tid);
    *threads = (struct perf_threads){0};
}
