/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/resource.h>
static void *w(void *x)
{
    pause();
    return 0;
}
int main(int c, char **v)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int n = atoi(v[1]);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 16384);
    int k = 0;
    for (int i = 0; i < n; i++) {
        pthread_t t;
        if (pthread_create(&t, &a, w, 0) == 0) k++;
    }
    sleep(6);
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%d threads, cpu %.2f s of %.2f s, rss %ld KB\n", k,
           r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6,
           end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9, r.ru_maxrss);
    fflush(stdout);
    _exit(0);
}
