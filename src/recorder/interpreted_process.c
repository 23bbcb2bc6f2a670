/* SPDX-License-Identifier: MIT */
#include "recorder/interpreted_process.h"

#include "base/unsigned.h"
#include "recorder/recorded_process.h"
#include "recorder/remote_memory.h"
#include "recorder/task_files.h"
#include "sampler/record/recorded_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGES_A_TICK = 64, /* images that one tick examines */
    INTERPRETED_THREADS_MAX = 4096,
    TICKS_OF_CHANGE = 4,  /* listings after a change: the interpreter describes a thread some time after it begins */
    TICKS_A_LISTING = 16, /* ticks between two listings of the interpreter's threads, if nothing is new */
    LISTED_A_TICK = 64,   /* threads that a tick may list if nothing is new */
    NEW_A_TICK = 1024,    /* threads that a tick may list for the sake of new ones */
};

/* Memory for one thing at a time: one thread uses a recorder. */
static struct {
    struct interpreted_work work;
    struct interpreted_stack stack;
    struct interpreted_thread threads[INTERPRETED_THREADS_MAX];
    int tids[INTERPRETED_THREADS_MAX];
    uint64_t merged[RECORDING_FRAMES_MAX];
    struct recalled_memory recalled;
} scratch;

static struct process_memory memory_of(struct recorded_process *process)
{
    return (struct process_memory){.gather = remote_gather, .context = &process->watched.pid};
}

/* --- The interpreter ---------------------------------------------------------------------------------------------- */

void interpreted_process_forget_thread(struct recorded_thread *thread)
{
    const struct interpreted_process *interpreted = &thread->process->interpreted;
    bool is_watched = thread->interpreted.state != 0 && interpreted->engine_ops->watch_functions;
    if (is_watched) interpreted->engine_ops->watch_functions(interpreted->engine, thread->tid, 0, NULL);
    thread->interpreted = (struct interpreted_thread){0};
    thread->was_looked_for = false;
    free(thread->recalled);
    thread->recalled = NULL;
}

static void forget_interpreter(struct recorded_process *process)
{
    struct interpreted_process *interpreted = &process->interpreted;
    interpreted->attached = INTERPRETER_ABSENT;
    interpreted->images_seen = 0;
    interpreted->has_threads = false;
    for (size_t i = 0; i < process->threads.count; i++) interpreted_process_forget_thread(process->threads.items[i]);
}

/* Notes that THREAD is IN in the interpreter. */
static void note_thread(struct recorded_thread *thread, struct interpreted_thread in)
{
    const struct interpreted_process *interpreted = &thread->process->interpreted;
    bool is_same = thread->interpreted.state == in.state;
    thread->interpreted = in;
    if (is_same || !interpreted->engine_ops->watch_functions) return;
    struct interpreter_chain chain = interpreted->state.interpreter->chain(&interpreted->state);
    interpreted->engine_ops->watch_functions(interpreted->engine, thread->tid, in.state, &chain);
}

void interpreted_process_restart(struct recorded_process *process)
{
    struct interpreted_process *interpreted = &process->interpreted;
    forget_interpreter(process);
    place_table_clear(&interpreted->places);
    interpreted->stacks = interpreted->torn = interpreted->gone = 0;
    interpreted->listed_tick = interpreted->changed_tick = 0;
    interpreted_process_refresh(process);
}

static struct memory_range find_libc(const struct process_code *code)
{
    for (size_t i = 0; i < code->modules.count; i++) {
        const struct process_module *module = &code->modules.items[i];
        if (module->is_libc) return (struct memory_range){module->base, module->file->image_size};
    }
    return (struct memory_range){0};
}

static void examine(struct recorded_process *process, const struct process_module *module)
{
    struct interpreted_process *interpreted = &process->interpreted;
    const struct process_memory memory = memory_of(process);
    const struct interpreter_image image = {
        .start = module->base, .size = module->file->image_size, .bias = module->base - module->file->image_vmaddr};
    enum interpreter_attached result = interpreter_attach(&image, &memory, &scratch.work, &interpreted->state);
    if (result == INTERPRETER_ABSENT) return;
    interpreted->attached = result;
    interpreted->image = module->number;
    interpreted->view.interpreter = (struct memory_range){image.start, image.size};
    interpreted->view.evaluation = interpreted->state.evaluation;
    interpreted->view.links_first = interpreted->state.interpreter->links_first;
    interpreted->view.libc = find_libc(&process->code);
    recorded_interpreter(process->writer, result, &interpreted->state);
}

