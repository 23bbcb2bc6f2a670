/* The programs in the kernel. timer_tick is called for each CPU at the rate asked, and sends the stack of the thread
 * that runs there. It only looks maps up: user space fills them. SPDX-License-Identifier: MIT */
#include "recorder/bpf/function_copy.bpf.h"
#include "recorder/bpf/table_walk.bpf.h"

#include <bpf/bpf_tracing.h>

/* The helpers that read user memory are only for programs that the GPL allows, too. */
char sampler_license[] SEC("license") = "Dual MIT/GPL";

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
    sample->record = BPF_SAMPLE;
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

/* Sends the registers of TASK and a piece of its stack, for user space to walk. */
static __always_inline void send_copy(struct stack_copy *copy, struct task_struct *task, const struct walk *walk)
{
    describe_sample(&copy->sample, task, walk);
    copy->sample.time_ns = walk->sample.time_ns;
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
    describe_sample(&walk->sample, task, walk);
    walk->sample.copy_size = 0;
    uint32_t count = walk->sample.count;
    if (count > BPF_FRAMES_MAX) count = BPF_FRAMES_MAX;
    send(&walk->sample, sizeof(walk->sample) + count * sizeof(walk->addresses[0]));
}

/* Sends the functions that an interpreter runs in TASK, the running one, if there are some. */
static __always_inline void send_functions(const struct walk *walk, struct task_struct *task)
{
    uint32_t tid = number_of(task), processor = bpf_get_smp_processor_id();
    const struct bpf_interpreted_thread *thread = bpf_map_lookup_elem(&interpreted_threads, &tid);
    struct bpf_functions *copy = thread ? bpf_map_lookup_elem(&function_copies, &processor) : NULL;
    uint32_t size = copy ? copy_functions(copy, thread) : 0;
    barrier_var(size); /* the verifier must see the next check of what is sent */
    if (size == 0 || size > sizeof(*copy)) return;
    copy->tid = tid;
    copy->time_ns = walk->sample.time_ns;
    bpf_probe_read_kernel(copy->stack_pointers, sizeof(copy->stack_pointers), walk->stack_pointers);
    send(copy, size);
}

SEC("perf_event")
int timer_tick(void *context)
{
    if (bpf_get_current_pid_tgid() == 0) return 0; /* no thread wants to run */
    struct task_struct *task = bpf_get_current_task_btf();
    uint32_t pid = process_of(task), zero = 0;
    const struct bpf_process_entry *process = bpf_map_lookup_elem(&processes, &pid);
    struct walk *walk = bpf_map_lookup_elem(&timer_walk, &zero);
    struct stack_copy *copy = bpf_map_lookup_elem(&timer_copy, &zero);
    if (!process || !walk || !copy) return 0;
    walk_task(walk, task, process);
    send_functions(walk, task);
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
    uint32_t pid = process_of(bpf_get_current_task_btf()), zero = 0;
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

/* --- Processes and threads ---------------------------------------------------------------------------------------- */

/* True if children of recorded processes are recorded. Set at load. */
const volatile bool follows_children;

static __always_inline void send_change(enum bpf_record record, struct task_struct *task, uint32_t parent, bool is_last)
{
    struct bpf_change change = {
        .record = record,
        .pid = process_of(task),
        .tid = number_of(task),
        .parent = parent,
        .start_boottime = task->group_leader->start_boottime,
        .self_exec_id = task->self_exec_id,
        .time_ns = bpf_ktime_get_ns(),
        .cpu_ns = task->se.sum_exec_runtime,
        .run_delay_ns = task->sched_info.run_delay,
        .is_last = is_last,
        .mapping_count = mapping_count_of(process_of(task)),
    };
    send(&change, sizeof(change));
}

/* A new process has the memory of its parent, and so the module entries, until one of them changes its memory. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
    uint32_t parent_pid = process_of(parent), pid = process_of(child);
    if (!follows_children || pid == parent_pid) return 0;
    const struct bpf_process_entry *known = bpf_map_lookup_elem(&processes, &parent_pid);
    if (!known) return 0;
    struct bpf_process_entry entry = *known;
    if (!is_current(known, parent)) entry.version = 0;
    entry.mapping_count = 0;
    entry.start_boottime = child->start_boottime;
    entry.self_exec_id = child->self_exec_id;
    bpf_map_update_elem(&processes, &pid, &entry, BPF_ANY);
    send_change(BPF_FORKED, child, parent_pid, false);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
    uint32_t pid = process_of(task);
    if (bpf_map_lookup_elem(&processes, &pid)) send_change(BPF_EXECUTED, task, 0, false);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit, struct task_struct *task)
{
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return 0;
    bool is_last = task->signal->live.counter == 0;
    send_change(BPF_ENDED, task, 0, is_last);
    if (!is_last) return 0;
    bpf_map_delete_elem(&processes, &pid);
    bpf_map_delete_elem(&mapping_counts, &pid);
    return 0;
}

/* Returns true if an entry of PROCESS has an address from START on below END. */
static __always_inline bool has_code(const struct bpf_process_entry *process, uint64_t start, uint64_t end)
{
    uint32_t low = 0, high = process->count;
    for (uint32_t i = 0; i < MODULE_STEPS_MAX && low < high; i++) {
        uint32_t middle = (low + high) / 2, index = process->first + middle;
        const struct bpf_module_entry *entry = bpf_map_lookup_elem(&modules, &index);
        if (!entry || entry->version != process->version) return false;
        if (entry->start < end)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t found = process->first + low - 1;
    const struct bpf_module_entry *entry = low > 0 ? bpf_map_lookup_elem(&modules, &found) : NULL;
    return entry && entry->version == process->version && entry->end > start;
}

/* The kernel has chosen a free place for a mapping: code that is listed there was unmapped, and other code may follow.
 * Until the modules are listed again, the process counts as unknown. Optional, because not all kernels have the hook.
 */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(place_chosen, uint64_t address, struct vm_unmapped_area_info *info)
{
    struct task_struct *task = bpf_get_current_task_btf();
    uint32_t pid = process_of(task), first = 1;
    const struct bpf_process_entry *process = bpf_map_lookup_elem(&processes, &pid);
    if (!process || !has_code(process, address, address + info->length)) return 0;
    uint32_t *count = bpf_map_lookup_elem(&mapping_counts, &pid);
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        bpf_map_update_elem(&mapping_counts, &pid, &first, BPF_ANY);
    send_change(BPF_MAPPED, task, 0, false);
    return 0;
}

/* The switches of a thread when it was last sent, plus one. The kernel frees it with the thread. */
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, uint64_t);
} seen_switches SEC(".maps");

/* Writes a thread of a recorded process if it has run since the last tick. Nobody is stopped or woken. */
SEC("iter/task")
int observe_thread(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    if (!task) return 0;
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return 0;
    uint64_t *seen = bpf_task_storage_get(&seen_switches, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    uint64_t switches = task->nvcsw + task->nivcsw + 1;
    struct bpf_thread thread = {
        .pid = pid,
        .tid = number_of(task),
        .cpu_ns = task->se.sum_exec_runtime,
        .run_delay_ns = task->sched_info.run_delay,
        .state = task->__state,
        .is_on_cpu = (uint32_t)task->on_cpu,
    };
    bool has_run = !seen || *seen != switches || thread.is_on_cpu || thread.state == 0;
    if (!has_run) return 0;
    if (seen) *seen = switches;
    take_registers(thread.registers, task);
    bpf_core_read(thread.name, sizeof(thread.name), &task->comm);
    bpf_seq_write(context->meta->seq, &thread, sizeof(thread));
    return 0;
}
