/* Spends three quarters of its time in one function and a quarter in another, six calls deep. Without libc, so that all
 * of its code is in one small file. SPDX-License-Identifier: MIT */
#define APART __attribute__((noipa))

static volatile unsigned long sum;

APART static unsigned long spends_three(unsigned long n)
{
    for (unsigned long i = 0; i < 3 * n; i++) sum = sum * 31 + i;
    return sum;
}

APART static unsigned long spends_one(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) sum = sum * 31 + i;
    return sum;
}

APART static unsigned long descends(int depth, unsigned long n)
{
    volatile char room[40];
    room[depth] = 1;
    return depth == 0 ? spends_three(n) + spends_one(n) : descends(depth - 1, n) + (unsigned long)room[depth];
}

APART static void runs(void)
{
    for (int i = 0; i < 40; i++) sum += descends(5, 400000);
}

APART static void exits(long status)
{
    register long number __asm__("x8") = 93, argument __asm__("x0") = status;
    __asm__ volatile("svc #0" : : "r"(number), "r"(argument));
}

APART void begins(void); /* the root calls it */
APART void begins(void)
{
    runs();
    exits(0);
}

__asm__(".globl _start\n"
        ".type _start, %function\n"
        "_start:\n"
        ".cfi_startproc\n"
        ".cfi_undefined x30\n"
        "bti c\n"
        "bl begins\n"
        ".cfi_endproc\n"
        ".size _start, .-_start");
