/* A library without any unwind table, as hand-written assembly or -fno-asynchronous-unwind-tables leave it, and without
 * frame pointers.  SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((visibility("default"))) void works_without_tables(uint64_t duration_ns);

void works_without_tables(uint64_t duration_ns)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (uint64_t i = 0; i < 100000; i++) sink = sink * 31 + i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)(now.tv_nsec - start.tv_nsec) <
             duration_ns);
}
