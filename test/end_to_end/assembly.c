/* A program whose time is in assembly without tables and frame pointers, which uses RBP as it likes: called directly,
 * and through a pointer by a function that has a frame of its own.  SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FRAME __attribute__((noinline, noclone))
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

void spins_in_assembly(uint64_t rounds);

#if defined(__x86_64__)
__asm__(".text\n.globl spins_in_assembly\n.type spins_in_assembly, @function\nspins_in_assembly:\n"
        "push %rbx\npush %rbp\nsub $72, %rsp\nmov %rdi, 8(%rsp)\nmov %rdi, %rbp\nmov %rdi, %rbx\n"
        "call turns\nadd $72, %rsp\npop %rbp\npop %rbx\nret\n"
        ".size spins_in_assembly, .-spins_in_assembly\n.type turns, @function\nturns:\npush %r12\nmov %rdi, %r12\n"
        "1: imul $31, %rbx\nadd $7, %rbp\ndec %r12\njnz 1b\npop %r12\nret\n.size turns, .-turns\n");
#else
void spins_in_assembly(uint64_t rounds)
{
    for (volatile uint64_t i = 0; i < rounds; i++) continue;
}
#endif

static void (*volatile pointer)(uint64_t) = spins_in_assembly;

FRAME static void calls_directly(void)
{
    spins_in_assembly(200000);
    STAY_A_FRAME();
}

FRAME static void calls_by_pointer(unsigned size)
{
    char *room = __builtin_alloca(size);
    memset(room, 0, size);
    __asm__ volatile("" ::"r"(room) : "memory");
    pointer(200000);
    STAY_A_FRAME();
}

FRAME static void alternates(void)
{
    for (unsigned i = 0;; i++) {
        calls_directly();
        calls_by_pointer(100 + i % 200);
    }
}

int main(void)
{
    (void)puts("ready");
    (void)fflush(stdout);
    alternates();
    return 0;
}