/* Looks for an interpreter in modules that were not examined yet, or, if there is one that has not begun, in its module
 * alone. */
static void look_for_interpreter(struct recorded_process *process)
{
    struct interpreted_process *interpreted = &process->interpreted;
    const struct process_code *code = &process->code;
    bool is_late = interpreted->attached == INTERPRETER_LATER;
    uint32_t end = (uint32_t)least(code->next_number, (uint64_t)interpreted->images_seen + IMAGES_A_TICK);
    if (!is_late && interpreted->images_seen == end) return;
    interpreted->attached = INTERPRETER_ABSENT;
    for (size_t i = 0; i < code->modules.count; i++) {
        const struct process_module *module = &code->modules.items[i];
        bool is_wanted = is_late ? module->number == interpreted->image
                                 : module->number >= interpreted->images_seen && module->number < end;
        if (is_wanted && module->file->memory == NULL) examine(process, module);
        if (interpreted->attached != INTERPRETER_ABSENT) return;
    }
    if (!is_late) interpreted->images_seen = end;
}

static bool has_image(const struct recorded_process *process)
{
    const struct process_code *code = &process->code;
    for (size_t i = 0; i < code->modules.count; i++) {
        if (code->modules.items[i].number == process->interpreted.image) return true;
    }
    return false;
}

/* --- Its threads -------------------------------------------------------------------------------------------------- */

/* Returns the number that THREAD has inside of its own namespace of process numbers. */
static pid_t inner_tid(const struct recorded_process *process, const struct recorded_thread *thread)
{
    static const char label[] = "\nNSpid:";
    char file[32], text[4096];
    (void)snprintf(file, sizeof(file), "task/%d/status", (int)thread->tid);
    if (task_read_text(process->watched.pid, file, text, sizeof(text)) == 0) return thread->tid;
    const char *line = strstr(text, label), *last = NULL;
    if (!line) return thread->tid;
    for (const char *at = line + sizeof(label) - 1; *at && *at != '\n'; at++) {
        if (*at >= '0' && *at <= '9' && at[-1] == '\t') last = at;
    }
    return last ? atoi(last) : thread->tid;
}

/* Returns the thread that is TID, or INTERPRETED_MAIN_THREAD, to itself. The search goes on below *PLACE: interpreters
 * list the newest thread first.
 */
static struct recorded_thread *find_thread(const struct recorded_process *process, int tid, size_t *place)
{
    size_t count = process->threads.count;
    for (size_t i = 0; i < count; i++) {
        *place = (*place + count - 1) % count;
        struct recorded_thread *thread = process->threads.items[*place];
        if (tid == INTERPRETED_MAIN_THREAD && thread->tid == process->watched.pid) return thread;
        if (thread->inner_tid == 0) thread->inner_tid = inner_tid(process, thread);
        if (thread->inner_tid == tid) return thread;
    }
    return NULL;
}

static void list_threads(struct recorded_process *process)
{
    struct interpreted_process *interpreted = &process->interpreted;
    const struct process_memory memory = memory_of(process);
    size_t place = 0;
    interpreted->listed_tick = process->ticks;
    interpreted->listed_count = process->threads.count;
    interpreted->lock = (struct memory_range){0};
    if (interpreted->state.interpreter->lock)
        interpreted->lock = interpreted->state.interpreter->lock(&interpreted->state, &memory, &scratch.work);
    size_t count = interpreted->state.interpreter->threads(&interpreted->state, &memory, &scratch.work, scratch.threads,
                                                           scratch.tids, INTERPRETED_THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct recorded_thread *thread = scratch.tids[i] != 0 ? find_thread(process, scratch.tids[i], &place) : NULL;
        if (thread) note_thread(thread, scratch.threads[i]);
        interpreted->has_threads |= thread != NULL;
    }
}

