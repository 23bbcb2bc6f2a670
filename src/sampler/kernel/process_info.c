/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/process_info.h"

#include "base/descriptor_table.h"
#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "sampler/kernel/vdso_clock.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <unistd.h>

uint64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t wall_clock_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

void process_random_bytes(uint8_t ret_bytes[RANDOM_BYTES])
{
    uint64_t unlikely[2] = {wall_clock_ns(), (uint64_t)process_id()};
    memcpy(ret_bytes, unlikely, sizeof(unlikely));
    (void)kernel_call3(SYS_getrandom, kernel_address(ret_bytes), RANDOM_BYTES, GRND_NONBLOCK);
}

uint64_t process_random_number(void)
{
    uint8_t bytes[RANDOM_BYTES];
    uint64_t random;
    process_random_bytes(bytes);
    memcpy(&random, bytes, sizeof(random));
    return random;
}

pid_t process_id(void)
{
    return (pid_t)kernel_call3(SYS_getpid, 0, 0, 0);
}

pid_t thread_id(void)
{
    return (pid_t)kernel_call3(SYS_gettid, 0, 0, 0);
}

uint64_t thread_own_cpu_ns(void)
{
    uint64_t cpu_ns = 0;
    (void)kernel_clock_ns(CLOCK_THREAD_CPUTIME_ID, &cpu_ns);
    return cpu_ns;
}

uint32_t process_processor_count(void)
{
    uint64_t allowed[1024] = {0}; /* room for 65536 processors */
    uint32_t count = 0;
    long size = kernel_call3(SYS_sched_getaffinity, 0, sizeof(allowed), kernel_address(allowed));
    for (long i = 0; i < size / (long)sizeof(*allowed); i++) {
        for (uint64_t word = allowed[i]; word != 0; word &= word - 1) count++;
    }
    return count > 0 ? count : 1;
}

static bool has_own_descriptors;
static int kept_end; /* descriptors below it may stay open */
static int file_errno;
static int memory_file = -1, maps_file = -1; /* kept open only in a table of our own */

/* Descriptors that open files for a moment need are left free. */
static void find_kept_end(void)
{
    enum { KEPT_MAX = 768, FREE = 8 };
    struct rlimit limit = {0};
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, kernel_address(&limit));
    kept_end = limit.rlim_cur < FREE ? 0 : limit.rlim_cur - FREE < KEPT_MAX ? (int)limit.rlim_cur - FREE : KEPT_MAX;
}

bool process_may_keep(int descriptor)
{
    return has_own_descriptors && descriptor < kept_end;
}

int process_open(const char *path, int flags)
{
    int descriptor = kernel_open(path, flags, 0);
    bool is_denied = descriptor == -EMFILE || descriptor == -ENFILE || descriptor == -EACCES || descriptor == -EPERM;
    if (is_denied && file_errno == 0) file_errno = -descriptor;
    return descriptor;
}

int process_file_errno(void)
{
    return file_errno;
}

int process_keep(int descriptor)
{
    if (descriptor >= 0 && process_may_keep(descriptor)) return descriptor;
    if (descriptor >= 0) kernel_close(descriptor);
    return -1;
}

/* Opens the leader's file. Once the leader has ended, nothing can be read through it: then this opens the calling
 * thread's file, which leaves an entry in the kernel (threads.c). PLACE: where there is a byte. */
static int open_of_process(const char *leaders, const char *own, uint64_t place)
{
    uint8_t byte;
    int file = process_open(leaders, O_RDONLY);
    if (file >= 0 && kernel_read_at(file, &byte, 1, place) == 1) return file;
    if (file >= 0) kernel_close(file);
    return process_open(own, O_RDONLY);
}

static int open_memory(void)
{
    return open_of_process("/proc/self/mem", "/proc/thread-self/mem", (uint64_t)(uintptr_t)&memory_file);
}

static int open_maps(void)
{
    return open_of_process("/proc/self/maps", "/proc/thread-self/maps", 0);
}

void process_own_descriptors(int kept)
{
    memory_file = maps_file = -1;
    file_errno = 0;
    has_own_descriptors = descriptor_table_take(kept);
    find_kept_end();
    if (process_may_keep(0)) {
        memory_file = process_keep(open_memory()); /* while we may */
        maps_file = process_keep(open_maps());
    }
}

int process_open_maps(void)
{
    if (maps_file < 0) return open_maps();
    (void)kernel_seek(maps_file, 0, SEEK_SET);
    return maps_file;
}

void process_release_maps(int file)
{
    if (file != maps_file) kernel_close(file);
}

bool process_root_has_changed(void)
{
    static uint64_t device, inode; /* the sampler thread's alone */
    static bool is_known;
    struct stat status = {0};
    if (kernel_stat("/", &status) != 0) return true;
    bool has_changed = is_known && (status.st_dev != device || status.st_ino != inode);
    device = status.st_dev;
    inode = status.st_ino;
    is_known = true;
    return has_changed;
}

