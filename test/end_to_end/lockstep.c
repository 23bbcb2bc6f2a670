/* Does its work in step with a timer of 100 Hz: after each beat of the timer 2 ms in one function, then 3 ms in
 * another, then it sleeps until the next. A profiler whose ticks keep the same step sees only one of the three.
 * Argument: for how many seconds. Prints the true shares as "FUNCTION SHARE" lines.  SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BEAT_NS = 10000000 };

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define WORKS(name, salt)                                                                                              \
    __attribute__((noinline, noclone)) static uint64_t name(uint64_t duration_ns)                                      \
    {                                                                                                                  \
        uint64_t start_ns = now_ns();                                                                                  \
        while (now_ns() - start_ns < duration_ns)                                                                      \
            for (uint64_t i = 0; i < 200; i++) sink = sink * 31 + (i ^ (salt));                                        \
        __asm__ volatile("" ::: "memory");                                                                             \
        return now_ns() - start_ns;                                                                                    \
    }

WORKS(works_on_the_beat, 1)
WORKS(works_after_the_beat, 2)

__attribute__((noinline, noclone)) static uint64_t sleeps_until_the_next(uint64_t beat_ns)
{
    uint64_t start_ns = now_ns();
    struct timespec beat = {.tv_sec = (time_t)(beat_ns / 1000000000u), .tv_nsec = (long)(beat_ns % 1000000000u)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &beat, NULL);
    __asm__ volatile("" ::: "memory");
    return now_ns() - start_ns;
}

int main(int argc, char **argv)
{
    uint64_t start_ns = now_ns(), seconds = strtoull(argc > 1 ? argv[1] : "10", NULL, 10);
    uint64_t beat_ns = start_ns, end_ns = start_ns + seconds * 1000000000u, on_ns = 0, after_ns = 0, asleep_ns = 0;
    while (beat_ns < end_ns) {
        on_ns += works_on_the_beat(2000000);
        after_ns += works_after_the_beat(3000000);
        do beat_ns += BEAT_NS;
        while (beat_ns < now_ns());
        asleep_ns += sleeps_until_the_next(beat_ns);
    }
    double all_ns = (double)(now_ns() - start_ns);
    printf("works_on_the_beat %f\nworks_after_the_beat %f\nsleeps_until_the_next %f\n", (double)on_ns / all_ns,
           (double)after_ns / all_ns, (double)asleep_ns / all_ns);
    return 0;
}
