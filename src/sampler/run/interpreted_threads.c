/* SPDX-License-Identifier: MIT */
#include "sampler/run/interpreted_threads.h"

#include "base/pages.h"
#include "base/unsigned.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/kernel/process_info.h"
#include "sampler/record/recorded_places.h"
#include "sampler/source/signal_choice.h"

enum {
    IMAGES_A_TICK = 16, /* images that one tick examines */
    INTERPRETED_THREADS_MAX = 4096,
    TICKS_OF_CHANGE = 4,  /* listings after a change: the interpreter describes a thread some time after it begins */
    TICKS_A_LISTING = 16, /* ticks between two listings of the interpreter's threads, if nothing is new */
    LISTED_A_TICK = 64,   /* threads that a tick may list: each takes five system calls */
};

/* The sampler thread's alone, but PROCESS, which handlers read once threads have it: it is never emptied, because a
 * handler of an earlier start can still be reading. */
static struct {
    struct interpreted_process process;
    enum interpreter_attached attached;
    uint32_t images_seen; /* modules below this number were examined */
    uint64_t listed_tick, changed_tick;
    bool has_threads;         /* true once a thread of the process was in a listing */
    size_t thread_count;      /* threads of the process at the last listing */
    struct memory_range lock; /* lock that a thread must have to run; size 0: not known */
    struct place_table places;
    struct interpreted_work work;
    struct interpreted_stack stack;
    uint64_t merged[RECORDING_FRAMES_MAX];
    struct interpreted_thread threads[INTERPRETED_THREADS_MAX];
    int tids[INTERPRETED_THREADS_MAX];
} found;

static bool gather_own(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    (void)memory;
    for (size_t i = 0; i < pieces->count; i++) {
        void *to = (void *)(uintptr_t)pieces->to[i].address;
        if (process_read_memory(pieces->from[i].address, to, pieces->from[i].size) != pieces->from[i].size)
            return false;
    }
    return true;
}

static const struct process_memory own_memory = {.gather = gather_own};

/* --- The interpreter ---------------------------------------------------------------------------------------------- */

void interpreted_threads_reset(void)
{
    place_table_clear(&found.places);
    found.attached = INTERPRETER_ABSENT;
    found.images_seen = 0;
    found.listed_tick = found.changed_tick = 0;
    found.has_threads = false;
    found.thread_count = 0;
}

static void find_libc(const struct modules *modules, struct native_view *view)
{
    const struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (recorded_path_is_libc(items[i].path))
            view->libc = (struct memory_range){items[i].image_start, items[i].image_size};
    }
}

void interpreted_threads_begin_recording(struct sampler *sampler)
{
    place_table_clear(&found.places);
    found.images_seen = 0; /* modules have new numbers */
    recorded_interpreter(sampler->writer, found.attached, &found.process.state);
}

/* Examines the image of MODULE. */
static void examine(struct sampler *sampler, const struct module *module)
{
    const struct interpreter_image image = {
        .start = module->image_start, .size = module->image_size, .bias = module->load_bias};
    enum interpreter_attached result = cpython.attach(&image, &own_memory, &found.work, &found.process.state);
    if (result == INTERPRETER_ABSENT) return;
    found.attached = result;
    found.process.view.interpreter = (struct memory_range){image.start, image.size};
    found.process.view.evaluation = found.process.state.evaluation;
    found.process.view.shows_all = sampler->options.shows_interpreter;
    find_libc(&sampler->modules, &found.process.view);
    recorded_interpreter(sampler->writer, result, &found.process.state);
}

/* Looks for an interpreter in the modules that were not examined yet, a few at each tick; or, if there is one that has
 * not begun, in its module alone. */
static void look_for_interpreter(struct sampler *sampler)
{
    const struct module *items = sampler->modules.items.items;
    uint32_t end = (uint32_t)least(sampler->modules.next_number, found.images_seen + IMAGES_A_TICK);
    bool is_late = found.attached == INTERPRETER_LATER;
    found.attached = INTERPRETER_ABSENT;
    for (size_t i = 0; i < sampler->modules.items.count && (is_late || found.images_seen < end); i++) {
        bool is_wanted = is_late ? items[i].image_start == found.process.view.interpreter.address
                                 : items[i].number >= found.images_seen && items[i].number < end;
        if (!is_wanted || items[i].image_size == 0) continue;
        examine(sampler, &items[i]);
        if (found.attached != INTERPRETER_ABSENT) return;
    }
    if (!is_late) found.images_seen = end;
}

/* --- Its threads -------------------------------------------------------------------------------------------------- */

static void publish_thread(struct sample_request *request, struct interpreted_thread thread)
{
    struct interpreted_request *interpreted = atomic_load(&request->interpreted);
    if (!interpreted && thread.state != 0) {
        interpreted = pages_allocate(sizeof(*interpreted));
        if (interpreted) interpreted->process = &found.process;
    }
    if (!interpreted) return;
    atomic_store(&interpreted->thread_identity, thread.identity);
    atomic_store(&interpreted->thread_state, thread.state);
    atomic_store(&request->interpreted, interpreted);
}

