/* The programs in the kernel. timer_tick is called for each CPU at the rate asked, and sends the stack of the thread
 * that runs there. It only looks maps up: user space fills them. SPDX-License-Identifier: MIT */
#include "recorder/bpf/table_walk.bpf.h"

/* The helpers that read user memory are only for programs that the GPL allows, too. */
char sampler_license[] SEC("license") = "Dual MIT/GPL";

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_PROCESSES_MAX);
    __type(key, uint32_t);
    __type(value, struct bpf_process_entry);
} processes SEC(".maps");

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
} timer_walk SEC(".maps"), self_walk SEC(".maps");

enum { PAGE_BYTES = 4096, COPY_PIECES = BPF_COPY_BYTES / PAGE_BYTES + 1 };

/* A sample with registers and a piece of the stack. The last piece that is read may begin at the end of the copy. */
struct stack_copy {
    struct bpf_sample sample;
    uint64_t registers[BPF_REGISTERS];
    uint8_t stack[BPF_COPY_BYTES + PAGE_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct stack_copy);
} timer_copy SEC(".maps"), self_copy SEC(".maps");

/* Samples that found no room in the ring. */
uint64_t samples_lost;

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

/* Returns true if the module entries of PROCESS describe the program that TASK executes. */
static __always_inline bool is_current(const struct bpf_process_entry *process, const struct task_struct *task)
{
    if (process->version == 0 || process->start_boottime != task->group_leader->start_boottime ||
        process->self_exec_id != task->self_exec_id)
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
    if (walk->sample.is_known) walk_stack(walk, process);
}

static __always_inline void describe(struct bpf_sample *sample, const struct task_struct *task, const struct walk *walk)
{
    sample->time_ns = bpf_ktime_get_ns();
    sample->pid = (uint32_t)task->tgid;
    sample->tid = (uint32_t)task->pid;
    sample->start_boottime = task->group_leader->start_boottime;
    sample->self_exec_id = task->self_exec_id;
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

/* Sends the registers of TASK and a piece of its stack, for user space to walk. */
static __always_inline void send_copy(struct stack_copy *copy, struct task_struct *task, const struct walk *walk)
{
    describe(&copy->sample, task, walk);
    take_registers(copy->registers, task);
    copy->sample.count = 0;
    uint32_t size = copy_stack(copy->stack, copy->registers[MACHINE_SP]);
    copy->sample.copy_size = size;
    send(copy, offsetof(struct stack_copy, stack) + size);
}

static __always_inline void send_sample(struct walk *walk, struct stack_copy *copy, struct task_struct *task)
{
    if (walk->outcome == UNWIND_PENDING) {
        send_copy(copy, task, walk);
        return;
    }
    describe(&walk->sample, task, walk);
    walk->sample.copy_size = 0;
    uint32_t count = walk->sample.count;
    if (count > BPF_FRAMES_MAX) count = BPF_FRAMES_MAX;
    send(&walk->sample, sizeof(walk->sample) + count * sizeof(walk->addresses[0]));
}

SEC("perf_event")
int timer_tick(void *context)
{
    uint32_t pid = (uint32_t)(bpf_get_current_pid_tgid() >> 32), zero = 0;
    if (pid == 0) return 0;
    const struct bpf_process_entry *process = bpf_map_lookup_elem(&processes, &pid);
    struct walk *walk = bpf_map_lookup_elem(&timer_walk, &zero);
    struct stack_copy *copy = bpf_map_lookup_elem(&timer_copy, &zero);
    if (!process || !walk || !copy) return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    walk_task(walk, task, process);
    send_sample(walk, copy, task);
    return 0;
}

struct self_context {
    struct walk *walk;
    const struct bpf_process_entry *process;
};

static long walk_self_again(uint32_t index, void *data)
{
    struct self_context *self = data;
    walk_task(self->walk, bpf_get_current_task_btf(), self->process);
    return 0;
}

/* Samples its caller, for tests and benchmarks: started by BPF_PROG_RUN. */
SEC("syscall")
int sample_caller(struct bpf_self_sample *argument)
{
    uint32_t pid = (uint32_t)(bpf_get_current_pid_tgid() >> 32), zero = 0;
    struct self_context self = {
        .walk = bpf_map_lookup_elem(&self_walk, &zero),
        .process = bpf_map_lookup_elem(&processes, &pid),
    };
    struct stack_copy *copy = bpf_map_lookup_elem(&self_copy, &zero);
    if (!self.walk || !self.process || !copy) return 1;
    uint64_t start = bpf_ktime_get_ns();
    bpf_loop(argument->repeat, walk_self_again, &self, 0);
    argument->walk_ns = bpf_ktime_get_ns() - start;
    send_sample(self.walk, copy, bpf_get_current_task_btf());
    return 0;
}
