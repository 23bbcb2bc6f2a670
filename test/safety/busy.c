/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <time.h>
#include <stdlib.h>
#include <sys/resource.h>
int main(int c, char **v)
{
    double sec = c > 1 ? atof(v[1]) : 3;
    clock_t a = clock();
    volatile double s = 0;
    while ((double)(clock() - a) / CLOCKS_PER_SEC < sec)
        for (int i = 1; i < 100000; i++) s += 1.0 / i;
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    printf("process cpu %ld.%03ld s\n", r.ru_utime.tv_sec + r.ru_stime.tv_sec,
           (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000 % 1000);
    return 0;
}
