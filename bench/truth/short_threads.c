/* One short thread after the other. Argument: microseconds of its work.  SPDX-License-Identifier: MIT */
#include "truth.h"

static double us;
static struct spent in_main, threads, threads_all;

FUNCTION static void th_work(void)
{
    spin_us(about(us));
}

FUNCTION static void main_work(void)
{
    spin_us(about(us));
}

/* Joined before the next one starts: no lock is needed. */
static void *run(void *start)
{
    MEASURE(threads, th_work());
    threads_all.cpu += clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    threads_all.wall += now() - *(double *)start;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    us = atof(argv[1]);
    calibrate();
    for (double end = end_after(1); now() < end;) {
        double start = now();
        pthread_t thread;
        pthread_create(&thread, NULL, run, &start);
        pthread_join(thread, NULL);
        MEASURE(in_main, main_work());
    }
    PRINT_TRUTH(th_work, threads);
    PRINT_TRUTH(main_work, in_main);
    print_spent("TRUTH", "(all)", threads_all);
}
