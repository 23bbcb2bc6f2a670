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

/* A block for SIZE bytes: the last spare one if it has about that size. */
static struct perf_queued take_block(struct perf_queue *queue, uint32_t size)
{
    struct perf_queued block = {0};
    if (queue->spare.count > 0) {
        block = queue->spare.items[--queue->spare.count];
        queue->spare_bytes -= block.capacity;
        if (block.capacity >= size && block.capacity / 2 <= size) return block;
        free(block.bytes);
    }
    return (struct perf_queued){.bytes = malloc(size), .capacity = size};
}

void perf_queue_give_back(struct perf_queue *queue, struct perf_queued taken)
{
    bool is_kept =
        queue->spare_bytes + taken.capacity <= PERF_QUEUE_BYTES_MAX && ARRAY_PUSH(&queue->spare, ITEMS_MAX, taken);
    if (is_kept)
        queue->spare_bytes += taken.capacity;
    else
        free(taken.bytes);
}

static size_t place_of_more(size_t record_size)
{
    return (record_size + 7) & ~(size_t)7;
}

struct slice perf_queued_more(const struct perf_queued *queued)
{
    return slice_of(queued->bytes + place_of_more(queued->size), queued->more_size);
}

bool perf_queue_push(struct perf_queue *queue, const struct perf_place *place, const struct perf_record *record,
                     struct slice more)
{
    size_t more_place = place_of_more(record->bytes.size);
    if (!ARRAY_RESERVE(queue, 1, ITEMS_MAX)) return false;
    struct perf_queued item = take_block(queue, (uint32_t)(more_place + more.size));
    if (!item.bytes) return false;
    memcpy(item.bytes, record->bytes.data, record->bytes.size);
    if (more.size > 0) memcpy(item.bytes + more_place, more.data, more.size);
    item.time_ns = place->time_ns;
    item.source = place->source;
    item.number = queue->pushed++;
    item.offset = place->offset;
    item.size = (uint32_t)record->bytes.size;
    item.more_size = (uint32_t)more.size;
    queue->items[queue->count] = item;
    queue->bytes += record->bytes.size + more.size;
    rise(queue, queue->count++);
    return true;
}

struct perf_queued perf_queue_pop(struct perf_queue *queue)
{
    struct perf_queued first = queue->items[0];
    queue->bytes -= first.size + first.more_size;
    if (--queue->count > 0) sink(queue, queue->items[queue->count]);
    return first;
}

void perf_queue_fini(struct perf_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) free(queue->items[i].bytes);
    for (size_t i = 0; i < queue->spare.count; i++) free(queue->spare.items[i].bytes);
    free(queue->items);
    free(queue->spare.items);
    *queue = (struct perf_queue){0};
}
