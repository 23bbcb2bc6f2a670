/* AArch64: the system call itself, a new thread, and calls that have only a newer form here. Included by base/kernel.h.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_KERNEL_AARCH64_H
#define OFFBEAT_BASE_KERNEL_AARCH64_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Returns the result of system call NUMBER, or a negative errno. */
static inline long kernel_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long call __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
}

/* Keeps later loads of the calling thread after earlier ones. An acquire load does not keep earlier loads before
 * itself, and ThreadSanitizer knows no fences of C. */
static inline void kernel_order_loads(void)
{
    __asm__ volatile("dmb ishld" ::: "memory");
}

static inline long kernel_address(const void *pointer)
{
    return (long)(uintptr_t)pointer;
}

static inline long kernel_unlink(const char *path)
{
    return kernel_call6(SYS_unlinkat, AT_FDCWD, kernel_address(path), 0, 0, 0, 0);
}

static inline long kernel_rename(const char *from, const char *to)
{
    return kernel_call6(SYS_renameat, AT_FDCWD, kernel_address(from), AT_FDCWD, kernel_address(to), 0, 0);
}

/* Fills STATUS for the file at PATH, and follows symbolic links. */
static inline long kernel_stat(const char *path, struct stat *status)
{
    return kernel_call6(SYS_newfstatat, AT_FDCWD, kernel_address(path), kernel_address(status), 0, 0, 0);
}

static inline long kernel_dup2(int from, int to)
{
    return kernel_call6(SYS_dup3, from, to, 0, 0, 0, 0);
}

/* A thread or process that calls RUN with CONTEXT on the stack that ends at STACK_END, a multiple of 16, and ends with
 * what it returns. Its id, or a negative errno. libc's clone is what sanitizers interpose: theirs looks for its own
 * thread-local storage in the child. A debugger does not follow: it would report threads and processes that are not the
 * program's. */
static inline long kernel_clone(int (*run)(void *context), void *context, void *stack_end, unsigned long flags,
                                void *storage, void *child_id)
{
    enum { UNTRACED = 0x00800000 }; /* CLONE_UNTRACED; <sched.h> has it with _GNU_SOURCE only */
    void **stack = (void **)stack_end - 2;
    register long call __asm__("x8") = SYS_clone;
    register long first __asm__("x0") = (long)(flags | UNTRACED);
    register long second __asm__("x1") = kernel_address(stack);
    register long third __asm__("x2") = 0;
    register long fourth __asm__("x3") = kernel_address(storage);
    register long fifth __asm__("x4") = kernel_address(child_id);
    stack[0] = (void *)(uintptr_t)run;
    stack[1] = context;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x30, xzr\n\t"
                     "ldp x1, x0, [sp], #16\n\t"
                     "blr x1\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc #0\n\t"
                     "1:"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), [exit] "i"(SYS_exit)
                     : "memory");
    return first;
}

#endif