void interpreted_threads_prepare(struct sample_request *request, const struct target_thread *thread)
{
    publish_thread(request, thread->interpreted);
}

/* Notes that THREAD is IN in the interpreter. The copies of its stack that the kernel's timer takes lack the functions,
 * which are not on the stack: so its signals do it. */
static void note_thread(struct target_thread *thread, struct interpreted_thread in)
{
    if (thread->interpreted.state == in.state && thread->interpreted.identity == in.identity) return;
    struct signal_choice choice = signal_choose(&thread->files);
    if (choice.number == 0 || choice.reading != READ_BY_COPY) return;
    thread->interpreted = in;
    thread->perf.stack_size = PERF_TIMER_STACK_MAX + 1;
    if (thread->cpu_clock.request) publish_thread(thread->cpu_clock.request, in);
}

static void list_interpreted_threads(struct sampler *sampler)
{
    found.lock = found.process.state.interpreter->lock(&found.process.state, &own_memory, &found.work);
    size_t count = found.process.state.interpreter->threads(&found.process.state, &own_memory, &found.work,
                                                            found.threads, found.tids, INTERPRETED_THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct target_thread *thread = found.tids[i] > 0 ? threads_find(&sampler->threads, found.tids[i]) : NULL;
        if (thread) note_thread(thread, found.threads[i]);
        found.has_threads |= thread != NULL;
    }
}

void interpreted_threads_refresh(struct sampler *sampler)
{
    if (found.attached == INTERPRETER_ABSENT || found.attached == INTERPRETER_LATER) look_for_interpreter(sampler);
    if (found.attached != INTERPRETER_ATTACHED) return;
    if (sampler->threads.count != found.thread_count) found.changed_tick = sampler->tick.number;
    bool is_new = !found.has_threads || sampler->tick.number < found.changed_tick + TICKS_OF_CHANGE;
    uint64_t pause = greatest(is_new ? 1 : TICKS_A_LISTING, found.thread_count / LISTED_A_TICK);
    if (sampler->tick.number < found.listed_tick + pause) return;
    found.listed_tick = sampler->tick.number;
    found.thread_count = sampler->threads.count;
    list_interpreted_threads(sampler);
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static struct recorded_places places_of(const struct sampler *sampler)
{
    return (struct recorded_places){.writer = sampler->writer,
                                    .table = &found.places,
                                    .state = &found.process.state,
                                    .memory = &own_memory,
                                    .work = &found.work};
}

/* Replaces frames of STACK in COUNT ADDRESSES by numbers of places. ARGUMENT is the first one of the system call in
 * which the thread is; 0: in none. Returns the new count. */
static size_t write_places(struct sampler *sampler, const struct interpreted_stack *stack, uint64_t argument,
                           uint64_t *addresses, size_t count)
{
    const struct recorded_places places = places_of(sampler);
    sampler->counters[RECORDING_INTERPRETED_GONE] += recorded_places_number(&places, stack, addresses, count);
    sampler->counters[RECORDING_INTERPRETED]++;
    if (argument - found.lock.address >= found.lock.size) return count;
    return recorded_places_add_wait(&places, addresses, count, RECORDING_FRAMES_MAX);
}

void interpreted_threads_finish(struct sampler *sampler, struct sample_reply *reply)
{
    sampler->counters[RECORDING_INTERPRETED_TORN] += reply->functions_result == INTERPRETED_TORN;
    if (reply->functions) {
        uint64_t argument = reply->registers.values[machine_arguments[0]];
        reply->address_count =
            write_places(sampler, reply->functions, argument, reply->addresses, reply->address_count);
    }
    reply->functions = NULL;
}

bool interpreted_threads_add(struct sampler *sampler, const struct target_thread *thread, uint64_t cpu_ns,
                             struct remote_stack *stack)
{
    const struct interpreted_process *process = &found.process;
    uint64_t cpu_ns_after = 0;
    if (thread->interpreted.state == 0 || found.attached != INTERPRETER_ATTACHED) return true;
    enum interpreted_result result =
        process->state.interpreter->read(&process->state, thread->interpreted, &own_memory, &found.work, &found.stack);
    if (!thread_cpu_ns(thread->files.tid, &cpu_ns_after) || cpu_ns_after != cpu_ns) return false;
    const struct native_stack native = {.addresses = stack->addresses,
                                        .stack_pointers = stack->stack_pointers,
                                        .count = stack->count,
                                        .has_root = stack->outcome == UNWIND_ROOT};
    size_t count = result == INTERPRETED_READ ? merge_stacks(&native, &found.stack, &process->view, RECORDING_PLACES,
                                                             found.merged, RECORDING_FRAMES_MAX)
                                              : 0;
    bool is_torn = result == INTERPRETED_TORN || (result == INTERPRETED_READ && count == 0);
    sampler->counters[RECORDING_INTERPRETED_TORN] += is_torn;
    if (count == 0) return true;
    memcpy(stack->addresses, found.merged, count * sizeof(found.merged[0]));
    stack->count = write_places(sampler, &found.stack, stack->argument, stack->addresses, count);
    return true;
}
