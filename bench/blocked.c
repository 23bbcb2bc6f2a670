/* Preloaded into a program, takes the stack of each of its blocked threads the way the sampler does, without a signal,
 * and right afterwards again with a signal, by the sampler's own handler. Both must be the same. At the end of the
 * program appends a line to the file that OFFBEAT_BENCH_BLOCKED names:
 *
 *   EQUAL DIFFERENT MOVED INCOMPLETE NEEDS_SIGNAL AWAKE UNANSWERED
 *
 * MOVED: the thread had gone elsewhere before the signal came: it is at another instruction, or in a system call with
 * other arguments. INCOMPLETE: marked so, not compared. With OFFBEAT_BENCH_BLOCKED_DETAILS, differences are appended to
 * the file that it names. SPDX-License-Identifier: MIT */
#include "sampler/source/remote_unwind.h"
#include "sampler/kernel/cpu_clock.h"
#include "sampler/modules/modules.h"
#include "sampler/run/threads.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/kernel/proc_files.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/source/signal_choice.h"
#include "sampler/source/sample_requests.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000, ANSWER_NS_MAX = 50000000, THREADS_A_ROUND_MAX = 16 };

enum comparison { EQUAL, DIFFERENT, MOVED, INCOMPLETE, NEEDS_SIGNAL, AWAKE, UNANSWERED, COMPARISONS };

static _Atomic uint64_t comparisons[COMPARISONS];
static char output_path[4096];   /* a copy: some programs write over their environment */
static const char *details_path; /* NULL: not wanted */
static FILE *details;
static pid_t own_pid;
static _Atomic bool is_over;
static struct recording_writer writer; /* records that nobody reads */
static struct modules modules;
static struct threads threads;

static void pause_for(long ns)
{
    struct timespec span = {.tv_nsec = ns};
    (void)nanosleep(&span, NULL);
}

static enum remote_unwind_result walk(struct target_thread *thread, uint64_t *addresses, size_t *ret_count,
                                      enum unwind_outcome *ret_outcome, uint64_t *ret_cpu_ns)
{
    static struct remote_stack stack; /* one thread walks */
    enum remote_unwind_result result = REMOTE_PENDING;
    while (result == REMOTE_PENDING) {
        if (!thread_cpu_ns(thread->files.tid, ret_cpu_ns)) return REMOTE_RUNNING;
        result = remote_unwind(&thread->files, *ret_cpu_ns, modules.current, &stack);
        if (result == REMOTE_PENDING && modules_build(&modules, stack.addresses[stack.count - 1] - (stack.count > 1),
                                                      modules_no_limit, &writer) != MODULES_READY) {
            return REMOTE_INCOMPLETE;
        }
    }
    memcpy(addresses, stack.addresses, stack.count * sizeof(stack.addresses[0]));
    *ret_count = stack.count;
    *ret_outcome = stack.outcome;
    return result;
}

/* The arguments of a system call, as /proc/self/task/TID/syscall shows them, and the registers that hold them. */
enum { ARGUMENTS = 6 };
static const enum machine_register argument_registers[ARGUMENTS] = {MACHINE_RDI, MACHINE_RSI, MACHINE_RDX,
                                                                    MACHINE_R10, MACHINE_R8,  MACHINE_R9};

/* False if THREAD is in no system call. */
static bool read_arguments(struct target_thread *thread, uint64_t *arguments)
{
    char text[256];
    (void)thread_read_syscall(&thread->files, text, sizeof(text));
    return sscanf(text, "%*u %lx %lx %lx %lx %lx %lx", &arguments[0], &arguments[1], &arguments[2], &arguments[3],
                  &arguments[4], &arguments[5]) == ARGUMENTS;
}

static bool has_arguments(const struct sample_reply *answer, const uint64_t *arguments)
{
    for (unsigned i = 0; i < ARGUMENTS; i++) {
        if (answer->registers.values[argument_registers[i]] != arguments[i]) return false;
    }
    return true;
}

/* A call that the kernel starts again has its instruction, of two bytes, still before it. */
static bool is_same_place(uint64_t blocked, uint64_t signalled)
{
    return signalled == blocked || signalled + 2 == blocked;
}

static void print_stack(const char *name, const uint64_t *addresses, size_t count)
{
    fprintf(details, "  %s:", name);
    for (size_t i = 0; i < count; i++) {
        const struct module *items = modules.items.items;
        const struct module *module = NULL;
        for (size_t j = 0; j < modules.items.count && !module; j++)
            if (addresses[i] >= items[j].start && addresses[i] < items[j].end) module = &items[j];
        const char *path = module ? strrchr(module->path, '/') : NULL;
        fprintf(details, " %s+%#lx", path ? path + 1 : "?", addresses[i] - (module ? module->image.load_bias : 0));
    }
    fprintf(details, "\n");
}

