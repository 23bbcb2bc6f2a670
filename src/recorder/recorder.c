/* SPDX-License-Identifier: MIT */
#include "recorder/recorder.h"

#include "base/clocks.h"
#include "base/unsigned.h"
#include "recorder/cpu_budget.h"
#include "recorder/gone_children.h"
#include "recorder/kept_maps.h"
#include "recorder/memory_budget.h"
#include "recorder/recorded_process.h"
#include "recorder/remote_memory.h"
#include "recorder/task_files.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    BUCKETS = 1 << 12,
    STACKS_A_TICK_MAX = 1 << 14,
    ADDRESSES_A_TICK_MAX = 1 << 22,
    PREPARATIONS_MAX = 64, /* modules that one walk may wait for */
    FOLLOW_NS = 50000000,  /* time between two searches for children */
};

/* A stack that waits for the clocks of its thread. */
struct queued_stack {
    struct recorded_process *process;
    pid_t tid;
    enum unwind_outcome outcome;
    size_t first, count; /* place of its addresses */
};

struct recorder {
    struct recorder_options options;
    const struct engine_ops *observer_ops; /* engine that observes the threads; may be that of the options */
    struct engine *engine, *observer;
    struct code_files files;
    struct kept_maps maps;
    ARRAY_OF(struct recorded_process *) processes;
    struct recorded_process *by_pid[BUCKETS];
    struct gone_children gone;
    struct recorded_thread *threads[BUCKETS];
    ARRAY_OF(struct queued_stack) stacks; /* stacks of the open tick */
    ARRAY_OF(uint64_t) addresses;
    uint64_t period_ns, slot_ns, next_ns; /* ticks fall at random in slots of a period each */
    struct cpu_budget budget;
    struct memory_budget memory_budget;
    size_t left_out_count; /* processes that the last search left out for want of memory */
    uint64_t random, follow_ns;
    bool observes_rarely; /* true if only CPU time counts, and the engine reports ends of threads */
    uint64_t observe_ns;  /* time from which on all threads are observed again */
    uint64_t lost_stacks;
    struct remote_stack memory;
    uint64_t walked[RECORDING_FRAMES_MAX], joined[RECORDING_FRAMES_MAX], stack_pointers[RECORDING_FRAMES_MAX];
};

/* --- Threads and processes ---------------------------------------------------------------------------------------- */

static struct recorded_thread **bucket_of(struct recorder *recorder, pid_t tid)
{
    return &recorder->threads[(unsigned)tid % BUCKETS];
}

static struct recorded_thread *find_thread(struct recorder *recorder, const struct recorded_process *process, pid_t tid)
{
    struct recorded_thread *thread = *bucket_of(recorder, tid);
    while (thread && (thread->tid != tid || thread->process != process)) thread = thread->next;
    return thread;
}

static struct recorded_thread *find_or_add_thread(struct recorder *recorder, struct recorded_process *process,
                                                  pid_t tid)
{
    struct recorded_thread *thread = find_thread(recorder, process, tid);
    if (thread) return thread;
    thread = recorded_process_add_thread(process, tid);
    struct recorded_thread **bucket = bucket_of(recorder, tid);
    if (!thread) return NULL;
    thread->next = *bucket;
    *bucket = thread;
    return thread;
}

static void forget_thread(struct recorder *recorder, const struct recorded_thread *thread)
{
    struct recorded_thread **at = bucket_of(recorder, thread->tid);
    while (*at && *at != thread) at = &(*at)->next;
    if (*at) *at = thread->next;
}

static struct recorded_process *find_process(const struct recorder *recorder, pid_t pid)
{
    struct recorded_process *process = recorder->by_pid[(unsigned)pid % BUCKETS];
    while (process && process->watched.pid != pid) process = process->next;
    return process;
}

/* Returns the process whose recording has what is seen of PID. */
static struct recorded_process *process_with(const struct recorder *recorder, pid_t pid)
{
    struct recorded_process *process = find_process(recorder, pid);
    pid_t parent = process ? 0 : gone_children_parent(&recorder->gone, pid);
    return parent != 0 ? find_process(recorder, parent) : process;
}

static void note_process(struct recorder *recorder, struct recorded_process *process)
{
    struct recorded_process **bucket = &recorder->by_pid[(unsigned)process->watched.pid % BUCKETS];
    process->next = *bucket;
    *bucket = process;
}

static void forget_process(struct recorder *recorder, const struct recorded_process *process)
{
    struct recorded_process **at = &recorder->by_pid[(unsigned)process->watched.pid % BUCKETS];
    while (*at && *at != process) at = &(*at)->next;
    if (*at) *at = process->next;
}

/* --- Walks -------------------------------------------------------------------------------------------------------- */

/* Lets engines know the code of PROCESS, and has its names kept. */
static void show_code(struct recorder *recorder, struct recorded_process *process)
{
    if (process->code.generated.count > 0)
        kept_maps_look(&recorder->maps, process->watched.pid, process->watched.start_ticks);
    process->watched.modules = process->code.modules.items;
    process->watched.module_count = process->code.modules.count;
    process->watched.generated = process->code.generated.items;
    process->watched.generated_count = process->code.generated.count;
    process->watched.generation = process->code.generation;
    if (recorder->options.engine->update_process && process->watched.is_added)
        recorder->options.engine->update_process(recorder->engine, &process->watched);
}

