/* The sights that engines deliver: stacks are walked, wait for the clocks of their threads, and are written at the
 * end of a tick.  SPDX-License-Identifier: MIT */
#include "recorder/recorder_private.h"

#include "base/clocks.h"
#include "base/unsigned.h"
#include "recorder/task_files.h"

#include <stdio.h>
#include <string.h>

enum {
    STACKS_A_TICK_MAX = 1 << 14,
    ADDRESSES_A_TICK_MAX = 1 << 22,
    PREPARATIONS_MAX = 64, /* modules that one walk may wait for */
};

/* --- Walks -------------------------------------------------------------------------------------------------------- */

void recorder_show_code(struct recorder *recorder, struct recorded_process *process)
{
    if (process->code.generated.count > 0)
        kept_maps_look(&recorder->maps, process->watched.pid, process->watched.start_ticks);
    process->watched.modules = process->code.modules.items;
    process->watched.module_count = process->code.modules.count;
    process->watched.generated = process->code.generated.items;
    process->watched.generated_count = process->code.generated.count;
    process->watched.generation = process->code.generation;
    process->watched.has_unloaded = process->code.has_unloaded;
    if (process->code.java.is_changed && recorder->options.engine->forget_file)
        recorder->options.engine->forget_file(recorder->engine, process->code.java.file);
    process->code.java.is_changed = false;
    if (recorder->options.engine->update_process && process->watched.is_added)
        recorder->options.engine->update_process(recorder->engine, &process->watched);
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
        recorder->outdated_stacks += is_outdated;
    }
    recorder->stacks.count = kept;
}

void recorder_begin_listing(struct recorder *recorder, struct recorded_process *process)
{
    const struct engine_ops *ops = recorder->options.engine;
    if (ops->begin_listing && process->watched.is_added) ops->begin_listing(recorder->engine, &process->watched);
}

void recorder_list_code(struct recorder *recorder, struct recorded_process *process)
{
    struct process_code old = {0};
    size_t count = process->code.modules.count;
    if (!ARRAY_RESERVE(&old.modules, count, PROCESS_MODULES_MAX)) count = 0;
    if (count > 0) memcpy(old.modules.items, process->code.modules.items, count * sizeof(*old.modules.items));
    old.modules.count = count;
    recorder_begin_listing(recorder, process);
    recorded_process_list(process, &recorder->options, &recorder->files);
    drop_outdated_stacks(recorder, process, &old);
    process_code_fini(&old);
    recorder_show_code(recorder, process);
}

/* Returns true if a second walk can get farther than the one that ended at ADDRESS. */
static bool can_go_on(struct recorder *recorder, struct recorded_process *process, enum unwind_outcome outcome,
                      uint64_t address)
{
    if (outcome == UNWIND_PENDING) {
        if (!process_code_prepare(&process->code, &recorder->files, address)) return false;
        recorder_show_code(recorder, process);
        return true;
    }
    const struct unwind_module *module = unwind_find_module(&process->code.list, address);
    bool is_generated = module && module->is_generated;
    if (outcome != UNWIND_NO_TABLE || (module && !is_generated)) return false;
    process->needs_listing = true;
    process->code.java.is_wanted |= is_generated;
    if (!recorded_process_is_due(process, clock_monotonic_ns())) return false;
    uint64_t read_ns = process->code.java.next_ns;
    recorder_list_code(recorder, process);
    return is_generated ? process->code.java.next_ns != read_ns
                        : unwind_find_module(&process->code.list, address) != NULL;
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
    uint64_t last = walked.count > 0 ? recorder->walked[walked.count - 1] : 0;
    if (walked.outcome == UNWIND_NO_TABLE && walked.count > 0 && is_unseen(process, last))
        process->counts.unseen_stacks++;
    end_at_root(&process->code, &walked);
    return walked;
}

uint64_t recorder_random_below(struct recorder *recorder, uint64_t limit)
{
    recorder->random = recorder->random * 6364136223846793005u + 1442695040888963407u;
    return (recorder->random >> 33) % limit;
}

/* --- Sights ------------------------------------------------------------------------------------------------------- */

/* Adds the functions that an interpreter runs to the stack of a running thread. */
static void add_functions(struct recorder *recorder, struct recorded_process *process, const struct engine_stack *stack,
                          struct walked_stack *walked)
{
    struct recorded_thread *thread = recorder_find_thread(recorder, process, stack->tid);
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

void recorder_take_stack(void *context, const struct engine_stack *stack)
{
    struct recorder *recorder = context;
    struct recorded_process *process = recorder_process_with(recorder, stack->pid);
    if (!process) return; /* it has ended, or is recorded no more */
    if (process->thinning > 1 && !stack->begins_wait && recorder_random_below(recorder, process->thinning) != 0) return;
    struct walked_stack walked = whole_stack(recorder, process, stack);
    if (process_code_is_outdated(&process->code, &walked, stack->time_ns)) {
        recorder->outdated_stacks++;
        return;
    }
    if (stack->begins_wait) {
        struct recorded_thread *thread = recorder_find_or_add_thread(recorder, process, stack->tid);
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

void recorder_read_blocked(struct recorder *recorder, struct recorded_thread *thread, const struct engine_thread *seen)
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

void recorder_take_wait(void *context, const struct engine_wait *wait)
{
    const char interrupt[] = "[interrupt]";
    struct recorder *recorder = context;
    struct recorded_process *process = recorder_process_with(recorder, wait->pid);
    struct recorded_thread *thread = process ? recorder_find_or_add_thread(recorder, process, wait->tid) : NULL;
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

void recorder_take_thread(void *context, const struct engine_thread *seen)
{
    struct recorder *recorder = context;
    struct recorded_process *process = recorder_process_with(recorder, seen->pid);
    struct recorded_thread *thread = process ? recorder_find_or_add_thread(recorder, process, seen->tid) : NULL;
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
    if (seen->state == THREAD_BLOCKED && seen->has_registers) recorder_read_blocked(recorder, thread, seen);
    if (seen->state == THREAD_STOPPED) thread_times_write_stopped(thread, &process->tick);
}

/* Observes the threads that have stacks, by their clocks. */
static void observe_sampled(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        const struct recorded_thread *thread = recorder_find_thread(recorder, queued->process, queued->tid);
        struct task_times times;
        if ((thread && thread->is_observed) || !task_read_times(queued->tid, &times)) continue;
        const struct engine_thread seen = {.pid = queued->process->watched.pid,
                                           .tid = queued->tid,
                                           .cpu_ns = times.cpu_ns,
                                           .run_delay_ns = times.run_delay_ns,
                                           .state = THREAD_RUNNING};
        recorder_take_thread(recorder, &seen);
    }
}

void recorder_observe(struct recorder *recorder, const struct engine_sink *sink, uint64_t now_ns)
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

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void count_stacks(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        struct recorded_thread *thread = recorder_find_or_add_thread(recorder, queued->process, queued->tid);
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
void recorder_write_stacks(struct recorder *recorder)
{
    count_stacks(recorder);
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack *queued = &recorder->stacks.items[i];
        struct recorded_thread *thread = recorder_find_thread(recorder, queued->process, queued->tid);
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

void recorder_drop_stacks(struct recorder *recorder, const struct recorded_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->stacks.count; i++) {
        const struct queued_stack queued = recorder->stacks.items[i];
        if (queued.process != process) recorder->stacks.items[kept++] = queued;
    }
    recorder->stacks.count = kept;
}
