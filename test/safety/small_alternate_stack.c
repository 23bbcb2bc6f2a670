/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
static size_t size;
static void *run(void *x)
{
    unsigned char *m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(m, 0xA5, 65536);
    stack_t st = {.ss_sp = m + 32768, .ss_size = size};
    if (sigaltstack(&st, NULL)) {
        perror("sigaltstack");
        exit(3);
    }
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    volatile double s = 0;
    do {
        for (int i = 1; i < 100000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while (b.tv_sec - a.tv_sec < 2);
    int low = 32768;
    while (low > 0 && m[low - 1] == 0xA5) low--;
    int lo = 0;
    while (lo < 32768 && m[lo] == 0xA5) lo++;
    printf("altstack %zu: bytes written below it: %d\n", size, 32768 - lo);
    return 0;
}
int main(int c, char **v)
{
    size = atoi(v[1]);
    printf("AT_MINSIGSTKSZ %lu\n", getauxval(AT_MINSIGSTKSZ));
    pthread_t t;
    pthread_create(&t, 0, run, 0);
    pthread_join(t, 0);
    return 0;
}