/* Returns true if a second walk can get farther than the one that ended at ADDRESS. */
static bool can_go_on(struct recorder *recorder, struct recorded_process *process, enum unwind_outcome outcome,
                      uint64_t address)
{
    if (outcome == UNWIND_PENDING) {
        if (!process_code_prepare(&process->code, &recorder->files, address)) return false;
        show_code(recorder, process);
        return true;
    }
    if (outcome != UNWIND_NO_TABLE || unwind_find_module(&process->code.list, address)) return false;
    process->needs_listing = true;
    if (!recorded_process_refresh(process, &recorder->options, &recorder->files, clock_monotonic_ns())) return false;
    show_code(recorder, process);
    return unwind_find_module(&process->code.list, address) != NULL;
}

/* Walks the stack of a running thread from the registers and the copy that the engine has taken. */
static enum unwind_outcome walk_copy(struct recorder *recorder, const struct recorded_process *process,
                                     const struct engine_stack *stack, size_t *ret_count)
{
    struct unwind_registers registers = stack->registers;
    struct unwind_memory live = remote_stack_memory(&recorder->memory, process->watched.pid);
    uint64_t outside = 0;
    live.stack_pointers = recorder->stack_pointers;
    return unwind_walk_copied_stack(&process->code.list, &registers, &stack->copy, &live, recorder->walked,
                                    RECORDING_FRAMES_MAX, ret_count, &outside);
}

/* Walks the stack of a blocked thread in its memory. */
static enum unwind_outcome walk_blocked(struct recorder *recorder, const struct recorded_process *process,
                                        const struct engine_thread *seen, size_t *ret_count)
{
    struct unwind_registers registers = seen->registers;
    struct unwind_memory memory = remote_stack_memory(&recorder->memory, process->watched.pid);
    size_t recovered = 0;
    memory.stack_pointers = recorder->stack_pointers;
    if (seen->has_all_registers)
        return unwind_walk(&process->code.list, &registers, &memory, NULL, recorder->walked, RECORDING_FRAMES_MAX,
                           ret_count);
    return unwind_walk_without_registers(&process->code.list, &registers, &memory, recorder->walked,
                                         RECORDING_FRAMES_MAX, ret_count, &recovered);
}

/* Ends WALKED at the first frame in code that nothing called: the frame pointer is that of other code there. */
static void end_at_root(const struct process_code *code, struct walked_stack *walked)
{
    for (size_t i = 0; i < walked->count; i++) {
        uint64_t address = walked->addresses[i] - (i > 0);
        const struct process_module *module = process_code_module(code, address);
        for (size_t at = 0; module && at < module->file->landmark_count; at++) {
            const struct code_landmark *landmark = &module->file->landmarks[at];
            uint64_t offset = address - module->base;
            if (!landmark->is_root || offset < landmark->start || offset >= landmark->end) continue;
            walked->count = i + 1;
            walked->outcome = UNWIND_ROOT;
            return;
        }
    }
}

/* Returns true if ADDRESS is in code that was not listed: mostly, PROCESS had ended before. */
static bool is_unseen(const struct recorded_process *process, uint64_t address)
{
    return !process_code_module(&process->code, address) && !process_code_is_generated(&process->code, address);
}

/* Walks until all modules on the way are ready. STACK or SEEN is NULL. */
static struct walked_stack walk(struct recorder *recorder, struct recorded_process *process,
                                const struct engine_stack *stack, const struct engine_thread *seen)
{
    struct walked_stack walked = {.addresses = recorder->walked};
    bool goes_on = true;
    for (unsigned i = 0; i < PREPARATIONS_MAX && goes_on; i++) {
        walked.outcome = stack ? walk_copy(recorder, process, stack, &walked.count)
                               : walk_blocked(recorder, process, seen, &walked.count);
        if (walked.count == 0) break;
        uint64_t last = recorder->walked[walked.count - 1] - (walked.count > 1);
        goes_on = can_go_on(recorder, process, walked.outcome, last);
    }
    if (walked.outcome == UNWIND_PENDING) walked.outcome = UNWIND_NO_TABLE;
    if (walked.outcome == UNWIND_NO_TABLE && walked.count > 0 && is_unseen(process, recorder->walked[walked.count - 1]))
        process->counts.unseen_stacks++;
    end_at_root(&process->code, &walked);
    return walked;
}

static uint64_t random_below(struct recorder *recorder, uint64_t limit)
{
    recorder->random = recorder->random * 6364136223846793005u + 1442695040888963407u;
    return (recorder->random >> 33) % limit;
}

/* --- Sights ------------------------------------------------------------------------------------------------------- */

