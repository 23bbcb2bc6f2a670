/* SPDX-License-Identifier: MIT */
#include "recorder/recorder_private.h"

#include "base/clocks.h"
#include "base/unsigned.h"
#include "recorder/task_files.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FOLLOW_NS = 50000000 }; /* time between two searches for children */

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

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
        recorder_forget_thread(recorder, thread);
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
        recorder_forget_thread(recorder, process->threads.items[i]);
    }
    recorder_forget_process(recorder, process);
    kept_maps_note_end(&recorder->maps, process->watched.pid);
    recorded_process_free(process, &recorder->options, engine_number(recorder));
}

/* Tells a new recording where THREAD, which no tick will observe, is blocked. */
static void rest_again(struct recorder *recorder, struct recorded_thread *thread)
{
    const struct engine_thread rest = thread->rest;
    recorder_read_blocked(recorder, thread, &rest);
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
    recorder_begin_listing(recorder, process);
    recorded_process_restart(process, &recorder->options, &recorder->files, engine_number(recorder));
    recorder_show_code(recorder, process);
    for (size_t i = 0; i < process->threads.count && !process->has_ended; i++) {
        struct recorded_thread *thread = process->threads.items[i];
        if (thread->is_resting) rest_again(recorder, thread);
    }
}

/* Begins a new recording for the program that PROCESS executes. What it ran in the open tick before that has its time
 * in the old one, without a stack of its own. */
static void execute(struct recorder *recorder, struct recorded_process *process)
{
    recorder_drop_stacks(recorder, process);
    process->code.has_unloaded = false;
    process->code.generated.count = 0;
    process->code.java = (struct java_code){0}; /* its file is evicted once nothing uses it */
    for (size_t i = 0; i < process->threads.count; i++) process->threads.items[i]->is_resting = false;
    restart_process(recorder, process);
}

static void take_change(void *context, pid_t pid, pid_t parent, enum process_change change)
{
    struct recorder *recorder = context;
    struct engine_denial denial;
    struct recorded_process *process = recorder_find_process(recorder, pid);
    uint64_t observe_ns = recorder->observe_ns;
    bool is_scarce = recorder->budget.is_exceeded || recorder->memory_budget.is_exceeded;
    bool is_followed = change == PROCESS_FORKED && recorder->options.follows_children && !is_scarce;
    const struct recorded_process *copied = is_followed && !process ? recorder_process_with(recorder, parent) : NULL;
    bool is_added = copied && recorder_add(recorder, pid, &denial); /* fails if the child has ended */
    if (copied && !is_added) gone_children_add(&recorder->gone, pid, copied->watched.pid);
    if (is_added) recorder_find_process(recorder, pid)->is_observed = true;
    if (is_added) recorder->observe_ns = observe_ns;
    if (process && change == PROCESS_MAPPED) recorder_list_code(recorder, process);
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
    if (recorder_find_process(recorder, pid) || !task_read_status(pid, &status) || status.state == 'Z') return true;
    bool follows = options->follows_children && !options->chooses_programs && pid != getpid();
    bool is_child = follows && recorder_find_process(recorder, status.parent);
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
    return least_ns + recorder_random_below(recorder, recorder->options.recording_ns - least_ns + 1);
}

/* Chooses the time of the next tick: at random in its slot, so that nothing periodic in the program keeps step. */
static void choose_next(struct recorder *recorder, uint64_t now_ns)
{
    recorder->slot_ns += recorder->period_ns;
    if (recorder->slot_ns + recorder->period_ns < now_ns) recorder->slot_ns = now_ns; /* ticks were missed */
    recorder->next_ns = recorder->slot_ns + recorder_random_below(recorder, recorder->period_ns);
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
        if (code->java.file) code->java.file->used_ns = now_ns;
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

void recorder_tick(struct recorder *recorder)
{
    const struct engine_sink sink = {.context = recorder,
                                     .stack = recorder_take_stack,
                                     .thread = recorder_take_thread,
                                     .wait = recorder_take_wait,
                                     .process = take_change};
    uint64_t now_ns = clock_monotonic_ns();
    follow(recorder, now_ns);
    recorder->options.engine->poll(recorder->engine, &sink);
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct recorded_process *process = recorder->processes.items[i];
        recorded_process_begin_tick(process, now_ns);
        if (recorded_process_is_due(process, now_ns)) recorder_list_code(recorder, process);
        interpreted_process_refresh(process);
    }
    recorder_observe(recorder, &sink, now_ns);
    recorder_write_stacks(recorder);
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
        recorder_show_code(recorder, process);
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
    ret_losses->outdated += recorder->outdated_stacks;
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static bool watch(struct recorder *recorder, struct recorded_process *process, struct engine_denial *ret_denial)
{
    recorder_show_code(recorder, process);
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
    if (recorder_find_process(recorder, pid)) return true;
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
        recorder_note_process(recorder, process);
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
                                           .follows_children = recorder->options.follows_children};
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
