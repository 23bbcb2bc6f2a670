/* Work on a stack that a function of assembly code switches to, with the right unwind information.
 * SPDX-License-Identifier: MIT */
#include "truth.h"

static struct spent on_other, on_normal;

FUNCTION static void other_stack(void)
{
    spin_us(about(5000));
}

FUNCTION static void normal_work(void)
{
    spin_us(about(5000));
}

void call_on(void *top, void (*function)(void));
__asm__(".text\n"
        ".globl call_on\n"
        ".type call_on, @function\n"
        "call_on:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register rbp\n"
        "    mov %rdi, %rsp\n"
        "    call *%rsi\n"
        "    mov %rbp, %rsp\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_on, .-call_on\n");

int main(void)
{
    enum { STACK_BYTES = 1 << 20 };
    char *stack = malloc(STACK_BYTES);
    if (!stack) return 1;
    calibrate();
    for (double end = end_after(1); now() < end;) {
        MEASURE(on_other, call_on(stack + STACK_BYTES - 64, other_stack));
        MEASURE(on_normal, normal_work());
    }
    PRINT_TRUTH(other_stack, on_other);
    PRINT_TRUTH(normal_work, on_normal);
}