/* Adds the functions that an interpreter runs to the stack of a running thread. */
static void add_functions(struct recorder *recorder, struct recorded_process *process, const struct engine_stack *stack,
                          struct walked_stack *walked)
{
    struct recorded_thread *thread = find_thread(recorder, process, stack->tid);
    if (!thread || walked->count == 0 || walked->count > RECORDING_FRAMES_MAX) return;
    if (walked->addresses != recorder->walked)
        memcpy(recorder->walked, walked->addresses, walked->count * sizeof(uint64_t));
    walked->addresses = recorder->walked;
    const struct interpreted_target target = {.walked = walked,
                                              .addresses = recorder->walked,
                                              .stack_pointers =
                                                  stack->count ? stack->stack_pointers : recorder->stack_pointers,
                                              .copied = stack->functions};
    interpreted_process_add(thread, &target);
}

/* Puts the frames of STACK inside the kernel before WALKED. The address after a system call, or of an interrupted
 * instruction, is one less than a return address in its place. */
static struct walked_stack join_kernel(struct recorder *recorder, const struct engine_stack *stack,
                                       const struct walked_stack *walked)
{
    size_t kernel = stack->kernel_count, count = least(walked->count, RECORDING_FRAMES_MAX - kernel);
    struct walked_stack joined = {.addresses = recorder->joined, .count = kernel + count, .outcome = walked->outcome};
    memcpy(recorder->joined, stack->kernel_addresses, kernel * sizeof(uint64_t));
    memcpy(recorder->joined + kernel, walked->addresses, count * sizeof(uint64_t));
    if (count > 0 && recorder->joined[kernel] < RECORDING_PLACES) recorder->joined[kernel]++;
    if (count < walked->count) joined.outcome = UNWIND_TOO_DEEP;
    return joined;
}

static struct walked_stack whole_stack(struct recorder *recorder, struct recorded_process *process,
                                       const struct engine_stack *stack)
{
    struct walked_stack walked = {.addresses = stack->addresses, .count = stack->count, .outcome = stack->outcome};
    if (stack->count == 0) walked = walk(recorder, process, stack, NULL);
    if (stack->functions) add_functions(recorder, process, stack, &walked);
    return stack->kernel_count > 0 ? join_kernel(recorder, stack, &walked) : walked;
}

static void take_stack(void *context, const struct engine_stack *stack)
{
    struct recorder *recorder = context;
    struct recorded_process *process = process_with(recorder, stack->pid);
    if (!process) return; /* it has ended, or is recorded no more */
    if (process->thinning > 1 && !stack->begins_wait && random_below(recorder, process->thinning) != 0) return;
    struct walked_stack walked = whole_stack(recorder, process, stack);
    if (stack->begins_wait) {
        struct recorded_thread *thread = find_or_add_thread(recorder, process, stack->tid);
        if (thread) thread_waits_begin(thread, stack->time_ns, &walked);
        process->counts.stacks++;
        return;
    }
    struct queued_stack queued = {.process = process,
                                  .tid = stack->tid,
                                  .outcome = walked.outcome,
                                  .first = recorder->addresses.count,
                                  .count = walked.count};
    if (walked.count == 0 || !ARRAY_RESERVE(&recorder->addresses, walked.count, ADDRESSES_A_TICK_MAX) ||
        !ARRAY_PUSH(&recorder->stacks, STACKS_A_TICK_MAX, queued)) {
        recorder->lost_stacks++;
        return;
    }
    memcpy(recorder->addresses.items + queued.first, walked.addresses, walked.count * sizeof(uint64_t));
    recorder->addresses.count += walked.count;
}

static bool has_run(const struct recorder *recorder, const struct engine_thread *seen)
{
    struct task_times times;
    if (recorder->observer_ops->has_run) return recorder->observer_ops->has_run(recorder->observer, seen);
    return !task_read_times(seen->tid, &times) || times.cpu_ns != seen->cpu_ns;
}

/* Reads the stack of THREAD, which is blocked. If its clock has moved meanwhile, the stack may be of two moments. */
static void read_blocked(struct recorder *recorder, struct recorded_thread *thread, const struct engine_thread *seen)
{
    struct recorded_process *process = thread->process;
    struct walked_stack walked = walk(recorder, process, NULL, seen);
    const struct interpreted_target target = {.walked = &walked,
                                              .addresses = recorder->walked,
                                              .stack_pointers = recorder->stack_pointers,
                                              .argument = seen->registers.values[machine_arguments[0]]};
    if (walked.count > 0) interpreted_process_add(thread, &target);
    if (walked.count == 0 || has_run(recorder, seen)) return;
    process->counts.blocked_stacks++;
    thread->rest = *seen;
    thread_times_write_blocked(thread, &process->tick, &walked);
}

static void take_name(const struct recorded_process *process, struct recorded_thread *thread, const char *name)
{
    if (name[0] == '\0' || strcmp(name, thread->name) == 0) return;
    (void)snprintf(thread->name, sizeof(thread->name), "%s", name);
    recording_thread(process->writer, thread->number, thread->tid, thread->name);
}

