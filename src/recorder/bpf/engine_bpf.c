/* The engine over the BPF programs. The modules of a process are in the kernel as a range of entries, written to a new
 * place for each change. A process is identified by its first sample: until then, and for code whose table is not
 * loaded, samples have registers and a piece of the stack.  SPDX-License-Identifier: MIT */
#include "recorder/engine.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/unsigned.h"
#include "recorder/bpf/bpf_programs.h"
#include "recorder/bpf/entry_places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENDS_MAX = 1 << 16, BUCKETS = 1 << 12 };

/* A process in the kernel. */
struct bpf_process {
    struct watched_process *watched;
    struct bpf_process *next;       /* next process of the same bucket */
    struct bpf_process_entry entry; /* entry in the kernel */
    bool is_identified;
    uint32_t mapping_count; /* number of mappings before its modules were listed */
    int iterator;           /* iterator over its threads; -1: that of all processes is used */
};

struct engine {
    struct engine_options options;
    struct bpf_programs *programs;
    struct entry_places places;
    ARRAY_OF(struct bpf_process *) processes;
    struct bpf_process *by_pid[BUCKETS];
    uint32_t last_version;
    bool is_loaded[BPF_TABLES_MAX];             /* true for the numbers of files whose tables are in the kernel */
    const struct engine_sink *sink;             /* sink of the current call */
    const struct bpf_change *forked;            /* change that is being delivered; NULL: none */
    ARRAY_OF(struct bpf_change) ends;           /* threads that have ended since the last tick */
    int iterator;                               /* iterator over all threads; -1: each process has its own */
    ARRAY_OF(struct bpf_functions *) functions; /* functions whose samples are awaited */
    uint64_t outdated_count, ends_lost;
};

static const char grant_command[] =
    "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore=ep $(command -v "
    "offbeat)";

static void deny(struct engine_denial *ret_denial, int error, const char *reason)
{
    bool is_right = error == EPERM || error == EACCES, is_root = geteuid() == 0;
    const char *missing = is_root
                              ? "CAP_BPF and CAP_PERFMON are missing in this container, or the kernel is locked down"
                              : "the capabilities CAP_BPF and CAP_PERFMON are missing";
    const char *remedy = is_root ? "docker run --cap-add BPF --cap-add PERFMON …" : grant_command;
    *ret_denial = (struct engine_denial){.reason = ""};
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "%s", is_right ? missing : reason);
    if (is_right) (void)snprintf(ret_denial->remedy, sizeof(ret_denial->remedy), "%s", remedy);
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

static void free_process(struct bpf_process *process)
{
    if (process->iterator >= 0) (void)close(process->iterator);
    free(process);
}

static void close_engine(struct engine *engine)
{
    if (!engine) return;
    bpf_programs_unload(engine->programs);
    for (size_t i = 0; i < engine->processes.count; i++) free_process(engine->processes.items[i]);
    free(engine->processes.items);
    free(engine->ends.items);
    for (size_t i = 0; i < engine->functions.count; i++) free(engine->functions.items[i]);
    free(engine->functions.items);
    if (engine->iterator >= 0) (void)close(engine->iterator);
    entry_places_fini(&engine->places);
    free(engine);
}

static void explain_iterator(char *problem)
{
    (void)snprintf(problem, BPF_PROBLEM_SIZE, "no iterator over the threads: %s", strerror(errno));
}

/* Opens the iterator over all threads, or tries one over those of this process. */
static bool open_iterator(struct engine *engine, char *problem)
{
    uint32_t pid = engine->options.watches_all ? 0 : (uint32_t)getpid();
    int iterator = bpf_programs_open_iterator(engine->programs, pid);
    if (iterator < 0) explain_iterator(problem);
    if (engine->options.watches_all)
        engine->iterator = iterator;
    else if (iterator >= 0)
        (void)close(iterator);
    return iterator >= 0;
}

