/* The common part of all programs: the recorded processes, the ring, and the records of stacks.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_RECORDS_BPF_H
#define OFFBEAT_RECORDER_BPF_RECORDS_BPF_H

#include "recorder/bpf/table_walk.bpf.h"

#if defined(__aarch64__)
#include "recorder/bpf/entry_aarch64.bpf.h"
#else
#include "recorder/bpf/entry_x86_64.bpf.h"
#endif

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_PROCESSES_MAX);
    __type(key, uint32_t);
    __type(value, struct bpf_process_entry);
} processes SEC(".maps");

/* Counts of the mappings in the place of listed code, by process. Only these programs count. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_PROCESSES_MAX);
    __type(key, uint32_t);
    __type(value, uint32_t);
} mapping_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, BPF_RING_BYTES);
} ring SEC(".maps");

/* Memory of the walks: one for each program, because the timer interrupts other programs. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct walk);
} timer_walk SEC(".maps"), self_walk SEC(".maps"), switch_walk SEC(".maps");

enum { PAGE_BYTES = 4096, COPY_PIECES = BPF_COPY_BYTES / PAGE_BYTES + 1 };

/* A sample with registers and a piece of the stack. The last piece that is read may begin at the end of the copy. */
struct stack_copy {
    struct bpf_sample sample;
    uint64_t kernel[BPF_KERNEL_FRAMES_MAX];
    uint64_t registers[BPF_REGISTERS];
    uint8_t stack[BPF_COPY_BYTES + PAGE_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct stack_copy);
} timer_copy SEC(".maps"), self_copy SEC(".maps"), switch_copy SEC(".maps");

/* Samples that found no room in the ring. */
uint64_t samples_lost;

/* Inode of the namespace of process numbers that user space is in; 0: the initial one. Set at load. */
const volatile uint32_t own_namespace;

/* Returns the number of TASK in the namespace of user space; 0: it has none there. */
static uint32_t number_of(struct task_struct *task)
{
    enum { LEVELS_MAX = 32 };
    if (own_namespace == 0) return (uint32_t)task->pid;
    const struct pid *pid = task->thread_pid;
    for (uint32_t i = 1; pid && i < LEVELS_MAX && i <= pid->level; i++) {
        const struct upid *place = (const void *)((uint64_t)&pid->numbers[0] + i * bpf_core_type_size(struct upid));
        if (BPF_CORE_READ(place, ns, ns.inum) == own_namespace) return (uint32_t)BPF_CORE_READ(place, nr);
    }
    return 0;
}

static __always_inline uint32_t process_of(struct task_struct *task)
{
    return own_namespace == 0 ? (uint32_t)task->tgid : number_of(task->group_leader);
}

static __always_inline uint32_t mapping_count_of(uint32_t pid)
{
    const uint32_t *count = bpf_map_lookup_elem(&mapping_counts, &pid);
    return count ? *count : 0;
}

/* Returns true if the module entries of PROCESS describe the program that TASK executes. */
static __always_inline bool is_current(const struct bpf_process_entry *process, struct task_struct *task)
{
    if (process->version == 0 || process->mapping_count != mapping_count_of(process_of(task)) ||
        process->start_boottime != task->group_leader->start_boottime || process->self_exec_id != task->self_exec_id)
        return false;
    uint32_t first = process->first;
    const struct bpf_module_entry *entry = bpf_map_lookup_elem(&modules, &first);
    return entry && entry->version == process->version;
}

/* Walks the stack of TASK, the running one, which belongs to PROCESS. */
static __always_inline void walk_task(struct walk *walk, struct task_struct *task,
                                      const struct bpf_process_entry *process)
{
    take_registers(walk->registers, task);
    walk->sample.is_known = is_current(process, task);
    walk->outcome = UNWIND_PENDING;
    walk->sample.time_ns = bpf_ktime_get_ns();
    if (walk->sample.is_known) walk_stack(walk, process);
}

