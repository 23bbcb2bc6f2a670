/* AArch64: registers of an interrupted thread. Included by unwind/context.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_AARCH64_CONTEXT_H
#define OFFBEAT_UNWIND_AARCH64_CONTEXT_H

#include "unwind/machine.h"

#include <ucontext.h>

/* Returns the program counter in CONTEXT. Signal-safe. */
static inline uint64_t context_ip(const ucontext_t *context)
{
    return context->uc_mcontext.pc;
}

/* Returns the registers in CONTEXT. Signal-safe. */
static inline struct unwind_registers unwind_registers_of(const ucontext_t *context)
{
    struct unwind_registers registers = {.known = MACHINE_ALL_KNOWN};
    for (unsigned i = MACHINE_FP; i < MACHINE_REGISTERS; i++) {
        registers.values[i] = context->uc_mcontext.regs[dwarf_of_machine[i]];
    }
    registers.values[MACHINE_IP] = context->uc_mcontext.pc;
    registers.values[MACHINE_SP] = context->uc_mcontext.sp;
    return registers;
}

#endif
