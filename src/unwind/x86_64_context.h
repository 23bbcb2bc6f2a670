/* x86-64: registers of an interrupted thread. Included by unwind/context.h.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_X86_64_CONTEXT_H
#define OFFBEAT_UNWIND_X86_64_CONTEXT_H

#include "unwind/machine.h"

#include <ucontext.h>

/* Returns the instruction pointer in CONTEXT. Signal-safe. */
static inline uint64_t context_ip(const ucontext_t *context)
{
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
}

/* Returns the registers in CONTEXT. Signal-safe. */
static inline struct unwind_registers unwind_registers_of(const ucontext_t *context)
{
    static const uint8_t places[MACHINE_REGISTERS] = {
        [MACHINE_IP] = REG_RIP,  [MACHINE_SP] = REG_RSP,  [MACHINE_FP] = REG_RBP,  [MACHINE_RBX] = REG_RBX,
        [MACHINE_R12] = REG_R12, [MACHINE_R13] = REG_R13, [MACHINE_R14] = REG_R14, [MACHINE_R15] = REG_R15,
        [MACHINE_RAX] = REG_RAX, [MACHINE_RDX] = REG_RDX, [MACHINE_RCX] = REG_RCX, [MACHINE_RSI] = REG_RSI,
        [MACHINE_RDI] = REG_RDI, [MACHINE_R8] = REG_R8,   [MACHINE_R9] = REG_R9,   [MACHINE_R10] = REG_R10,
        [MACHINE_R11] = REG_R11,
    };
    struct unwind_registers registers = {.known = MACHINE_ALL_KNOWN};
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        registers.values[i] = (uint64_t)context->uc_mcontext.gregs[places[i]];
    }
    return registers;
}

#endif
