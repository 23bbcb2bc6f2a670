/* SPDX-License-Identifier: MIT */
#include "sampler/run/interpreted_threads.h"

#include "base/kernel.h"
#include "base/unsigned.h"
#include "sampler/record/recorded_places.h"
#include "sampler/source/interpreted_stacks.h"
#include "sampler/source/signal_choice.h"

enum {
    IMAGES_A_TICK = 16, /* images that one tick examines */
    INTERPRETED_THREADS_MAX = 4096,
    TICKS_OF_CHANGE = 4,  /* listings after a change: the interpreter describes a thread some time after it begins */
    TICKS_A_LISTING = 16, /* ticks between two listings of the interpreter's threads, if nothing is new */
    LISTED_A_TICK = 64,   /* threads that a tick may list: each takes five system calls */
};

/* The sampler thread's alone. */
static struct {
    uint32_t images_seen; /* modules below this number were examined */
    uint64_t listed_tick, changed_tick;
    bool has_threads;    /* true once a thread of the process was in a listing */
    size_t thread_count; /* threads of the process at the last listing */
    struct interpreted_thread threads[INTERPRETED_THREADS_MAX];
    int tids[INTERPRETED_THREADS_MAX];
} found_threads;

/* --- The interpreter ---------------------------------------------------------------------------------------------- */

void interpreted_threads_reset(void)
{
    place_table_clear(&interpreted_found.places);
    interpreted_found.attached = INTERPRETER_ABSENT;
    found_threads.images_seen = 0;
    found_threads.listed_tick = found_threads.changed_tick = 0;
    found_threads.has_threads = false;
    found_threads.thread_count = 0;
}

static void find_libc(const struct modules *modules, struct native_view *view)
{
    const struct module *items = modules->items.items;
    for (size_t i = 0; i < modules->items.count; i++) {
        if (recorded_path_is_libc(items[i].path))
            view->libc = (struct memory_range){items[i].image.start, items[i].image.size};
    }
}

void interpreted_threads_begin_recording(struct sampler *sampler)
{
    place_table_clear(&interpreted_found.places);
    found_threads.images_seen = 0; /* modules have new numbers */
    recorded_interpreter(sampler->writer, interpreted_found.attached, &interpreted_found.process.state);
}

/* Examines the image of MODULE. */
static void examine(struct sampler *sampler, const struct module *module)
{
    const struct interpreter_image image = {
        .start = module->image.start, .size = module->image.size, .bias = module->image.load_bias};
    enum interpreter_attached result =
        interpreter_attach(&image, &interpreted_own_memory, &interpreted_found.work, &interpreted_found.process.state);
    if (result == INTERPRETER_ABSENT) return;
    interpreted_found.attached = result;
    interpreted_found.process.view.interpreter = (struct memory_range){image.start, image.size};
    interpreted_found.process.view.evaluation = interpreted_found.process.state.evaluation;
    interpreted_found.process.view.links_first = interpreted_found.process.state.interpreter->links_first;
    interpreted_found.process.view.shows_all = sampler->options.shows_interpreter;
    find_libc(&sampler->modules, &interpreted_found.process.view);
    recorded_interpreter(sampler->writer, result, &interpreted_found.process.state);
}

/* Looks for an interpreter in the modules that were not examined yet, a few at each tick; or, if there is one that has
 * not begun, in its module alone. */
static void look_for_interpreter(struct sampler *sampler)
{
    const struct module *items = sampler->modules.items.items;
    uint32_t end = (uint32_t)least(sampler->modules.next_number, found_threads.images_seen + IMAGES_A_TICK);
    bool is_late = interpreted_found.attached == INTERPRETER_LATER;
    interpreted_found.attached = INTERPRETER_ABSENT;
    for (size_t i = 0; i < sampler->modules.items.count && (is_late || found_threads.images_seen < end); i++) {
        bool is_wanted = is_late ? items[i].image.start == interpreted_found.process.view.interpreter.address
                                 : items[i].number >= found_threads.images_seen && items[i].number < end;
        if (!is_wanted || items[i].image.size == 0) continue;
        examine(sampler, &items[i]);
        if (interpreted_found.attached != INTERPRETER_ABSENT) return;
    }
    if (!is_late) found_threads.images_seen = end;
}

/* --- Its threads -------------------------------------------------------------------------------------------------- */

/* Notes that THREAD is IN in the interpreter. The copies of its stack that the kernel's timer takes lack the functions,
 * which are not on the stack: so its signals do it. */
static void note_thread(struct target_thread *thread, struct interpreted_thread in)
{
    struct source_thread *shared = &thread->source;
    if (shared->interpreted.state == in.state && shared->interpreted.identity == in.identity) return;
    struct signal_choice choice = signal_choose(&thread->files);
    if (choice.number == 0 || choice.reading != READ_BY_COPY) return;
    shared->interpreted = in;
    shared->timer.stack_size = PERF_TIMER_STACK_MAX + 1;
    if (shared->clock) interpreted_stacks_prepare(shared->clock, in);
}

static void list_interpreted_threads(struct sampler *sampler)
{
    interpreted_found.lock = (struct memory_range){0};
    if (interpreted_found.process.state.interpreter->lock)
        interpreted_found.lock = interpreted_found.process.state.interpreter->lock(
            &interpreted_found.process.state, &interpreted_own_memory, &interpreted_found.work);
    size_t count = interpreted_found.process.state.interpreter->threads(
        &interpreted_found.process.state, &interpreted_own_memory, &interpreted_found.work, found_threads.threads,
        found_threads.tids, INTERPRETED_THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        int tid = found_threads.tids[i] == INTERPRETED_MAIN_THREAD ? kernel_process_id() : found_threads.tids[i];
        struct target_thread *thread = tid > 0 ? threads_find(&sampler->threads, tid) : NULL;
        if (thread) note_thread(thread, found_threads.threads[i]);
        found_threads.has_threads |= thread != NULL;
    }
}

void interpreted_threads_refresh(struct sampler *sampler)
{
    if (interpreted_found.attached == INTERPRETER_ABSENT || interpreted_found.attached == INTERPRETER_LATER)
        look_for_interpreter(sampler);
    if (interpreted_found.attached != INTERPRETER_ATTACHED) return;
    if (sampler->threads.count != found_threads.thread_count) found_threads.changed_tick = sampler->tick.number;
    bool is_new = !found_threads.has_threads || sampler->tick.number < found_threads.changed_tick + TICKS_OF_CHANGE;
    uint64_t pause = greatest(is_new ? 1 : TICKS_A_LISTING, found_threads.thread_count / LISTED_A_TICK);
    if (sampler->tick.number < found_threads.listed_tick + pause) return;
    found_threads.listed_tick = sampler->tick.number;
    found_threads.thread_count = sampler->threads.count;
    list_interpreted_threads(sampler);
}
