/* Works for two seconds, so many per cent of them (the argument) in no_unwind_tables.c.  SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

void works_without_tables(uint64_t duration_ns);

static volatile uint64_t sink;

static void works_with_tables(uint64_t duration_ns)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (uint64_t i = 0; i < 100000; i++) sink = sink * 31 + i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)(now.tv_nsec - start.tv_nsec) <
             duration_ns);
}

int main(int count, char **arguments)
{
    uint64_t percent = count > 1 ? strtoull(arguments[1], NULL, 10) : 50;
    works_with_tables(20000000 * (100 - percent));
    if (percent > 0) works_without_tables(20000000 * percent);
    return 0;
}