static struct engine *open_engine(const struct engine_options *options, struct engine_denial *ret_denial)
{
    char problem[BPF_PROBLEM_SIZE] = "";
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine) abort();
    engine->options = *options;
    engine->iterator = -1;
    const struct bpf_program_options program_options = {.period_ns = options->period_ns,
                                                        .follows_children = options->follows_children,
                                                        .takes_kernel_stacks = options->takes_kernel_stacks,
                                                        .records_waits = options->records_waits,
                                                        .wait_ns_min = options->wait_ns_min};
    engine->programs = bpf_programs_load(&program_options, problem);
    if (engine->programs && open_iterator(engine, problem) && bpf_programs_start(engine->programs, problem))
        return engine;
    deny(ret_denial, errno, problem);
    close_engine(engine);
    return NULL;
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static struct bpf_process *find_process(const struct engine *engine, uint32_t pid)
{
    struct bpf_process *process = engine->by_pid[pid % BUCKETS];
    while (process && (uint32_t)process->watched->pid != pid) process = process->next;
    return process;
}

static void forget_process(struct engine *engine, const struct bpf_process *process)
{
    struct bpf_process **at = &engine->by_pid[(uint32_t)process->watched->pid % BUCKETS];
    while (*at != process) at = &(*at)->next;
    *at = process->next;
}

/* Returns the number of FILE's table in the kernel, which may come later. */
static uint32_t table_of(struct engine *engine, const struct code_file *file)
{
    if (file->number >= BPF_TABLES_MAX) return BPF_TABLE_NONE;
    if (file->state == CODE_FILE_HAS_TABLE && !engine->is_loaded[file->number])
        engine->is_loaded[file->number] = bpf_programs_load_table(engine->programs, file->number, &file->table);
    return file->number;
}

/* Returns the entry for MODULE or, if that is not NULL, for GENERATED. */
static struct bpf_module_entry entry_of(struct engine *engine, const struct process_module *module,
                                        const struct generated_code *generated)
{
    if (generated)
        return (struct bpf_module_entry){
            .start = generated->start, .end = generated->end, .table = BPF_TABLE_NONE, .code = BPF_CODE_FRAME_POINTERS};
    bool has_none = module->file->state == CODE_FILE_WITHOUT_TABLE;
    enum bpf_code without = module->file->keeps_frame_pointers ? BPF_CODE_FRAME_POINTERS : BPF_CODE_UNKNOWN;
    return (struct bpf_module_entry){.start = module->start,
                                     .end = module->end,
                                     .base = module->base,
                                     .table = table_of(engine, module->file),
                                     .code = has_none ? without : BPF_CODE_TABLE};
}

/* Entries that are being made, up to BPF_PROCESS_MODULES_MAX. */
struct entry_list {
    struct bpf_module_entry *items;
    uint32_t count, version;
};

static void add_entry(struct entry_list *list, struct bpf_module_entry entry)
{
    if (list->count == BPF_PROCESS_MODULES_MAX || entry.start >= entry.end) return;
    entry.version = list->version;
    list->items[list->count++] = entry;
}

/* Adds WHOLE, an entry for MODULE, in pieces if there are landmarks in it. */
static void add_pieces(struct entry_list *list, const struct process_module *module, struct bpf_module_entry whole)
{
    const struct code_file *file = module->file;
    struct bpf_module_entry rest = whole;
    for (size_t i = 0; i < file->landmark_count; i++) {
        const struct code_landmark *landmark = &file->landmarks[i];
        struct bpf_module_entry before = rest, piece = rest;
        piece.start = module->base + landmark->start;
        piece.end = module->base + landmark->end;
        if (piece.start < rest.start || piece.end > rest.end) continue;
        piece.code = landmark->is_root ? BPF_CODE_ROOT : BPF_CODE_STACK_SWITCH;
        before.end = piece.start;
        rest.start = piece.end;
        add_entry(list, before);
        add_entry(list, piece);
    }
    add_entry(list, rest);
}