static void take_wait(void *context, const struct engine_wait *wait)
{
    const char interrupt[] = "[interrupt]";
    struct recorder *recorder = context;
    struct recorded_process *process = find_process(recorder, wait->pid);
    struct recorded_thread *thread = process ? find_or_add_thread(recorder, process, wait->tid) : NULL;
    char waker[sizeof(thread->name) + 16] = "";
    if (!thread) return;
    if (recorder->options.names_wakers && wait->waker_tid != 0)
        (void)snprintf(waker, sizeof(waker), "%.*s (%d)", (int)sizeof(thread->name), wait->waker, (int)wait->waker_tid);
    else if (recorder->options.names_wakers && wait->woken_ns != 0)
        memcpy(waker, interrupt, sizeof(interrupt));
    thread_waits_end(thread, &process->tick, wait, waker);
}

/* Takes the wait in which a thread is SEEN, which may have begun before the recording. */
static void take_open_wait(struct recorder *recorder, struct recorded_thread *thread, const struct engine_thread *seen)
{
    struct thread_waits *waits = &thread->waits;
    waits->others = seen->other_waits;
    waits->is_running = seen->wait_began_ns == 0;
    if (waits->is_running) return;
    waits->reason = seen->wait_reason;
    bool is_known = waits->is_open && waits->began_ns == seen->wait_began_ns;
    if (is_known || !seen->has_registers) return;
    struct walked_stack walked = walk(recorder, thread->process, NULL, seen);
    if (has_run(recorder, seen)) walked.count = 0;
    thread->process->counts.blocked_stacks += walked.count > 0;
    thread_waits_begin(thread, seen->wait_began_ns, &walked);
}

static void take_thread(void *context, const struct engine_thread *seen)
{
    struct recorder *recorder = context;
    struct recorded_process *process = process_with(recorder, seen->pid);
    struct recorded_thread *thread = process ? find_or_add_thread(recorder, process, seen->tid) : NULL;
    if (!thread) return;
    if (seen->state == THREAD_ENDED) {
        thread->has_ended = true;
        return;
    }
    process->has_run = true;
    take_name(process, thread, seen->name);
    if (recorder->options.records_waits) {
        take_open_wait(recorder, thread, seen);
        return;
    }
    if (thread->is_known)
        thread_times_add(thread, &process->tick, seen);
    else
        thread_times_begin(thread, &process->tick, seen, process->is_observed);
    thread->is_running = seen->state == THREAD_RUNNING;
    if (process->tick.is_cpu_mode) return;
    if (seen->state == THREAD_BLOCKED && seen->has_registers) read_blocked(recorder, thread, seen);
    if (seen->state == THREAD_STOPPED) thread_times_write_stopped(thread, &process->tick);
}

/* Drops the stacks of PROCESS that wait to be written and have addresses in other modules than OLD had there. */
static void drop_outdated_stacks(struct recorder *recorder, const struct recorded_process *process,
                                 const struct process_code *old)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack queued = recorder->stacks.items[i];
        const uint64_t *addresses = recorder->addresses.items + queued.first;
        bool is_outdated = false;
        for (size_t frame = 0; frame < queued.count && queued.process == process && !is_outdated; frame++) {
            const struct process_module *then = process_code_module(old, addresses[frame]);
            const struct process_module *now = process_code_module(&process->code, addresses[frame]);
            is_outdated = (then != NULL) != (now != NULL) || (then && then->number != now->number);
        }
        if (!is_outdated) recorder->stacks.items[kept++] = queued;
        recorder->lost_stacks += is_outdated;
    }
    recorder->stacks.count = kept;
}

/* Lists the code of PROCESS, which has changed: no stack may be walked with the old list. */
static void list_again(struct recorder *recorder, struct recorded_process *process)
{
    struct process_code old = {0};
    size_t count = process->code.modules.count;
    if (!ARRAY_RESERVE(&old.modules, count, PROCESS_MODULES_MAX)) count = 0;
    if (count > 0) memcpy(old.modules.items, process->code.modules.items, count * sizeof(*old.modules.items));
    old.modules.count = count;
    process->code.listed_ns = 0;
    process->has_run = true;
    (void)recorded_process_refresh(process, &recorder->options, &recorder->files, clock_monotonic_ns());
    drop_outdated_stacks(recorder, process, &old);
    process_code_fini(&old);
    show_code(recorder, process);
}

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

static void count_stacks(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        struct recorded_thread *thread = find_or_add_thread(recorder, queued->process, queued->tid);
        if (thread) thread->stack_count++;
    }
}

/* Returns true if THREAD has ended without a report of it. The engine forgets a gone child, so that there is none if it
 * was still ending. */
static bool has_ended_unseen(const struct recorder *recorder, const struct recorded_thread *thread)
{
    if (recorder->observes_rarely) return gone_children_parent(&recorder->gone, thread->tid) != 0;
    return !thread->is_known;
}

/* A thread that no tick has observed has ended: each of its stacks stands for a period. */
static void write_stacks(struct recorder *recorder)
{
    count_stacks(recorder);
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        struct recorded_thread *thread = find_thread(recorder, queued->process, queued->tid);
        const struct walked_stack walked = {
            .addresses = recorder->addresses.items + queued->first, .count = queued->count, .outcome = queued->outcome};
        if (!thread) continue;
        bool is_over = has_ended_unseen(recorder, thread);
        if (is_over && !thread->is_known) thread->unwritten.cpu_ns += queued->process->tick.period_ns;
        thread->has_ended |= is_over;
        thread_times_write_running(thread, &queued->process->tick, &walked);
        queued->process->counts.stacks++;
    }
    recorder->stacks.count = recorder->addresses.count = 0;
}

