/* x86-64. Included by sampler/source/call_end.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CALL_END_X86_64_H
#define OFFBEAT_SAMPLER_CALL_END_X86_64_H

#include "unwind/context.h"
#include "unwind/unwind.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Returns the number of the system call that ends at IP; -1 if the code does not show it. Nearly all code has the
 * number right before the instruction (mov $number, %eax; syscall); the function syscall has not. Only code of files is
 * read, which stays there while a thread is in it: a new filter could kill for a question to the kernel whether it can
 * be read. */
static inline long number_of_call(const struct unwind_modules *modules, uint64_t ip)
{
    enum { MOV_TO_EAX = 0xb8, SIZE = 5 + 2 }; /* SIZE: bytes of both instructions */
    uint64_t bytes;
    const struct unwind_module *module = unwind_find_module(modules, ip);
    if (!module || ip - module->start < sizeof(bytes)) return -1;
    __builtin_memcpy(&bytes, (const void *)(uintptr_t)(ip - sizeof(bytes)), sizeof(bytes));
    bytes >>= 8 * (sizeof(bytes) - SIZE);
    return (bytes & 0xff) == MOV_TO_EAX ? (long)(bytes >> 8 & UINT32_MAX) : -1;
}

/* Returns true if a call that has added a seccomp filter could have these arguments. rt_sigprocmask has the same first
 * one, and often ends with a signal: the others distinguish them (seccomp(2): a strict mode takes none, a filter takes
 * flags and a pointer). */
static inline bool has_arguments_of_filter(const greg_t *registers)
{
    enum { FLAGS_MAX = 4095 };
    greg_t third_argument = registers[REG_RDX];
    bool has_flags = (uint64_t)registers[REG_RSI] <= FLAGS_MAX;
    switch (registers[REG_RDI]) {
    case PR_SET_SECCOMP:
        return has_flags;
    case SECCOMP_SET_MODE_STRICT:
        return registers[REG_RSI] == 0 && third_argument == 0;
    case SECCOMP_SET_MODE_FILTER:
        return has_flags && third_argument != 0;
    default:
        return false;
    }
}

/* Returns true if the signal has met its thread at the end of a call that may have installed a seccomp filter, after
 * the sampler made sure that there was none. The kernel leaves the return address of a system call in RCX, and the
 * arguments where they were, but not the number of the call. */
static inline bool may_have_new_filter(const struct unwind_modules *modules, const ucontext_t *context)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    if (registers[REG_RIP] != registers[REG_RCX] || registers[REG_RAX] != 0) return false;
    if (!has_arguments_of_filter(registers)) return false;
    long number = number_of_call(modules, (uint64_t)registers[REG_RIP]);
    return number == -1 || number == SYS_seccomp || number == SYS_prctl;
}

_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RCX]) == 152, "as signal_entry_x86_64.S has it");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == 168, "as signal_entry_x86_64.S has it");

#endif