/* Fills ENTRIES, room for BPF_PROCESS_MODULES_MAX, with the modules and the generated code of WATCHED, sorted. Returns
 * the number. */
static uint32_t make_entries(struct engine *engine, const struct watched_process *watched,
                             struct bpf_module_entry *entries)
{
    struct entry_list list = {.items = entries, .version = engine->last_version};
    size_t module = 0, generated = 0;
    while (module < watched->module_count || generated < watched->generated_count) {
        const struct process_module *next = module < watched->module_count ? &watched->modules[module] : NULL;
        const struct generated_code *other =
            generated < watched->generated_count ? &watched->generated[generated] : NULL;
        bool is_generated = !next || (other && other->start < next->start);
        struct bpf_module_entry entry = entry_of(engine, next, is_generated ? other : NULL);
        if (is_generated)
            add_entry(&list, entry);
        else
            add_pieces(&list, next, entry);
        module += !is_generated;
        generated += is_generated;
    }
    return list.count;
}

/* Writes the code of PROCESS to a new place, and frees the old one. */
static bool write_modules(struct engine *engine, struct bpf_process *process)
{
    struct bpf_module_entry *entries = calloc(BPF_PROCESS_MODULES_MAX, sizeof(*entries));
    if (!entries) abort();
    engine->last_version++;
    struct bpf_process_entry old = process->entry;
    uint32_t first = 0, count = make_entries(engine, process->watched, entries);
    bool has_place = entry_places_take(&engine->places, count, clock_monotonic_ns(), &first);
    entries[0].version = engine->last_version; /* is compared even if there is no code */
    if (has_place) bpf_programs_write_modules(engine->programs, first, entries, count > 0 ? count : 1);
    free(entries);
    process->entry.is_being_listed = 0;
    if (has_place) {
        process->entry.first = first;
        process->entry.count = count;
        process->entry.version = engine->last_version;
        process->entry.mapping_count = process->mapping_count;
    }
    uint32_t pid = (uint32_t)process->watched->pid;
    if (process->is_identified) (void)bpf_programs_set_process(engine->programs, pid, &process->entry);
    if (has_place && old.version != 0)
        entry_places_release(&engine->places, old.first, old.count, clock_monotonic_ns());
    return has_place;
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
    forget_process(engine, process);
    free_process(process);
    watched->engine_data = NULL;
}

/* Takes over what the kernel knows of a child, whose module entries are those of its parent. */
static void identify_child(const struct engine *engine, struct bpf_process *process)
{
    const struct bpf_change *forked = engine->forked;
    if (!forked || forked->pid != (uint32_t)process->watched->pid) return;
    process->entry.start_boottime = forked->start_boottime;
    process->entry.self_exec_id = forked->self_exec_id;
    process->is_identified = true;
}

static bool start_observing(struct engine *engine, struct bpf_process *process, char *problem)
{
    uint32_t pid = (uint32_t)process->watched->pid;
    process->iterator = engine->iterator >= 0 ? -1 : bpf_programs_open_iterator(engine->programs, pid);
    if (process->iterator >= 0 || engine->iterator >= 0) return true;
    explain_iterator(problem);
    return false;
}

static bool add_process(struct engine *engine, struct watched_process *watched, struct engine_denial *ret_denial)
{
    char problem[BPF_PROBLEM_SIZE] = "the kernel has no room for more processes";
    struct bpf_process *process = calloc(1, sizeof(*process));
    if (!process || !ARRAY_PUSH(&engine->processes, BPF_PROCESSES_MAX, process)) abort();
    process->watched = watched;
    process->iterator = -1;
    process->next = engine->by_pid[(uint32_t)watched->pid % BUCKETS];
    engine->by_pid[(uint32_t)watched->pid % BUCKETS] = process;
    watched->engine_data = process;
    identify_child(engine, process);
    struct bpf_process_entry unidentified = {.version = 0};
    bool is_added =
        write_modules(engine, process) &&
        (process->is_identified || bpf_programs_set_process(engine->programs, (uint32_t)watched->pid, &unidentified)) &&
        start_observing(engine, process, problem);
    if (is_added) return true;
    deny(ret_denial, errno, problem);
    remove_process(engine, watched);
    return false;
}

