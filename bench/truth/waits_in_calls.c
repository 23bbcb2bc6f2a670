/* Two threads on one processor, one of which asks for its CPU clock after each millisecond of work. The kernel looks at
 * its time slice then, and stops it at the end of that call rather than in its work. SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent worked, asked, filled;
static double end;

FUNCTION static void work(void)
{
    spin_us(about(1000));
    KEEP_FRAME();
}

FUNCTION static double ask_clock(void)
{
    double cpu = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    KEEP_FRAME();
    return cpu;
}

FUNCTION static void fill(void)
{
    while (now() < end) spin_us(1000);
}

static void *run_filler(void *nothing)
{
    MEASURE(filled, fill());
    print_spent("TRUTH", "(all)", filled);
    return nothing;
}

static void stay_on_one_processor(void)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
    pthread_t filler;
    calibrate();
    end = end_after(1);
    stay_on_one_processor();
    pthread_create(&filler, NULL, run_filler, NULL);
    double cpu = ask_clock(), first, last;
    for (uint64_t before = ticks(), between; now() < end; before = ticks(), cpu = last) {
        work();
        between = ticks();
        first = ask_clock();
        last = ask_clock();
        worked.wall += (double)(between - before) / ticks_a_second;
        worked.cpu += first - cpu;
        asked.wall += (double)(ticks() - between) / ticks_a_second;
        asked.cpu += last - first;
    }
    pthread_join(filler, NULL);
    PRINT_TRUTH(work, worked);
    PRINT_TRUTH(ask_clock, asked);
    PRINT_TRUTH(fill, filled);
}
