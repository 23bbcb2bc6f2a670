/* Small files in /proc. Those of a thread stay open as long as there are enough descriptors: opening costs three times
 * as much as reading, and a process that gives up its rights can often not open them again.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_PROC_FILES_H
#define OFFBEAT_SAMPLER_PROC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of files in /proc/self/task/TID; -1: not open. */
struct thread_files {
    pid_t tid;
    int syscall;
    int delay;  /* schedstat */
    int status; /* opened for threads that were asked by a signal */
};

/* Begins with TID, and opens nothing. */
void thread_files_init(struct thread_files *files, pid_t tid);
void thread_files_close(struct thread_files *files);

/* Read a file as text, NUL-terminated and cut at SIZE - 1. Return false if it cannot be read. */
bool thread_read_syscall(struct thread_files *files, char *text, size_t size);
bool thread_read_status(struct thread_files *files, char *text, size_t size);

/* Opens what thread_read_syscall reads, if it may stay open. */
void thread_open_syscall(struct thread_files *files);

/* Reads how long the thread has waited for a processor since it began (schedstat), ns. The kernel adds a wait when it
 * ends. */
bool thread_read_delay(struct thread_files *files, uint64_t *ret_ns);
/* Does the same for the calling thread, which may be any one. Takes a descriptor for a moment. */
bool thread_read_own_delay(uint64_t *ret_ns);

/* Writes "/proc/self/task/TID/FILE" to PATH. */
enum { TASK_PATH_SIZE = 64 };
void task_path(char path[TASK_PATH_SIZE], pid_t tid, const char *file);

/* Find "KEY:" in STATUS, the text of a /proc/…/status file, and return the text after it (NULL without KEY), or the
 * number there (0 without KEY). */
const char *status_line(const char *status, const char *key);
uint64_t status_number(const char *status, const char *key, unsigned base);

/* Reads a small file under /proc, NUL-terminated, cut at SIZE - 1. Returns its size, negative if it cannot be read. */
ssize_t read_small_file(const char *path, char *buffer, size_t size);

#endif