/* Mappings from now on make the list outdated that is going to be made, and samples before those so far. */
static void begin_listing(struct engine *engine, struct watched_process *watched)
{
    struct bpf_process *process = watched->engine_data;
    uint32_t pid = (uint32_t)watched->pid;
    process->entry.is_being_listed = 1;
    if (process->is_identified) (void)bpf_programs_set_process(engine->programs, pid, &process->entry);
    process->mapping_count = bpf_programs_mapping_count(engine->programs, pid);
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

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static void watch_functions(struct engine *engine, pid_t tid, uint64_t state, const struct interpreter_chain *chain)
{
    struct bpf_interpreted_thread thread = {.state = state};
    if (state != 0) thread.chain = *chain;
    (void)bpf_programs_set_interpreted(engine->programs, (uint32_t)tid, state ? &thread : NULL);
}

/* Keeps FUNCTIONS for their sample, which a processor sends right after them. Older ones have lost theirs. */
static void take_functions(void *context, const struct bpf_functions *functions, size_t size)
{
    enum { PROCESSORS_MAX = 1 << 13 };
    struct engine *engine = context;
    struct bpf_functions *kept = NULL;
    for (size_t i = 0; i < engine->functions.count && !kept; i++) {
        struct bpf_functions *before = engine->functions.items[i];
        bool is_outdated = before->time_ns + SECOND_NS < functions->time_ns;
        if (before->tid == 0 || before->tid == functions->tid || is_outdated) kept = before;
    }
    if (!kept && engine->functions.count == PROCESSORS_MAX) return;
    if (!kept) {
        kept = malloc(sizeof(*kept));
        if (!kept || !ARRAY_PUSH(&engine->functions, PROCESSORS_MAX, kept)) abort();
    }
    memcpy(kept, functions, size);
}

/* Returns the functions that belong to SAMPLE; NULL: there are none. */
static struct bpf_functions *functions_of(const struct engine *engine, const struct bpf_sample *sample)
{
    for (size_t i = 0; i < engine->functions.count; i++) {
        struct bpf_functions *functions = engine->functions.items[i];
        if (functions->tid != sample->tid) continue;
        if (functions->time_ns == sample->time_ns) return functions;
        functions->tid = 0; /* its sample was lost */
    }
    return NULL;
}

/* A copied part of the memory of a process. */
struct copied_part {
    uint64_t address;
    const uint8_t *bytes;
    size_t size;
};

/* Returns the copied part that has ADDRESS; size 0: there is none. */
static struct copied_part find_copied(const struct bpf_functions *functions, uint64_t address)
{
    const struct interpreter_chain *chain = &functions->chain;
    const struct copied_part state = {functions->state, functions->state_bytes, chain->state_size};
    if (address - state.address < state.size) return state;
    for (uint32_t i = 0; i < functions->count; i++) {
        const struct bpf_function *function = &functions->functions[i];
        const struct copied_part parts[] = {
            {function->frame, function->frame_bytes, chain->frame_size},
            {function->code, function->code_bytes, chain->code_size},
            {function->name, function->name_bytes, chain->name_size},
            {function->record, function->record_bytes, chain->record_size},
            {function->text, function->text_bytes, chain->text_size},
            {function->environment, function->environment_bytes, BPF_ENVIRONMENT_BYTES},
            {function->file, function->file_bytes, BPF_FILE_BYTES},
            {function->file_end, function->file_end_bytes, BPF_FILE_END_BYTES},
        };
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            if (parts[j].address != 0 && address - parts[j].address < parts[j].size) return parts[j];
        }
    }
    return (struct copied_part){0};
}

