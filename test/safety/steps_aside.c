/* Works, makes a user namespace and then enters its own mount namespace, and works on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
static void work(long ms)
{
    struct timespec a, b;
    volatile double s = 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 1; i < 10000; i++) s += 1.0 / i;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}
__attribute__((noinline)) void before(void)
{
    work(500);
    __asm__ volatile("");
}
__attribute__((noinline)) void after(void)
{
    work(500);
    __asm__ volatile("");
}
int main(void)
{
    before();
    int user = unshare(CLONE_NEWUSER | CLONE_NEWNS);
    int mount = setns(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), CLONE_NEWNS);
    after();
    printf("%d %d\n", user, mount);
    return 0;
}
