/* SPDX-License-Identifier: MIT */
#include <unistd.h>
#include <sys/syscall.h>
#include <stdio.h>
int main(void)
{
    volatile double s = 0;
    for (long i = 1; i < 100000000; i++) s += 1.0 / i;
    (void)!write(1, "main thread leaves\n", 19);
    syscall(SYS_exit, 0);
}