/* Reads the copy that the kernel has sent as if it were the memory of the process. */
static bool gather_copied(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    for (size_t i = 0; i < pieces->count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)pieces->to[i].address;
        for (size_t done = 0; done < pieces->from[i].size;) { /* frames of an array are parts of their own */
            uint64_t address = pieces->from[i].address + done;
            const struct copied_part part = find_copied(memory->context, address);
            size_t skipped = (size_t)(address - part.address);
            if (part.size == 0) return false;
            size_t size = (size_t)least(part.size - skipped, pieces->from[i].size - done);
            memcpy(to + done, part.bytes + skipped, size);
            done += size;
        }
    }
    return true;
}

static void deliver_stack(struct engine *engine, const struct bpf_sample *sample, struct engine_stack *stack)
{
    struct bpf_functions *functions = functions_of(engine, sample);
    const struct process_memory memory = {
        .gather = gather_copied, .context = functions, .is_part = functions && functions->count == BPF_FUNCTIONS_MAX};
    if (functions) {
        stack->functions = &memory;
        stack->stack_pointers = functions->stack_pointers;
    }
    engine->sink->stack(engine->sink->context, stack);
    if (functions) functions->tid = 0;
}

static void deliver(void *context, const struct bpf_sample *sample, const uint64_t *words)
{
    struct engine *engine = context;
    struct bpf_process *process = find_process(engine, sample->pid);
    bool is_walked = sample->is_known && sample->outcome != UNWIND_PENDING;
    if (!process && !is_walked) return; /* there is no memory that could be read */
    if (process && !sample->is_known && !identify(engine, process, sample)) return;
    if (process && process->watched->has_unloaded && sample->mapping_count != process->mapping_count) {
        engine->outdated_count++; /* the list has other code than the sample saw, or the other way round */
        return;
    }
    struct engine_stack stack = {.pid = (pid_t)sample->pid,
                                 .tid = (pid_t)sample->tid,
                                 .time_ns = sample->time_ns,
                                 .outcome = (enum unwind_outcome)sample->outcome,
                                 .begins_wait = sample->record == BPF_WAIT_BEGAN,
                                 .kernel_count = sample->kernel_count};
    if (sample->outcome == UNWIND_PENDING) {
        const uint64_t *registers = words + BPF_KERNEL_FRAMES_MAX;
        memcpy(stack.registers.values, registers, sizeof(stack.registers.values));
        stack.registers.known = MACHINE_ALL_KNOWN;
        stack.copy = (struct copied_stack){
            .start = registers[MACHINE_SP], .words = registers + BPF_REGISTERS, .size = sample->copy_size};
        stack.kernel_addresses = words;
    } else {
        stack.addresses = words;
        stack.count = sample->count;
        stack.kernel_addresses = words + sample->count;
    }
    deliver_stack(engine, sample, &stack);
}

static void deliver_wait(void *context, const struct bpf_wait *wait)
{
    const struct engine *engine = context;
    const struct engine_wait delivered = {.pid = (pid_t)wait->pid,
                                          .tid = (pid_t)wait->tid,
                                          .reason = (enum recording_wait)wait->reason,
                                          .began_ns = wait->began_ns,
                                          .ended_ns = wait->ended_ns,
                                          .woken_ns = wait->woken_ns,
                                          .one_in = wait->one_in,
                                          .waker_pid = (pid_t)wait->waker_pid,
                                          .waker_tid = (pid_t)wait->waker_tid,
                                          .waker = wait->waker};
    engine->sink->wait(engine->sink->context, &delivered);
}

/* An exec leaves the process without modules until it is identified again. */
static void forget_identity(struct engine *engine, const struct bpf_change *change)
{
    struct bpf_process *process = find_process(engine, change->pid);
    struct bpf_process_entry unidentified = {.version = 0};
    if (!process) return;
    process->is_identified = false;
    process->mapping_count = bpf_programs_mapping_count(engine->programs, change->pid);
    bpf_programs_set_process(engine->programs, change->pid, &unidentified);
}

