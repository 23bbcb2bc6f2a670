/* SPDX-License-Identifier: MIT */
#include "recorder/recorded_process.h"

#include "base/clocks.h"
#include "base/hex.h"
#include "base/unsigned.h"
#include "recorder/recorder.h"
#include "recorder/rights.h"
#include "recorder/task_files.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    THREADS_MAX = 1 << 16,
    CHECK_NS = 1000000000,   /* time between two listings of code that nothing asks for */
    RELIST_NS_MIN = 5000000, /* least time between two listings that stacks ask for */
    USAGE_NS = 1000000000,
    FLUSH_BYTES = 256 << 10,
};

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

/* Sets the remedy for missing rights over process PID. */
static void advise_rights(struct engine_denial *denial, pid_t pid)
{
    if (rights_have(CAP_SYS_PTRACE))
        (void)snprintf(denial->remedy, sizeof(denial->remedy),
                       "see the rules of AppArmor or SELinux: CAP_SYS_PTRACE is not enough");
    else if (geteuid() == 0)
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "give this root user CAP_SYS_PTRACE");
    else
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "sudo offbeat record -p %d", (int)pid);
}

/* Says why process PID cannot be recorded, by errno. */
static void deny(struct engine_denial *denial, pid_t pid)
{
    int error = errno;
    bool is_denied = error == EACCES || error == EPERM, has_ended = error == ENOENT || error == ESRCH;
    if (is_denied)
        (void)snprintf(denial->reason, sizeof(denial->reason),
                       "process %d belongs to another user, or is protected: set-user-ID, or not dumpable", (int)pid);
    else if (has_ended)
        (void)snprintf(denial->reason, sizeof(denial->reason), "there is no process %d", (int)pid);
    else
        (void)snprintf(denial->reason, sizeof(denial->reason), "process %d cannot be read: %s", (int)pid,
                       strerror(error));
    if (is_denied) advise_rights(denial, pid);
}

static bool is_own(pid_t pid)
{
    char path[32];
    struct stat status;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &status) == 0 && status.st_uid == geteuid();
}

/* Says why the memory of process PID, whose list of mappings can be read, cannot be read. */
static void warn_of_blocked_threads(struct engine_denial *denial, pid_t pid)
{
    char text[256];
    if (task_read_text(pid, "syscall", text, sizeof(text)) > 0 || (errno != EACCES && errno != EPERM)) return;
    int scope = rights_kernel_setting("yama/ptrace_scope");
    if (is_own(pid)) {
        char cause[48] = "a security module denies it";
        if (scope > 0) (void)snprintf(cause, sizeof(cause), "kernel.yama.ptrace_scope is %d", scope);
        (void)snprintf(denial->reason, sizeof(denial->reason),
                       "process %d: the stacks of blocked threads cannot be read, because %s", (int)pid, cause);
        (void)snprintf(denial->remedy, sizeof(denial->remedy),
                       scope > 0 ? "sudo sysctl kernel.yama.ptrace_scope=0" : "see the rules of AppArmor or SELinux");
        return;
    }
    (void)snprintf(denial->reason, sizeof(denial->reason),
                   "process %d belongs to another user: its files and the stacks of its blocked threads cannot be read",
                   (int)pid);
    advise_rights(denial, pid);
}

static void read_executable(struct recorded_process *process)
{
    static const char deleted[] = " (deleted)";
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->watched.pid);
    ssize_t length = readlink(path, process->executable, sizeof(process->executable) - 1);
    process->executable[length > 0 ? length : 0] = '\0';
    size_t end = length > 0 ? (size_t)length : 0, suffix = sizeof(deleted) - 1;
    if (end > suffix && strcmp(process->executable + end - suffix, deleted) == 0)
        process->executable[end - suffix] = '\0';
}

static void write_label(const struct recorded_process *process, const char *key, const char *value)
{
    if (value[0]) recording_label(process->writer, key, value);
}

/* Writes where the process belongs; ids of containers are as long as tools print them. */
static void write_place(const struct recorded_process *process)
{
    struct process_place place = process->place;
    if (strlen(place.container) == PROCESS_PLACE_ID_SIZE) place.container[PROCESS_PLACE_ID_SHOWN] = '\0';
    write_label(process, "unit", place.unit);
    write_label(process, "container", place.container);
    write_label(process, "pod", place.pod);
}

