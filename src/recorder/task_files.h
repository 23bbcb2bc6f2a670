/* Reads what /proc tells of processes and threads.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_TASK_FILES_H
#define OFFBEAT_RECORDER_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the CPU time of a process with its ended threads, ns. Returns false if it has ended. */
bool process_cpu_ns(pid_t pid, uint64_t *ret_ns);

/* Reads the file NAME of process PID as text. Returns its length; 0 on failure, with errno. */
size_t task_read_text(pid_t pid, const char *name, char *text, size_t size);

/* The content of a schedstat file. SLICES grows each time that the thread gets a processor. */
struct task_times {
    uint64_t cpu_ns, run_delay_ns, slices;
};

bool task_parse_times(const char *text, struct task_times *ret_times);
bool task_read_times(pid_t tid, struct task_times *ret_times);

static inline bool task_times_equal(const struct task_times *a, const struct task_times *b)
{
    return a->cpu_ns == b->cpu_ns && a->run_delay_ns == b->run_delay_ns && a->slices == b->slices;
}

struct task_status {
    char state; /* state of the process's first thread, as in proc(5): R, S, D, T, t, Z, X */
    pid_t parent;
    uint64_t start_ticks;
    char name[16];
};
bool task_read_status(pid_t pid, struct task_status *ret_status);

/* Calls EACH for every number in DIRECTORY, a folder of /proc, until it returns false. Returns false if the folder
 * cannot be read. */
bool task_list(const char *directory, bool (*each)(void *context, pid_t number), void *context);

#endif