static enum comparison compare(const uint64_t *addresses, size_t count, const uint64_t *arguments,
                               const struct sample_reply *answer)
{
    if (!is_same_place(addresses[0], answer->addresses[0]) || !has_arguments(answer, arguments)) return MOVED;
    bool is_equal = count == answer->address_count &&
                    memcmp(addresses + 1, answer->addresses + 1, (count - 1) * sizeof(uint64_t)) == 0;
    if (!is_equal && details) {
        fprintf(details, "different:\n");
        print_stack("without a signal", addresses, count);
        print_stack("with a signal", answer->addresses, answer->address_count);
        (void)fflush(details);
    }
    return is_equal ? EQUAL : DIFFERENT;
}

static enum comparison compare_answer(struct target_thread *thread, enum remote_unwind_result result,
                                      const uint64_t *addresses, size_t count, const uint64_t *arguments,
                                      const struct sample_reply *answer)
{
    /* The wait has ended normally: the handler reads nothing at the end of a call that may have set a seccomp filter.
     */
    bool has_ended = answer->registers.values[MACHINE_RAX] == 0;
    if (has_ended && answer->outcome == UNWIND_BAD_MEMORY) return MOVED;
    if (result == REMOTE_WALKED) return compare(addresses, count, arguments, answer);
    return NEEDS_SIGNAL;
}

static bool blocks_signal(pid_t tid, int number)
{
    char path[TASK_PATH_SIZE], text[4096];
    task_path(path, tid, "status");
    if (read_small_file(path, text, sizeof(text)) <= 0) return true;
    return status_number(text, "SigBlk", 16) >> (number - 1) & 1;
}

static enum comparison check(struct target_thread *thread)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX];
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_ROOT;
    uint64_t cpu_ns = 0, cpu_ns_before_signal = 0, arguments[ARGUMENTS];
    if (blocks_signal(thread->files.tid, SIGNAL_USUAL)) return UNANSWERED;
    enum remote_unwind_result result = walk(thread, addresses, &count, &outcome, &cpu_ns);
    if (result == REMOTE_RUNNING) return AWAKE;
    if (result != REMOTE_WALKED && result != REMOTE_INCOMPLETE) return UNANSWERED;
    struct sample_request *slot = sample_request_take(thread->files.tid, modules.current, READ_BY_COPY);
    if (!slot) return UNANSWERED;
    bool is_still_there = read_arguments(thread, arguments) &&
                          thread_cpu_ns(thread->files.tid, &cpu_ns_before_signal) && cpu_ns_before_signal == cpu_ns;
    enum comparison comparison = is_still_there ? UNANSWERED : AWAKE;
    if (is_still_there && signal_handler_is_ready(SIGNAL_USUAL) && sample_request_send(slot, SIGNAL_USUAL)) {
        uint64_t deadline_ns = monotonic_ns() + ANSWER_NS_MAX;
        while (sample_request_phase(slot) != REQUEST_DONE && monotonic_ns() < deadline_ns) pause_for(20000);
        if (sample_request_phase(slot) == REQUEST_DONE)
            comparison = compare_answer(thread, result, addresses, count, arguments, &slot->replies[0]);
    }
    if (comparison == EQUAL && outcome != UNWIND_ROOT) comparison = INCOMPLETE;
    if (comparison == DIFFERENT && outcome != UNWIND_ROOT) comparison = INCOMPLETE;
    sample_request_give_back(slot);
    return comparison;
}

static void forget(void *unused, struct target_thread *thread)
{
    thread_files_close(&thread->files);
}

static void *run(void *unused)
{
    sample_requests_prepare();
    if (!sample_requests_install_handler()) return NULL;
    threads.sampler_tid = gettid();
    threads.directory = -1;
    process_own_descriptors(-1);
    if (details_path) details = fopen(details_path, "ae"); /* not to standard error */
    recording_writer_init(&writer, "/nowhere/at-all", false);
    for (size_t at = 0; !is_over;) {
        pause_for(PAUSE_NS);
        if (sample_requests_used() == 0) modules_release_retired(&modules);
        modules_refresh(&modules, false, &writer);
        if (threads_changed(&threads)) threads_refresh(&threads, &writer, forget, NULL);
        for (size_t i = 0; i < THREADS_A_ROUND_MAX && i < threads.count && !is_over; i++) {
            comparisons[check(threads.items[at++ % threads.count].thread)]++;
        }
    }
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("OFFBEAT_BENCH_BLOCKED");
    details_path = getenv("OFFBEAT_BENCH_BLOCKED_DETAILS");
    own_pid = getpid();
    if (!path || strlen(path) >= sizeof(output_path)) return;
    memcpy(output_path, path, strlen(path));
    sigset_t all, kept;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    (void)pthread_create(&thread, NULL, run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
}

__attribute__((destructor)) static void report(void)
{
    if (!output_path[0] || getpid() != own_pid) return;
    is_over = true;
    int file = open(output_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    char line[COMPARISONS * 24];
    int length = 0;
    for (unsigned i = 0; i < COMPARISONS; i++) {
        length += sprintf(line + length, "%lu%c", comparisons[i], i + 1 < COMPARISONS ? ' ' : '\n');
    }
    (void)!write(file, line, (size_t)length); /* at once: several processes may append */
    (void)close(file);
}
