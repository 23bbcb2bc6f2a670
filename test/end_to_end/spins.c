/* Uses a processor for as many milliseconds as the first argument says, as often as the second one says; each time is a
 * program that the process executes.  SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static void spin(uint64_t duration_ns)
{
    uint64_t began_ns = cpu_ns(); /* the clock goes on after exec */
    for (volatile unsigned i = 0; cpu_ns() - began_ns < duration_ns;) {
        for (unsigned end = i + 1000; i < end;) i++;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    spin(strtoull(argv[1], NULL, 10) * 1000000);
    unsigned long times = strtoul(argv[2], NULL, 10);
    char text[24];
    if (times <= 1) return 0;
    (void)snprintf(text, sizeof(text), "%lu", times - 1);
    (void)execl(argv[0], argv[0], argv[1], text, (char *)NULL);
    return 1;
}
