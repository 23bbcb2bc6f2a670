/* Shared by the programs of `./dev bench truth`: each measures its own functions with clocks and prints, on standard
 * error, what a profile of it must say:
 *
 *   TRUTH NAME WALL CPU    seconds during which stacks contain the function NAME; several lines of one name are summed
 *   TRUTH (all) WALL CPU   the same of a process or thread from its start to its end
 *   THREAD NAME WALL CPU   seconds of threads that are called NAME
 *   NEVER WHAT COUNT OF    COUNT of OF events happened that a profiler must never cause
 *
 * The functions to measure spin on the processor's own time stamp counter, so that no clock is called inside of them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BENCH_TRUTH_H
#define OFFBEAT_BENCH_TRUTH_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifndef __x86_64__
#error "The programs of bench truth read the time stamp counter of x86-64."
#endif

#define FUNCTION __attribute__((noinline, noclone))
#define INLINED inline __attribute__((always_inline))

/* Prevents the compiler from making the call before it the last one of its function. */
#define KEEP_FRAME() __asm__ volatile("")

struct spent {
    double wall, cpu;
};

static double ticks_a_second;

static INLINED double clock_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline double now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

static INLINED uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return ((uint64_t)high << 32) | low;
}

/* Measures the frequency of the time stamp counter. */
static inline void calibrate(void)
{
    double start = now();
    uint64_t start_ticks = ticks();
    while (now() - start < 0.02) {
    }
    ticks_a_second = (double)(ticks() - start_ticks) / (now() - start);
}

/* Inlined, so that the caller is the function of the stack. */
static INLINED void spin_us(double us)
{
    uint64_t end = ticks() + (uint64_t)(us * 1e-6 * ticks_a_second);
    while (ticks() < end) __asm__ volatile("pause");
}

/* Returns a random time between 0.5 and 1.5 US, so that no sampler is in step with the program. */
static inline double about(double us)
{
    return us * (0.5 + drand48());
}

static INLINED void sleep_us(double us)
{
    struct timespec pause = {.tv_sec = (time_t)(us / 1e6)};
    pause.tv_nsec = (long)((us - 1e6 * (double)pause.tv_sec) * 1000);
    nanosleep(&pause, NULL);
}

static inline struct spent spent_until_now(void)
{
    return (struct spent){.wall = now(), .cpu = clock_seconds(CLOCK_THREAD_CPUTIME_ID)};
}

static inline void add_since(struct spent *sum, struct spent start)
{
    struct spent end = spent_until_now();
    sum->wall += end.wall - start.wall;
    sum->cpu += end.cpu - start.cpu;
}

static inline void print_spent(const char *kind, const char *name, struct spent spent)
{
    fprintf(stderr, "%s %s %.6f %.6f\n", kind, name, spent.wall, spent.cpu);
}

#define MEASURE(sum, statement)                                                                                        \
    do {                                                                                                               \
        struct spent start_ = spent_until_now();                                                                       \
        statement;                                                                                                     \
        add_since(&(sum), start_);                                                                                     \
    } while (0)

#define PRINT_TRUTH(function, spent) print_spent("TRUTH", #function, (spent))

/* The end of the program, if it is to run for SHARE of the seconds that the benchmark asks for. */
static inline double end_after(double share)
{
    const char *seconds = getenv("TRUTH_SECONDS");
    return now() + share * (seconds ? atof(seconds) : 3);
}

#ifndef TRUTH_IS_LIBRARY
static double process_start;

__attribute__((constructor(101))) static void note_start(void)
{
    process_start = now();
}

/* The first thread, if the program calls exit; other threads print what they spent themselves. */
__attribute__((destructor(101))) static void print_all(void)
{
    struct spent all = spent_until_now();
    all.wall -= process_start;
    print_spent("TRUTH", "(all)", all);
}
#endif

#endif
