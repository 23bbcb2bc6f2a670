/* The registers of an interrupted thread, as the kernel gives them to a signal handler.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_UNWIND_CONTEXT_H
#define OFFBEAT_UNWIND_CONTEXT_H

#include "unwind/machine.h"

#include <string.h>
#include <ucontext.h>

/* Signal-safe. */
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

/* The last byte of what the kernel put on a stack for the signal: floating-point state, which contains its own size
 * (the kernel's uapi/asm/sigcontext.h, struct _fpx_sw_bytes). Unless the handler has its own stack, the stack that was
 * interrupted begins a red zone above. Signal-safe. */
static inline uint64_t unwind_signal_frame_end(const ucontext_t *context)
{
    enum { USUAL_SIZE = 512, SOFTWARE_BYTES = 464, EXTENDED_MAGIC = 0x46505853 };
    uint32_t magic_and_size[2];
    const uint8_t *state = (const uint8_t *)context->uc_mcontext.fpregs;
    if (!state) return (uint64_t)(uintptr_t)context;
    memcpy(magic_and_size, state + SOFTWARE_BYTES, sizeof(magic_and_size));
    return (uint64_t)(uintptr_t)state + (magic_and_size[0] == EXTENDED_MAGIC ? magic_and_size[1] : USUAL_SIZE) - 1;
}

#endif
