/* syscall(2) as a function. Programs make all kinds of system calls through it, so every number but a few is passed on
 * by a jump: the callee sees the registers and the stack of the caller, as if there were nothing in between.
 * interpose_syscall_matters has a byte for each number below 512. SPDX-License-Identifier: MIT */
#include "base/aarch64_assembly.inc"
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
    BTI_C
    cmp x0, #INTERPOSE_NUMBERS_END
    b.hs 1f
    adrp x16, interpose_syscall_matters
    add x16, x16, :lo12:interpose_syscall_matters
    ldrb w16, [x16, x0]
    cbnz w16, 2f
1:  adrp x16, interpose_next_syscall
    ldr x16, [x16, :lo12:interpose_next_syscall]
    br x16                                      /* "bti c" lets a jump in through x16 */
2:  b interpose_syscall
    .cfi_endproc
    .size syscall, . - syscall

    MARK_BTI
