/* AArch64: what the kernel has stored of a thread at its entry: registers, and the system call.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_ENTRY_AARCH64_BPF_H
#define OFFBEAT_RECORDER_BPF_ENTRY_AARCH64_BPF_H

#include "recorder/bpf/kernel.bpf.h"
#include "unwind/machine.h"

#include <asm/unistd.h>

struct pt_regs {
    uint64_t regs[31], sp, pc;
    uint64_t orig_x0;
    int32_t syscallno;
} FOUND_AT_LOAD;

static __always_inline void take_registers(uint64_t *into, struct task_struct *task)
{
    const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
    into[MACHINE_IP] = registers->pc;
    into[MACHINE_SP] = registers->sp;
    into[MACHINE_FP] = registers->regs[29];
    into[MACHINE_LR] = registers->regs[30];
    bpf_core_read(&into[MACHINE_X0], (MACHINE_X15 - MACHINE_X0 + 1) * sizeof(*into), &registers->regs);
    bpf_core_read(&into[MACHINE_X19], (MACHINE_X28 - MACHINE_X19 + 1) * sizeof(*into), &registers->regs[19]);
}

/* Returns the number of the system call that TASK is in, and its first argument. Above INT32_MAX: it is in none. */
static __always_inline uint64_t system_call_of(struct task_struct *task, uint64_t *ret_argument)
{
    const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
    *ret_argument = registers->orig_x0;
    return (uint64_t)(int64_t)registers->syscallno;
}

static __always_inline uint32_t reason_of_old_call(uint64_t call)
{
    return RECORDING_WAIT_OTHER;
}

#endif
