/* A linked list with its sizes.  SPDX-License-Identifier: MIT */
#include "spool/queue.h"

#include "base/invariant.h"

#include <stdlib.h>

bool queue_push(struct queue *queue, struct buffer *envelope)
{
    if (queue->count >= queue->count_max || queue->bytes >= queue->bytes_max ||
        envelope->size > queue->bytes_max - queue->bytes)
        return false;
    struct queued *queued = calloc(1, sizeof(*queued));
    if (!queued) return false;
    queued->bytes = *envelope;
    buffer_init(envelope, envelope->maximum);
    if (queue->last) {
        queue->last->next = queued;
    } else {
        queue->first = queued;
    }
    queue->last = queued;
    queue->count++;
    queue->bytes += queued->bytes.size;
    return true;
}

void queue_push_front(struct queue *queue, struct queued *queued)
{
    queued->next = queue->first;
    queue->first = queued;
    if (!queue->last) queue->last = queued;
    queue->count++;
    queue->bytes += queued->bytes.size;
}

struct queued *queue_pop(struct queue *queue)
{
    struct queued *queued = queue->first;
    if (!queued) return NULL;
    if (!INVARIANT(queue->count > 0 && queue->bytes >= queued->bytes.size)) return NULL;
    queue->first = queued->next;
    if (!queue->first) queue->last = NULL;
    queue->count--;
    queue->bytes -= queued->bytes.size;
    queued->next = NULL;
    return queued;
}

void queued_free(struct queued *queued)
{
    if (!queued) return;
    buffer_fini(&queued->bytes);
    free(queued);
}

void queue_fini(struct queue *queue)
{
    for (struct queued *queued = queue_pop(queue); queued; queued = queue_pop(queue)) queued_free(queued);
}
