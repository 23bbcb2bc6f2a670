/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_queue.h"

#include "base/array.h"

enum { ITEMS_MAX = 1 << 26 };

static bool is_older(const struct perf_queued *a, const struct perf_queued *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void rise(struct perf_queue *queue, size_t place)
{
    struct perf_queued item = queue->items[place];
    while (place > 0 && is_older(&item, &queue->items[(place - 1) / 2])) {
        queue->items[place] = queue->items[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    queue->items[place] = item;
}

/* Puts ITEM into the hole at the front. */
static void sink(struct perf_queue *queue, struct perf_queued item)
{
    size_t place = 0;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= queue->count) break;
        if (child + 1 < queue->count && is_older(&queue->items[child + 1], &queue->items[child])) child++;
        if (!is_older(&queue->items[child], &item)) break;
        queue->items[place] = queue->items[child];
        place = child;
    }
    queue->items[place] = item;
}

bool perf_queue_push(struct perf_queue *queue, uint64_t time_ns, uint64_t offset, const struct perf_record *record)
{
    if (!array_reserve(&queue->items, &queue->capacity, queue->count + 1, sizeof(*queue->items), ITEMS_MAX))
        return false;
    uint8_t *bytes = malloc(record->bytes.size);
    if (!bytes) return false;
    memcpy(bytes, record->bytes.data, record->bytes.size);
    queue->items[queue->count] = (struct perf_queued){.time_ns = time_ns,
                                                      .number = queue->pushed++,
                                                      .offset = offset,
                                                      .bytes = bytes,
                                                      .size = (uint32_t)record->bytes.size};
    queue->bytes += record->bytes.size;
    rise(queue, queue->count++);
    return true;
}

struct perf_queued perf_queue_pop(struct perf_queue *queue)
{
    struct perf_queued first = queue->items[0];
    queue->bytes -= first.size;
    if (--queue->count > 0) sink(queue, queue->items[queue->count]);
    return first;
}

void perf_queue_fini(struct perf_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) free(queue->items[i].bytes);
    free(queue->items);
    *queue = (struct perf_queue){0};
}
