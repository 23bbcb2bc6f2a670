/* Where the kernel enters our signal handler. An alternate stack may have room for the kernel's signal frame alone
 * (AT_MINSIGSTKSZ), so nothing is pushed here: the walk runs on a stack in its request. The request is the thread's own from
 * REQUESTED to DONE, which is stored when this thread has left the request's stack. Registers that calls preserve are used
 * freely, because rt_sigreturn restores all of them. Offsets: signal_handler.c and call_end_aarch64.h assert them.
 *
 * Memory is weakly ordered. STATE is loaded with acquire, so that what the sampler thread wrote before it opened the request is
 * seen, and DONE is stored with release, so that the sampler thread which reads DONE sees the whole reply. A plain load or
 * store would compile, and lose words of a reply now and then. SPDX-License-Identifier: MIT */
#include "base/aarch64_assembly.inc"

        .text
        .globl  signal_entry
        .hidden signal_entry
        .type   signal_entry, @function
signal_entry:                                   /* (number, siginfo_t *, ucontext_t *) */
        .cfi_startproc
        BTI_C
        mov     x20, x1                         /* the information */
        mov     x21, x2                         /* the context */
        adrp    x22, signal_entry_layout
        add     x22, x22, :lo12:signal_entry_layout
        ldr     x23, [x20, #24]                 /* si_value, of timers, too: generation << 16 | index */
        and     x9, x23, #0xffff
        ldr     x10, [x22, #16]
        cmp     x9, x10
        b.hs    .Lreturn
        ldr     x10, [x22]
        ldr     x19, [x10, x9, lsl #3]          /* the request */
        cbz     x19, .Lreturn
        lsr     x23, x23, #16
        lsl     x23, x23, #2                    /* generation << 2 | phase */
        ldr     w9, [x20, #8]                   /* si_code; signals that are not the sampler's are ignored */
        cmn     w9, #2                          /* SI_TIMER: the program's own carry no generation of ours */
        b.eq    .Ltimer
        ldr     w10, [x22, #28]
        cmp     w9, w10
        b.ne    .Lreturn
        ldr     w9, [x22, #24]
        ldr     w10, [x20, #16]                 /* si_pid */
        cmp     w9, w10
        b.ne    .Lreturn
        mov     x24, #2                         /* ORIGIN_ANY */
        mov     x25, #0
        add     x26, x23, #1                    /* REQUESTED; else it was taken back */
        b       .Lreply
.Ltimer:
        ldar    x26, [x19]
        eor     x9, x26, x23
        cmp     x9, #3
        b.hi    .Lreturn                        /* another generation: it was taken back */
        /* The thread is at the end of a system call if the instruction before is svc. The kernel is asked whether that can be
         * read, because code need not be readable: rt_sigprocmask reads the new set before it checks the operation. */
        mov     x24, #0                         /* ORIGIN_OUTSIDE */
        ldr     x27, [x21, #440]                /* PC */
        sub     x27, x27, #4
        mov     x0, #-1
        and     x1, x27, #~7
        mov     x2, #0
        mov     x3, #8
        mov     x8, #135                        /* rt_sigprocmask */
        svc     #0
        cmn     x0, #14                         /* EFAULT */
        b.eq    1f
        ldr     w9, [x27]
        mov     w10, #0x0001
        movk    w10, #0xd400, lsl #16           /* svc #0 */
        cmp     w9, w10
        cset    x24, eq                         /* ORIGIN_IN_CALL */
1:      add     x9, x19, #8
        add     x9, x9, x24, lsl #2
2:      ldaxr   w10, [x9]                       /* signals */
        add     w10, w10, #1
        stlxr   w11, w10, [x9]
        cbnz    w11, 2b
        ldr     w25, [x20, #20]                 /* si_overrun */
        add     x25, x25, #1                    /* intervals since the signal before */
        add     x9, x19, #16
3:      ldaxr   x10, [x9]
        add     x10, x10, x25
        stlxr   w11, x10, [x9]
        cbnz    w11, 3b
        tbz     x26, #0, .Lreturn               /* REQUESTED, or DONE; else it is being read or written */
.Lreply:
        add     x10, x23, #2                    /* WRITING */
4:      ldaxr   x9, [x19]
        cmp     x9, x26
        b.ne    .Lreturn
        stlxr   w11, x10, [x19]
        cbnz    w11, 4b
        mov     x27, sp
        .cfi_def_cfa_register x27
        mov     x28, x30
        .cfi_register x30, x28
        ldr     x9, [x22, #8]
        add     x9, x19, x9
        mov     x0, x19
        mov     x1, x21
        mov     w2, w24
        mov     x3, x25
        mov     sp, x9
        bl      signal_handler_reply
        mov     sp, x27
        .cfi_def_cfa_register sp
        mov     x30, x28
        .cfi_restore x30
        add     x9, x23, #3                     /* DONE */
        stlr    x9, [x19]
.Lreturn:
        ret
        .cfi_endproc
        .size   signal_entry, . - signal_entry

        MARK_BTI
