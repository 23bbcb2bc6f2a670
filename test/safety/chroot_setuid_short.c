/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <unistd.h>
#include <time.h>
int main(void)
{
    struct timespec t = {1, 700000000};
    nanosleep(&t, 0);
    if (setgid(65534) || setuid(65534)) return 3;
    puts("dropped");
    fflush(stdout);
    t.tv_sec = 3;
    nanosleep(&t, 0);
    return 0;
}
