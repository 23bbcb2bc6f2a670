/* Where the kernel enters our signal handler. An alternate stack may have room for the kernel's signal frame alone
 * (AT_MINSIGSTKSZ), so nothing is pushed here: the walk runs on a stack in its slot. The slot is the thread's own from
 * REQUESTED to DONE, which is stored when this thread has left the slot's stack. Registers that calls preserve are used
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
        cmpq    24(%r8), %rax
        jae     .Lreturn
        imulq   8(%r8), %rax
        addq    (%r8), %rax
        movq    %rax, %r12                      /* the slot */
        shrq    $16, %rcx
        leaq    (,%rcx,4), %r13                 /* generation << 2 | phase */
        movl    8(%rsi), %eax                   /* si_code; signals that are not the sampler's are ignored */
        cmpl    $-2, %eax                       /* SI_TIMER: the program's own carry no generation of ours */
        je      .Ltimer
        cmpl    36(%r8), %eax
        jne     .Lreturn
        movl    32(%r8), %eax
        cmpl    %eax, 16(%rsi)                  /* si_pid */
        jne     .Lreturn
        leaq    1(%r13), %rax                   /* REQUESTED; else it was taken back */
        jmp     .Lanswer
.Ltimer:                                        /* of the N hits since the last answer was read, of the preferred */
        movq    (%r12), %rsi                    /* kind if there are any, each is kept with the same chance: */
        movq    %rsi, %rax
        xorq    %r13, %rax
        cmpq    $3, %rax                        /* this one replaces what is there in 1 of N cases */
        ja      .Lreturn                        /* another generation: it was taken back */
        xorl    %r10d, %r10d                    /* HIT_OUTSIDE */
        movq    152(%r14), %rcx                 /* RCX is RIP at the end of a system call: */
        cmpq    168(%r14), %rcx
        sete    %r10b                           /* HIT_IN_CALL */
        movl    $1, %eax
        lock xaddl %eax, 8(%r12,%r10,4)         /* hits */
        incl    %eax                            /* N, of this kind */
        movl    %r10d, %r11d
        xorl    $1, %r11d
        movl    8(%r12,%r11,4), %r11d           /* of the other one */
        movl    24(%r12), %ecx                  /* preferred */
        cmpl    %r10d, %ecx
        je      .Lchance
        testl   $2, %ecx                        /* HIT_ANY */
        jnz     .Lall
        testl   %r11d, %r11d                    /* what is there may be of the preferred kind */
        jnz     .Lreturn
.Lall:
        addl    %r11d, %eax
.Lchance:
        movabsq $6364136223846793005, %rcx      /* Knuth, MMIX */
        imulq   16(%r12), %rcx                  /* chance */
        incq    %rcx
        movq    %rcx, 16(%r12)
        shrq    $32, %rcx
        mull    %ecx
        testl   %edx, %edx
        jnz     .Lreturn
        movq    %rsi, %rax                      /* REQUESTED, or DONE; else it is being read or written */
        testl   $1, %eax
        jz      .Lreturn
.Lanswer:
        leaq    2(%r13), %r9                    /* WRITING */
        lock cmpxchgq %r9, (%r12)
        jne     .Lreturn
        movq    %rsp, %rbx
        .cfi_def_cfa_register %rbx
        movq    %r12, %rdi
        movq    %r14, %rsi
        movq    16(%r8), %rsp
        addq    %r12, %rsp
        call    signal_handler_answer
        movq    %rbx, %rsp
        .cfi_def_cfa_register %rsp
        leaq    3(%r13), %rax                   /* DONE */
        movq    %rax, (%r12)
.Lreturn:
        ret
        .cfi_endproc
        .size   signal_entry, . - signal_entry
        .section .note.GNU-stack, "", @progbits