void interpreted_process_refresh(struct recorded_process *process)
{
    struct interpreted_process *interpreted = &process->interpreted;
    size_t count = process->threads.count;
    if (interpreted->attached != INTERPRETER_ABSENT && !has_image(process)) forget_interpreter(process);
    if (interpreted->attached != INTERPRETER_ATTACHED) look_for_interpreter(process);
    if (interpreted->attached != INTERPRETER_ATTACHED) return;
    if (count != interpreted->listed_count) interpreted->changed_tick = process->ticks;
    bool is_new = !interpreted->has_threads || process->ticks < interpreted->changed_tick + TICKS_OF_CHANGE;
    uint64_t pause = greatest(is_new ? 1 : TICKS_A_LISTING, count / LISTED_A_TICK);
    interpreted->new_budget = NEW_A_TICK;
    if (process->ticks >= interpreted->listed_tick + pause) list_threads(process);
}

/* Looks for THREAD when it is seen for the first time: it may sleep from now on, and not be seen again. */
static void find_new_thread(struct recorded_thread *thread)
{
    struct interpreted_process *interpreted = &thread->process->interpreted;
    if (thread->was_looked_for || interpreted->new_budget == 0) return;
    thread->was_looked_for = true;
    interpreted->new_budget = (uint32_t)difference(interpreted->new_budget, thread->process->threads.count);
    list_threads(thread->process);
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* Reads the functions of THREAD from COPIED, or if that is NULL from MEMORY of its process. */
static enum interpreted_result read_functions(struct recorded_thread *thread, const struct process_memory *copied,
                                              const struct process_memory *memory)
{
    const struct interpreter_state *state = &thread->process->interpreted.state;
    if (!copied && !thread->recalled) thread->recalled = calloc(1, sizeof(*thread->recalled));
    bool is_recalled = !copied && thread->recalled;
    if (is_recalled) memory = recalled_memory_begin(&scratch.recalled, memory, thread->recalled);
    enum interpreted_result result =
        state->interpreter->read(state, thread->interpreted, copied ? copied : memory, &scratch.work, &scratch.stack);
    if (is_recalled) recalled_memory_end(&scratch.recalled, thread->recalled);
    return result;
}

void interpreted_process_add(struct recorded_thread *thread, const struct interpreted_target *target)
{
    struct recorded_process *process = thread->process;
    struct interpreted_process *interpreted = &process->interpreted;
    const struct process_memory memory = memory_of(process);
    const struct recorded_places places = {.writer = process->writer,
                                           .table = &interpreted->places,
                                           .state = &interpreted->state,
                                           .memory = &memory,
                                           .work = &scratch.work};
    const struct native_stack native = {.addresses = target->addresses,
                                        .stack_pointers = target->stack_pointers,
                                        .count = target->walked->count,
                                        .has_root = target->walked->outcome == UNWIND_ROOT};
    if (interpreted->attached != INTERPRETER_ATTACHED) return;
    if (thread->interpreted.state == 0) find_new_thread(thread);
    if (thread->interpreted.state == 0) return;
    enum interpreted_result result = read_functions(thread, target->copied, &memory);
    size_t count = result == INTERPRETED_READ ? merge_stacks(&native, &scratch.stack, &interpreted->view,
                                                             RECORDING_PLACES, scratch.merged, RECORDING_FRAMES_MAX)
                                              : 0;
    interpreted->torn += result == INTERPRETED_TORN || (result == INTERPRETED_READ && count == 0);
    if (count == 0) return;
    interpreted->gone += recorded_places_number(&places, &scratch.stack, scratch.merged, count);
    if (target->argument - interpreted->lock.address < interpreted->lock.size)
        count = recorded_places_add_wait(&places, scratch.merged, count, RECORDING_FRAMES_MAX);
    interpreted->stacks++;
    memcpy(target->addresses, scratch.merged, count * sizeof(scratch.merged[0]));
    target->walked->count = count;
}

void interpreted_process_fini(struct interpreted_process *interpreted)
{
    place_table_clear(&interpreted->places);
}
