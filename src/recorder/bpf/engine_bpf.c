/* The engine over the BPF programs. The modules of a process are in the kernel as a range of entries, written to a new
 * place for each change. A process is identified by its first sample: until then, and for code whose table is not
 * loaded, samples have registers and a piece of the stack.  SPDX-License-Identifier: MIT */
#include "recorder/engine.h"

#include "base/array.h"
#include "base/clocks.h"
#include "recorder/bpf/bpf_programs.h"
#include "recorder/bpf/entry_places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A process in the kernel. */
struct bpf_process {
    struct watched_process *watched;
    struct bpf_process_entry entry; /* entry in the kernel */
    bool is_identified;
};

struct engine {
    struct engine_options options;
    struct bpf_programs *programs;
    bool has_timer;
    struct entry_places places;
    ARRAY_OF(struct bpf_process *) processes;
    uint32_t last_version;
    bool is_loaded[BPF_TABLES_MAX]; /* true for the numbers of files whose tables are in the kernel */
    const struct engine_sink *sink; /* sink of the current poll */
    uint64_t unreadable_count;
};

static const char grant_command[] =
    "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore=ep $(command -v "
    "offbeat)";

static void deny(struct engine_denial *ret_denial, int error, const char *reason)
{
    bool is_right = error == EPERM || error == EACCES;
    *ret_denial = (struct engine_denial){.reason = ""};
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "%s",
                   is_right ? "the capabilities CAP_BPF and CAP_PERFMON are missing" : reason);
    if (is_right) (void)snprintf(ret_denial->remedy, sizeof(ret_denial->remedy), "%s", grant_command);
}

static bool probe(struct engine_denial *ret_denial)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        deny(ret_denial, errno == EACCES ? 0 : errno, "the kernel has no type information (/sys/kernel/btf/vmlinux)");
        return false;
    }
    char problem[BPF_PROBLEM_SIZE];
    if (bpf_programs_may_load(problem)) return true;
    deny(ret_denial, errno, problem);
    return false;
}

static void close_engine(struct engine *engine)
{
    if (!engine) return;
    bpf_programs_unload(engine->programs);
    for (size_t i = 0; i < engine->processes.count; i++) free(engine->processes.items[i]);
    free(engine->processes.items);
    entry_places_fini(&engine->places);
    free(engine);
}

static struct engine *open_engine(const struct engine_options *options, struct engine_denial *ret_denial)
{
    char problem[BPF_PROBLEM_SIZE] = "";
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine) abort();
    engine->options = *options;
    engine->programs = bpf_programs_load(problem);
    if (engine->programs) return engine;
    deny(ret_denial, errno, problem);
    close_engine(engine);
    return NULL;
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static struct bpf_process *find_process(const struct engine *engine, uint32_t pid)
{
    for (size_t i = 0; i < engine->processes.count; i++) {
        if ((uint32_t)engine->processes.items[i]->watched->pid == pid) return engine->processes.items[i];
    }
    return NULL;
}

/* Returns the number of FILE's table in the kernel, which may come later. */
static uint32_t table_of(struct engine *engine, const struct code_file *file)
{
    if (file->number >= BPF_TABLES_MAX) return BPF_TABLE_NONE;
    if (file->state == CODE_FILE_HAS_TABLE && !engine->is_loaded[file->number])
        engine->is_loaded[file->number] = bpf_programs_load_table(engine->programs, file->number, &file->table);
    return file->number;
}

/* Writes the modules of PROCESS to a new place, and frees the old one. */
static bool write_modules(struct engine *engine, struct bpf_process *process)
{
    const struct watched_process *watched = process->watched;
    uint32_t count = watched->module_count < BPF_PROCESS_MODULES_MAX ? (uint32_t)watched->module_count
                                                                     : (uint32_t)BPF_PROCESS_MODULES_MAX;
    struct bpf_module_entry *entries = calloc(count > 0 ? count : 1, sizeof(*entries));
    if (!entries) abort();
    uint32_t version = ++engine->last_version;
    for (uint32_t i = 0; i < count; i++) {
        const struct process_module *module = &watched->modules[i];
        bool has_none = module->file->state == CODE_FILE_WITHOUT_TABLE;
        entries[i] = (struct bpf_module_entry){.start = module->start,
                                               .end = module->end,
                                               .base = module->base,
                                               .table = table_of(engine, module->file),
                                               .code = has_none ? BPF_CODE_UNKNOWN : BPF_CODE_TABLE,
                                               .version = version};
    }
    struct bpf_process_entry old = process->entry;
    uint32_t first = 0;
    bool has_place = entry_places_take(&engine->places, count, clock_monotonic_ns(), &first);
    if (has_place) bpf_programs_write_modules(engine->programs, first, entries, count);
    free(entries);
    if (!has_place) return false;
    process->entry.first = first;
    process->entry.count = count;
    process->entry.version = version;
    if (process->is_identified) bpf_programs_set_process(engine->programs, (uint32_t)watched->pid, &process->entry);
    if (old.version != 0) entry_places_release(&engine->places, old.first, old.count, clock_monotonic_ns());
    return true;
}