/* Has the modules of PROCESS listed again, until there was no mapping meanwhile. */
static void list_mappings(const struct engine *engine, const struct bpf_process *process)
{
    enum { LISTINGS_MAX = 4 };
    pid_t pid = process->watched->pid;
    for (unsigned i = 0; i < LISTINGS_MAX; i++) {
        if (bpf_programs_mapping_count(engine->programs, (uint32_t)pid) == process->mapping_count) return;
        engine->sink->process(engine->sink->context, pid, 0, PROCESS_MAPPED);
    }
}

/* Takes CHANGE, a mapping, unless the modules were listed after it. */
static void take_mapping(const struct engine *engine, const struct bpf_change *change)
{
    const struct bpf_process *process = find_process(engine, change->pid);
    if (process && change->mapping_count > process->mapping_count) list_mappings(engine, process);
}

static void take_change(void *context, const struct bpf_change *change)
{
    struct engine *engine = context;
    const struct engine_sink *sink = engine->sink;
    pid_t pid = (pid_t)change->pid;
    switch ((enum bpf_record)change->record) {
    case BPF_FORKED:
        engine->forked = change;
        sink->process(sink->context, pid, (pid_t)change->parent, PROCESS_FORKED);
        engine->forked = NULL;
        /* The entries of its parent may outlive the tables that they lead to. */
        if (!find_process(engine, change->pid)) bpf_programs_remove_process(engine->programs, change->pid);
        break;
    case BPF_EXECUTED:
        forget_identity(engine, change);
        sink->process(sink->context, pid, 0, PROCESS_EXECUTED);
        break;
    case BPF_MAPPED:
        take_mapping(engine, change);
        break;
    case BPF_ENDED:
        if (!ARRAY_PUSH(&engine->ends, ENDS_MAX, *change)) engine->ends_lost++;
        break;
    case BPF_SAMPLE:
    case BPF_FUNCTIONS:
    case BPF_WAIT_BEGAN:
    case BPF_WAITED:
        break;
    }
}

