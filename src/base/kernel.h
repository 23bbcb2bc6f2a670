/* System calls without libc around them, for code in other people's processes: no errno is written, no cancellation
 * point entered, no interposed function called, and no thread-local storage needed, so that they work in a signal
 * handler and on a thread that libc knows nothing of. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_KERNEL_H
#define OFFBEAT_BASE_KERNEL_H

#if defined(__aarch64__)
#include "base/kernel_aarch64.h"
#else
#include "base/kernel_x86_64.h"
#endif
#include "base/timespec.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

static inline long kernel_call4(long number, long a, long b, long c, long d)
{
    return kernel_call6(number, a, b, c, d, 0, 0);
}

static inline long kernel_call3(long number, long a, long b, long c)
{
    return kernel_call6(number, a, b, c, 0, 0, 0);
}

/* getpid and gettid without libc, whose functions can be interposed. */
static inline pid_t kernel_process_id(void)
{
    return (pid_t)kernel_call3(SYS_getpid, 0, 0, 0);
}

static inline pid_t kernel_thread_id(void)
{
    return (pid_t)kernel_call3(SYS_gettid, 0, 0, 0);
}

static inline int kernel_open(const char *path, int flags, mode_t mode)
{
    return (int)kernel_call4(SYS_openat, AT_FDCWD, kernel_address(path), flags | O_CLOEXEC, (long)mode);
}

static inline void kernel_close(int descriptor)
{
    (void)kernel_call3(SYS_close, descriptor, 0, 0);
}

static inline ssize_t kernel_read(int descriptor, void *bytes, size_t size)
{
    return kernel_call3(SYS_read, descriptor, kernel_address(bytes), (long)size);
}

static inline ssize_t kernel_read_at(int descriptor, void *bytes, size_t size, uint64_t offset)
{
    return kernel_call4(SYS_pread64, descriptor, kernel_address(bytes), (long)size, (long)offset);
}

static inline ssize_t kernel_write(int descriptor, const void *bytes, size_t size)
{
    return kernel_call3(SYS_write, descriptor, kernel_address(bytes), (long)size);
}

static inline int64_t kernel_seek(int descriptor, int64_t offset, int whence)
{
    return kernel_call3(SYS_lseek, descriptor, offset, whence);
}

/* Sets the kernel's default action for signal NUMBER, for a process that has its own handlers. */
static inline void kernel_handle_as_usual(int number)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } usual = {0};
    (void)kernel_call4(SYS_rt_sigaction, number, kernel_address(&usual), 0, sizeof(usual.mask));
}

/* An entry of a directory, as getdents64 gives it. */
struct kernel_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static inline bool kernel_clock_ns(clockid_t clock, uint64_t *ret_ns)
{
    struct timespec now = {0};
    if (kernel_call3(SYS_clock_gettime, clock, kernel_address(&now), 0) != 0) return false;
    *ret_ns = (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
    return true;
}

/* Maps SIZE bytes at ADDRESS if that is free, else at an address that the kernel chooses. NULL if the kernel denies it.
 */
static inline void *kernel_map(uintptr_t address, size_t size, int protection, int flags, int descriptor)
{
    long result = kernel_call6(SYS_mmap, (long)address, (long)size, protection, flags, descriptor, 0);
    return result < 0 && result > -4096 ? NULL : (void *)(uintptr_t)result;
}

static inline void kernel_unmap(const void *memory, size_t size)
{
    (void)kernel_call3(SYS_munmap, kernel_address(memory), (long)size, 0);
}

#endif
