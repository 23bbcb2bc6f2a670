/* A scan walks from the program, and from every descendant that is still known, to their children. A process that lost
 * its parent is so still followed.  SPDX-License-Identifier: MIT */
#include "cli/descendants.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/plain_text.h"
#include "binary/preload_check.h"
#include "report/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 1 << 18,
    PROGRAMS_MAX = 1 << 14,
    ENVIRONMENT_BYTES_MAX = 1 << 20,
    SCAN_NS_MIN = 25000000, /* while programs come and go */
    SCAN_NS_MAX = 100000000,
    QUIET_NS_MAX = 1000000000, /* without a new process: one that runs may call exec */
    SCAN_COST_FACTOR = 200,
    NAME_SIZE = 64,
    NAMED_MAX = 12,
    SIGHTINGS_TO_BE_SURE = 2, /* a process is seen once in the middle of its start */
    SIGHTINGS_TO_MISS_IT = 6,
    TICKS_OF_WORK = 2, /* ticks of 10 ms */
};

enum reason {
    REASON_NONE,
    REASON_STATIC,
    REASON_PRIVILEGED,
    REASON_ARCHITECTURE,
    REASON_OTHER_LIBC,
    REASON_OTHER_USER,
    REASON_ENVIRONMENT,
    REASON_PRELOAD,
    REASON_DIRECTORY,
    REASON_LIBRARY,
    REASON_UNKNOWN,
    REASONS,
};

static const char *const reason_names[REASONS] = {
    [REASON_STATIC] = "statically linked",
    [REASON_PRIVILEGED] = "set-user-ID or file capabilities",
    [REASON_ARCHITECTURE] = "32-bit or for another processor",
    [REASON_OTHER_LIBC] = "not linked with the GNU libc",
    [REASON_OTHER_USER] = "runs as another user",
    [REASON_ENVIRONMENT] = "started with a cleaned environment",
    [REASON_PRELOAD] = "started without LD_PRELOAD",
    [REASON_DIRECTORY] = "cannot reach the folder of recordings: private /tmp or chroot",
    [REASON_LIBRARY] = "cannot reach liboffbeat.so",
    [REASON_UNKNOWN] = "left no recording",
};

/* A file that was executed. */
struct program {
    dev_t device;
    ino_t inode; /* 0: the file could not be looked at */
    char name[NAME_SIZE];
    enum reason reason;
    bool is_recorded; /* recorded in some process */
};

/* A process while it runs one program. */
struct process {
    pid_t pid, inner_pid; /* numbers in our and in its own pid namespace */
    uint64_t start_time;  /* distinguishes two processes with one number */
    uint32_t program;
    uint32_t scan;                       /* the last one that met it */
    uint64_t cpu_ticks, cpu_ticks_first; /* CPU time as last seen and as first seen, in ticks */
    uint8_t sightings;
    uint8_t reason;
    bool is_recorded;
    bool has_empty_recording; /* empty recording of this program, or of one that ran in the process before */
};

struct descendants {
    char directory[PATH_MAX], library[PATH_MAX];
    uint32_t scan;
    uint64_t pause_ns;   /* pause between two scans */
    uint64_t scanned_ns; /* the last scan, CLOCK_MONOTONIC */
    long last_pid;       /* newest process id before the last scan; 0: not known */
    struct {
        struct program *items;
        size_t count, capacity;
    } programs;
    struct {
        struct process *items;
        size_t count, capacity;
    } processes;
    struct {
        uint32_t *items; /* indices of the processes that the last scan met */
        size_t count, capacity;
    } live;
    struct {
        pid_t *items;
        size_t count, capacity;
    } pending; /* processes to visit in the current scan */
    char *environment;
};

struct descendants *descendants_new(const char *directory, const char *library)
{
    struct descendants *descendants = calloc(1, sizeof(*descendants));
    if (!descendants) return NULL;
    (void)snprintf(descendants->directory, sizeof(descendants->directory), "%s", directory);
    (void)snprintf(descendants->library, sizeof(descendants->library), "%s", library);
    descendants->environment = malloc(ENVIRONMENT_BYTES_MAX);
    if (descendants->environment) return descendants;
    descendants_free(descendants);
    return NULL;
}

void descendants_free(struct descendants *descendants)
{
    if (!descendants) return;
    free(descendants->programs.items);
    free(descendants->processes.items);
    free(descendants->live.items);
    free(descendants->pending.items);
    free(descendants->environment);
    free(descendants);
}

