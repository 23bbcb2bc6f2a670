/* SPDX-License-Identifier: MIT */
#include "sampler/self.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

bool self_own_descriptors(void)
{
    enum { CLOSE_RANGE_UNSHARE_FLAG = 1u << 1 };
    return syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_FLAG) == 0;
}

static size_t read_through_proc(uint64_t address, void *buffer, size_t size)
{
    int descriptor = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t got = pread(descriptor, buffer, size, (off_t)address);
    (void)close(descriptor);
    return got < 0 ? 0 : (size_t)got;
}

size_t self_read_memory(uint64_t address, void *buffer, size_t size)
{
    struct iovec local = {.iov_base = buffer, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got >= 0 ? (size_t)got : read_through_proc(address, buffer, size);
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
