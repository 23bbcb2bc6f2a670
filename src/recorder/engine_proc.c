/* The engine that needs no rights but those to read the process: it observes all threads, and sees the registers of
 * blocked ones.
 * A thread whose schedstat is the same has not run, and it is all that is read of it. For a thread that is blocked,
 * syscall tells where. Both files stay open. The CPU time of a running thread is up to a tick of the kernel old.
 * SPDX-License-Identifier: MIT */
#include "recorder/engine.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/plain_text.h"
#include "recorder/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    THREADS_MAX = 1 << 16,
    PROCESSES_MAX = 1 << 14,
    LIST_NS = 100000000, /* time between two listings of threads whose number is the same */
};

struct proc_thread {
    pid_t tid;
    int syscall_file, schedstat_file; /* -1: not open */
    struct task_times times;          /* times when it was delivered last */
    bool is_listed;                   /* true if the last listing had it */
    bool is_known;                    /* true if it was delivered once */
};

struct proc_process {
    struct watched_process *watched;
    ARRAY_OF(struct proc_thread) threads; /* list in the order of the kernel, mostly */
    size_t next;                          /* place of the thread that the listing shows next, if nothing has changed */
    uint64_t listed_ns;
    nlink_t links; /* links of the folder of threads: their number plus two */
    char directory[48];
};

struct engine {
    bool is_cpu_mode;
    const struct proc_process *current_process; /* process and thread that are being delivered */
    struct proc_thread *current;
    ARRAY_OF(struct proc_process *) processes;
};

/* --- Threads ------------------------------------------------------------------------------------------------------ */

static void close_files(struct proc_thread *thread)
{
    if (thread->syscall_file >= 0) (void)close(thread->syscall_file);
    if (thread->schedstat_file >= 0) (void)close(thread->schedstat_file);
    thread->syscall_file = thread->schedstat_file = -1;
}

static bool note_thread(void *context, pid_t tid)
{
    struct proc_process *process = context;
    size_t count = process->threads.count;
    for (size_t i = 0; i < count; i++) {
        size_t place = (process->next + i) % count;
        if (process->threads.items[place].tid != tid) continue;
        process->threads.items[place].is_listed = true;
        process->next = place + 1;
        return true;
    }
    (void)ARRAY_PUSH(&process->threads, THREADS_MAX,
                     (struct proc_thread){.tid = tid, .syscall_file = -1, .schedstat_file = -1, .is_listed = true});
    return true;
}

/* Lists the threads again if their number has changed, or after a while. */
static void list_threads(struct proc_process *process, uint64_t now_ns)
{
    struct stat facts;
    bool is_there = stat(process->directory, &facts) == 0;
    if (is_there && facts.st_nlink == process->links && now_ns < process->listed_ns + LIST_NS) return;
    process->listed_ns = now_ns;
    process->links = is_there ? facts.st_nlink : 0;
    for (size_t i = 0; i < process->threads.count; i++) process->threads.items[i].is_listed = false;
    process->next = 0;
    (void)task_list(process->directory, note_thread, process);
}