/* --- /proc -------------------------------------------------------------------------------------------------------- */

static ssize_t read_file(const char *path, char *text, size_t size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) return -1;
    size_t filled = 0;
    while (filled < size - 1) {
        ssize_t got = read(descriptor, text + filled, size - 1 - filled);
        if (got <= 0) break;
        filled += (size_t)got;
    }
    (void)close(descriptor);
    text[filled] = '\0';
    return (ssize_t)filled;
}

struct stat_line {
    char name[NAME_SIZE];
    uint64_t start_time, cpu_ticks;
};

/* The field that is COUNT fields after the one at TEXT. */
static uint64_t field_after(const char *text, unsigned count)
{
    for (; count > 0 && text; count--) {
        text = strchr(text, ' ');
        if (text) text++;
    }
    return text ? strtoull(text, NULL, 10) : 0;
}

/* "PID (NAME) STATE PARENT …", proc(5); the name may hold anything. False for a zombie, too. */
static bool read_stat(pid_t pid, struct stat_line *ret_line)
{
    enum { USER_TIME = 11, SYSTEM_TIME = 12, START_TIME = 19 }; /* fields after the state */
    char path[64], text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_file(path, text, sizeof(text)) <= 0) return false;
    const char *start = strchr(text, '('), *end = strrchr(text, ')');
    if (!start || !end || end < start || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X') return false;
    (void)snprintf(ret_line->name, NAME_SIZE, "%.*s", (int)(end - start - 1), start + 1);
    ret_line->start_time = field_after(end + 2, START_TIME);
    ret_line->cpu_ticks = field_after(end + 2, USER_TIME) + field_after(end + 2, SYSTEM_TIME);
    return true;
}

static void add_pending(struct descendants *descendants, pid_t pid)
{
    if (array_reserve(&descendants->pending.items, &descendants->pending.capacity, descendants->pending.count + 1,
                      sizeof(pid_t), PROCESSES_MAX))
        descendants->pending.items[descendants->pending.count++] = pid;
}

static void add_children(struct descendants *descendants, const char *path)
{
    char text[16384];
    if (read_file(path, text, sizeof(text)) <= 0) return;
    char *at = text, *end;
    for (long child; (child = strtol(at, &end, 10)) > 0 && end != at && *end == ' '; at = end)
        add_pending(descendants, (pid_t)child);
}

static void add_children_of(struct descendants *descendants, pid_t pid)
{
    char path[sizeof("/proc//task//children") + 10 + 256];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    for (const struct dirent *entry; threads && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, entry->d_name);
        add_children(descendants, path);
    }
    if (threads) (void)closedir(threads);
}

/* --- Why a process is not sampled --------------------------------------------------------------------------------- */

static enum reason reason_of_file(const char *path)
{
    char interpreter[PRELOAD_INTERPRETER_SIZE];
    enum preload_answer answer;
    if (preload_check(path, &answer, interpreter, NULL) != STATUS_OK) return REASON_NONE;
    switch (answer) {
    case PRELOAD_STATIC:
        return REASON_STATIC;
    case PRELOAD_PRIVILEGED:
        return REASON_PRIVILEGED;
    case PRELOAD_WRONG_ARCHITECTURE:
        return REASON_ARCHITECTURE;
    case PRELOAD_OTHER_LIBC:
        return REASON_OTHER_LIBC;
    case PRELOAD_POSSIBLE:
    case PRELOAD_SCRIPT:
    case PRELOAD_NOT_ELF:
        return REASON_NONE;
    }
    return REASON_NONE;
}

/* The number after KEY in /proc/PID/status that is the INDEXth, counted from 0; the last one where there are fewer. */
static long status_number(const char *status, const char *key, unsigned index)
{
    const char *line = strstr(status, key);
    long number = -1;
    if (!line) return -1;
    line += strlen(key);
    for (unsigned i = 0; i <= index; i++) {
        char *end;
        long next = strtol(line, &end, 10);
        if (end == line) break;
        number = next;
        line = end + strspn(end, "\t ");
        if (*line == '\n') break;
    }
    return number;
}

/* True where PID sees a folder or a file at PATH; also where that cannot be found out. */
static bool can_reach(pid_t pid, const char *path)
{
    char in_its_root[PATH_MAX + 32];
    struct stat status;
    (void)snprintf(in_its_root, sizeof(in_its_root), "/proc/%d/root", pid);
    if (stat(in_its_root, &status) != 0) return true;
    (void)snprintf(in_its_root, sizeof(in_its_root), "/proc/%d/root%s", pid, path);
    return stat(in_its_root, &status) == 0;
}