bool process_has_own_descriptors(void)
{
    return has_own_descriptors;
}

void process_close_descriptors(void)
{
    if (memory_file >= 0) kernel_close(memory_file);
    if (maps_file >= 0) kernel_close(maps_file);
    memory_file = maps_file = -1;
}

struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set_scheduling(pid_t tid, const struct scheduling *scheduling)
{
    return kernel_call3(SYS_sched_setattr, tid, kernel_address(scheduling), 0) == 0;
}

/* Sets NICE, and a shorter slice than others have, which lets a thread preempt them (from Linux 6.12 on). */
static bool schedule(int32_t nice)
{
    enum { SLICE_NS = 100000 };
    struct scheduling scheduling = {
        .size = sizeof(scheduling), .policy = SCHED_OTHER, .nice = nice, .runtime = SLICE_NS};
    return set_scheduling(0, &scheduling);
}

static int32_t usual_nice;
static atomic_bool is_urgent, may_precede;

uint32_t thread_real_time_priority(pid_t tid)
{
    int32_t priority = 0; /* struct sched_param; 0 for a thread that is not real-time */
    bool is_known =
        filter_allows(FILTER_PRIORITY) && kernel_call3(SYS_sched_getparam, tid, kernel_address(&priority), 0) == 0;
    return is_known && priority > 0 ? (uint32_t)priority : 0;
}

void thread_precede(pid_t tid, uint32_t priority)
{
    enum { PRIORITY_MAX = 99 };
    struct scheduling scheduling = {.size = sizeof(scheduling),
                                    .policy = SCHED_FIFO,
                                    .priority = priority < PRIORITY_MAX ? priority + 1 : PRIORITY_MAX};
    if (may_precede && filter_allows(FILTER_PRIORITY) && set_scheduling(tid, &scheduling)) is_urgent = true;
}

void thread_allow_urgency(bool may_be_urgent)
{
    is_urgent = false;
    may_precede = may_be_urgent;
}

void thread_wake_promptly(void)
{
    enum { NICE_OF_ZERO = 20, NICE_MOST_URGENT = -20 };
    if (!filter_allows(FILTER_PRIORITY)) return;
    long nice = kernel_call3(SYS_getpriority, PRIO_PROCESS, 0, 0);
    if (nice < 0 || kernel_call3(SYS_sched_getscheduler, 0, 0, 0) != SCHED_OTHER) return;
    usual_nice = (int32_t)(NICE_OF_ZERO - nice);
    is_urgent = may_precede && schedule(NICE_MOST_URGENT);
    if (!is_urgent) (void)schedule(usual_nice);
}

bool thread_is_urgent(void)
{
    return is_urgent;
}

void thread_end_urgency(void)
{
    if (is_urgent && filter_allows(FILTER_PRIORITY)) (void)schedule(usual_nice);
    is_urgent = may_precede = false;
}

size_t process_read_memory(uint64_t address, void *buffer, size_t size)
{
    int file = memory_file >= 0 ? memory_file : open_memory();
    struct {
        uint64_t address, size;
    } from = {address, size}, to = {(uint64_t)(uintptr_t)buffer, size};
    if (file < 0 && !filter_allows(FILTER_MEMORY)) return 0;
    /* A process that is not dumpable may not open its /proc/self/mem. */
    long got = file >= 0 ? kernel_read_at(file, buffer, size, address)
                         : kernel_call6(SYS_process_vm_readv, process_id(), kernel_address(&to), 1,
                                        kernel_address(&from), 1, 0);
    if (file < 0) return got < 0 ? 0 : (size_t)got;
    if (memory_file < 0) memory_file = process_keep(file);
    return got < 0 ? 0 : (size_t)got;
}

ssize_t read_small_file(const char *path, char *buffer, size_t size)
{
    int descriptor = process_open(path, O_RDONLY);
    if (descriptor < 0) return -1;
    size_t filled = 0;
    while (filled < size - 1) {
        ssize_t got = kernel_read(descriptor, buffer + filled, size - 1 - filled);
        if (got <= 0) break;
        filled += (size_t)got;
    }
    kernel_close(descriptor);
    buffer[filled] = '\0';
    return (ssize_t)filled;
}

void task_path(char path[TASK_PATH_SIZE], pid_t tid, const char *file)
{
    const char *end = path + TASK_PATH_SIZE;
    char *at = plain_text(path, end, "/proc/self/task/");
    at = plain_number(at, end, (uint64_t)tid, 10);
    at = plain_text(at, end, "/");
    (void)plain_text(at, end, file);
}

/* --- /proc/…/status ----------------------------------------------------------------------------------------------- */

const char *status_line(const char *status, const char *key)
{
    for (const char *line = status; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
            for (line += strlen(key) + 1; *line == '\t' || *line == ' ';) line++;
            return line;
        }
    }
    return NULL;
}

uint64_t status_number(const char *status, const char *key, unsigned base)
{
    const char *line = status_line(status, key);
    return line ? plain_parse(&line, base) : 0;
}
