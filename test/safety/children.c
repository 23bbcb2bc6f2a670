/* SPDX-License-Identifier: MIT */
/* as nginx, apache, postfix: root starts workers that give up rights */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void work(int ms)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    volatile double s = 0;
    do {
        for (int i = 1; i < 100000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}
int main(int c, char **v)
{
    int order = c > 1 ? atoi(v[1]) : 0;
    for (int i = 0; i < 2; i++) {
        pid_t p = fork();
        if (p == 0) {
            if (order == 0) {
                if (setgid(65534) || setuid(65534)) _exit(2);
            }
            work(1500);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
