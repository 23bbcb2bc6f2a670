/* Where the kernel enters our signal handler. An alternate stack may have room for the kernel's signal frame alone
 * (AT_MINSIGSTKSZ), so nothing is pushed here: the walk runs on a stack in its request. The request is the thread's own from
 * REQUESTED to DONE, which is stored when this thread has left the request's stack. Registers that calls preserve are used
 * freely, because rt_sigreturn restores all of them. Offsets: signal_handler.c asserts them.
 * SPDX-License-Identifier: MIT */

        .text
        .globl  signal_entry
        .hidden signal_entry
        .type   signal_entry, @function
signal_entry:                                   /* (number, siginfo_t *, ucontext_t *) */
        .cfi_startproc
        endbr64
        movq    %rdx, %r14                      /* the context */
        leaq    signal_entry_layout(%rip), %r8
        movq    24(%rsi), %rcx                  /* si_value, of timers, too: generation << 16 | index */
        movzwl  %cx, %eax
        cmpq    16(%r8), %rax
        jae     .Lreturn
        movq    (%r8), %r12
        movq    (%r12,%rax,8), %r12             /* the request */
        testq   %r12, %r12
        jz      .Lreturn
        shrq    $16, %rcx
        leaq    (,%rcx,4), %r13                 /* generation << 2 | phase */
        movl    8(%rsi), %eax                   /* si_code; signals that are not the sampler's are ignored */
        cmpl    $-2, %eax                       /* SI_TIMER: the program's own carry no generation of ours */
        je      .Ltimer
        cmpl    28(%r8), %eax
        jne     .Lreturn
        movl    24(%r8), %eax
        cmpl    %eax, 16(%rsi)                  /* si_pid */
        jne     .Lreturn
        movl    $2, %r15d                       /* ORIGIN_ANY */
        leaq    1(%r13), %rax                   /* REQUESTED; else it was taken back */
        jmp     .Lreply
.Ltimer:
        movq    (%r12), %rax
        movq    %rax, %rcx
        xorq    %r13, %rcx
        cmpq    $3, %rcx
        ja      .Lreturn                        /* another generation: it was taken back */
        xorl    %r15d, %r15d                    /* ORIGIN_OUTSIDE */
        movq    152(%r14), %rcx                 /* RCX is RIP at the end of a system call: */
        cmpq    168(%r14), %rcx
        sete    %r15b                           /* ORIGIN_IN_CALL */
        lock incl 8(%r12,%r15,4)                /* signals */
        movl    20(%rsi), %ecx                  /* si_overrun */
        incq    %rcx                            /* intervals since the signal before */
        lock addq %rcx, 16(%r12)
        testl   $1, %eax                        /* REQUESTED, or DONE; else it is being read or written */
        jz      .Lreturn
.Lreply:
        leaq    2(%r13), %r9                    /* WRITING */
        lock cmpxchgq %r9, (%r12)
        jne     .Lreturn
        movq    %rsp, %rbx
        .cfi_def_cfa_register %rbx
        movq    %r12, %rdi
        movq    %r14, %rsi
        movl    %r15d, %edx
        movq    8(%r8), %rsp
        addq    %r12, %rsp
        call    signal_handler_reply
        movq    %rbx, %rsp
        .cfi_def_cfa_register %rsp
        leaq    3(%r13), %rax                   /* DONE */
        movq    %rax, (%r12)
.Lreturn:
        ret
        .cfi_endproc
        .size   signal_entry, . - signal_entry
        .section .note.GNU-stack, "", @progbits
