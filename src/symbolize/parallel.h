/* The same work on many items, on all processors.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_PARALLEL_H
#define OFFBEAT_SYMBOLIZE_PARALLEL_H

#include <stddef.h>

enum { PARALLEL_THREADS_MAX = 8 };

/* Returns the most threads that parallel_run takes: one a processor, up to PARALLEL_THREADS_MAX. */
unsigned parallel_threads(void);

/* Calls RUN once for each ITEM below COUNT and returns when all are done. Calls with the same THREAD, which is below
 * THREADS, come one after the other; the calling thread is one of the threads, and the only one if no other can be
 * started. Items are begun in ascending order. */
void parallel_run(unsigned threads, size_t count, void (*run)(void *context, unsigned thread, size_t item),
                  void *context);

#endif
