/* x86-64: what the kernel has stored of a thread at its entry: registers, and the system call.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_ENTRY_X86_64_BPF_H
#define OFFBEAT_RECORDER_BPF_ENTRY_X86_64_BPF_H

#include "recorder/bpf/kernel.bpf.h"
#include "unwind/machine.h"

#include <asm/unistd.h>

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
} FOUND_AT_LOAD;

static __always_inline void take_registers(uint64_t *into, struct task_struct *task)
{
    const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
    into[MACHINE_IP] = registers->ip;
    into[MACHINE_SP] = registers->sp;
    into[MACHINE_FP] = registers->bp;
    into[MACHINE_RBX] = registers->bx;
    into[MACHINE_R12] = registers->r12;
    into[MACHINE_R13] = registers->r13;
    into[MACHINE_R14] = registers->r14;
    into[MACHINE_R15] = registers->r15;
    into[MACHINE_RAX] = registers->ax;
    into[MACHINE_RDX] = registers->dx;
    into[MACHINE_RCX] = registers->cx;
    into[MACHINE_RSI] = registers->si;
    into[MACHINE_RDI] = registers->di;
    into[MACHINE_R8] = registers->r8;
    into[MACHINE_R9] = registers->r9;
    into[MACHINE_R10] = registers->r10;
    into[MACHINE_R11] = registers->r11;
}

/* Returns the number of the system call that TASK is in, and its first argument. Above INT32_MAX: it is in none. */
static __always_inline uint64_t system_call_of(struct task_struct *task, uint64_t *ret_argument)
{
    const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
    *ret_argument = registers->di;
    return registers->orig_ax;
}

/* Returns what a thread waits for in a system call that newer processors do not have. */
static __always_inline uint32_t reason_of_old_call(uint64_t call)
{
    switch (call) {
    case __NR_poll:
    case __NR_select:
    case __NR_epoll_wait:
        return RECORDING_WAIT_POLL;
    case __NR_fork:
    case __NR_vfork:
        return RECORDING_WAIT_CHILD;
    case __NR_pause:
        return RECORDING_WAIT_SIGNAL;
    default:
        return RECORDING_WAIT_OTHER;
    }
}

#endif
