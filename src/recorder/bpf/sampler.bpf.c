/* The programs in the kernel. timer_tick is called for each CPU at the rate asked, and sends the stack of the thread
 * that runs there. It only looks maps up: user space fills them. SPDX-License-Identifier: MIT */
#include "recorder/bpf/records.bpf.h"
#include "recorder/bpf/function_copy.bpf.h"
#include "recorder/bpf/waits.bpf.h"

#include <bpf/bpf_tracing.h>

/* The helpers that read user memory are only for programs that the GPL allows, too. */
char sampler_license[] SEC("license") = "Dual MIT/GPL";

/* Sends the functions that an interpreter runs in TASK, the running one, if there are some. */
static __always_inline void send_functions(const struct walk *walk, struct task_struct *task)
{
    uint32_t tid = number_of(task), processor = bpf_get_smp_processor_id();
    const struct bpf_interpreted_thread *thread = bpf_map_lookup_elem(&interpreted_threads, &tid);
    struct bpf_functions *copy = thread ? bpf_map_lookup_elem(&function_copies, &processor) : NULL;
    uint32_t size = copy ? copy_functions(copy, thread) : 0;
    if (size == 0) return;
    barrier_var(size); /* the verifier must see the next check, alone, of what is sent */
    if (size > sizeof(*copy)) return;
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
    walk->sample.record = BPF_SAMPLE;
    send_functions(walk, task);
    send_sample(context, walk, copy, task);
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
    self.walk->sample.record = BPF_SAMPLE;
    send_sample(NULL, self.walk, copy, bpf_get_current_task_btf());
    return 0;
}

/* --- Processes and threads ---------------------------------------------------------------------------------------- */

/* True if children of recorded processes are recorded. Set at load. */
const volatile bool follows_children;

/* Returns the CPU time of TASK, the running one. The kernel's count is of the last tick or switch: a short thread may
 * not have met one, and has run all the time since its first wait for a processor. */
static __always_inline uint64_t cpu_time_of(struct task_struct *task)
{
    uint64_t counted_ns = task->se.sum_exec_runtime;
    uint64_t since_ns = task->start_time + task->sched_info.run_delay, now_ns = bpf_ktime_get_ns();
    bool has_left = task->nvcsw + task->nivcsw > 0;
    return has_left || now_ns < since_ns + counted_ns ? counted_ns : now_ns - since_ns;
}

static __always_inline void send_change(enum bpf_record record, struct task_struct *task, uint32_t parent, bool is_last,
                                        const struct bpf_wait_sums *waits)
{
    struct bpf_change change = {
        .record = record,
        .pid = process_of(task),
        .tid = number_of(task),
        .parent = parent,
        .start_boottime = task->group_leader->start_boottime,
        .self_exec_id = task->self_exec_id,
        .time_ns = bpf_ktime_get_ns(),
        .cpu_ns = record == BPF_ENDED ? cpu_time_of(task) : task->se.sum_exec_runtime,
        .run_delay_ns = task->sched_info.run_delay,
        .is_last = is_last,
        .mapping_count = mapping_count_of(process_of(task)),
    };
    if (waits) change.waits = *waits;
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
    send_change(BPF_FORKED, child, parent_pid, false, NULL);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
    uint32_t pid = process_of(task);
    if (bpf_map_lookup_elem(&processes, &pid)) send_change(BPF_EXECUTED, task, 0, false, NULL);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_exit, struct task_struct *task)
{
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return 0;
    bool is_last = task->signal->live.counter == 0;
    struct thread_state *state = bpf_task_storage_get(&threads, task, NULL, 0);
    if (state) state->has_ended = 1;
    send_change(BPF_ENDED, task, 0, is_last, state ? &state->sums : NULL);
    if (!is_last) return 0;
    bpf_map_delete_elem(&processes, &pid);
    bpf_map_delete_elem(&mapping_counts, &pid);
    return 0;
}

/* A search for the number of entries that start below END. */
struct entry_search {
    uint64_t end;
    uint32_t first, version; /* place and version of the entries */
    uint32_t low, high;      /* range in which the result is */
};

/* One step of a search: the callback of bpf_loop, with which the verifier reads the steps once and not on each path. */
static long search_entry(uint32_t index, void *data)
{
    struct entry_search *search = data;
    uint32_t middle = (search->low + search->high) / 2, place = search->first + middle;
    if (search->low >= search->high) return 1;
    const struct bpf_module_entry *entry = bpf_map_lookup_elem(&modules, &place);
    if (!entry || entry->version != search->version) {
        search->low = search->high = 0;
        return 1;
    }
    if (entry->start < search->end)
        search->low = middle + 1;
    else
        search->high = middle;
    return 0;
}

/* Returns true if an entry of PROCESS has an address from START on below END. */
static __always_inline bool has_code(const struct bpf_process_entry *process, uint64_t start, uint64_t end)
{
    struct entry_search search = {
        .end = end, .first = process->first, .version = process->version, .high = process->count};
    bpf_loop(MODULE_STEPS_MAX, search_entry, &search, 0);
    uint32_t found = search.first + search.low - 1;
    const struct bpf_module_entry *entry = search.low > 0 ? bpf_map_lookup_elem(&modules, &found) : NULL;
    return entry && entry->version == search.version && entry->end > start;
}

/* The kernel has chosen a free place for a mapping: code that is listed there was unmapped, and other code may follow.
 * Until the modules are listed again, the process counts as unknown. While they are being listed, what was read may be
 * gone before it counts as listed. Optional, because not all kernels have the hook. */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(place_chosen, uint64_t address, struct vm_unmapped_area_info *info)
{
    struct task_struct *task = bpf_get_current_task_btf();
    uint32_t pid = process_of(task), first = 1;
    const struct bpf_process_entry *process = bpf_map_lookup_elem(&processes, &pid);
    if (!process || (!process->is_being_listed && !has_code(process, address, address + info->length))) return 0;
    uint32_t *count = bpf_map_lookup_elem(&mapping_counts, &pid);
    if (count)
        __sync_fetch_and_add(count, 1);
    else
        bpf_map_update_elem(&mapping_counts, &pid, &first, BPF_ANY);
    send_change(BPF_MAPPED, task, 0, false, NULL);
    return 0;
}

/* Writes a thread of a recorded process if it has run since the last tick. Nobody is stopped or woken. */
SEC("iter/task")
int observe_thread(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    if (!task) return 0;
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return 0;
    struct thread_state *state = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    uint64_t switches = task->nvcsw + task->nivcsw + 1;
    struct bpf_thread thread = {
        .pid = pid,
        .tid = number_of(task),
        .cpu_ns = task->se.sum_exec_runtime,
        .run_delay_ns = task->sched_info.run_delay,
        .state = task->__state,
        .is_on_cpu = (uint32_t)task->on_cpu,
    };
    bool has_run = !state || state->seen_switches != switches || thread.is_on_cpu || thread.state == 0;
    if (!has_run) return 0;
    if (state) {
        find_wait(state, task, &thread);
        state->seen_switches = switches;
        thread.needs_stack |= !state->is_chosen;
        thread.wait_began_ns = thread.is_on_cpu ? 0 : state->began_ns;
        thread.wait_reason = state->reason;
        thread.waits = state->sums;
    }
    take_registers(thread.registers, task);
    bpf_core_read(thread.name, sizeof(thread.name), &task->comm);
    bpf_seq_write(context->meta->seq, &thread, sizeof(thread));
    return 0;
}
