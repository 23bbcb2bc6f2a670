/* exec and its relatives, some of which have a variable number of arguments: these are kept, and libc's function is
 * entered by a jump, as if there were nothing in between.  SPDX-License-Identifier: MIT */

    .text
.macro interposed name, number
    .globl \name
    .type \name, @function
    .balign 16
\name:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movl $\number, %edi
    call interpose_before_exec
    movq %rax, %r11
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    xorl %eax, %eax                             /* no argument is in a vector register: all are pointers or of type int */
    jmpq *%r11
    .cfi_endproc
    .size \name, . - \name
.endm

    interposed execve, 0                        /* the order of next.c */
    interposed execv, 1
    interposed execvp, 2
    interposed execvpe, 3
    interposed execl, 4
    interposed execlp, 5
    interposed execle, 6
    interposed fexecve, 7
    interposed execveat, 8

    .section .note.GNU-stack, "", @progbits