static void remove_ended_threads(struct recorder *recorder, struct recorded_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->threads.count; i++) {
        struct recorded_thread *thread = process->threads.items[i];
        if (!thread->has_ended) {
            process->threads.items[kept++] = thread;
            continue;
        }
        interpreted_process_forget_thread(thread);
        forget_thread(recorder, thread);
        recorded_process_free_thread(thread);
    }
    process->threads.count = kept;
}

static bool sees_user_code_only(const struct recorder *recorder)
{
    const struct engine_ops *ops = recorder->options.engine;
    return ops->sees_user_code_only && ops->sees_user_code_only(recorder->engine);
}

static uint64_t engine_number(const struct recorder *recorder)
{
    if (recorder->options.engine == &engine_proc) return RECORDING_ENGINE_PROC;
    if (recorder->options.engine == &engine_bpf) return RECORDING_ENGINE_BPF;
    return sees_user_code_only(recorder) ? RECORDING_ENGINE_PERF_USER : RECORDING_ENGINE_PERF;
}

static void unwatch(struct recorder *recorder, struct recorded_process *process)
{
    recorder->options.engine->remove_process(recorder->engine, &process->watched);
    if (recorder->observer != recorder->engine)
        recorder->observer_ops->remove_process(recorder->observer, &process->watched);
}

static void end_process(struct recorder *recorder, struct recorded_process *process)
{
    unwatch(recorder, process);
    for (size_t i = 0; i < process->threads.count; i++) {
        interpreted_process_forget_thread(process->threads.items[i]);
        forget_thread(recorder, process->threads.items[i]);
    }
    forget_process(recorder, process);
    kept_maps_note_end(&recorder->maps, process->watched.pid);
    recorded_process_free(process, &recorder->options, engine_number(recorder));
}

/* Tells a new recording where THREAD, which no tick will observe, is blocked. */
static void rest_again(struct recorder *recorder, struct recorded_thread *thread)
{
    const struct engine_thread rest = thread->rest;
    read_blocked(recorder, thread, &rest);
    thread->is_resting = thread->has_blocked;
    thread->has_record = false;
}

static uint64_t choose_thinning(const struct recorder *recorder, pid_t pid)
{
    const struct recorder_options *options = &recorder->options;
    struct task_status status;
    if (!options->thinning || !task_read_status(pid, &status)) return 1;
    return options->thinning(options->context, pid, status.name);
}

/* Returns true if PROCESS, which may have become another program or another user's, is to be recorded further. */
static bool is_still_wanted(const struct recorder *recorder, const struct recorded_process *process)
{
    const struct recorder_options *options = &recorder->options;
    struct task_status status;
    if (!options->chooses_programs || !task_read_status(process->watched.pid, &status)) return true;
    return options->wants(options->context, process->watched.pid, status.name);
}

static void restart_process(struct recorder *recorder, struct recorded_process *process)
{
    process->has_ended |= !is_still_wanted(recorder, process);
    if (process->has_ended) return;
    process->thinning = choose_thinning(recorder, process->watched.pid);
    process->tick.period_ns = recorder->period_ns * process->thinning;
    recorded_process_restart(process, &recorder->options, &recorder->files, engine_number(recorder));
    show_code(recorder, process);
    for (size_t i = 0; i < process->threads.count && !process->has_ended; i++) {
        struct recorded_thread *thread = process->threads.items[i];
        if (thread->is_resting) rest_again(recorder, thread);
    }
}

/* Drops the stacks of PROCESS that wait to be written. */
static void drop_stacks(struct recorder *recorder, const struct recorded_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack queued = recorder->stacks.items[i];
        if (queued.process != process) recorder->stacks.items[kept++] = queued;
    }
    recorder->stacks.count = kept;
}

/* Begins a new recording for the program that PROCESS executes. What it ran in the open tick before that has its time
 * in the old one, without a stack of its own. */
static void execute(struct recorder *recorder, struct recorded_process *process)
{
    drop_stacks(recorder, process);
    for (size_t i = 0; i < process->threads.count; i++) process->threads.items[i]->is_resting = false;
    restart_process(recorder, process);
}

static void take_change(void *context, pid_t pid, pid_t parent, enum process_change change)
{
    struct recorder *recorder = context;
    struct engine_denial denial;
    struct recorded_process *process = find_process(recorder, pid);
    uint64_t observe_ns = recorder->observe_ns;
    bool is_scarce = recorder->budget.is_exceeded || recorder->memory_budget.is_exceeded;
    bool is_followed = change == PROCESS_FORKED && recorder->options.follows_children && !is_scarce;
    const struct recorded_process *copied = is_followed && !process ? process_with(recorder, parent) : NULL;
    bool is_added = copied && recorder_add(recorder, pid, &denial); /* fails if the child has ended */
    if (copied && !is_added) gone_children_add(&recorder->gone, pid, copied->watched.pid);
    if (is_added) find_process(recorder, pid)->is_observed = true;
    if (is_added) recorder->observe_ns = observe_ns;
    if (process && change == PROCESS_MAPPED) list_again(recorder, process);
    if (process && change == PROCESS_EXECUTED) execute(recorder, process);
    if (process && change == PROCESS_ENDED) process->has_ended = true;
}

