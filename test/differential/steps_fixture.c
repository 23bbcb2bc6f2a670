/* Does everything that makes stacks hard to unwind, a little of each, between two calls of steps_begin and steps_end.
 * Is compiled several times, with other options.  SPDX-License-Identifier: MIT */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void steps_begin(void);
void steps_end(void);
void steps_cpp(void);
long steps_assembly(long value);
long steps_switch_stack(void (*function)(void), void *stack_end);
long steps_by_rbx(long value);
long steps_by_r12(long value);
long steps_by_r11(long value);

#define SEPARATE __attribute__((noinline, noclone))

static volatile long sink;

SEPARATE static long leaf(long a)
{
    return a * 3 + sink;
}

SEPARATE static long many_registers(long a, long b, long c, long d, long e, long f, long g, long h)
{
    long p = leaf(a), q = leaf(b), r = leaf(c), s = leaf(d), t = leaf(e), u = leaf(f), v = leaf(g), w = leaf(h);
    return p ^ q ^ r ^ s ^ t ^ u ^ v ^ w ^ leaf(p + q) ^ leaf(r + s + t + u);
}

SEPARATE static long with_alloca(size_t size)
{
    char *bytes = alloca(size);
    bytes[0] = (char)size;
    bytes[size - 1] = 2;
    sink += bytes[0];
    return leaf((long)size);
}

SEPARATE static long with_array(size_t size)
{
    volatile char bytes[size];
    bytes[size / 2] = 3;
    return leaf(bytes[size / 2]);
}

SEPARATE static long large_frame(long a)
{
    volatile char bytes[600 << 10];
    bytes[0] = 1;
    bytes[sizeof(bytes) - 1] = (char)a;
    return leaf(bytes[0]) + leaf(bytes[sizeof(bytes) - 1]);
}

typedef double vector __attribute__((vector_size(32)));

SEPARATE static void use_vector(vector *value)
{
    sink += (long)(*value)[0];
}

__attribute__((target("avx"))) SEPARATE static long realigned(long a)
{
    volatile char some[40];
    vector value __attribute__((aligned(64))) = {(double)a, 2, 3, 4};
    some[3] = (char)a;
    use_vector(&value);
    return leaf((long)value[1] + some[3]);
}

/* Both: the frame is found through a register that is itself saved in the frame. */
__attribute__((target("avx"))) SEPARATE static long realigned_with_alloca(long a, long b, long c, long d, long e,
                                                                          long f, long on_the_stack)
{
    vector value __attribute__((aligned(64))) = {(double)on_the_stack, 2, 3, 4};
    char *bytes = alloca((size_t)(a & 63) + 8);
    bytes[0] = (char)b;
    use_vector(&value);
    return leaf(bytes[0] + (long)value[2]) + c + d + e + f + on_the_stack;
}

static jmp_buf out;

__attribute__((noreturn)) SEPARATE static void leaves(long a)
{
    leaf(a);
    longjmp(out, 1);
}

/* Ends with a call as its last instruction. */
__attribute__((noreturn)) SEPARATE static void ends_with_a_call(long a)
{
    sink = a;
    leaves(a + 1);
}

SEPARATE static long jumps(void)
{
    if (setjmp(out) == 0) ends_with_a_call(5);
    return leaf(6);
}

SEPARATE static long tail_target(long a)
{
    return leaf(a) + 1;
}

SEPARATE static long tail_call(long a)
{
    sink = leaf(a);
    return tail_target(a + 1);
}

SEPARATE static long recursive(long depth)
{
    return depth == 0 ? leaf(1) : recursive(depth - 1) + depth;
}

SEPARATE static long through_pointer(long (*function)(long), long a)
{
    return function(a) + 1;
}

static void handler(int number, siginfo_t *information, void *context)
{
    sink += leaf(number);
}

SEPARATE static long signals(int flags)
{
    static char other_stack[64 << 10];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return leaf(2);
}

/* The instruction that is interrupted is the first of its function: the address before it belongs to another. */
__attribute__((naked)) SEPARATE static void starts_with_a_trap(void)
{
    __asm__("ud2\n\tret");
}

static jmp_buf after_trap;

static void leave_trap(int number)
{
    sink += leaf(number);
    siglongjmp(after_trap, 1);
}

SEPARATE static long trap_at_the_start(void)
{
    (void)signal(SIGILL, leave_trap);
    if (sigsetjmp(after_trap, 1) == 0) starts_with_a_trap();
    return leaf(3);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

SEPARATE static long library_calls(void)
{
    int items[] = {5, 3, 9, 1};
    char text[64];
    struct timespec now;
    qsort(items, 4, sizeof(items[0]), compare);
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof(text), "%d %s", items[0], "x");
    return (long)strlen(text) + strtol("77", NULL, 10) + now.tv_nsec;
}

SEPARATE static void on_another_stack(void)
{
    sink += with_alloca(100) + leaf(4);
}

SEPARATE static long other_stacks(void)
{
    static char below[64 << 10] __attribute__((aligned(16)));
    char *above = malloc(64 << 10);
    long result = steps_switch_stack(on_another_stack, below + sizeof(below));
    result += steps_switch_stack(on_another_stack, above + (64 << 10));
    free(above);
    return result;
}

int main(int argc, char **argv)
{
    steps_begin();
    sink += many_registers(1, 2, 3, 4, 5, 6, 7, 8);
    sink += with_alloca(40) + with_alloca(5000) + with_array(100);
    sink += large_frame(1);
    if (__builtin_cpu_supports("avx")) sink += realigned(1) + realigned_with_alloca(1, 2, 3, 4, 5, 6, 7);
    sink += jumps() + tail_call(1) + recursive(20) + through_pointer(tail_call, 3);
    sink += signals(0) + signals(SA_ONSTACK) + trap_at_the_start();
    sink += steps_assembly(4) + steps_by_rbx(3) + steps_by_r12(3) + steps_by_r11(3);
    sink += other_stacks();
    sink += library_calls();
    steps_cpp();
    steps_end();
    return 0;
}
