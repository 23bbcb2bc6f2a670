/* A program that runs until it is killed, or for some seconds (its argument), to be recorded from outside. One thread
 * spends 70 % of its CPU time in one function and 30 % in another, by its own CPU clock; one sleeps below a known
 * stack; one is at the end of a deep recursion. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Each function is its own frame, by its own name: never inlined, copied, or left by a jump. */
#define FRAME __attribute__((noinline, noclone))
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

enum { SHARE_US_MIN = 200, DEPTH = 200 };

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define BURN(duration_us, salt)                                                                                        \
    uint64_t start_ns = cpu_ns();                                                                                      \
    while (cpu_ns() - start_ns < (duration_us)*1000u)                                                                  \
        for (uint64_t i = 0; i < 2000; i++) sink = sink * 31 + (i ^ (salt));                                           \
    STAY_A_FRAME()

FRAME static void spends_seventy(uint64_t share_us)
{
    BURN(7 * share_us, 70);
}

FRAME static void spends_thirty(uint64_t share_us)
{
    BURN(3 * share_us, 30);
}

FRAME static void *burns(void *unused)
{
    for (uint64_t random = 1;; random = random * 6364136223846793005u + 1442695040888963407u) {
        uint64_t share_us = SHARE_US_MIN + (random >> 33) % SHARE_US_MIN; /* no timer keeps step */
        spends_seventy(share_us);
        spends_thirty(share_us);
    }
    return unused;
}

FRAME static void waits_forever(void)
{
    for (;;) pause();
}

FRAME static unsigned recurses(unsigned depth)
{
    if (depth == 0) waits_forever();
    unsigned below = depth > 0 ? recurses(depth - 1) : 0;
    STAY_A_FRAME();
    return below + 1;
}

FRAME static void *is_deep(void *unused)
{
    sink = recurses(DEPTH);
    return unused;
}

FRAME static void sleeps_briefly(void)
{
    usleep(5000);
    STAY_A_FRAME();
}

int main(int argc, char **argv)
{
    pthread_t burning, deep;
    if (pthread_create(&burning, NULL, burns, NULL) != 0 || pthread_create(&deep, NULL, is_deep, NULL) != 0) return 1;
    (void)puts("ready");
    (void)fflush(stdout);
    uint64_t end_s = argc > 1 ? (uint64_t)time(NULL) + 1 + (uint64_t)atoi(argv[1]) : UINT64_MAX;
    while ((uint64_t)time(NULL) < end_s) sleeps_briefly();
    return 7;
}