/* Begins new recordings of processes whose time has come, which differs, so that a tick has few to do. */
static void restart_processes(struct recorder *recorder, uint64_t now_ns)
{
    uint64_t recording_ns = recorder->options.recording_ns;
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        bool is_over = recording_ns > 0 && now_ns >= process->restart_ns;
        if (!is_over) continue;
        process->restart_ns = now_ns + recording_ns;
        restart_process(recorder, process);
    }
}

/* A process ends with its last thread. */
static void remove_ended_processes(struct recorder *recorder)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        bool has_threads = process->ticks == 0 || process->tick.is_partial || process->threads.count > 0;
        if (has_threads && !process->has_ended)
            recorder->processes.items[kept++] = process;
        else
            end_process(recorder, process);
    }
    recorder->processes.count = kept;
}

static bool add_if_wanted(void *context, pid_t pid)
{
    struct recorder *recorder = context;
    const struct recorder_options *options = &recorder->options;
    struct task_status status;
    struct engine_denial denial;
    if (find_process(recorder, pid) || !task_read_status(pid, &status) || status.state == 'Z') return true;
    bool follows = options->follows_children && !options->chooses_programs && pid != getpid();
    bool is_child = follows && find_process(recorder, status.parent);
    if (!is_child && !(options->wants && options->wants(options->context, pid, status.name))) return true;
    if (recorder->memory_budget.is_exceeded)
        recorder->left_out_count++;
    else
        (void)recorder_add(recorder, pid, &denial); /* another user's process is left out */
    return true;
}

void recorder_find(struct recorder *recorder)
{
    recorder->left_out_count = 0;
    if (recorder->options.follows_children || recorder->options.wants)
        (void)task_list("/proc", add_if_wanted, recorder);
}

void recorder_choose_again(struct recorder *recorder)
{
    const struct recorder_options *options = &recorder->options;
    for (size_t i = 0; options->wants && i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        struct task_status status;
        process->has_ended |= !task_read_status(process->watched.pid, &status) ||
                              !options->wants(options->context, process->watched.pid, status.name);
    }
    remove_ended_processes(recorder);
    recorder_find(recorder);
}

/* Looks for new processes, unless the engine reports them, and they are added at once. A search takes at most a
 * hundredth of the time, or a thousandth. */
static void follow(struct recorder *recorder, uint64_t now_ns)
{
    enum { SHARE = 100, RARE_SHARE = 1000 };
    bool is_told = recorder->options.engine->sees_changes && !recorder->options.wants;
    if ((is_told && !recorder->budget.is_exceeded) || now_ns < recorder->follow_ns) return;
    recorder_find(recorder);
    uint64_t end_ns = clock_monotonic_ns();
    bool is_rare = recorder->options.search_ns > 0;
    uint64_t least_ns = is_rare ? recorder->options.search_ns : FOLLOW_NS;
    recorder->follow_ns = end_ns + greatest(least_ns, (is_rare ? RARE_SHARE : SHARE) * (end_ns - now_ns));
}

/* Returns the length of the first recording of a process: recordings of many processes end at different times. */
static uint64_t first_recording_ns(struct recorder *recorder)
{
    uint64_t least_ns = recorder->options.recording_ns / 4;
    return least_ns + random_below(recorder, recorder->options.recording_ns - least_ns + 1);
}

/* Chooses the time of the next tick: at random in its slot, so that nothing periodic in the program keeps step. */
static void choose_next(struct recorder *recorder, uint64_t now_ns)
{
    recorder->slot_ns += recorder->period_ns;
    if (recorder->slot_ns + recorder->period_ns < now_ns) recorder->slot_ns = now_ns; /* ticks were missed */
    recorder->next_ns = recorder->slot_ns + random_below(recorder, recorder->period_ns);
}

/* Makes samples rarer, or less rare, so that they cost what they may. Each stack stands for the time since the one
 * before by the clock of its thread, so that shares stay right. */
static void keep_budget(struct recorder *recorder, uint64_t now_ns)
{
    const struct engine_ops *ops = recorder->options.engine;
    if (recorder->budget.time_ns == 0) cpu_budget_begin(&recorder->budget, recorder->options.cpu_max_ppm, now_ns);
    if (!cpu_budget_check(&recorder->budget, now_ns)) return;
    recorder->period_ns = (uint64_t)((double)SECOND_NS * recorder->budget.slowness) / recorder->options.frequency_hz;
    if (ops->set_period) ops->set_period(recorder->engine, NULL, recorder->period_ns);
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        if (ops->set_period) ops->set_period(recorder->engine, &process->watched, recorder->period_ns);
        process->tick.period_ns = recorder->period_ns * process->thinning;
    }
}