/* Returns the text of FILE, which is opened at the first use; "" if it cannot be read. */
static const char *read_file(const struct proc_process *process, const struct proc_thread *thread, int *file,
                             const char *name, char text[256])
{
    char path[96];
    if (*file < 0) {
        (void)snprintf(path, sizeof(path), "%s/%d/%s", process->directory, (int)thread->tid, name);
        *file = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t got = *file >= 0 ? pread(*file, text, 255, 0) : -1;
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static bool read_times(const struct proc_process *process, struct proc_thread *thread, struct task_times *ret_times)
{
    char text[256];
    return task_parse_times(read_file(process, thread, &thread->schedstat_file, "schedstat", text), ret_times);
}

/* Parses "NUMBER 0x… (six arguments) 0xSP 0xPC", or "-1 0xSP 0xPC" outside of a system call. The arguments are
 * registers of the innermost frame, in which vfork keeps its return address. */
static bool parse_registers(const char *text, struct unwind_registers *registers)
{
    enum { ARGUMENTS = sizeof(machine_arguments), ALL = ARGUMENTS + 2 };
    const char *at = strchr(text, ' ');
    *registers = (struct unwind_registers){0};
    for (size_t i = text[0] == '-' ? ARGUMENTS : 0; i < ALL; i++) {
        if (!at || *at != ' ') return false;
        at++;
        unsigned number = i == ARGUMENTS ? MACHINE_SP : MACHINE_IP;
        if (i < ARGUMENTS) number = machine_arguments[i];
        registers->values[number] = plain_parse(&at, 16);
        registers->known |= 1u << number;
    }
    return registers->values[MACHINE_SP] != 0 && registers->values[MACHINE_IP] != 0;
}

static bool is_stopped(const struct proc_thread *thread)
{
    struct task_status status;
    return task_read_status(thread->tid, &status) && (status.state == 'T' || status.state == 't');
}

static void read_place(const struct proc_process *process, struct proc_thread *thread, struct engine_thread *seen)
{
    char text[256];
    (void)read_file(process, thread, &thread->syscall_file, "syscall", text);
    if (text[0] == 'r') return; /* "running" */
    seen->state = text[0] == '-' && is_stopped(thread) ? THREAD_STOPPED : THREAD_BLOCKED;
    seen->has_registers = parse_registers(text, &seen->registers);
}

static void observe_thread(struct engine *engine, const struct proc_process *process, struct proc_thread *thread,
                           const struct engine_sink *sink)
{
    struct engine_thread seen = {.pid = process->watched->pid, .tid = thread->tid, .time_ns = clock_monotonic_ns()};
    struct task_times times = {0};
    bool is_alive = thread->is_listed && read_times(process, thread, &times), is_new = !thread->is_known;
    if (is_alive && !is_new && task_times_equal(&times, &thread->times)) return;
    thread->is_listed = is_alive;
    thread->times = times;
    thread->is_known = true;
    seen.cpu_ns = times.cpu_ns;
    seen.run_delay_ns = times.run_delay_ns;
    if (!is_alive)
        seen.state = THREAD_ENDED;
    else if (!engine->is_cpu_mode)
        read_place(process, thread, &seen);
    engine->current_process = process;
    engine->current = thread;
    if (is_alive || !is_new) sink->thread(sink->context, &seen);
}

static bool has_run(struct engine *engine, const struct engine_thread *seen)
{
    struct task_times times;
    (void)seen;
    return !read_times(engine->current_process, engine->current, &times) ||
           !task_times_equal(&times, &engine->current->times);
}

static void remove_ended(struct proc_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->threads.count; i++) {
        struct proc_thread *thread = &process->threads.items[i];
        if (thread->is_listed)
            process->threads.items[kept++] = *thread;
        else
            close_files(thread);
    }
    process->threads.count = kept;
}

static void observe(struct engine *engine, const struct engine_sink *sink)
{
    uint64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < engine->processes.count; i++) {
        struct proc_process *process = engine->processes.items[i];
        list_threads(process, now_ns);
        for (size_t j = 0; j < process->threads.count; j++)
            observe_thread(engine, process, &process->threads.items[j], sink);
        remove_ended(process);
    }
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static bool probe(struct engine_denial *ret_denial)
{
    if (access("/proc/self/maps", R_OK) == 0 && access("/proc/self/syscall", R_OK) == 0) return true;
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "/proc/self/syscall: %s", strerror(errno));
    (void)snprintf(ret_denial->remedy, sizeof(ret_denial->remedy), "mount -t proc proc /proc");
    return false;
}

static struct engine *open_engine(const struct engine_options *options, struct engine_denial *ret_denial)
{
    struct engine *engine = probe(ret_denial) ? calloc(1, sizeof(*engine)) : NULL;
    if (engine) engine->is_cpu_mode = options->is_cpu_mode;
    return engine;
}

static void free_process(struct proc_process *process)
{
    for (size_t i = 0; i < process->threads.count; i++) close_files(&process->threads.items[i]);
    free(process->threads.items);
    free(process);
}

static void close_engine(struct engine *engine)
{
    if (!engine) return;
    for (size_t i = 0; i < engine->processes.count; i++) free_process(engine->processes.items[i]);
    free(engine->processes.items);
    free(engine);
}

static bool add_process(struct engine *engine, struct watched_process *watched, struct engine_denial *ret_denial)
{
    struct proc_process *process = calloc(1, sizeof(*process));
    if (process && ARRAY_PUSH(&engine->processes, PROCESSES_MAX, process)) {
        process->watched = watched;
        (void)snprintf(process->directory, sizeof(process->directory), "/proc/%d/task", (int)watched->pid);
        return true;
    }
    free(process);
    (void)snprintf(ret_denial->reason, sizeof(ret_denial->reason), "too many processes, or not enough memory");
    return false;
}

static void remove_process(struct engine *engine, struct watched_process *watched)
{
    for (size_t i = 0; i < engine->processes.count; i++) {
        if (engine->processes.items[i]->watched != watched) continue;
        free_process(engine->processes.items[i]);
        engine->processes.items[i] = engine->processes.items[--engine->processes.count];
        return;
    }
}

static void poll_nothing(struct engine *engine, const struct engine_sink *sink)
{
    (void)engine;
    (void)sink;
}

static void no_losses(const struct engine *engine, struct engine_losses *ret_losses)
{
    (void)engine;
    *ret_losses = (struct engine_losses){0};
}

const struct engine_ops engine_proc = {
    .name = "proc",
    .sees_threads = true,
    .probe = probe,
    .open = open_engine,
    .close = close_engine,
    .add_process = add_process,
    .remove_process = remove_process,
    .poll = poll_nothing,
    .observe = observe,
    .has_run = has_run,
    .losses = no_losses,
};