/* REASON_NONE where the environment has what the library needs, or is hidden from us. */
static enum reason reason_of_environment(const struct descendants *descendants, pid_t pid)
{
    static const char directory_key[] = "OFFBEAT_RECORD_DIRECTORY=", preload_key[] = "LD_PRELOAD=";
    char path[64];
    bool has_directory = false, has_preload = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    ssize_t size = read_file(path, descendants->environment, ENVIRONMENT_BYTES_MAX);
    if (size < 0) return REASON_NONE;
    for (const char *at = descendants->environment, *end = at + size; at < end; at += strlen(at) + 1) {
        has_directory |= strncmp(at, directory_key, sizeof(directory_key) - 1) == 0;
        has_preload |= strncmp(at, preload_key, sizeof(preload_key) - 1) == 0 && strstr(at, descendants->library);
    }
    if (!has_directory) return REASON_ENVIRONMENT;
    return has_preload ? REASON_NONE : REASON_PRELOAD;
}

static enum reason reason_of_process(const struct descendants *descendants, pid_t pid, const char *status)
{
    enum { REAL, EFFECTIVE };
    long effective = status_number(status, "\nUid:", EFFECTIVE);
    if (effective != status_number(status, "\nUid:", REAL)) return REASON_PRIVILEGED;
    if (!can_reach(pid, descendants->directory)) return REASON_DIRECTORY;
    if (!can_reach(pid, descendants->library)) return REASON_LIBRARY;
    enum reason reason = reason_of_environment(descendants, pid);
    if (reason == REASON_NONE && effective >= 0 && (uid_t)effective != geteuid()) return REASON_OTHER_USER;
    return reason;
}

/* --- Noting ------------------------------------------------------------------------------------------------------- */

static uint32_t find_program(struct descendants *descendants, const struct stat *status, const char *name)
{
    for (size_t i = 0; i < descendants->programs.count; i++) {
        const struct program *program = &descendants->programs.items[i];
        if (program->device == status->st_dev && program->inode == status->st_ino && strcmp(program->name, name) == 0)
            return (uint32_t)i;
    }
    return UINT32_MAX;
}

/* Returns the program that runs in process PID: the file, or where that is hidden from us, NAME. UINT32_MAX for none (a
 * thread of the kernel, a process that has ended). */
static uint32_t program_of(struct descendants *descendants, pid_t pid, const char *name)
{
    char path[64], file[PATH_MAX];
    struct stat status = {0};
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t length = readlink(path, file, sizeof(file) - 1);
    if (length >= 0) {
        file[length] = '\0';
        plain_path(file);
        name = base_name(file);
        if (stat(path, &status) != 0) status = (struct stat){0};
    } else if (errno != EACCES && errno != EPERM) {
        return UINT32_MAX;
    }
    struct program program = {.device = status.st_dev, .inode = status.st_ino};
    (void)snprintf(program.name, sizeof(program.name), "%s", name);
    uint32_t known = find_program(descendants, &status, program.name);
    if (known != UINT32_MAX) return known;
    if (!array_reserve(&descendants->programs.items, &descendants->programs.capacity, descendants->programs.count + 1,
                       sizeof(program), PROGRAMS_MAX))
        return UINT32_MAX;
    if (status.st_ino) program.reason = reason_of_file(path);
    descendants->programs.items[descendants->programs.count] = program;
    return (uint32_t)descendants->programs.count++;
}

static void look_closely(const struct descendants *descendants, struct process *process)
{
    char path[64], status[8192];
    process->reason = (uint8_t)descendants->programs.items[process->program].reason;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", process->pid);
    if (read_file(path, status, sizeof(status)) <= 0) return;
    long inner_pid = status_number(status, "\nNSpid:", UINT_MAX - 1);
    if (inner_pid > 0) process->inner_pid = (pid_t)inner_pid;
    if (process->reason == REASON_NONE) process->reason = (uint8_t)reason_of_process(descendants, process->pid, status);
}

/* Among those that the last scan met, or this one. */
static struct process *find_process(const struct descendants *descendants, pid_t pid, uint64_t start_time,
                                    uint32_t program)
{
    for (size_t i = 0; i < descendants->live.count; i++) {
        struct process *process = &descendants->processes.items[descendants->live.items[i]];
        if (process->pid == pid && process->start_time == start_time && process->program == program) return process;
    }
    return NULL;
}