static void forget_file(void *context, const struct code_file *file)
{
    const struct recorder *recorder = context;
    if (recorder->options.engine->forget_file) recorder->options.engine->forget_file(recorder->engine, file);
}

/* Closes COUNT files that are in no process; with a delay, because recordings are named after their ends. */
static void evict_files(struct recorder *recorder, size_t count, uint64_t now_ns)
{
    const uint64_t unused_ns = 2 * SECOND_NS;
    for (size_t i = 0; i < recorder->processes.count; i++) {
        const struct process_code *code = &recorder->processes.items[i]->code;
        for (size_t at = 0; at < code->modules.count; at++) code->modules.items[at].file->used_ns = now_ns;
    }
    bool names_at_end = recorder->options.recording_ns == 0;
    if (code_files_evict(&recorder->files, count, difference(now_ns, unused_ns), names_at_end, forget_file, recorder))
        (void)malloc_trim(0);
}

static void keep_memory(struct recorder *recorder, uint64_t now_ns)
{
    struct memory_budget *budget = &recorder->memory_budget;
    const struct engine_ops *ops = recorder->options.engine;
    if (now_ns < budget->next_ns) return;
    budget->next_ns = now_ns + SECOND_NS;
    uint64_t bytes = memory_budget_own_bytes() + (ops->kernel_bytes ? ops->kernel_bytes(recorder->engine) : 0);
    size_t count = memory_budget_note(budget, bytes, recorder->files.open_count, memory_budget_files_max());
    if (count > 0) evict_files(recorder, count, now_ns);
}

void recorder_memory(const struct recorder *recorder, struct recorder_memory *ret_memory)
{
    *ret_memory = (struct recorder_memory){.bytes = recorder->memory_budget.bytes,
                                           .files = recorder->files.open_count,
                                           .evicted = recorder->files.evicted,
                                           .left_out_count = recorder->left_out_count};
}

double recorder_slowness(const struct recorder *recorder)
{
    return recorder->budget.slowness > 1 ? recorder->budget.slowness : 1;
}

/* Observes the threads that have stacks, by their clocks. */
static void observe_sampled(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        const struct recorded_thread *thread = find_thread(recorder, queued->process, queued->tid);
        struct task_times times;
        if ((thread && thread->is_observed) || !task_read_times(queued->tid, &times)) continue;
        const struct engine_thread seen = {.pid = queued->process->watched.pid,
                                           .tid = queued->tid,
                                           .cpu_ns = times.cpu_ns,
                                           .run_delay_ns = times.run_delay_ns,
                                           .state = THREAD_RUNNING};
        take_thread(recorder, &seen);
    }
}

/* Observes all threads, or most of the time only those that have stacks: the others have nothing to write. */
static void observe(struct recorder *recorder, const struct engine_sink *sink, uint64_t now_ns)
{
    bool is_partial = recorder->observes_rarely && now_ns < recorder->observe_ns;
    if (is_partial) {
        observe_sampled(recorder);
        recorder->observer_ops->observe_ends(recorder->observer, sink);
    } else {
        recorder->observer_ops->observe(recorder->observer, sink);
        recorder->observe_ns = now_ns + SECOND_NS;
    }
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        process->tick.is_partial = is_partial;
        if (is_partial) continue;
        process->is_observed = true;
        process->tick.observed_ns = now_ns;
    }
}

void recorder_tick(struct recorder *recorder)
{
    const struct engine_sink sink = {
        .context = recorder, .stack = take_stack, .thread = take_thread, .wait = take_wait, .process = take_change};
    uint64_t now_ns = clock_monotonic_ns();
    follow(recorder, now_ns);
    recorder->options.engine->poll(recorder->engine, &sink);
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        recorded_process_begin_tick(process, now_ns);
        if (recorded_process_refresh(process, &recorder->options, &recorder->files, now_ns))
            show_code(recorder, process);
        interpreted_process_refresh(process);
    }
    observe(recorder, &sink, now_ns);
    write_stacks(recorder);
    recorder->gone = (struct gone_children){.next = 0}; /* their numbers may become those of others */
    for (size_t i = 0; i < recorder->processes.count; i++) {
        recorded_process_end_tick(recorder->processes.items[i]);
        remove_ended_threads(recorder, recorder->processes.items[i]);
    }
    remove_ended_processes(recorder);
    restart_processes(recorder, now_ns);
    keep_budget(recorder, now_ns);
    keep_memory(recorder, now_ns);
    choose_next(recorder, now_ns);
}

uint64_t recorder_next_ns(const struct recorder *recorder)
{
    return recorder->next_ns;
}

size_t recorder_process_count(const struct recorder *recorder)
{
    return recorder->processes.count;
}

void recorder_work(struct recorder *recorder, uint64_t until_ns)
{
    if (!code_files_work(&recorder->files, until_ns)) return;
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        if (process_code_is_current(&process->code)) continue;
        process_code_update(&process->code);
        show_code(recorder, process);
    }
}

