/* Frames that compilers do not make, but hand-written code does.  SPDX-License-Identifier: MIT */
        .text

        .globl steps_begin, steps_end
        .type steps_begin, @function
steps_begin:
        .cfi_startproc
        int3
        ret
        .cfi_endproc
        .type steps_end, @function
steps_end:
        .cfi_startproc
        int3
        nopl 0x5e(%rax)         /* by which the other program knows it */
        ret
        .cfi_endproc

        .type helper, @function
helper:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbx, -16
        mov %rdi, %rbx
        add $1, %rbx
        mov %rbx, %rax
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc

/* Pushes around a call, remembered rows, a register kept in another. */
        .globl steps_assembly
        .type steps_assembly, @function
steps_assembly:
        .cfi_startproc
        push %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov %rsp, %rbp
        .cfi_def_cfa_register %rbp
        push %r12
        .cfi_offset %r12, -24
        push %r13
        .cfi_offset %r13, -32
        test %rdi, %rdi
        jz 1f
        .cfi_remember_state
        push %rdi
        call helper
        pop %rdi
        lea -16(%rbp), %rsp
        pop %r13
        pop %r12
        pop %rbp
        .cfi_def_cfa %rsp, 8
        ret
1:      .cfi_restore_state
        xor %eax, %eax
        pop %r13
        pop %r12
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc

/* Frames found by other registers than SP and FP, across a call. */
        .macro by_register name, register, dwarf
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
        push \register
        .cfi_adjust_cfa_offset 8
        .cfi_offset \register, -16
        mov %rsp, \register
        .cfi_def_cfa_register \register
        sub $72, %rsp
        and $-64, %rsp
        call helper
        mov \register, %rsp
        .cfi_def_cfa_register %rsp
        pop \register
        .cfi_adjust_cfa_offset -8
        .cfi_restore \register
        ret
        .cfi_endproc
        .endm
        by_register steps_by_rbx, %rbx
        by_register steps_by_r12, %r12

/* By one that does not survive calls: only where nothing is called. */
        .globl steps_by_r11
        .type steps_by_r11, @function
steps_by_r11:
        .cfi_startproc
        lea -8(%rsp), %r11
        .cfi_def_cfa %r11, 16
        sub $100, %rsp
        and $-32, %rsp
        mov %rdi, (%rsp)
        mov (%rsp), %rax
        lea 8(%r11), %rsp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc

/* steps_switch_stack(function, stack_end): as libraries that grow stacks do it. */
        .globl steps_switch_stack
        .type steps_switch_stack, @function
steps_switch_stack:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbx, -16
        mov %rsp, %rbx
        .cfi_def_cfa_register %rbx
        mov %rsi, %rsp
        call *%rdi
        mov %rbx, %rsp
        .cfi_def_cfa_register %rsp
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        xor %eax, %eax
        ret
        .cfi_endproc
        .section .note.GNU-stack, "", @progbits
