/* makecontext has a variable number of arguments, in registers and on the stack: they are kept, and libc's function is
 * entered by a jump, as if there were nothing in between.  SPDX-License-Identifier: MIT */

    .text
    .globl makecontext
    .type makecontext, @function
    .balign 16
makecontext:
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
    call interpose_before_makecontext
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
    xorl %eax, %eax                             /* no argument is in a vector register: all are of type int */
    jmpq *%r11
    .cfi_endproc
    .size makecontext, . - makecontext

    .section .note.GNU-stack, "", @progbits
