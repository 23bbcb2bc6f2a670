/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
#include <time.h>
static volatile int n;
static void h(int s, siginfo_t *i, void *c)
{
    n++;
}
int main(void)
{
    struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
    sigaction(SIGURG, &a, NULL);
    struct timespec t = {0, 200000000};
    nanosleep(&t, 0);
    for (int i = 0; i < 1000; i++) {
        union sigval v = {.sival_int = i};
        sigqueue(getpid(), SIGURG, v);
        for (volatile int k = 0; k < 20000; k++)
            ;
    }
    int m = n;
    n = 0;
    for (int i = 0; i < 1000; i++) {
        raise(SIGURG);
        for (volatile int k = 0; k < 20000; k++)
            ;
    }
    printf("sigqueue: %d of 1000 handled; raise: %d of 1000 handled\n", m, n);
    return 0;
}
