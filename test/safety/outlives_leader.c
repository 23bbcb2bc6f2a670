/* The first thread leaves at once; another one loads a library and works. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void works_on(void)
{
    struct timespec a, b;
    volatile double s = 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 1; i < 10000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 600);
    __asm__ volatile("");
}
static void *work(void *unused)
{
    struct timespec wait = {0, 300000000};
    nanosleep(&wait, NULL);
    dlopen("libm.so.6", RTLD_NOW);
    works_on();
    puts("worker ends");
    exit(0);
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    syscall(SYS_exit, 0);
}