static void add_process(struct descendants *descendants, const struct process *process)
{
    size_t index = descendants->processes.count;
    if (!array_reserve(&descendants->processes.items, &descendants->processes.capacity, index + 1,
                       sizeof(struct process), PROCESSES_MAX) ||
        !array_reserve(&descendants->live.items, &descendants->live.capacity, descendants->live.count + 1,
                       sizeof(uint32_t), PROCESSES_MAX))
        return;
    descendants->processes.items[descendants->processes.count++] = *process;
    descendants->live.items[descendants->live.count++] = (uint32_t)index;
    look_closely(descendants, &descendants->processes.items[index]);
}

static void see_again(const struct descendants *descendants, struct process *process, uint64_t cpu_ticks)
{
    process->scan = descendants->scan;
    process->cpu_ticks = cpu_ticks;
    if (process->sightings < SIGHTINGS_TO_MISS_IT && ++process->sightings == SIGHTINGS_TO_BE_SURE)
        look_closely(descendants, process);
}

static void visit(struct descendants *descendants, pid_t pid)
{
    struct stat_line line;
    if (!read_stat(pid, &line)) return;
    uint32_t program = program_of(descendants, pid, line.name);
    if (program == UINT32_MAX) return;
    struct process *process = find_process(descendants, pid, line.start_time, program);
    if (process && process->scan == descendants->scan) return; /* two ways lead to it */
    if (process)
        see_again(descendants, process, line.cpu_ticks);
    else
        add_process(descendants, &(struct process){.pid = pid,
                                                   .inner_pid = pid,
                                                   .start_time = line.start_time,
                                                   .cpu_ticks = line.cpu_ticks,
                                                   .cpu_ticks_first = line.cpu_ticks,
                                                   .program = program,
                                                   .scan = descendants->scan,
                                                   .sightings = 1});
    add_children_of(descendants, pid);
}

/* The number that the kernel gave to the newest process or thread; 0: not known. */
static long newest_pid(void)
{
    char text[128];
    if (read_file("/proc/loadavg", text, sizeof(text)) <= 0) return 0;
    const char *last = strrchr(text, ' ');
    return last ? strtol(last, NULL, 10) : 0;
}

static bool all_are_settled(const struct descendants *descendants)
{
    for (size_t i = 0; i < descendants->live.count; i++) {
        if (descendants->processes.items[descendants->live.items[i]].sightings < SIGHTINGS_TO_MISS_IT) return false;
    }
    return descendants->live.count > 0;
}

/* A scan reads some files for each thread of the program. While no process starts on the machine, there is nothing to
 * find. */
static bool is_quiet(struct descendants *descendants)
{
    long before = descendants->last_pid;
    descendants->last_pid = newest_pid();
    return before != 0 && before == descendants->last_pid && all_are_settled(descendants) &&
           clock_ns(CLOCK_MONOTONIC) < descendants->scanned_ns + QUIET_NS_MAX;
}

uint64_t descendants_scan(struct descendants *descendants, pid_t root)
{
    uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (is_quiet(descendants)) {
        /* Reads the CPU times of all processes, which count also if a process is killed before the next scan. */
        for (size_t i = 0; i < descendants->live.count; i++) {
            struct process *process = &descendants->processes.items[descendants->live.items[i]];
            struct stat_line line;
            if (read_stat(process->pid, &line) && line.start_time == process->start_time)
                process->cpu_ticks = line.cpu_ticks;
        }
        return SCAN_NS_MAX;
    }
    descendants->scanned_ns = clock_ns(CLOCK_MONOTONIC);
    size_t known = descendants->processes.count;
    descendants->scan++;
    descendants->pending.count = 0;
    for (size_t i = 0; i < descendants->live.count; i++)
        add_pending(descendants, descendants->processes.items[descendants->live.items[i]].pid);
    add_pending(descendants, root);
    while (descendants->pending.count > 0) visit(descendants, descendants->pending.items[--descendants->pending.count]);
    size_t kept = 0;
    for (size_t i = 0; i < descendants->live.count; i++) {
        uint32_t index = descendants->live.items[i];
        if (descendants->processes.items[index].scan == descendants->scan) descendants->live.items[kept++] = index;
    }
    descendants->live.count = kept;
    uint64_t pause_ns = descendants->pause_ns + descendants->pause_ns / 4;
    if (pause_ns > SCAN_NS_MAX) pause_ns = SCAN_NS_MAX;
    if (descendants->processes.count != known || pause_ns < SCAN_NS_MIN) pause_ns = SCAN_NS_MIN;
    descendants->pause_ns = pause_ns;
    uint64_t affordable_ns = SCAN_COST_FACTOR * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
    return affordable_ns > pause_ns ? affordable_ns : pause_ns;
}

