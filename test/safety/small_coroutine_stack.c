/* SPDX-License-Identifier: MIT */
/* coroutines on tiny stacks (swapcontext), a thread without an alternate stack: the sampler's frame lands on them */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
static ucontext_t mainc, co[64];
static volatile double s;
static int size;
static void body(int i)
{
    for (;;) {
        for (int k = 1; k < 3000; k++) s += 1.0 / k;
        swapcontext(&co[i], &mainc);
    }
}
int main(int c, char **v)
{
    size = atoi(v[1]);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    unsigned char *mem = mmap(0, 64 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 64; i++) {
        unsigned char *st = mem + i * 65536 + 32768;
        mprotect(st, size, PROT_READ | PROT_WRITE);
        getcontext(&co[i]);
        co[i].uc_stack.ss_sp = st;
        co[i].uc_stack.ss_size = size;
        co[i].uc_link = &mainc;
        makecontext(&co[i], (void (*)())body, 1, i);
    }
    do {
        for (int i = 0; i < 64; i++) swapcontext(&mainc, &co[i]);
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while (b.tv_sec - a.tv_sec < 2);
    puts("lived");
    return 0;
}
