/* Sends itself 1000 SIGURG by sigqueue and by raise, after a sleep, or with the argument "working" after and between
 * long computations. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile int n;
static void h(int s, siginfo_t *i, void *c)
{
    n++;
}
int main(int c, char **v)
{
    int works = c > 1 && !strcmp(v[1], "working"), turns = works ? 200000 : 20000;
    struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO};
    sigaction(SIGURG, &a, NULL);
    struct timespec t = {0, 200000000};
    volatile double s = 0;
    if (works)
        for (long i = 1; i < 400000000; i++) s += 1.0 / i;
    else
        nanosleep(&t, 0);
    for (int i = 0; i < 1000; i++) {
        union sigval value = {.sival_int = i};
        sigqueue(getpid(), SIGURG, value);
        for (volatile int k = 0; k < turns; k++)
            ;
    }
    int m = n;
    n = 0;
    for (int i = 0; i < 1000; i++) {
        raise(SIGURG);
        for (volatile int k = 0; k < turns; k++)
            ;
    }
    printf("sigqueue: %d of 1000 handled; raise: %d of 1000 handled\n", m, n);
    return 0;
}