static void remove_process(struct engine *engine, struct watched_process *watched)
{
    struct bpf_process *process = watched->engine_data;
    if (!process) return;
    bpf_programs_remove_process(engine->programs, (uint32_t)watched->pid);
    if (process->entry.version != 0)
        entry_places_release(&engine->places, process->entry.first, process->entry.count, clock_monotonic_ns());
    for (size_t i = 0; i < engine->processes.count; i++) {
        if (engine->processes.items[i] != process) continue;
        engine->processes.items[i] = engine->processes.items[--engine->processes.count];
        break;
    }
    free(process);
    watched->engine_data = NULL;
}

static bool add_process(struct engine *engine, struct watched_process *watched, struct engine_denial *ret_denial)
{
    char problem[BPF_PROBLEM_SIZE] = "the kernel has no room for more processes";
    struct bpf_process *process = calloc(1, sizeof(*process));
    if (!process || !ARRAY_PUSH(&engine->processes, BPF_PROCESSES_MAX, process)) abort();
    process->watched = watched;
    watched->engine_data = process;
    struct bpf_process_entry unidentified = {.version = 0};
    bool is_added = write_modules(engine, process) &&
                    bpf_programs_set_process(engine->programs, (uint32_t)watched->pid, &unidentified);
    if (is_added && !engine->has_timer) {
        engine->has_timer = bpf_programs_start_timer(engine->programs, engine->options.period_ns, problem);
        is_added = engine->has_timer;
    }
    if (is_added) return true;
    deny(ret_denial, errno, problem);
    remove_process(engine, watched);
    return false;
}

static void update_process(struct engine *engine, struct watched_process *watched)
{
    (void)write_modules(engine, watched->engine_data); /* without room, samples of new code have copies */
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

/* Takes over the identity in SAMPLE. Returns false if the process has ended and SAMPLE is of another one with its
 * number. */
static bool identify(struct engine *engine, struct bpf_process *process, const struct bpf_sample *sample)
{
    const struct engine_sink *sink = engine->sink;
    struct bpf_process_entry *entry = &process->entry;
    struct watched_process *watched = process->watched;
    pid_t pid = watched->pid;
    uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    if (sample->start_boottime / tick_ns != watched->start_ticks) {
        sink->process(sink->context, pid, 0, PROCESS_ENDED);
        return false;
    }
    bool is_same = process->is_identified && entry->start_boottime == sample->start_boottime &&
                   entry->self_exec_id == sample->self_exec_id;
    if (is_same) return true;
    bool is_first = !process->is_identified;
    entry->start_boottime = sample->start_boottime;
    entry->self_exec_id = sample->self_exec_id;
    process->is_identified = true;
    bpf_programs_set_process(engine->programs, (uint32_t)pid, entry);
    sink->process(sink->context, pid, 0, is_first ? PROCESS_MAPPED : PROCESS_EXECUTED);
    return true;
}

static void deliver(void *context, const struct bpf_sample *sample, const uint64_t *words)
{
    struct engine *engine = context;
    struct bpf_process *process = find_process(engine, sample->pid);
    if (!process || (!sample->is_known && !identify(engine, process, sample))) return;
    struct engine_stack stack = {.pid = (pid_t)sample->pid,
                                 .tid = (pid_t)sample->tid,
                                 .time_ns = sample->time_ns,
                                 .outcome = (enum unwind_outcome)sample->outcome};
    if (sample->outcome == UNWIND_PENDING) {
        memcpy(stack.registers.values, words, sizeof(stack.registers.values));
        stack.registers.known = MACHINE_ALL_KNOWN;
        stack.copy = (struct copied_stack){
            .start = words[MACHINE_SP], .words = words + BPF_REGISTERS, .size = sample->copy_size};
    } else {
        stack.addresses = words;
        stack.count = sample->count;
    }
    if (stack.outcome == UNWIND_BAD_MEMORY) engine->unreadable_count++;
    engine->sink->stack(engine->sink->context, &stack);
}

static void poll_samples(struct engine *engine, const struct engine_sink *sink)
{
    engine->sink = sink;
    bpf_programs_read(engine->programs, deliver, engine);
}

static void count_losses(const struct engine *engine, struct engine_losses *ret_losses)
{
    struct bpf_losses losses;
    bpf_programs_losses(engine->programs, &losses);
    *ret_losses = (struct engine_losses){
        .stacks_lost = losses.samples_lost, .runs_missed = losses.runs_missed, .unreadable = engine->unreadable_count};
}

const struct engine_ops engine_bpf = {
    .name = "bpf",
    .sees_running = true,
    .probe = probe,
    .open = open_engine,
    .close = close_engine,
    .add_process = add_process,
    .update_process = update_process,
    .remove_process = remove_process,
    .poll = poll_samples,
    .losses = count_losses,
};
