/* Two children of root without its rights: with the argument "before" the process gives them up and forks, as php-fpm
 * pools, redis under su and cron jobs; otherwise each child gives them up, as workers of nginx, apache and postfix.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    int before = c > 1 && !strcmp(v[1], "before");
    if (before && (setgid(65534) || setuid(65534))) return 2;
    for (int i = 0; i < 2; i++) {
        pid_t p = fork();
        if (p == 0) {
            if (!before && (setgid(65534) || setuid(65534))) _exit(2);
            work(1500);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
