/* The shared library that shares.c loads while it runs.  SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <time.h>

__attribute__((visibility("default"))) uint64_t works_in_the_plugin(uint64_t duration_ns);

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t works_in_the_plugin(uint64_t duration_ns)
{
    uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < duration_ns)
        for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + i;
    return now_ns() - start_ns;
}
