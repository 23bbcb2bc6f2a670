/* Allocations for DHAT, massif and gperftools: COUNT.  SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *leaf(int n)
{
    return memset(malloc(n), 1, n);
}
__attribute__((noinline)) static char *other(int n)
{
    return calloc(n, 3);
}
__attribute__((noinline)) static void middle(int n)
{
    for (int i = 0; i < n; i++) {
        void *made = leaf(100 + i), *more = other(10 + i);
        if (i % 3) free(made);
        if (i % 4) free(more);
    }
}
__attribute__((noinline)) static long busy(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i ^ n;
    return sum;
}
int main(int count, char **arguments)
{
    int n = count > 1 ? atoi(arguments[1]) : 100;
    middle(n);
    for (int i = 0; i < 50; i++) middle(10);
    return (int)(busy(n * 100000L) & 0);
}
