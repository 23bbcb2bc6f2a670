/* syscall(2) as a function. Programs make all kinds of system calls through it, so every number but a few is passed on
 * by a jump: the callee sees the registers and the stack of the caller, as if there were nothing in between.
 * interpose_syscall_matters has a byte for each number below 512. SPDX-License-Identifier: MIT */
#include "interpose/syscall_numbers.h"

    .text
    .globl syscall
    .type syscall, @function
    .balign 16
    .globl interpose_syscall_entry
    .hidden interpose_syscall_entry
interpose_syscall_entry:
syscall:
    .cfi_startproc
    endbr64
    cmpq $INTERPOSE_NUMBERS_END, %rdi
    jae 1f
    leaq interpose_syscall_matters(%rip), %rax
    cmpb $0, (%rax, %rdi)
    jne 2f
1:  jmpq *interpose_next_syscall(%rip)
2:  jmp interpose_syscall
    .cfi_endproc
    .size syscall, . - syscall

    .section .note.GNU-stack, "", @progbits
