/* The measurements of the program, until the next chunk.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_MEASUREMENTS_H
#define OFFBEAT_SDK_MEASUREMENTS_H

#include "deliver/recordings.h"

#include <pthread.h>

struct measurements {
    pthread_mutex_t lock;
    bool is_wanted; /* a profiler runs */
    struct chunk_measurement *items;
    size_t count, capacity;
    uint64_t lost; /* over the maximum, or without memory */
};

/* From any thread. UTC. */
void measurements_add(struct measurements *measurements, const char *name, const char *unit, uint64_t time_ns,
                      double value);
void measurements_want(struct measurements *measurements, bool is_wanted);
/* Takes all that is there; the caller frees. */
struct chunk_measurement *measurements_take(struct measurements *measurements, size_t *ret_count);

#endif