static void write_service(const struct recorded_process *process, const struct recorder_options *options,
                          const char *program)
{
    char name[PROCESS_PLACE_NAME_SIZE] = "";
    if (!options->name_service) return;
    options->name_service(options->context, process->watched.pid, program, &process->place, name);
    write_label(process, "service", name);
}

/* Begins a recording, whose time begins at START_NS. */
static void write_start(struct recorded_process *process, const struct recorder_options *options,
                        const struct task_status *status, uint64_t start_ns)
{
    char path[4096];
    uint64_t now_ns = clock_monotonic_ns();
    const char *slash = strrchr(process->executable, '/');
    const char *program = slash && slash[1] ? slash + 1 : status->name;
    char name[PROCESS_PLACE_NAME_SIZE];
    options->name_process(process->watched.pid, program, name);
    (void)snprintf(path, sizeof(path), "%s/%d-%016llx.recording", options->directory, (int)process->watched.pid,
                   (unsigned long long)now_ns);
    recording_writer_init(process->writer, path, true);
    const struct recording_process record = {
        .pid = process->watched.pid,
        .parent_pid = status->parent,
        .mode = options->records_waits ? RECORDING_OFF_CPU
                : options->is_cpu_mode ? RECORDING_CPU
                                       : RECORDING_WALL,
        .period_ns = process->tick.period_ns,
        .wall_offset_ns = (int64_t)clock_utc_ns() - (int64_t)now_ns,
        .start_ns = start_ns,
        .profiler_id = process->profiler_id,
        .name = name,
        .path = process->executable,
    };
    recording_process(process->writer, &record);
    process_place_read(process->watched.pid, &process->place);
    write_place(process);
    write_service(process, options, program);
    process->tick.time_ns = process->tick.observed_ns = start_ns;
    process->usage_ns = now_ns;
}

