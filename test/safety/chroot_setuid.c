/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <dlfcn.h>
#include <time.h>
#include <sys/stat.h>
static __attribute__((noinline)) void work(int ms)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    volatile double s = 0;
    do {
        for (int i = 1; i < 100000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}
__attribute__((noinline)) void before(void)
{
    work(1500);
    __asm__ volatile("");
}
__attribute__((noinline)) void after(void)
{
    work(4000);
    __asm__ volatile("");
}
int main(void)
{
    before();
    mkdir("/tmp/offbeat-jail", 0755);
    if (chroot("/tmp/offbeat-jail") || chdir("/")) return 2;
    if (setgid(65534) || setuid(65534)) return 3;
    after();
    puts("done");
    return 0;
}
