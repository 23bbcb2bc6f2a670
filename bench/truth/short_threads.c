/* One short thread after the other. Argument: microseconds of its work. A thread cannot measure its end: the kernel
 * spends another 12 to 14 µs on it. SPDX-License-Identifier: MIT */
#include "truth.h"

#include <dirent.h>

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

/* CPU seconds of the process that no living thread has, by the kernel's count. */
static double spent_by_ended_threads(void)
{
    double seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    DIR *living = opendir("/proc/self/task");
    for (struct dirent *entry; living && (entry = readdir(living));) {
        char path[64];
        unsigned long long nanoseconds;
        if (entry->d_name[0] == '.') continue; /* ../schedstat is the first thread's, too */
        snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%llu", &nanoseconds) == 1) seconds -= (double)nanoseconds * 1e-9;
        if (file) fclose(file);
    }
    if (living) closedir(living);
    return seconds;
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
    double ends = spent_by_ended_threads() - threads_all.cpu;
    threads_all.cpu += ends;
    threads_all.wall += ends;
    PRINT_TRUTH(th_work, threads);
    PRINT_TRUTH(main_work, in_main);
    print_spent("TRUTH", "(all)", threads_all);
}
