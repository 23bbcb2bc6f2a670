/* Works for 0.4 s in one function, is stopped in raise until another process continues it, and works for 0.4 s in
 * another function. SPDX-License-Identifier: MIT */
#include <signal.h>
#include <time.h>

static volatile unsigned long sink;

static void spin(double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end) {
        for (int i = 0; i < 20000; i++) sink += i * i;
    }
}

__attribute__((noinline)) static void before_stop(void)
{
    spin(0.4);
    __asm__ volatile("");
}

__attribute__((noinline)) static void after_stop(void)
{
    spin(0.4);
    __asm__ volatile("");
}

int main(void)
{
    before_stop();
    raise(SIGSTOP);
    after_stop();
    return 0;
}