/* --- At the end --------------------------------------------------------------------------------------------------- */

static uint64_t ns_of_ticks(uint64_t ticks)
{
    long of_second = sysconf(_SC_CLK_TCK);
    return ticks * SECOND_NS / (uint64_t)(of_second > 0 ? of_second : 100);
}

uint64_t descendants_note_recorded(struct descendants *descendants, pid_t pid, const char *executable)
{
    uint64_t cpu_ticks = 0;
    for (size_t i = 0; descendants && i < descendants->processes.count; i++) {
        struct process *process = &descendants->processes.items[i];
        const char *name = descendants->programs.items[process->program].name;
        if (process->inner_pid != pid || strncmp(base_name(executable), name, NAME_SIZE - 1) != 0) continue;
        process->is_recorded = descendants->programs.items[process->program].is_recorded = true;
        if (process->cpu_ticks > cpu_ticks) cpu_ticks = process->cpu_ticks;
    }
    return ns_of_ticks(cpu_ticks);
}

void descendants_note_empty_recording(struct descendants *descendants, pid_t pid)
{
    for (size_t i = 0; descendants && i < descendants->processes.count; i++) {
        struct process *process = &descendants->processes.items[i];
        if (process->inner_pid == pid) process->has_empty_recording = true;
    }
}

/* A child that shares its parent's memory until it execs (vfork) can be seen many times on a busy machine. It has the
 * program of its parent, and uses no time to speak of. */
static bool must_have_left_a_recording(const struct descendants *descendants, const struct process *process)
{
    bool has_worked = process->cpu_ticks - process->cpu_ticks_first >= TICKS_OF_WORK;
    bool is_sampled_elsewhere = descendants->programs.items[process->program].is_recorded;
    return process->sightings >= SIGHTINGS_TO_MISS_IT && !process->has_empty_recording &&
           (has_worked || !is_sampled_elsewhere);
}

static enum reason reason_not_sampled(const struct descendants *descendants, const struct process *process)
{
    if (process->is_recorded) return REASON_NONE;
    if (process->reason == REASON_NONE && must_have_left_a_recording(descendants, process)) return REASON_UNKNOWN;
    /* The environment is empty for a moment while a program starts. */
    if (process->reason == REASON_ENVIRONMENT && process->sightings < SIGHTINGS_TO_BE_SURE) return REASON_NONE;
    return (enum reason)process->reason;
}

struct group {
    uint32_t program;
    enum reason reason;
    size_t count;
};

static void count_in_group(struct group *groups, size_t *group_count, const struct group *one)
{
    for (size_t i = 0; i < *group_count; i++) {
        if (groups[i].program != one->program || groups[i].reason != one->reason) continue;
        groups[i].count++;
        return;
    }
    if (*group_count < NAMED_MAX) groups[(*group_count)++] = *one;
}

struct not_sampled descendants_not_sampled(const struct descendants *descendants, struct buffer *names)
{
    struct group groups[NAMED_MAX];
    struct not_sampled result = {0};
    size_t group_count = 0, named = 0;
    for (size_t i = 0; descendants && i < descendants->processes.count; i++) {
        const struct process *process = &descendants->processes.items[i];
        enum reason reason = reason_not_sampled(descendants, process);
        if (reason == REASON_NONE) continue;
        result.count++;
        if (process->cpu_ticks > process->cpu_ticks_first)
            result.cpu_ns += ns_of_ticks(process->cpu_ticks - process->cpu_ticks_first);
        count_in_group(groups, &group_count, &(struct group){process->program, reason, 1});
    }
    for (size_t i = 0; i < group_count; i++) {
        if (names->size > 0) buffer_append_text(names, ", ");
        if (groups[i].count > 1) buffer_append_format(names, "%zu × ", groups[i].count);
        append_printable(names, descendants->programs.items[groups[i].program].name);
        buffer_append_format(names, " (%s)", reason_names[groups[i].reason]);
        named += groups[i].count;
    }
    if (result.count > named) buffer_append_format(names, ", %zu others", result.count - named);
    return result;
}
