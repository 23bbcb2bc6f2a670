/* SPDX-License-Identifier: MIT */
#include "sampler/source/interpreted_stacks.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/seccomp_filter.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/own_memory.h"
#include "sampler/record/recorded_places.h"
#include "sampler/source/own_pieces.h"

struct interpreted_found interpreted_found;

/* The sampler thread's alone. */
static struct interpreted_stack found_stack;
static uint64_t merged[RECORDING_FRAMES_MAX];

static bool gather_own(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    (void)memory;
    if (filter_allows(FILTER_MEMORY) && own_pieces_read((int)kernel_process_id(), pieces)) return true;
    for (size_t i = 0; i < pieces->count; i++) {
        void *to = (void *)(uintptr_t)pieces->to[i].address;
        if (process_read_memory(pieces->from[i].address, to, pieces->from[i].size) != pieces->from[i].size)
            return false;
    }
    return true;
}

const struct process_memory interpreted_own_memory = {.gather = gather_own};

void interpreted_stacks_prepare(struct sample_request *request, struct interpreted_thread thread)
{
    struct interpreted_request *interpreted = atomic_load(&request->interpreted);
    if (!interpreted && thread.state != 0) {
        interpreted = pages_allocate(sizeof(*interpreted));
        if (interpreted) interpreted->process = &interpreted_found.process;
    }
    if (!interpreted) return;
    atomic_store(&interpreted->thread_identity, thread.identity);
    atomic_store(&interpreted->thread_state, thread.state);
    atomic_store(&request->interpreted, interpreted);
}

/* Replaces frames of STACK in COUNT ADDRESSES by numbers of places. ARGUMENT is the first one of the system call in
 * which the thread is; 0: in none. Returns the new count. */
static size_t write_places(struct source_tick *tick, const struct interpreted_stack *stack, uint64_t argument,
                           uint64_t *addresses, size_t count)
{
    const struct recorded_places places = {.writer = tick->writer,
                                           .table = &interpreted_found.places,
                                           .state = &interpreted_found.process.state,
                                           .memory = &interpreted_own_memory,
                                           .work = &interpreted_found.work};
    tick->counters[RECORDING_INTERPRETED_GONE] += recorded_places_number(&places, stack, addresses, count);
    tick->counters[RECORDING_INTERPRETED]++;
    if (argument - interpreted_found.lock.address >= interpreted_found.lock.size) return count;
    return recorded_places_add_wait(&places, addresses, count, RECORDING_FRAMES_MAX);
}

void interpreted_stacks_finish(struct source_tick *tick, struct sample_reply *reply)
{
    tick->counters[RECORDING_INTERPRETED_TORN] += reply->functions_result == INTERPRETED_TORN;
    if (reply->functions) {
        uint64_t argument = reply->registers.values[machine_arguments[0]];
        reply->address_count = write_places(tick, reply->functions, argument, reply->addresses, reply->address_count);
    }
    reply->functions = NULL;
}

/* Reads the functions of THREAD into FOUND_STACK. */
static enum interpreted_result read_sleeping(const struct source_thread *thread)
{
    static struct recalled_parts none;
    const struct interpreter_state *state = &interpreted_found.process.state;
    struct interpreted_request *request = thread->clock ? atomic_load(&thread->clock->interpreted) : NULL;
    struct recalled_parts *parts = request ? &request->sleeping_parts : &none;
    const struct process_memory *memory =
        recalled_memory_begin(&interpreted_found.recalled, &interpreted_own_memory, parts);
    enum interpreted_result result =
        state->interpreter->read(state, thread->interpreted, memory, &interpreted_found.work, &found_stack);
    recalled_memory_end(&interpreted_found.recalled, parts);
    return result;
}

bool interpreted_stacks_add(struct source_tick *tick, const struct source_thread *thread, struct remote_stack *stack)
{
    const struct interpreted_process *process = &interpreted_found.process;
    uint64_t cpu_ns_after = 0;
    if (thread->interpreted.state == 0 || interpreted_found.attached != INTERPRETER_ATTACHED) return true;
    enum interpreted_result result = read_sleeping(thread);
    if (!thread_cpu_ns(thread->files->tid, &cpu_ns_after) || cpu_ns_after != thread->clock_ns) return false;
    const struct native_stack native = {.addresses = stack->addresses,
                                        .stack_pointers = stack->stack_pointers,
                                        .count = stack->count,
                                        .has_root = stack->outcome == UNWIND_ROOT};
    size_t count = result == INTERPRETED_READ ? merge_stacks(&native, &found_stack, &process->view, RECORDING_PLACES,
                                                             merged, RECORDING_FRAMES_MAX)
                                              : 0;
    bool is_torn = result == INTERPRETED_TORN || (result == INTERPRETED_READ && count == 0);
    tick->counters[RECORDING_INTERPRETED_TORN] += is_torn;
    if (count == 0) return true;
    memcpy(stack->addresses, merged, count * sizeof(merged[0]));
    stack->count = write_places(tick, &found_stack, stack->argument, stack->addresses, count);
    return true;
}
