/* Stops a Python program at random moments, and looks for the records that the interpreter has left on the C stack, one
 * for each run of its evaluation function: python_records STOPS PROGRAM ARGUMENT…. Prints as JSON how many of them
 * there were, how many are in exactly one native frame, and how many share it with another one.
 * SPDX-License-Identifier: MIT */
#include "../differential/tracee.h"

#include "interpreters/merged_stack.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct tracee tracee;
static struct stack native;
static struct interpreter_state state;
static struct interpreted_work work;
static struct interpreted_stack functions;
static uint64_t merged[TRACEE_FRAMES_MAX + INTERPRETED_FRAMES_MAX];

static struct {
    unsigned long stops, stacks, torn, incomplete, records, in_one_frame, shared, not_merged, frames;
} figures;

static bool gather(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    (void)memory;
    for (size_t i = 0; i < pieces->count; i++) {
        struct iovec from = {(void *)(uintptr_t)pieces->from[i].address, pieces->from[i].size};
        struct iovec to = {(void *)(uintptr_t)pieces->to[i].address, pieces->to[i].size};
        if (process_vm_readv(tracee.pid, &to, 1, &from, 1, 0) != (ssize_t)from.iov_len) return false;
    }
    return true;
}

static const struct process_memory memory = {.gather = gather};

/* Returns the image of the file that is mapped from START on; size 0: it is none. */
static struct interpreter_image image_at(uint64_t start)
{
    Elf64_Ehdr header = {0};
    Elf64_Phdr segments[32];
    uint64_t low = UINT64_MAX, high = 0;
    if (!process_memory_read(&memory, &work.pieces, start, &header, sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phnum > 32 ||
        !process_memory_read(&memory, &work.pieces, start + header.e_phoff, segments,
                             header.e_phnum * sizeof(segments[0])))
        return (struct interpreter_image){0};
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD) continue;
        if (segments[i].p_vaddr < low) low = segments[i].p_vaddr;
        if (segments[i].p_vaddr + segments[i].p_memsz > high) high = segments[i].p_vaddr + segments[i].p_memsz;
    }
    return (struct interpreter_image){.start = start, .size = high - low, .bias = start - low};
}

static bool find_interpreter(void)
{
    char path[64], line[4096];
    bool is_found = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)tracee.pid);
    FILE *maps = fopen(path, "re");
    while (maps && !is_found && fgets(line, sizeof(line), maps)) {
        unsigned long start, offset;
        if (sscanf(line, "%lx-%*x %*s %lx", &start, &offset) != 2 || offset != 0 || !strchr(line, '/')) continue;
        struct interpreter_image image = image_at(start);
        is_found = image.size > 0 && interpreter_attach(&image, &memory, &work, &state) == INTERPRETER_ATTACHED;
    }
    if (maps) (void)fclose(maps);
    return is_found;
}

/* Returns how many native frames hold RECORD; the last one is in *RET_HOLDER. */
static unsigned holders_of(uint64_t record, size_t *ret_holder)
{
    unsigned count = 0;
    for (size_t i = 0; i + 1 < native.count; i++) {
        if (record < native.stack_pointers[i] || record >= native.stack_pointers[i + 1]) continue;
        *ret_holder = i;
        count++;
    }
    return count;
}

/* Finds the main thread, which is the stopped one. */
static bool find_thread(struct interpreted_thread *ret_thread)
{
    enum { THREADS_MAX = 16 };
    struct interpreted_thread threads[THREADS_MAX];
    int tids[THREADS_MAX];
    size_t count = state.interpreter->threads(&state, &memory, &work, threads, tids, THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (tids[i] != tracee.pid) continue;
        *ret_thread = threads[i];
        return true;
    }
    return false;
}

static void judge(void)
{
    struct interpreted_thread thread;
    if (!find_thread(&thread)) return;
    enum interpreted_result result = state.interpreter->read(&state, thread, &memory, &work, &functions);
    figures.torn += result == INTERPRETED_TORN;
    if (result != INTERPRETED_READ) return;
    tracee_walk(&tracee, &native);
    figures.incomplete += !native.reached_root;
    if (!native.reached_root) return;
    size_t last_holder = native.count;
    figures.stacks++;
    figures.frames += functions.count;
    for (uint32_t i = 0; i < functions.count; i++) {
        size_t holder = native.count;
        if (functions.frames[i].record == 0) continue;
        figures.records++;
        figures.in_one_frame += holders_of(functions.frames[i].record, &holder) == 1;
        figures.shared += holder < native.count && holder == last_holder;
        last_holder = holder;
    }
    const struct native_stack stack = {native.addresses, native.stack_pointers, native.count, true};
    const struct native_view view = {.evaluation = state.evaluation, .shows_all = true};
    figures.not_merged += merge_stacks(&stack, &functions, &view, 1, merged, sizeof(merged) / sizeof(merged[0])) == 0;
}

/* Lets the program run for a moment, and stops it. Returns false if it has ended. */
static bool stop_again(void)
{
    const struct timespec moment = {.tv_nsec = 500000 + rand() % 3000000};
    int status;
    if (figures.stops > 0 && ptrace(PTRACE_CONT, tracee.pid, NULL, NULL) != 0) return false;
    (void)nanosleep(&moment, NULL);
    if (ptrace(PTRACE_INTERRUPT, tracee.pid, NULL, NULL) != 0) return false;
    for (;;) {
        if (waitpid(tracee.pid, &status, 0) != tracee.pid || !WIFSTOPPED(status)) return false;
        if (status >> 16 == PTRACE_EVENT_STOP) break;
        if (ptrace(PTRACE_CONT, tracee.pid, NULL, (long)WSTOPSIG(status)) != 0) return false;
    }
    return tracee_look(&tracee);
}

int main(int argc, char **argv)
{
    enum { MODULES_READ_EACH = 64 };
    unsigned long stops = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (stops == 0) return 2;
    tracee.pid = fork();
    if (tracee.pid == 0) {
        (void)execv(argv[2], argv + 2);
        _exit(127);
    }
    if (ptrace(PTRACE_SEIZE, tracee.pid, NULL, NULL) != 0) {
        (void)fprintf(stderr, "ptrace: %s\n", strerror(errno));
        (void)kill(tracee.pid, SIGKILL);
        return 77;
    }
    while (figures.stacks + figures.torn + figures.incomplete < stops && stop_again()) {
        if (!state.interpreter && !find_interpreter()) state.interpreter = NULL;
        if (figures.stops++ % MODULES_READ_EACH == 0 || native.outcome == UNWIND_NO_TABLE)
            tracee_refresh_modules(&tracee);
        if (state.interpreter) judge();
    }
    (void)kill(tracee.pid, SIGKILL);
    (void)waitpid(tracee.pid, NULL, 0);
    printf("{\"minor\": %u, \"stops\": %lu, \"stacks\": %lu, \"functions\": %lu, \"torn\": %lu, \"incomplete\": %lu, "
           "\"records\": %lu, \"in_one_frame\": %lu, \"shared\": %lu, \"not_merged\": %lu}\n",
           state.minor, figures.stops, figures.stacks, figures.frames, figures.torn, figures.incomplete,
           figures.records, figures.in_one_frame, figures.shared, figures.not_merged);
    tracee_fini(&tracee);
    return 0;
}