void recorder_flush(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        for (size_t at = 0; at < process->threads.count && process->tick.records_waits; at++)
            thread_waits_flush(process->threads.items[at], &process->tick, process->tick.time_ns);
        recording_writer_flush(process->writer);
    }
}

void recorder_losses(const struct recorder *recorder, struct engine_losses *ret_losses)
{
    recorder->options.engine->losses(recorder->engine, ret_losses);
    ret_losses->stacks_lost += recorder->lost_stacks;
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static bool watch(struct recorder *recorder, struct recorded_process *process, struct engine_denial *ret_denial)
{
    show_code(recorder, process);
    if (!recorder->options.engine->add_process(recorder->engine, &process->watched, ret_denial)) return false;
    process->watched.is_added = true;
    if (recorder->observer == recorder->engine) return true;
    if (recorder->observer_ops->add_process(recorder->observer, &process->watched, ret_denial)) return true;
    recorder->options.engine->remove_process(recorder->engine, &process->watched);
    return false;
}

/* Engines need descriptors for each process, thread or processor, and files of code stay open. A program that this
 * process has started before keeps its own limit. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

bool recorder_add(struct recorder *recorder, pid_t pid, struct engine_denial *ret_denial)
{
    *ret_denial = (struct engine_denial){0};
    if (find_process(recorder, pid)) return true;
    raise_descriptor_limit();
    uint64_t thinning = choose_thinning(recorder, pid);
    const struct tick tick = {.period_ns = recorder->period_ns * thinning,
                              .is_cpu_mode = recorder->options.is_cpu_mode,
                              .records_waits = recorder->options.records_waits,
                              .sees_running = recorder->options.engine->sees_running,
                              .sees_user_code_only = sees_user_code_only(recorder)};
    struct recorded_process *process =
        recorded_process_new(pid, &recorder->options, &tick, &recorder->files, ret_denial);
    if (!process) return false;
    process->thinning = thinning;
    process->interpreted.engine_ops = recorder->options.engine;
    process->interpreted.engine = recorder->engine;
    process->interpreted.view.shows_all = recorder->options.shows_interpreter;
    bool is_watched = watch(recorder, process, ret_denial);
    if (is_watched && ARRAY_PUSH(&recorder->processes, RECORDER_PROCESSES_MAX, process)) {
        note_process(recorder, process);
        recorder->observe_ns = 0;
        process->restart_ns = clock_monotonic_ns() + first_recording_ns(recorder);
        return true;
    }
    if (is_watched) unwatch(recorder, process);
    recorded_process_discard(process);
    return false;
}

static bool open_engines(struct recorder *recorder, struct engine_denial *ret_denial)
{
    const struct engine_ops *ops = recorder->options.engine;
    const struct engine_options options = {.period_ns = recorder->period_ns,
                                           .is_cpu_mode = recorder->options.is_cpu_mode,
                                           .records_waits = recorder->options.records_waits,
                                           .wait_ns_min = recorder->options.wait_ns_min,
                                           .takes_kernel_stacks = recorder->options.takes_kernel_stacks,
                                           .watches_all = recorder->options.watches_all,
                                           .follows_children = recorder->options.follows_children,
                                           .processes_max = RECORDER_PROCESSES_MAX};
    recorder->engine = ops->open(&options, ret_denial);
    recorder->observer_ops = ops->sees_threads ? ops : &engine_proc;
    if (!recorder->engine) return false;
    recorder->observer = ops->sees_threads ? recorder->engine : engine_proc.open(&options, ret_denial);
    return recorder->observer != NULL;
}

struct recorder *recorder_new(const struct recorder_options *options, struct engine_denial *ret_denial)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    *ret_denial = (struct engine_denial){0};
    if (!recorder) {
        (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "not enough memory");
        return NULL;
    }
    const struct engine_ops *ops = options->engine;
    recorder->options = *options;
    recorder->observes_rarely =
        options->is_cpu_mode && !options->records_waits && ops->sees_running && ops->observe_ends;
    recorder->files.cache_directory = options->cache_directory;
    recorder->memory_budget.bytes_max = options->memory_max;
    recorder->maps.directory = options->image_directory;
    recorder->period_ns = SECOND_NS / options->frequency_hz;
    recorder->slot_ns = recorder->next_ns = clock_monotonic_ns();
    if (getrandom(&recorder->random, sizeof(recorder->random), 0) < 0) recorder->random = recorder->slot_ns;
    if (open_engines(recorder, ret_denial)) return recorder;
    recorder_free(recorder);
    return NULL;
}

void recorder_end(struct recorder *recorder)
{
    recorder_tick(recorder);
    for (size_t i = 0; i < recorder->processes.count; i++) end_process(recorder, recorder->processes.items[i]);
    recorder->processes.count = 0;
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder) return;
    if (recorder->observer != recorder->engine && recorder->observer_ops)
        recorder->observer_ops->close(recorder->observer);
    recorder->options.engine->close(recorder->engine);
    code_files_fini(&recorder->files);
    kept_maps_fini(&recorder->maps);
    free(recorder->processes.items);
    free(recorder->stacks.items);
    free(recorder->addresses.items);
    free(recorder);
}
