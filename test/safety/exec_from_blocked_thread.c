/* SPDX-License-Identifier: MIT */
/* a worker thread that blocks all signals and calls exec itself, again and again */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
static int left;
static void *w(void *x)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (volatile int i = 0; i < 1000; i++)
            ;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 15000000);
    char n[16];
    snprintf(n, 16, "%d", left - 1);
    execl("/proc/self/exe", "execblk", n, (char *)0);
    _exit(9);
}
int main(int c, char **v)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    left = atoi(v[1]);
    if (left == 0) {
        puts("end of the chain");
        return 0;
    }
    pthread_t t;
    pthread_create(&t, 0, w, 0);
    pause();
    pause();
    return 3;
}
