/* Sleeps inside a coroutine of makecontext, whose stack does not end as a thread's does, and below a frame without
 * unwind information. No wait may end with EINTR.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <ucontext.h>

static ucontext_t outside, coroutine;
static int interrupted, waits;
static struct spent slept, worked;

void call_without_tables(void (*function)(void));
__asm__(".text\n"
        ".globl call_without_tables\n"
        ".type call_without_tables, @function\n"
        "call_without_tables:\n"
        "    sub $72, %rsp\n"
        "    call *%rdi\n"
        "    add $72, %rsp\n"
        "    ret\n"
        ".size call_without_tables, .-call_without_tables\n");

FUNCTION static void nap(void)
{
    struct timespec pause = {.tv_nsec = 20000000};
    waits++;
    if (nanosleep(&pause, NULL) != 0 && errno == EINTR) interrupted++;
}

FUNCTION static void co_sleep(void)
{
    nap();
    KEEP_FRAME();
}

FUNCTION static void work(void)
{
    spin_us(about(2000));
}

static void run_coroutine(void)
{
    for (;;) {
        MEASURE(slept, co_sleep());
        swapcontext(&coroutine, &outside);
    }
}

FUNCTION static void sleep_below(void)
{
    co_sleep();
    KEEP_FRAME();
}

int main(void)
{
    enum { STACK_BYTES = 16384 };
    calibrate();
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = malloc(STACK_BYTES);
    coroutine.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine, run_coroutine, 0);
    for (double end = end_after(1); now() < end;) {
        swapcontext(&outside, &coroutine);
        MEASURE(slept, call_without_tables(sleep_below));
        MEASURE(worked, work());
    }
    PRINT_TRUTH(co_sleep, slept);
    PRINT_TRUTH(work, worked);
    fprintf(stderr, "NEVER interrupted %d %d\n", interrupted, waits);
}
