/* Sorts and calculates below 1 to 24 frames; argument: how many times.  SPDX-License-Identifier: MIT */
#include <stdlib.h>

enum { NUMBERS = 4096, ROUNDS = 20000, DEPTH = 24 };

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static unsigned next(unsigned number)
{
    return number * 1664525u + 1013904223u;
}

__attribute__((noinline)) static unsigned leaf(unsigned number)
{
    for (int i = 0; i < ROUNDS; i++) number = next(number);
    return number;
}

__attribute__((noinline)) static unsigned sort(unsigned number)
{
    static int values[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) values[i] = (int)((number = next(number)) >> 1);
    qsort(values, NUMBERS, sizeof(values[0]), compare);
    return (unsigned)values[7];
}

__attribute__((noinline)) static unsigned deep(unsigned depth, unsigned number)
{
    unsigned result = depth == 0 ? leaf(number) + sort(number) : deep(depth - 1, number) + 1;
    __asm__ volatile("" : "+r"(result)); /* not a tail call */
    return result;
}

int main(int count, char **words)
{
    unsigned sum = 0;
    long times = count > 1 ? atol(words[1]) : 1000;
    for (long i = 0; i < times; i++) sum += deep((unsigned)(i % DEPTH), (unsigned)i);
    return sum == 42;
}