static void poll_records(struct engine *engine, const struct engine_sink *sink)
{
    const struct bpf_receiver receiver = {
        .context = engine, .sample = deliver, .wait = deliver_wait, .change = take_change, .functions = take_functions};
    engine->sink = sink;
    bpf_programs_read(engine->programs, &receiver);
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

/* Returns the state for bits of the kernel's __state: newer kernels add bits to known states. */
static enum thread_state state_of(const struct bpf_thread *thread)
{
    enum { INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, STOPPED = 4, TRACED = 8, FROZEN = 0x8000 };
    if (thread->is_on_cpu || thread->state == 0) return THREAD_RUNNING;
    if (thread->state & (STOPPED | TRACED | FROZEN)) return THREAD_STOPPED;
    return thread->state & (INTERRUPTIBLE | UNINTERRUPTIBLE) ? THREAD_BLOCKED : THREAD_RUNNING;
}

static struct engine_other_waits other_waits(const struct bpf_wait_sums *sums)
{
    return (struct engine_other_waits){.short_ns = sums->short_ns,
                                       .left_out_ns = sums->left_out_ns,
                                       .short_count = sums->short_count,
                                       .left_out_count = sums->left_out_count};
}

static void deliver_thread(void *context, const struct bpf_thread *thread)
{
    struct engine *engine = context;
    struct engine_thread seen = {.pid = (pid_t)thread->pid,
                                 .tid = (pid_t)thread->tid,
                                 .time_ns = clock_monotonic_ns(),
                                 .cpu_ns = thread->cpu_ns,
                                 .run_delay_ns = thread->run_delay_ns,
                                 .state = state_of(thread),
                                 .wait_began_ns = thread->wait_began_ns,
                                 .wait_reason = (enum recording_wait)thread->wait_reason,
                                 .other_waits = other_waits(&thread->waits)};
    bool needs_stack = !engine->options.records_waits || thread->needs_stack;
    seen.has_registers = seen.has_all_registers = seen.state == THREAD_BLOCKED && needs_stack;
    memcpy(seen.registers.values, thread->registers, sizeof(thread->registers));
    seen.registers.known = MACHINE_KEPT_IN_CALL;
    memcpy(seen.name, thread->name, sizeof(seen.name));
    const struct bpf_process *process = seen.has_registers ? find_process(engine, thread->pid) : NULL;
    if (process && process->watched->has_unloaded) list_mappings(engine, process);
    engine->sink->thread(engine->sink->context, &seen);
}

static void deliver_end(const struct engine *engine, const struct bpf_change *change)
{
    const struct engine_sink *sink = engine->sink;
    struct engine_thread seen = {.pid = (pid_t)change->pid,
                                 .tid = (pid_t)change->tid,
                                 .time_ns = change->time_ns,
                                 .cpu_ns = change->cpu_ns,
                                 .run_delay_ns = change->run_delay_ns,
                                 .state = THREAD_RUNNING,
                                 .other_waits = other_waits(&change->waits)};
    sink->thread(sink->context, &seen);
    seen.state = THREAD_ENDED;
    sink->thread(sink->context, &seen);
    if (change->is_last) sink->process(sink->context, seen.pid, 0, PROCESS_ENDED);
}

static void deliver_ends(struct engine *engine, const struct engine_sink *sink)
{
    engine->sink = sink;
    for (size_t i = 0; i < engine->ends.count; i++) deliver_end(engine, &engine->ends.items[i]);
    engine->ends.count = 0;
}

static void observe(struct engine *engine, const struct engine_sink *sink)
{
    engine->sink = sink;
    if (engine->iterator >= 0) (void)bpf_programs_iterate(engine->iterator, deliver_thread, engine);
    for (size_t i = 0; i < engine->processes.count; i++) {
        int iterator = engine->processes.items[i]->iterator;
        if (iterator >= 0) (void)bpf_programs_iterate(iterator, deliver_thread, engine);
    }
    deliver_ends(engine, sink);
}

static void count_losses(const struct engine *engine, struct engine_losses *ret_losses)
{
    struct bpf_losses losses;
    bpf_programs_losses(engine->programs, &losses);
    *ret_losses = (struct engine_losses){.stacks_lost = losses.samples_lost + engine->ends_lost,
                                         .outdated = engine->outdated_count,
                                         .runs_missed = losses.runs_missed};
}

/* A timer is for all processes. */
static void set_period(struct engine *engine, struct watched_process *watched, uint64_t period_ns)
{
    if (watched) return;
    engine->options.period_ns = period_ns;
    bpf_programs_set_period(engine->programs, period_ns);
}

static void forget_file(struct engine *engine, const struct code_file *file)
{
    if (file->number >= BPF_TABLES_MAX || !engine->is_loaded[file->number]) return;
    bpf_programs_unload_table(engine->programs, file->number);
    engine->is_loaded[file->number] = false;
}

static uint64_t kernel_bytes(const struct engine *engine)
{
    return bpf_programs_kernel_bytes(engine->programs);
}

const struct engine_ops engine_bpf = {
    .name = "bpf",
    .sees_running = true,
    .sees_threads = true,
    .sees_waits = true,
    .sees_changes = true,
    .probe = probe,
    .open = open_engine,
    .close = close_engine,
    .set_period = set_period,
    .add_process = add_process,
    .begin_listing = begin_listing,
    .update_process = update_process,
    .remove_process = remove_process,
    .watch_functions = watch_functions,
    .poll = poll_records,
    .observe = observe,
    .observe_ends = deliver_ends,
    .losses = count_losses,
    .forget_file = forget_file,
    .kernel_bytes = kernel_bytes,
};
