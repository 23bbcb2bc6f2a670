#include <stdlib.h>
#include <string.h>
static volatile long sum;
__attribute__((noinline)) static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static long leaf(int n)
{
    long s = 0;
    for (int i = 0; i < n; i++) s += i ^ n;
    return s;
}
__attribute__((noinline)) static long fib(int n)
{
    return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2);
}
__attribute__((noinline)) static void middle(int n)
{
    for (int i = 0; i < n; i++) sum += leaf(100 + i);
}
int main(void)
{
    int numbers[200];
    for (int i = 0; i < 200; i++) numbers[i] = i * 7919 % 200;
    qsort(numbers, 200, sizeof(int), compare);
    middle(30);
    sum += fib(12);
    middle(10);
    return 0;
}
