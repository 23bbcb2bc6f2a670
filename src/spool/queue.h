/* Envelopes in memory, the oldest first.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_QUEUE_H
#define OFFBEAT_SPOOL_QUEUE_H

#include "base/buffer.h"

struct queued {
    struct queued *next;
    struct buffer bytes;
    unsigned failed_attempts;
};

/* {.count_max, .bytes_max} is an empty one. Not for several threads. */
struct queue {
    struct queued *first, *last;
    size_t count, count_max;
    size_t bytes, bytes_max;
};

/* Takes the bytes out of ENVELOPE. False, with ENVELOPE as it was, if the queue is full or memory short. */
bool queue_push(struct queue *queue, struct buffer *envelope);
/* Puts back what was popped, over the maxima if need be. */
void queue_push_front(struct queue *queue, struct queued *queued);
/* NULL if it is empty. */
struct queued *queue_pop(struct queue *queue);
void queued_free(struct queued *queued); /* accepts NULL */
void queue_fini(struct queue *queue);

#endif
