/* SPDX-License-Identifier: MIT */
#include "recorder/task_files.h"

#include "base/clocks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool process_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
    struct timespec time;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return false;
    *ret_ns = (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
    return true;
}

size_t task_read_text(pid_t pid, const char *name, char *text, size_t size)
{
    char path[96];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    text[0] = '\0';
    if (descriptor < 0) return 0;
    ssize_t got = read(descriptor, text, size - 1);
    int errno_value = errno;
    (void)close(descriptor);
    errno = errno_value;
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

bool task_parse_times(const char *text, struct task_times *ret_times)
{
    uint64_t *const places[] = {&ret_times->cpu_ns, &ret_times->run_delay_ns, &ret_times->slices};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *end;
        *places[i] = strtoull(text, &end, 10);
        if (end == text) return false;
        text = end;
    }
    return true;
}

bool task_read_times(pid_t tid, struct task_times *ret_times)
{
    char text[96];
    return task_read_text(tid, "schedstat", text, sizeof(text)) > 0 && task_parse_times(text, ret_times);
}

/* The name is in parentheses and may hold any byte: the last parenthesis ends it. */
bool task_read_status(pid_t pid, struct task_status *ret_status)
{
    enum { FIELDS_TO_START = 18 };
    char text[1024];
    *ret_status = (struct task_status){0};
    if (task_read_text(pid, "stat", text, sizeof(text)) == 0) return false;
    const char *name = strchr(text, '(');
    char *end = strrchr(text, ')');
    if (!name || !end || end[1] != ' ') return false;
    *end = '\0';
    (void)snprintf(ret_status->name, sizeof(ret_status->name), "%s", name + 1);
    ret_status->state = end[2];
    char *at = end + 3;
    ret_status->parent = (pid_t)strtol(at, &at, 10);
    for (unsigned i = 0; i < FIELDS_TO_START - 1; i++) (void)strtoll(at, &at, 10);
    ret_status->start_ticks = strtoull(at, NULL, 10);
    return true;
}

bool task_list(const char *directory, bool (*each)(void *context, pid_t number), void *context)
{
    DIR *opened = opendir(directory);
    if (!opened) return false;
    bool goes_on = true;
    for (const struct dirent *entry; goes_on && (entry = readdir(opened));) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (number > 0 && *end == '\0') goes_on = each(context, (pid_t)number);
    }
    (void)closedir(opened);
    return true;
}
