/* The few structures of the kernel that the BPF programs read, declared by hand: the loader finds the fields in the
 * running kernel (CO-RE), so that the build needs no kernel's type information.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_KERNEL_BPF_H
#define OFFBEAT_RECORDER_BPF_KERNEL_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#define FOUND_AT_LOAD __attribute__((preserve_access_index))

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
} FOUND_AT_LOAD;

struct mm_struct;

struct task_struct {
    int pid, tgid;
    struct task_struct *group_leader;
    struct mm_struct *mm;
    uint64_t start_boottime;
    uint64_t self_exec_id;
} FOUND_AT_LOAD;

#endif
