/* SPDX-License-Identifier: MIT */
#include <time.h>

static volatile unsigned long sink;

__attribute__((visibility("default"))) void work_in_library(double seconds)
{
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    while (clock() < end) {
        for (int i = 0; i < 20000; i++) sink += i * i;
    }
}
