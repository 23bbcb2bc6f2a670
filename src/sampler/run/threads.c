/* Threads are found by reading /proc/self/task, which shows all of them, also threads created without libc; the
 * directory's link count shows cheaply whether to read it.  SPDX-License-Identifier: MIT */
#include "sampler/run/thread_sources.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/plain_text.h"
#include "base/sort.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/sampler.h"

#include <stdatomic.h>
#include <unistd.h>

static struct {
    _Atomic pid_t tids[THREADS_LEFT_OUT_MAX]; /* 0: a free place */
    atomic_bool is_new;                       /* true if the last one may have been listed before */
    atomic_bool was_used;
} left_out;

static bool change_left_out(pid_t from, pid_t to)
{
    for (size_t i = 0; i < THREADS_LEFT_OUT_MAX; i++) {
        pid_t tid = from;
        if (atomic_compare_exchange_strong(&left_out.tids[i], &tid, to)) return true;
    }
    return false;
}

void threads_leave_out(pid_t tid)
{
    atomic_store(&left_out.was_used, true);
    if (change_left_out(0, tid)) atomic_store(&left_out.is_new, true);
}

bool threads_were_left_out(void)
{
    return atomic_load(&left_out.was_used);
}

void sampler_take_in(pid_t tid)
{
    (void)change_left_out(tid, 0);
}

void sampler_forget_left_out(void)
{
    for (size_t i = 0; i < THREADS_LEFT_OUT_MAX; i++) atomic_store(&left_out.tids[i], 0);
    atomic_store(&left_out.was_used, false);
}

static bool is_left_out(pid_t tid)
{
    for (size_t i = 0; i < THREADS_LEFT_OUT_MAX; i++) {
        if (atomic_load(&left_out.tids[i]) == tid) return true;
    }
    return false;
}

/* Returns the number of threads in the process, the sampler's included; 0: unknown. */
static size_t count_threads(int directory)
{
    enum { LINKS_BESIDE_THREADS = 2 };
    struct stat status = {0};
    long failed = directory >= 0 ? kernel_call3(SYS_fstat, directory, kernel_address(&status), 0)
                                 : kernel_stat("/proc/self/task", &status);
    return failed != 0 || status.st_nlink < LINKS_BESIDE_THREADS ? 0 : status.st_nlink - LINKS_BESIDE_THREADS;
}

bool threads_changed(const struct threads *threads)
{
    if (atomic_exchange(&left_out.is_new, false)) return true;
    size_t count = count_threads(threads->directory);
    return count == 0 || count != threads->listed_count;
}

