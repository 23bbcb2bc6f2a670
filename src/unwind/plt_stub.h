/* Stubs of a PLT, which jump to functions of other files, and other code that has no rules and can be recognized.
 * LLVM's linker writes no rules for stubs.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_UNWIND_PLT_STUB_H
#define OFFBEAT_UNWIND_PLT_STUB_H

#include "unwind/unwind.h"

/* Returns the address of the slot through which the stub at ADDRESS jumps; 0 if there is other code. Signal-safe. */
uint64_t plt_stub_slot(const struct unwind_code *code, uint64_t address);

/* Returns true if ADDRESS is in a stub, at an instruction before which the stub has changed neither the stack nor the
 * return address. Signal-safe. */
bool plt_stub_holds(const struct unwind_code *code, uint64_t address);

/* Returns true if the instruction that ends with the byte at LAST is a jump through a register. Signal-safe. */
bool is_register_jump(const struct unwind_code *code, uint64_t last);

/* Returns true if ADDRESS is the vdso's code to which a signal handler returns, if that has no rules. Signal-safe. */
bool is_signal_return(const struct unwind_code *code, uint64_t address);

/* Returns true if the code before ADDRESS clears the frame pointer: entry code without rules marks the root of a stack
 * so. Elsewhere a frame pointer of zero is any value. Signal-safe. */
bool clears_frame_pointer(const struct unwind_code *code, uint64_t address);

/* Returns the address to which an instruction that ends at NEXT refers by DISTANCE. */
static inline uint64_t address_at_distance(const uint8_t distance[4], uint64_t next)
{
    int32_t value;
    memcpy(&value, distance, sizeof(value));
    return next + (uint64_t)(int64_t)value;
}

#endif
