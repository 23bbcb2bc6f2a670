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

struct sched_entity {
    uint64_t sum_exec_runtime;
} FOUND_AT_LOAD;

struct sched_info {
    unsigned long long run_delay;
} FOUND_AT_LOAD;

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* threads that have not begun to end */
} FOUND_AT_LOAD;

struct ns_common {
    unsigned int inum;
} FOUND_AT_LOAD;

struct pid_namespace {
    struct ns_common ns;
} FOUND_AT_LOAD;

struct upid {
    int nr;
    struct pid_namespace *ns;
} FOUND_AT_LOAD;

struct pid {
    unsigned int level;
    struct upid numbers[1]; /* one for each namespace from the initial one to that of the process */
} FOUND_AT_LOAD;

struct inode {
    unsigned short i_mode;
} FOUND_AT_LOAD;

struct file {
    struct inode *f_inode;
} FOUND_AT_LOAD;

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
} FOUND_AT_LOAD;

struct files_struct {
    struct fdtable *fdt;
} FOUND_AT_LOAD;

struct task_struct {
    unsigned int __state;
    unsigned int flags;
    int on_cpu;
    int pid, tgid;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct signal_struct *signal;
    struct sched_entity se;
    struct sched_info sched_info;
    unsigned long nvcsw, nivcsw; /* switches to another thread */
    unsigned in_iowait : 1;
    struct files_struct *files;
    uint64_t start_time, start_boottime;
    uint64_t self_exec_id;
    char comm[16];
} FOUND_AT_LOAD;

struct vm_unmapped_area_info {
    unsigned long length;
} FOUND_AT_LOAD;

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
} FOUND_AT_LOAD;

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
} FOUND_AT_LOAD;

#endif