/* Writes the CPU time since the recording began, and the memory. */
static void write_usage(struct recorded_process *process)
{
    char text[128];
    char *at = text;
    (void)process_cpu_ns(process->watched.pid, &process->cpu_ns); /* fails at the end of the process */
    uint64_t pages = 0;
    if (task_read_text(process->watched.pid, "statm", text, sizeof(text)) > 0) {
        (void)strtoull(at, &at, 10);
        pages = strtoull(at, NULL, 10);
    }
    recording_usage(process->writer, difference(process->cpu_ns, process->first_cpu_ns),
                    pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Writes the kernel as a module: all addresses of the upper half. */
static void write_kernel(struct recorded_process *process, const struct recorder_options *options)
{
    uint8_t build_id[RECORDING_BUILD_ID_MAX];
    size_t size = 0, digits = options->takes_kernel_stacks ? strlen(options->kernel_build_id) : 0;
    for (; size < sizeof(build_id) && 2 * size + 1 < digits; size++)
        build_id[size] = (uint8_t)hex_byte((const uint8_t *)options->kernel_build_id + 2 * size);
    const struct recording_module kernel = {.number = process->code.next_number,
                                            .start = UINT64_C(1) << 63,
                                            .end = UINT64_MAX,
                                            .build_id = build_id,
                                            .build_id_size = size,
                                            .path = "[kernel.kallsyms]"};
    if (!options->takes_kernel_stacks) return;
    process->code.next_number++;
    recording_module(process->writer, &kernel);
}

static bool begin_recording(struct recorded_process *process, const struct recorder_options *options,
                            struct code_files *files, struct engine_denial *ret_denial)
{
    struct task_status status;
    pid_t pid = process->watched.pid;
    if (!task_read_status(pid, &status)) return false;
    process->watched.start_ticks = status.start_ticks;
    read_executable(process);
    if (getrandom(process->profiler_id, sizeof(process->profiler_id), 0) != sizeof(process->profiler_id))
        memset(process->profiler_id, 1, sizeof(process->profiler_id));
    write_start(process, options, &status, clock_monotonic_ns());
    if (!process_code_list(&process->code, files, pid, options->image_directory, process->writer)) return false;
    write_kernel(process, options);
    warn_of_blocked_threads(ret_denial, pid);
    (void)process_cpu_ns(pid, &process->first_cpu_ns);
    process->cpu_ns = process->first_cpu_ns;
    write_usage(process);
    return true;
}

struct recorded_process *recorded_process_new(pid_t pid, const struct recorder_options *options,
                                              const struct tick *tick, struct code_files *files,
                                              struct engine_denial *ret_denial)
{
    struct recorded_process *process = calloc(1, sizeof(*process));
    if (process) process->writer = calloc(1, sizeof(*process->writer));
    if (!process || !process->writer) {
        free(process);
        (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "not enough memory");
        return NULL;
    }
    process->watched.pid = pid;
    process->tick = *tick;
    process->tick.writer = process->writer;
    if (begin_recording(process, options, files, ret_denial)) return process;
    deny(ret_denial, pid);
    recorded_process_discard(process);
    return NULL;
}

static void discard_recording(struct recorded_process *process)
{
    if (!process->writer->is_created) return;
    recording_writer_release(process->writer);
    (void)unlink(process->writer->path);
}

void recorded_process_discard(struct recorded_process *process)
{
    discard_recording(process); /* its list of modules was larger than the buffer */
    interpreted_process_fini(&process->interpreted);
    process_code_fini(&process->code);
    free(process->writer);
    free(process);
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

static void write_counters(struct recorded_process *process, uint64_t engine)
{
    const uint64_t counters[RECORDING_COUNTER_COUNT] = {
        [RECORDING_TICKS] = process->counts.ticks,
        [RECORDING_TICKS_MISSED] = process->counts.ticks_missed,
        [RECORDING_TIMER_STACKS] = process->counts.stacks,
        [RECORDING_BLOCKED_READ] = process->counts.blocked_stacks,
        [RECORDING_BYTES_LOST] = process->writer->bytes_lost,
        [RECORDING_ENGINE] = engine,
        [RECORDING_INTERPRETED] = process->interpreted.stacks,
        [RECORDING_INTERPRETED_TORN] = process->interpreted.torn,
        [RECORDING_INTERPRETED_GONE] = process->interpreted.gone,
        [RECORDING_CODE_UNSEEN] = process->counts.unseen_stacks,
    };
    recording_counters(process->writer, counters);
}

static void close_thread(const struct recorded_process *process, struct recorded_thread *thread)
{
    if (process->tick.records_waits)
        thread_waits_close(thread, &process->tick, process->tick.time_ns);
    else
        thread_times_close(thread, &process->tick);
}

void recorded_process_free_thread(struct recorded_thread *thread)
{
    free(thread->waits.addresses.items);
    free(thread);
}

static void end_recording(struct recorded_process *process, const struct recorder_options *options, uint64_t engine)
{
    for (size_t i = 0; i < process->threads.count; i++) close_thread(process, process->threads.items[i]);
    write_usage(process);
    write_counters(process, engine);
    recording_stop(process->writer);
    recording_writer_close(process->writer);
    if (options->finished)
        options->finished(options->context, process->writer->path,
                          process->counts.stacks + process->counts.blocked_stacks, process->writer->bytes_lost);
}

void recorded_process_free(struct recorded_process *process, const struct recorder_options *options, uint64_t engine)
{
    if (!process) return;
    end_recording(process, options, engine);
    for (size_t i = 0; i < process->threads.count; i++) recorded_process_free_thread(process->threads.items[i]);
    interpreted_process_fini(&process->interpreted);
    process_code_fini(&process->code);
    free(process->threads.items);
    free(process->writer);
    free(process);
}

static void restart_thread(struct recorded_process *process, struct recorded_thread *thread)
{
    thread->number = process->next_thread++;
    thread->last.count = 0;
    thread->has_running = thread->has_blocked = false;
    recording_thread(process->writer, thread->number, thread->tid, thread->name);
}

void recorded_process_restart(struct recorded_process *process, const struct recorder_options *options,
                              struct code_files *files, uint64_t engine)
{
    struct task_status status;
    if (!task_read_status(process->watched.pid, &status)) {
        process->has_ended = true;
        return;
    }
    bool is_empty = !process->writer->is_created && process->counts.stacks + process->counts.blocked_stacks == 0;
    if (!is_empty) end_recording(process, options, engine);
    process->counts = (struct recorded_counts){.ticks = 0};
    process->first_cpu_ns = process->cpu_ns;
    read_executable(process);
    write_start(process, options, &status, process->tick.time_ns);
    process->code.modules.count = process->code.next_number = 0;
    if (!process_code_list(&process->code, files, process->watched.pid, options->image_directory, process->writer)) {
        process->has_ended |= errno == ENOENT || errno == ESRCH;
        process_code_update(&process->code); /* walks may not use the modules before, whose files may be closed */
    }
    write_kernel(process, options);
    write_usage(process);
    interpreted_process_restart(process);
    recording_tick(process->writer, 0);
    process->next_thread = 0;
    for (size_t i = 0; i < process->threads.count; i++) restart_thread(process, process->threads.items[i]);
}

/* --- Ticks -------------------------------------------------------------------------------------------------------- */

bool recorded_process_is_due(struct recorded_process *process, uint64_t now_ns)
{
    struct process_code *code = &process->code;
    uint64_t pause_ns = process->needs_listing ? process->relist_pause_ns : CHECK_NS;
    /* Where the last list has found new code, there may be more already: a program that starts loads its libraries. */
    bool is_changing = process->needs_listing && process->relist_pause_ns <= RELIST_NS_MIN;
    if (now_ns < code->listed_ns + pause_ns && !is_changing) return false;
    if (!process->needs_listing && !process->has_run) { /* it could not change its code */
        struct task_status status;
        process->has_ended |= !task_read_status(process->watched.pid, &status) || status.state == 'Z';
        code->listed_ns = now_ns;
        return false;
    }
    return true;
}

void recorded_process_list(struct recorded_process *process, const struct recorder_options *options,
                           struct code_files *files)
{
    struct process_code *code = &process->code;
    size_t module_count = code->modules.count, generated_count = code->generated.count;
    uint32_t next_number = code->next_number;
    process->needs_listing = process->has_run = false;
    if (!process_code_list(code, files, process->watched.pid, options->image_directory, process->writer))
        process->has_ended |= errno == ENOENT || errno == ESRCH;
    bool has_changed = module_count != code->modules.count || generated_count != code->generated.count ||
                       next_number != code->next_number;
    uint64_t longer_ns = least(2 * process->relist_pause_ns, CHECK_NS);
    process->relist_pause_ns = has_changed ? RELIST_NS_MIN : greatest(longer_ns, RELIST_NS_MIN);
}

void recorded_process_begin_tick(struct recorded_process *process, uint64_t time_ns)
{
    uint64_t elapsed_ns = difference(time_ns, process->tick.time_ns);
    process->tick.time_ns = time_ns;
    process->ticks++;
    process->counts.ticks++;
    process->counts.ticks_missed += difference(elapsed_ns / process->tick.period_ns, 1);
    recording_tick(process->writer, elapsed_ns);
}

static void end_thread(struct recorded_process *process, struct recorded_thread *thread)
{
    close_thread(process, thread);
    recording_thread_gone(process->writer, thread->number);
}

void recorded_process_end_tick(struct recorded_process *process)
{
    for (size_t i = 0; i < process->threads.count; i++) {
        struct recorded_thread *thread = process->threads.items[i];
        if (thread->has_ended) {
            end_thread(process, thread);
            continue;
        }
        if (process->tick.records_waits) continue;
        if (!thread->is_observed && !thread->is_resting && thread->is_known && !process->tick.is_partial)
            thread_times_add(thread, &process->tick, NULL);
        thread_times_end_tick(thread, &process->tick);
    }
    if (process->tick.time_ns >= process->usage_ns + USAGE_NS) {
        process->usage_ns = process->tick.time_ns;
        write_usage(process);
        recording_writer_flush(process->writer);
    } else if (process->writer->size > FLUSH_BYTES) {
        recording_writer_flush(process->writer);
    }
}

static void read_name(struct recorded_process *process, struct recorded_thread *thread)
{
    char file[32];
    (void)snprintf(file, sizeof(file), "task/%d/comm", (int)thread->tid);
    size_t length = task_read_text(process->watched.pid, file, thread->name, sizeof(thread->name));
    if (length > 0 && thread->name[length - 1] == '\n') thread->name[length - 1] = '\0';
}

struct recorded_thread *recorded_process_add_thread(struct recorded_process *process, pid_t tid)
{
    struct recorded_thread *thread = calloc(1, sizeof(*thread));
    if (!thread || !ARRAY_PUSH(&process->threads, THREADS_MAX, thread)) {
        free(thread);
        return NULL;
    }
    thread->tid = tid;
    thread->number = process->next_thread++;
    thread->process = process;
    thread->time_ns = process->tick.time_ns;
    read_name(process, thread);
    recording_thread(process->writer, thread->number, tid, thread->name);
    return thread;
}
