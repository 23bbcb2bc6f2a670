/* Works for 0.5 s in a coroutine whose stack was made by hand, as Boost.Context makes it: the return address of its
 * first function is code that follows a jump, without an unwind table. SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

void start_coroutine(void *stack_end, void (*function)(void));

__asm__(".text\n"
        ".type start_coroutine, @function\n"
        "start_coroutine:\n"
        "    movq %rdi, %rsp\n"
        "    movq %rsi, %rbx\n"
        "    leaq after_coroutine(%rip), %rax\n"
        "    pushq %rax\n"
        "    jmp *%rbx\n"
        ".type after_coroutine, @function\n"
        "after_coroutine:\n"
        "    xorq %rdi, %rdi\n"
        "    call _exit@PLT\n"
        "    hlt\n");

static void work(void)
{
    clock_t end = clock() + CLOCKS_PER_SEC / 2;
    while (clock() < end) {
        for (int i = 0; i < 20000; i++) sink += i * i;
    }
}

int main(void)
{
    const size_t size = 256 << 10;
    char *stack = malloc(size);
    start_coroutine((void *)(((uintptr_t)stack + size) & ~(uintptr_t)15), work);
    return 1;
}
