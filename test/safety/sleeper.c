/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <time.h>
int main(void)
{
    struct timespec t = {3, 0};
    syscall(SYS_nanosleep, &t, 0);
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    printf("sleeper: process cpu %.3f s in 3 s\n",
           r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6);
    return 0;
}