static __always_inline void describe_sample(struct bpf_sample *sample, struct task_struct *task,
                                            const struct walk *walk)
{
    sample->record = walk->sample.record;
    sample->pid = process_of(task);
    sample->tid = number_of(task);
    sample->start_boottime = task->group_leader->start_boottime;
    sample->self_exec_id = task->self_exec_id;
    sample->mapping_count = mapping_count_of(process_of(task));
    sample->outcome = (uint8_t)walk->outcome;
    sample->is_known = walk->sample.is_known;
}

/* Sends a record. Nobody is woken: user space looks into the ring often enough, unless it fills up. */
static __always_inline void send(void *record, uint64_t size)
{
    uint64_t filled = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
    uint64_t wake = filled > BPF_RING_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
    if (bpf_ringbuf_output(&ring, record, size, wake) != 0) __sync_fetch_and_add(&samples_lost, 1);
}

/* Copies the stack from SP on, page by page up to the first one that cannot be read. Returns the size. */
static __always_inline uint32_t copy_stack(uint8_t *into, uint64_t sp)
{
    uint32_t size = 0, piece = PAGE_BYTES - (sp & (PAGE_BYTES - 1));
    for (uint32_t i = 0; i < COPY_PIECES && size < BPF_COPY_BYTES; i++) {
        if (bpf_probe_read_user(into + size, piece, (const void *)(sp + size)) != 0) break;
        size += piece;
        piece = PAGE_BYTES;
    }
    return size < BPF_COPY_BYTES ? size : BPF_COPY_BYTES;
}

/* True if samples have kernel stacks. Set at load. */
const volatile bool takes_kernel_stacks;

/* Writes the kernel's part of the stack to INTO, which has room; CONTEXT may be NULL. The innermost frames at a switch
 * are the program and its caller: these are left out. Returns the number of frames. */
static __always_inline uint32_t take_kernel_stack(void *context, const struct walk *walk, uint64_t *into)
{
    enum { FRAMES_OF_PROGRAM = 2 };
    if (!context || !takes_kernel_stacks) return 0;
    uint64_t skipped = walk->sample.record == BPF_WAIT_BEGAN ? FRAMES_OF_PROGRAM : 0;
    long size = bpf_get_stack(context, into, BPF_KERNEL_FRAMES_MAX * sizeof(*into), skipped);
    return size > 0 ? (uint32_t)size / sizeof(*into) : 0;
}

/* Sends the registers of TASK and a piece of its stack, for user space to walk. */
static __always_inline void send_copy(void *context, struct stack_copy *copy, struct task_struct *task,
                                      const struct walk *walk)
{
    describe_sample(&copy->sample, task, walk);
    copy->sample.time_ns = walk->sample.time_ns;
    take_registers(copy->registers, task);
    copy->sample.count = 0;
    copy->sample.kernel_count = take_kernel_stack(context, walk, copy->kernel);
    uint32_t size = copy_stack(copy->stack, copy->registers[MACHINE_SP]);
    copy->sample.copy_size = size;
    send(copy, offsetof(struct stack_copy, stack) + size);
}

/* Sends the stack of TASK, the running one, as WALK has found it. CONTEXT is that of the program. */
static __always_inline void send_sample(void *context, struct walk *walk, struct stack_copy *copy,
                                        struct task_struct *task)
{
    if (walk->outcome == UNWIND_PENDING) {
        send_copy(context, copy, task, walk);
        return;
    }
    describe_sample(&walk->sample, task, walk);
    walk->sample.copy_size = 0;
    uint32_t count = walk->sample.count & (SAMPLE_ROOM - 1);
    uint32_t kernel_count = take_kernel_stack(context, walk, &walk->addresses[count]);
    if (kernel_count > BPF_KERNEL_FRAMES_MAX) kernel_count = 0;
    walk->sample.kernel_count = kernel_count;
    send(&walk->sample, sizeof(walk->sample) + (count + kernel_count) * sizeof(walk->addresses[0]));
}

#endif
