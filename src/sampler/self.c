/* SPDX-License-Identifier: MIT */
#include "sampler/self.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t self_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t self_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

static bool has_own_descriptors;
static int memory_file = -1; /* kept open only in a table of our own */

bool self_own_descriptors(void)
{
    enum { CLOSE_RANGE_UNSHARE_FLAG = 1u << 1 };
    memory_file = -1;
    has_own_descriptors = !self_is_confined() && syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_FLAG) == 0;
    return has_own_descriptors;
}

bool self_has_own_descriptors(void)
{
    return has_own_descriptors;
}

void self_close_descriptors(void)
{
    if (memory_file >= 0) (void)close(memory_file);
    memory_file = -1;
}

bool self_is_confined(void)
{
    char text[4096];
    const char *key = "\nSeccomp:";
    if (self_read_file("/proc/thread-self/status", text, sizeof(text)) <= 0) return true;
    const char *line = strstr(text, key);
    return line && strtol(line + strlen(key), NULL, 10) != 0;
}

size_t self_read_memory(uint64_t address, void *buffer, size_t size)
{
    int file = memory_file >= 0 ? memory_file : open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = pread(file, buffer, size, (off_t)address);
    if (has_own_descriptors)
        memory_file = file;
    else
        (void)close(file);
    return got < 0 ? 0 : (size_t)got;
}

ssize_t self_read_file(const char *path, char *buffer, size_t size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    size_t filled = 0;
    while (filled < size - 1) {
        ssize_t got = read(descriptor, buffer + filled, size - 1 - filled);
        if (got <= 0) break;
        filled += (size_t)got;
    }
    (void)close(descriptor);
    buffer[filled] = '\0';
    return (ssize_t)filled;
}
