/* x86-64: the system call itself, a new thread, and calls that AArch64 has only in their newer form. Included by
 * base/kernel.h. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_KERNEL_X86_64_H
#define OFFBEAT_BASE_KERNEL_X86_64_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Returns the result of system call NUMBER, or a negative errno. */
static inline long kernel_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

/* Keeps later loads of the calling thread after earlier ones. An acquire load does not keep earlier loads before
 * itself, and ThreadSanitizer knows no fences of C. */
static inline void kernel_order_loads(void)
{
    __asm__ volatile("" ::: "memory"); /* the processor does so itself */
}

static inline long kernel_address(const void *pointer)
{
    return (long)(uintptr_t)pointer;
}

static inline long kernel_unlink(const char *path)
{
    return kernel_call6(SYS_unlink, kernel_address(path), 0, 0, 0, 0, 0);
}

static inline long kernel_rename(const char *from, const char *to)
{
    return kernel_call6(SYS_rename, kernel_address(from), kernel_address(to), 0, 0, 0, 0);
}

/* Fills STATUS for the file at PATH, and follows symbolic links. */
static inline long kernel_stat(const char *path, struct stat *status)
{
    return kernel_call6(SYS_stat, kernel_address(path), kernel_address(status), 0, 0, 0, 0);
}

static inline long kernel_dup2(int from, int to)
{
    return kernel_call6(SYS_dup2, from, to, 0, 0, 0, 0);
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
    register long fourth __asm__("r10") = kernel_address(child_id);
    register long fifth __asm__("r8") = kernel_address(storage);
    long result;
    stack[0] = (void *)(uintptr_t)run;
    stack[1] = context;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "pop %%rax\n\t"
                     "pop %%rdi\n\t"
                     "call *%%rax\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags | UNTRACED), "S"(stack), "d"(0L), "r"(fourth),
                       "r"(fifth), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
