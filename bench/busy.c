/* The busy program whose slowdown is measured: four threads, each with a fixed amount of work spread over a few
 * functions at changing depths. Prints the nanoseconds that it took, by the wall and of CPU time, and the CPU time that
 * its parent used meanwhile, which is the recorder, if one started it. So starting and finishing a profiler are not
 * counted. Argument: how much work (1 is about 100 ms on one thread).
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, DEPTH_MAX = 24 };

static unsigned long work;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline, noclone)) static uint64_t mix(uint64_t value)
{
    for (unsigned i = 0; i < 400; i++) value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9u + i;
    return value;
}

__attribute__((noinline, noclone)) static uint64_t descend(unsigned depth, uint64_t value)
{
    uint64_t below = depth ? descend(depth - 1, value + depth) : value;
    return mix(below) ^ depth;
}

static void *run(void *unused)
{
    uint64_t value = 1;
    for (unsigned long i = 0; i < work * 18000; i++) value = descend((unsigned)(value % DEPTH_MAX), value);
    sink += value;
    return NULL;
}

int main(int argc, char **argv)
{
    work = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
    clockid_t parent;
    if (clock_getcpuclockid(getppid(), &parent) != 0) return 1;
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t start_parent_ns = clock_ns(parent);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0) return 1;
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns, parent_ns = clock_ns(parent) - start_parent_ns;
    printf("%lu %lu %lu\n", clock_ns(CLOCK_MONOTONIC) - start_ns, cpu_ns, parent_ns);
    return 0;
}