static size_t thread_place(const struct threads *threads, pid_t tid)
{
    size_t low = 0, high = threads->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (threads->items[middle].thread->files.tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct target_thread *threads_find(const struct threads *threads, pid_t tid)
{
    size_t place = thread_place(threads, tid);
    bool is_listed = place < threads->count && threads->items[place].thread->files.tid == tid;
    return is_listed ? threads->items[place].thread : NULL;
}

static bool reserve_thread(struct threads *threads)
{
    if (threads->count < threads->capacity) return true;
    size_t capacity = threads->capacity ? threads->capacity * 2 : 512;
    if (capacity > THREADS_MAX) return false;
    struct listed_thread *items = pages_allocate(capacity * sizeof(*items));
    if (!items) return false;
    if (threads->count > 0) memcpy(items, threads->items, threads->count * sizeof(*items));
    pages_free(threads->items, threads->capacity * sizeof(*items));
    threads->items = items;
    threads->capacity = capacity;
    return true;
}

/* The thread and its stacks share one allocation, of which only the pages in use exist. */
static size_t thread_memory(void)
{
    return sizeof(struct target_thread) + sources_state_bytes() + sizeof(struct recording_stack);
}

static struct target_thread *add_thread(struct threads *threads, size_t place, pid_t tid)
{
    if (!reserve_thread(threads)) return NULL;
    uint8_t *memory = pages_allocate(thread_memory());
    if (!memory) return NULL;
    struct target_thread *thread = (struct target_thread *)(void *)memory;
    sources_init(thread, memory + sizeof(*thread));
    thread->last = (struct recording_stack *)(void *)(memory + sizeof(*thread) + sources_state_bytes());
    thread_files_init(&thread->files, tid);
    thread->listing.may_have_new_name = true;
    thread->ledger.records.number = threads->next_number++;
    thread->ledger.sink_data = thread->last;
    struct listed_thread *item = &threads->items[place];
    memmove(item + 1, item, (threads->count - place) * sizeof(*item));
    *item = (struct listed_thread){.thread = thread};
    threads->count++;
    return thread;
}

static void write_thread(const struct target_thread *thread, struct recording_writer *writer)
{
    recording_thread(writer, thread->ledger.records.number, thread->files.tid, thread->listing.name);
}

/* Reads THREAD's name. Returns true if it has changed. */
static bool read_thread_name(struct target_thread *thread)
{
    char path[TASK_PATH_SIZE], name[32];
    task_path(path, thread->files.tid, "comm");
    if (read_small_file(path, name, sizeof(name)) <= 0) return false;
    char *end = strrchr(name, '\n');
    if (end) *end = '\0';
    name[THREAD_NAME_SIZE - 1] = '\0';
    if (strcmp(name, thread->listing.name) == 0) return false;
    memcpy(thread->listing.name, name, THREAD_NAME_SIZE);
    return true;
}

static uint32_t names_max(const struct threads *threads)
{
    enum { NAMES_A_TICK_MAX = 128, NAMES_A_BRIEF_TICK_MAX = 16 };
    return threads->is_brief ? NAMES_A_BRIEF_TICK_MAX : NAMES_A_TICK_MAX;
}

static void note_listed(struct threads *threads, pid_t tid, struct recording_writer *writer)
{
    threads->listed_count++;
    if (tid == threads->sampler_tid || is_left_out(tid)) return;
    size_t place = thread_place(threads, tid);
    if (place == threads->count || threads->items[place].thread->files.tid != tid) {
        struct target_thread *thread = add_thread(threads, place, tid);
        if (!thread) {
            threads->missed++;
            return;
        }
        if (process_may_keep((int)threads->count) && !threads->is_brief) thread_open_syscall(&thread->files);
        /* The names of many new threads are read later, a few at each tick. */
        thread->listing.may_have_new_name = threads->listed_names_count++ >= names_max(threads);
        if (!thread->listing.may_have_new_name) (void)read_thread_name(thread);
        write_thread(thread, writer);
    }
    threads->items[place].thread->listing.is_listed = true;
}

/* Lists the threads with getdents64, because opendir would call malloc. */
static void list_threads(struct threads *threads, int directory, struct recording_writer *writer)
{
    static _Alignas(struct kernel_entry) char buffer[16 << 10];
    const struct kernel_entry *entry;
    (void)kernel_seek(directory, 0, SEEK_SET);
    for (;;) {
        long got = kernel_call3(SYS_getdents64, directory, kernel_address(buffer), sizeof(buffer));
        if (got <= 0) return;
        for (long at = 0; at < got; at += entry->size) {
            entry = (const void *)(buffer + at);
            const char *name = entry->name;
            pid_t tid = (pid_t)plain_parse(&name, 10);
            if (tid > 0) note_listed(threads, tid, writer);
        }
    }
}

/* Keeps threads that the kernel left out of the list because others ended meanwhile: it continues at a position, which
 * has moved (fs/proc/base.c, first_tid). A thread that was taken for ended would be found again as a new one, and its
 * time counted twice. It is listed at the next tick, because LISTED_COUNT is too small. */
static void keep_unlisted(struct threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        struct target_thread *thread = threads->items[i].thread;
        uint64_t cpu_ns;
        if (!thread->listing.is_listed && !is_left_out(thread->files.tid))
            thread->listing.is_listed = thread_cpu_ns(thread->files.tid, &cpu_ns);
    }
}

void threads_refresh(struct threads *threads, struct recording_writer *writer, thread_gone_callback gone, void *context)
{
    int directory = threads->directory;
    if (directory < 0) directory = process_open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    threads->is_blind = directory < 0;
    if (directory < 0) return;
    for (size_t i = 0; i < threads->count; i++) threads->items[i].thread->listing.is_listed = false;
    threads->listed_count = threads->listed_names_count = 0;
    if (count_threads(directory) == 2) {
        /* The first thread and the sampler's are known without a list. For each name in a list the kernel keeps an
         * entry, and drops it when the thread ends. In a process that ends, the sampler's thread is the last one to do
         * so. If it loses its processor meanwhile, the parent spins in wait() until it is done: 1.5 ms for each process
         * of a busy machine. */
        note_listed(threads, kernel_process_id(), writer);
        note_listed(threads, threads->sampler_tid, writer);
    } else {
        list_threads(threads, directory, writer);
    }
    threads->directory = process_keep(directory);
    keep_unlisted(threads);

    for (size_t i = 0; i < threads->count; i++) {
        if (!threads->items[i].thread->listing.is_listed) gone(context, threads->items[i].thread);
    }
    size_t kept = 0;
    for (size_t i = 0; i < threads->count; i++) {
        struct target_thread *thread = threads->items[i].thread;
        if (thread->listing.is_listed) {
            threads->items[kept++] = threads->items[i];
            continue;
        }
        recording_thread_gone(writer, thread->ledger.records.number);
        pages_free(thread, thread_memory());
    }
    threads->count = kept;
}

bool threads_refresh_names(struct threads *threads, struct recording_writer *writer)
{
    uint32_t room = names_max(threads);
    for (size_t i = 0; i < threads->count; i++) {
        struct target_thread *thread = threads->items[i].thread;
        if (!thread->listing.may_have_new_name) continue;
        if (room-- == 0) return false;
        thread->listing.may_have_new_name = false;
        if (read_thread_name(thread)) write_thread(thread, writer);
    }
    return true;
}

void threads_write_again(struct threads *threads, struct recording_writer *writer)
{
    for (size_t i = 0; i < threads->count; i++) {
        struct target_thread *thread = threads->items[i].thread;
        ledger_begin_recording(&thread->ledger, (uint32_t)i);
        write_thread(thread, writer);
        thread->last->count = 0;
        threads->items[i].page_asleep = NULL;
    }
    threads->next_number = (uint32_t)threads->count;
}

void threads_release_directory(struct threads *threads)
{
    if (threads->directory >= 0) kernel_close(threads->directory);
    threads->directory = -1;
}

void threads_release_files(struct threads *threads)
{
    threads_release_directory(threads);
    for (size_t i = 0; i < threads->count; i++) thread_files_close(&threads->items[i].thread->files);
}

void threads_fini(struct threads *threads, thread_gone_callback gone, void *context)
{
    for (size_t i = 0; i < threads->count; i++) {
        gone(context, threads->items[i].thread);
        pages_free(threads->items[i].thread, thread_memory());
    }
    pages_free(threads->items, threads->capacity * sizeof(*threads->items));
    if (threads->directory >= 0) kernel_close(threads->directory);
    *threads = (struct threads){.directory = -1};
}
