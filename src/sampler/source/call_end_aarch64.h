/* AArch64. Included by sampler/source/call_end.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_CALL_END_AARCH64_H
#define OFFBEAT_SAMPLER_CALL_END_AARCH64_H

#include "unwind/context.h"
#include "unwind/unwind.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Returns true if the signal has met its thread at the end of a call that may have installed a seccomp filter, after
 * the sampler made sure that there was none. The kernel leaves the number of a system call in x8 and its arguments
 * where they were, but for the first: x0 is the result. No code is read: other code that has such a number in x8 and
 * zero in x0 loses the stack of a signal. */
static inline bool may_have_new_filter(const struct unwind_modules *modules, const ucontext_t *context)
{
    (void)modules;
    const uint64_t *registers = (const uint64_t *)context->uc_mcontext.regs;
    uint64_t second_argument = registers[1], number = registers[8];
    if (registers[0] != 0) return false;
    if (number == SYS_seccomp) return true;
    return number == SYS_prctl && (second_argument == SECCOMP_MODE_STRICT || second_argument == SECCOMP_MODE_FILTER);
}

_Static_assert(offsetof(ucontext_t, uc_mcontext.pc) == 440, "as signal_entry_aarch64.S has it");
_Static_assert(SYS_rt_sigprocmask == 135, "as signal_entry_aarch64.S has it");

#endif
