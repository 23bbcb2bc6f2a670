/* A library that only .debug_frame describes: compiled without unwind tables and without frame pointers.
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <time.h>

__attribute__((visibility("default"))) uint64_t calls_without_tables(uint64_t duration_ns);

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static uint64_t runs_without_tables(uint64_t end_ns)
{
    while (now_ns() < end_ns)
        for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + i;
    return sink;
}

__attribute__((noinline)) static uint64_t sleeps_without_tables(uint64_t end_ns)
{
    struct timespec moment = {.tv_nsec = 200000000};
    while (now_ns() < end_ns) (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    return sink;
}

/* Runs for DURATION_NS, then sleeps for as long. */
uint64_t calls_without_tables(uint64_t duration_ns)
{
    volatile char room[200];
    room[0] = 1;
    uint64_t ran = runs_without_tables(now_ns() + duration_ns);
    uint64_t slept = sleeps_without_tables(now_ns() + duration_ns);
    return ran + slept + (uint64_t)room[0];
}
