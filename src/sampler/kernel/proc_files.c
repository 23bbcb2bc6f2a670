/* SPDX-License-Identifier: MIT */
#include "sampler/kernel/proc_files.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/kernel/own_descriptors.h"

#include <string.h>

void thread_files_init(struct thread_files *files, pid_t tid)
{
    *files = (struct thread_files){.tid = tid, .syscall = -1, .delay = -1, .status = -1};
}

static void close_file(int file)
{
    if (file >= 0) kernel_close(file);
}

void thread_files_close(struct thread_files *files)
{
    close_file(files->syscall);
    close_file(files->delay);
    close_file(files->status);
    thread_files_init(files, files->tid);
}

static int open_unless_kept(pid_t tid, const char *name, int kept)
{
    char path[TASK_PATH_SIZE];
    if (kept >= 0) return kept;
    task_path(path, tid, name);
    return process_open(path, O_RDONLY);
}

static bool read_kept(pid_t tid, const char *name, int *kept, char *text, size_t size)
{
    int file = open_unless_kept(tid, name, *kept);
    ssize_t got = file < 0 ? -1 : kernel_read_at(file, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    *kept = process_keep(file);
    return got > 0;
}

bool thread_read_syscall(struct thread_files *files, char *text, size_t size)
{
    return read_kept(files->tid, "syscall", &files->syscall, text, size);
}

void thread_open_syscall(struct thread_files *files)
{
    files->syscall = process_keep(open_unless_kept(files->tid, "syscall", files->syscall));
}

bool thread_read_status(struct thread_files *files, char *text, size_t size)
{
    return read_kept(files->tid, "status", &files->status, text, size);
}

/* Parses "CPU_NS DELAY_NS SLICES". */
static bool parse_delay(const char *text, uint64_t *ret_ns)
{
    const char *blank = strchr(text, ' ');
    if (!blank) return false;
    const char *number = blank + 1;
    *ret_ns = plain_parse(&number, 10);
    return true;
}

bool thread_read_delay(struct thread_files *files, uint64_t *ret_ns)
{
    char text[96];
    return read_kept(files->tid, "schedstat", &files->delay, text, sizeof(text)) && parse_delay(text, ret_ns);
}

bool thread_read_own_delay(uint64_t *ret_ns)
{
    char text[96];
    return read_small_file("/proc/thread-self/schedstat", text, sizeof(text)) > 0 && parse_delay(text, ret_ns);
}

/* --- Any files ---------------------------------------------------------------------------------------------------- */

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
